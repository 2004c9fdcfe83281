/** Owns the view that asks: an editor, parameters, what was asked before, and the answer. */

import { badge, button, nothing, segmented, trouble, waiting } from "../components/controls.js";
import { confirm } from "../components/dialog.js";
import { editor } from "../components/editor.js";
import { queryCompletion, queryLanguage } from "../components/languages.js";
import { popover } from "../components/popover.js";
import { toast, toastProblem } from "../components/toast.js";
import { afterPause, h, replace } from "../core/dom.js";
import { ago, count, duration } from "../core/format.js";
import { kindOf } from "../core/refs.js";
import { t } from "../core/texts.js";
import { answerView } from "./ask/answer.js";
import { askedBefore, keepAsked } from "./ask/asked.js";
import { downloads } from "./ask/downloads.js";
import { parameterForm } from "./ask/parameters.js";

export default {
  async open(context) {
    const asking = new Asking(context);
    await asking.begin();
    return { update: (next) => asking.follow(next), close: () => asking.close() };
  },
};

/** One sight of the view. `checked` is what the server last said of the text. */
class Asking {
  constructor(context) {
    this.context = context;
    this.running = null;
    this.checked = { queries: [] };
    this.answer = null;
    this.mine = null;
  }

  async begin() {
    const { context } = this;
    const { root, params } = context;
    const [mayChange] = await Promise.all([context.may("mutate")]);
    this.mayChange = mayChange && kindOf(context.ref) === "name";
    this.editor = editor({
      label: t("ask.editor"),
      text: params.q ?? "",
      language: queryLanguage,
      complete: queryCompletion(() => context.schema()),
      check: (text) => this.check(text),
      onchange: afterPause(400, () => this.remember()),
      onrun: () => this.run(),
      placeholder: t("ask.placeholder"),
    });
    this.runButton = button(t("ask.run"), {
      kind: "primary", icon: "play", onclick: () => this.run(), title: t("ask.run_hint"),
    });
    this.stopButton = button(t("ask.stop"), { icon: "stop", onclick: () => this.running?.abort() });
    this.stopButton.hidden = true;
    this.parameters = parameterForm(() => this.remember(), readParams(params.p));
    this.chooser = h("div.chooser", { hidden: true });
    this.status = h("div.status", { role: "status" });
    this.result = h("div.result", { tabindex: "-1" });
    this.tools = h("div.tools");
    root.classList.add("full");
    replace(
      root,
      h(
        "div.askbar",
        this.runButton,
        this.stopButton,
        this.chooser,
        h("span.space"),
        this.storedButton(),
        this.historyButton(),
        button(t("ask.tidy"), { kind: "quiet", onclick: () => this.tidy() }),
      ),
      h("div.asked", this.editor.element, this.parameters.element),
      h("div.answerbar", this.status, this.tools),
      this.result,
    );
    this.idle();
    if (params.q) await this.check(params.q).catch(() => {});
    if (params.run && params.q) this.run({ again: true });
    else this.editor.focus();
  }

  idle() {
    replace(this.status);
    replace(this.tools);
    replace(this.result, nothing(t("ask.idle")));
  }

  /** The mistakes in a text. The queries in it decide about the form and the button. */
  async check(text) {
    if (!text.trim()) {
      this.took({ diagnostics: [], queries: [] });
      return [];
    }
    const { graph, ref, signal } = this.context;
    const told = await graph.post("/check", { text, ref }, { signal });
    if (text === this.editor.text) this.took(told);
    return told.diagnostics;
  }

  took(told) {
    this.checked = told;
    const names = told.queries.map((one) => one.name).filter(Boolean);
    const held = this.context.params.name;
    this.name = names.includes(held) ? held : names[0];
    this.chooser.hidden = names.length < 2;
    const choices = names.map((name) => ({ value: name, label: name }));
    const choose = (name) => {
      this.name = name;
      this.remember();
      this.showQuery();
    };
    replace(this.chooser, names.length < 2 ? null : segmented(t("ask.which"), choices, this.name, choose));
    this.showQuery();
  }

  get query() {
    const { queries } = this.checked;
    return queries.find((one) => one.name === this.name) ?? queries[0];
  }

  showQuery() {
    const { query } = this;
    this.parameters.show(query?.parameters ?? []);
    const changes = query?.kind === "mutation";
    this.runButton.querySelector("span").textContent = changes
      ? t("ask.change", { branch: this.context.branch })
      : t("ask.run");
    this.runButton.disabled = changes && !this.mayChange;
  }

  /** The text, the parameters and the tab are the address. */
  remember(more = {}) {
    const given = this.parameters.values();
    const change = {
      q: this.editor.text || null,
      name: this.checked.queries.length > 1 ? this.name : null,
      p: Object.keys(given).length ? this.parameters.text() : null,
      ...more,
    };
    this.mine = change.q;
    this.context.go({ params: change }, { replace: true });
  }

  /** Somebody went to another address of this view: back, forward, or a link. */
  follow(context) {
    const { q = "", p, tab } = context.params;
    if (q !== this.editor.text && q !== this.mine) {
      this.editor.text = q;
      this.parameters.take(readParams(p));
      this.idle();
    }
    if (tab && this.answer) this.answer.choose(tab);
  }

  async run({ again = false } = {}) {
    const text = this.editor.text.trim();
    if (!text) return;
    this.running?.abort();
    const mine = (this.running = new AbortController());
    if (!again) await this.check(this.editor.text).catch(() => {});
    if (mine.signal.aborted) return;
    const { query } = this;
    if (query?.kind === "mutation") {
      await this.change(text);
      return;
    }
    const asked = { query: text, params: this.parameters.values() };
    if (this.name) asked.name = this.name;
    const { graph, ref } = this.context;
    this.busy(true);
    const began = performance.now();
    replace(this.result, waiting());
    try {
      const told = await graph.post("/query", { ...asked, ref, limit: 1000 }, { signal: mine.signal });
      if (this.running !== mine) return;
      keepAsked(graph.name, text);
      this.remember({ run: "1" });
      this.show(told, asked, performance.now() - began);
    } catch (error) {
      if (this.running !== mine) return;
      replace(this.status);
      replace(this.tools);
      const shown = trouble(error);
      replace(this.result, shown ?? nothing(t("ask.stopped")));
    } finally {
      if (this.running === mine) this.busy(false);
    }
  }

  busy(is) {
    this.stopButton.hidden = !is;
    this.runButton.hidden = is;
    if (!is) this.running = null;
  }

  show(told, asked, milliseconds) {
    this.answer?.close();
    const { context } = this;
    const tell = (rows, more) =>
      replace(
        this.status,
        h("strong", t("ask.rows", { rows: count(rows) })),
        more ? badge(t("ask.more"), "warn") : null,
        h("span", t("ask.took", { time: duration(milliseconds), reads: told.io.reads })),
      );
    tell(told.row_count, told.truncated);
    const pinned = { ...asked, ref: told.commit };
    this.answer = answerView(context, told, pinned, {
      tab: context.params.tab,
      ontab: (tab) => context.go({ params: { tab: tab === "table" ? null : tab } }, { replace: true }),
      onrows: tell,
    });
    replace(this.result, this.answer.element);
    replace(this.tools, this.answer.tools, downloads(context.graph, pinned));
  }

  async change(text) {
    const { graph, branch } = this.context;
    this.running = null;
    const yes = t("ask.change", { branch });
    if (!(await confirm(yes, t("ask.change_sure", { branch }), { yes }))) return;
    const body = { query: text, params: this.parameters.values(), branch };
    if (this.name) body.name = this.name;
    try {
      const told = await graph.post("/mutate", body);
      keepAsked(graph.name, text);
      toast(t("ask.changed", { nodes: count(told.nodes ?? 0), edges: count(told.edges ?? 0) }), {
        kind: "good",
      });
    } catch (error) {
      toastProblem(error);
    }
  }

  async tidy() {
    await this.check(this.editor.text).catch(toastProblem);
    const { formatted } = this.checked;
    if (formatted) this.editor.text = formatted.trimEnd();
    else toast(t("ask.untidy"));
  }

  put(text, params = {}) {
    this.editor.text = text;
    this.parameters.take(params);
    this.idle();
    this.check(text).catch(toastProblem);
    this.remember({ run: null });
    this.editor.focus();
  }

  historyButton() {
    const anchor = button(t("ask.history"), { kind: "quiet", icon: "time" });
    popover(
      anchor,
      (close) => {
        const asked = askedBefore(this.context.graph.name);
        const items = asked.map((one) => ({ text: one.text, hint: ago(one.at) }));
        return choices(items, t("ask.no_history"), (one) => (close(), this.put(one.text)));
      },
      { label: t("ask.history"), align: "end" },
    );
    return anchor;
  }

  storedButton() {
    const { graph, ref } = this.context;
    const anchor = button(t("ask.stored"), { kind: "quiet", icon: "data" });
    popover(
      anchor,
      (close) => {
        const panel = h("div", waiting());
        graph.get("/queries", { ref, limit: 1000 }).then(
          ({ items }) => {
            const shown = items.map((one) => ({
              text: one.text, name: one.name, hint: one.description || one.problem || "",
            }));
            replace(panel, choices(shown, t("ask.no_stored"), (one) => (close(), this.put(one.text))));
            panel.querySelector("button")?.focus();
          },
          (error) => replace(panel, trouble(error)),
        );
        return panel;
      },
      { label: t("ask.stored"), align: "end" },
    );
    return anchor;
  }

  close() {
    this.running?.abort();
    this.answer?.close();
    this.editor?.close();
  }
}

function readParams(text) {
  try {
    return text ? JSON.parse(text) : {};
  } catch {
    return {};
  }
}

/** Texts to choose from. */
function choices(items, none, onchoose) {
  if (!items.length) return nothing(none);
  return h(
    "ul.choices",
    items.map((one) =>
      h(
        "li",
        h(
          "button",
          { type: "button", onclick: () => onchoose(one) },
          one.name ? h("strong", one.name) : null,
          h("code", one.text.replace(/\s+/g, " ").slice(0, 160)),
          one.hint ? h("span.hint", one.hint) : null,
        ),
      ),
    ),
  );
}

/** Owns the view of the past: commits with their lanes, what each changed, and the graph as it grew. */

import { badge, button, field, link, nothing, segmented, trouble, waiting } from "../components/controls.js";
import { changeList, opBadge } from "../components/changes.js";
import { confirm } from "../components/dialog.js";
import { lanePiece, lanesWidth } from "../components/lanes.js";
import { tabs } from "../components/tabs.js";
import { toast, toastProblem } from "../components/toast.js";
import { afterPause, h, replace } from "../core/dom.js";
import { actorName, ago, moment } from "../core/format.js";
import { kindOf, shortCommit } from "../core/refs.js";
import { t } from "../core/texts.js";
import { growth } from "./history/growth.js";

const PAGE = 60;
const KINDS = ["write", "mutate", "load", "merge", "schema", "queries", "restore", "revert", "init"];

export default {
  async open(context) {
    const view = new HistoryView(context);
    await view.begin();
    return { update: (next) => view.follow(next), close: () => view.close() };
  },
};

class HistoryView {
  constructor(context) {
    this.context = context;
    this.shown = PAGE;
    this.asked = "";
  }

  async begin() {
    const { context } = this;
    const { root, params } = context;
    root.classList.add("full");
    [this.types, this.mayRevert] = await Promise.all([
      context.schema().then((one) => one.types),
      context.may("restore").then((may) => may && kindOf(context.ref) === "name"),
    ]);
    this.tabs = tabs(
      t("history.title"),
      [
        { name: "commits", label: t("history.commits"), show: (panel) => this.commits(panel) },
        { name: "growth", label: t("history.growth"), show: (panel) => this.growing(panel) },
      ],
      { chosen: params.tab, onchoose: (tab) => context.go({ params: { tab: tab === "commits" ? null : tab } }, { replace: true }) },
    );
    replace(root, this.tabs.element);
  }

  growing(panel) {
    this.grown?.close();
    this.grown = growth(this.context, this.types);
    replace(panel, this.grown.element);
  }

  commits(panel) {
    const { params } = this.context;
    const set = (name) => afterPause(300, (event) => this.go({ [name]: event.target.value || null }));
    const input = (name, props = {}) => h("input", { value: params[name] ?? "", oninput: set(name), ...props });
    const kind = h("select", { oninput: set("kind") }, ["", ...KINDS].map((one) => h("option", { value: one }, one)));
    kind.value = params.kind ?? "";
    this.list = h("div.log");
    this.detail = h("aside.side.detail", { "aria-label": t("history.detail") });
    replace(
      panel,
      h(
        "form.logfilter",
        { onsubmit: (event) => event.preventDefault() },
        segmented(
          t("history.of"),
          [{ value: "ref", label: t("history.this_ref") }, { value: "all", label: t("history.all") }],
          params.all ? "all" : "ref",
          (value) => this.go({ all: value === "all" ? "1" : null }),
        ),
        field(t("history.actor"), input("actor", { type: "text" })),
        field(t("history.kind"), kind),
        field(t("history.since"), input("since", { type: "date" })),
        field(t("history.until"), input("until", { type: "date" })),
      ),
      h("div.lookin", this.list, this.detail),
    );
    this.asked = "";
    this.load();
    this.showDetail();
  }

  go(params) {
    this.context.go({ params }, { replace: true });
  }

  follow(context) {
    const tab = context.params.tab ?? "commits";
    if (tab !== this.tabs.current) {
      this.tabs.choose(tab);
      return;
    }
    if (tab !== "commits") return;
    this.load();
    this.showDetail();
  }

  async load() {
    const { graph, ref, signal, params } = this.context;
    const { all, actor, kind, since, until } = params;
    const wanted = { ref, limit: this.shown, all: all ? "true" : null, actor, kind, since, until };
    const key = JSON.stringify(wanted);
    if (key === this.asked) {
      this.mark();
      return;
    }
    this.asked = key;
    try {
      const { items } = await graph.get("/commits/lanes", wanted, { signal });
      if (key === this.asked) this.show(items);
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(this.list, shown);
    }
  }

  show(items) {
    if (!items.length) {
      replace(this.list, nothing(t("history.none")));
      return;
    }
    const width = lanesWidth(items);
    replace(
      this.list,
      h("ol.lanelist", { "aria-label": t("history.commits") }, items.map((one, at) => this.row(one, items[at - 1], width))),
      items.length === this.shown
        ? button(t("history.more"), { onclick: () => ((this.shown += PAGE), this.load()) })
        : null,
    );
    this.mark();
  }

  row(one, before, width) {
    return h(
      "li",
      h(
        "a",
        { href: this.context.link({ path: [one.commit] }), "data-commit": one.commit },
        lanePiece(one, before, width),
        h(
          "div.commit",
          h("div.what", one.message || one.kind, one.labels.map((label) => badge(label, "accent"))),
          h("div.who", `${actorName(one.actor)} · ${ago(one.created_at)} · ${one.kind}`),
        ),
        h("span.hint.mono", shortCommit(one.commit)),
      ),
    );
  }

  mark() {
    const [chosen] = this.context.path;
    for (const one of this.list.querySelectorAll("a[data-commit]"))
      one.setAttribute("aria-current", String(one.dataset.commit === chosen));
  }

  async showDetail() {
    const { context, detail } = this;
    const [chosen] = context.path;
    if (this.told === chosen && detail.childElementCount) return;
    this.told = chosen;
    detail.hidden = !chosen;
    if (!chosen) {
      replace(detail);
      return;
    }
    replace(detail, waiting());
    const { graph, signal } = context;
    try {
      const [commit, changes] = await Promise.all([
        graph.get(`/commits/${chosen}`, {}, { signal }),
        graph.get(`/commits/${chosen}/changes`, { limit: 100 }, { signal }),
      ]);
      if (this.told === chosen) replace(detail, this.about(commit, changes));
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(detail, shown);
    }
  }

  about(commit, { items, cursor }) {
    const { context } = this;
    const href = (one) =>
      one.op === "delete" ? null : context.link({ view: "look", path: [one.type, one.id], ref: commit.commit, params: {} });
    const [parent] = commit.parents;
    const told = h("div", changeList(items, this.types, href));
    const more = cursor ? button(t("history.more_changes"), { onclick: () => this.moreChanges(commit, cursor, told, more, href) }) : null;
    return [
      h("header", h("h2", commit.message || commit.kind), h("p.hint", `${actorName(commit.actor)}, ${moment(commit.created_at)}`), h("code", commit.commit)),
      h(
        "div.actions",
        link(t("history.see"), context.link({ view: "overview", ref: commit.commit }), { class: "button" }),
        parent ? link(t("history.compare"), context.link({ view: "compare", params: { old: parent, new: commit.commit } }), { class: "button" }) : null,
        this.mayRevert && parent ? button(t("history.revert"), { kind: "danger", onclick: () => this.revert(commit) }) : null,
      ),
      h(
        "div.counts",
        Object.entries(commit.statistics).map(([type, counts]) =>
          h("div", h("strong", type), ["inserted", "updated", "deleted"].map((name, at) =>
            counts[name] ? opBadge(["insert", "update", "delete"][at], counts[name]) : null)),
        ),
      ),
      items.length ? told : nothing(t("history.no_changes")),
      more,
    ];
  }

  async moreChanges(commit, cursor, told, more, href) {
    more.disabled = true;
    try {
      const found = await this.context.graph.get(`/commits/${commit.commit}/changes`, { limit: 500, cursor });
      told.append(changeList(found.items, this.types, href));
      if (found.cursor) {
        more.disabled = false;
        more.onclick = null;
      }
      more.replaceWith(
        found.cursor
          ? button(t("history.more_changes"), { onclick: (event) => this.moreChanges(commit, found.cursor, told, event.currentTarget, href) })
          : "",
      );
    } catch (error) {
      toastProblem(error);
    }
  }

  async revert(commit) {
    const { graph, branch } = this.context;
    const sure = await confirm(t("history.revert"), t("history.revert_sure", { branch }), { yes: t("history.revert"), danger: true });
    if (!sure) return;
    try {
      await graph.post("/revert", { ref: commit.commit, branch });
      toast(t("history.reverted", { branch }), { kind: "good" });
      this.asked = "";
      this.load();
    } catch (error) {
      toastProblem(error);
    }
  }

  close() {
    this.grown?.close();
  }
}

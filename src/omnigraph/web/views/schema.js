/** Owns the view of the schema: as a picture, as text, and what a change of it would do. */

import { badge, button, field, nothing, trouble, waiting } from "../components/controls.js";
import { drawing } from "../components/drawing.js";
import { editor } from "../components/editor.js";
import { schemaCompletion, schemaLanguage } from "../components/languages.js";
import { tabs } from "../components/tabs.js";
import { toast } from "../components/toast.js";
import { h, replace } from "../core/dom.js";
import { count } from "../core/format.js";
import { kindOf } from "../core/refs.js";
import { t } from "../core/texts.js";

const TIERS = { safe: "good", validated: "warn", destructive: "bad", unsupported: "bad" };

export default {
  async open(context) {
    const view = new SchemaView(context);
    await view.begin();
    return {
      update: (next) => view.tabs.current !== next.params.tab && view.tabs.choose(next.params.tab ?? "picture"),
      close: () => view.close(),
    };
  },
};

class SchemaView {
  constructor(context) {
    this.context = context;
    this.open = [];
  }

  async begin() {
    const { context } = this;
    const { root, graph, ref, signal } = context;
    root.classList.add("full");
    replace(root, waiting());
    const [schema, stats, mayApply] = await Promise.all([
      context.schema(),
      graph.get("", { ref }, { signal }),
      context.may("schema_apply"),
    ]);
    this.schema = schema;
    this.counts = new Map(stats.types.map((one) => [one.name, one.count]));
    this.mayApply = mayApply && kindOf(ref) === "name";
    this.tabs = tabs(
      t("schema.title"),
      [
        { name: "picture", label: t("schema.picture"), show: (panel) => this.picture(panel) },
        { name: "text", label: t("schema.text"), show: (panel) => this.text(panel) },
        { name: "change", label: t("schema.change"), show: (panel) => this.change(panel) },
      ],
      {
        chosen: context.params.tab,
        onchoose: (tab) => context.go({ params: { tab: tab === "picture" ? null : tab } }, { replace: true }),
      },
    );
    replace(root, this.tabs.element);
  }

  clear() {
    for (const one of this.open) one.close();
    this.open = [];
  }

  /** Node types as nodes, edge types as edges; beside it, the types with their properties. */
  picture(panel) {
    this.clear();
    const { types } = this.schema;
    const detail = h("aside.side", { "aria-label": t("schema.types") });
    const drawn = drawing({
      types,
      named: false,
      label: (shown) => t("schema.told", shown),
      onselect: (nodes) => this.showTypes(detail, nodes.map((one) => one.id)),
    });
    this.open.push(drawn);
    replace(panel, h("div.lookin", h("div.looked", drawn.element), detail));
    const nodes = types.filter((one) => one.kind === "node");
    const edges = types.filter((one) => one.kind === "edge");
    const end = (name) => ({ type: name, id: name });
    drawn.add({
      nodes: nodes.map((one) => ({ type: one.name, id: one.name, data: { name: one.name } })),
      edges: edges.map((one) => ({ type: one.name, id: one.name, from: end(one.source), to: end(one.target), data: {} })),
    });
    this.showTypes(detail, []);
  }

  showTypes(detail, chosen) {
    const { types } = this.schema;
    const touches = (one) =>
      !chosen.length || [one.name, one.source, one.target].some((name) => chosen.includes(name));
    replace(
      detail,
      h("h2", chosen.length ? chosen.join(", ") : t("schema.types")),
      h("ul.types", { tabindex: "0", "aria-label": t("schema.types") }, types.filter(touches).map((one) => this.typeCard(one))),
    );
  }

  typeCard(one) {
    return h(
      "li",
      h(
        "div.hithead",
        h("h3", one.name),
        one.kind === "edge" ? h("span.hint", `${one.source} → ${one.target}`) : null,
        badge(count(this.counts.get(one.name) ?? 0)),
      ),
      h(
        "dl.properties",
        one.properties.map((each) => [
          h("dt", each.name, one.key.includes(each.name) ? h("span.hint", t("schema.key")) : null),
          h("dd", h("code", each.type + (each.nullable ? "?" : ""))),
        ]),
      ),
    );
  }

  text(panel) {
    this.clear();
    const shown = editor({
      label: t("schema.text"), text: this.schema.schema, language: schemaLanguage, readonly: true,
    });
    this.open.push(shown);
    shown.element.classList.add("tall");
    replace(panel, shown.element);
  }

  /** Another schema, what it would do step by step, and only then the change. */
  change(panel) {
    this.clear();
    const { graph, ref, branch, signal } = this.context;
    const written = editor({
      label: t("schema.new"),
      text: this.schema.schema,
      language: schemaLanguage,
      complete: schemaCompletion(),
      check: async (text) =>
        (await graph.post("/check", { text, language: "pg", ref }, { signal })).diagnostics,
      onrun: () => plan(),
      onchange: () => replace(told, nothing(t("schema.not_planned"))),
    });
    this.open.push(written);
    const told = h("div.plan-told", { role: "status" }, nothing(t("schema.not_planned")));

    const plan = async () => {
      replace(told, waiting());
      try {
        const found = await graph.post("/schema/plan", { schema: written.text, ref }, { signal });
        replace(told, this.planOf(found, written.text, branch));
      } catch (error) {
        replace(told, trouble(error));
      }
    };
    replace(
      panel,
      h(
        "div.changing",
        h(
          "div.writing",
          h("div.askbar", button(t("schema.plan"), { kind: "primary", icon: "play", onclick: plan })),
          written.element,
        ),
        told,
      ),
    );
  }

  planOf(plan, text, branch) {
    if (!plan.steps.length) return nothing(t("schema.no_steps"));
    const broken = plan.broken_queries.map((one) => h("li", h("strong", one.name), " ", one.message));
    return h(
      "div.steps",
      h("h2", t("schema.steps")),
      h(
        "ol",
        plan.steps.map((step) =>
          h("li", badge(t(`schema.${step.tier}`), TIERS[step.tier] ?? ""), h("div", h("code", step.text), h("p.hint", step.reason))),
        ),
      ),
      plan.notes.map((note) => h("p.hint", note)),
      broken.length ? [h("h3", t("schema.broken")), h("ul", broken)] : null,
      this.applyForm(plan, text, branch),
    );
  }

  applyForm(plan, text, branch) {
    if (!plan.can_be_applied) return h("p.bad", t("schema.cannot"));
    if (!this.mayApply) return h("p.hint", t("schema.may_not"));
    const message = h("input", { type: "text" });
    const agreed = h("input", { type: "checkbox" });
    const apply = button(t("schema.apply", { branch }), {
      kind: plan.is_destructive ? "danger" : "primary", type: "submit",
    });
    if (plan.is_destructive) {
      apply.disabled = true;
      agreed.addEventListener("change", () => (apply.disabled = !agreed.checked));
    }
    const problem = h("div");
    const done = async (event) => {
      event.preventDefault();
      apply.disabled = true;
      try {
        await this.context.graph.post("/schema/apply", {
          schema: text, branch, message: message.value || null, allow_data_loss: agreed.checked,
        });
        toast(t("schema.applied", { branch }), { kind: "good" });
        this.context.again();
      } catch (error) {
        replace(problem, trouble(error));
        apply.disabled = false;
      }
    };
    return h(
      "form",
      { onsubmit: done },
      field(t("schema.message"), message),
      plan.is_destructive ? h("label.check", agreed, t("schema.agree")) : null,
      apply,
      problem,
    );
  }

  close() {
    this.clear();
  }
}

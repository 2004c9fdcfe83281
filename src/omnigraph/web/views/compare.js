/** Owns the view of two refs side by side: what changed, as a list and on a drawing, and the merge. */

import { badge, button, field, nothing, trouble, waiting } from "../components/controls.js";
import { changeList, OPS, opBadge } from "../components/changes.js";
import { drawing } from "../components/drawing.js";
import { icon } from "../components/icons.js";
import { tabs } from "../components/tabs.js";
import { h, replace } from "../core/dom.js";
import { count } from "../core/format.js";
import { aroundNode, edgesBetween, keysOf, union } from "../core/neighbours.js";
import { kindOf } from "../core/refs.js";
import { t } from "../core/texts.js";
import { refPicker } from "../shell/refpicker.js";
import { review } from "./compare/review.js";

const PAGE = 200;
const DRAWN = 400;
const AROUND = 12;

export default {
  async open(context) {
    const view = new Comparing(context);
    await view.begin();
    return { update: () => view.show(), close: () => view.close() };
  },
};

class Comparing {
  constructor(context) {
    this.context = context;
    this.shown = "";
  }

  get refs() {
    const { params, ref } = this.context;
    return { old: params.old ?? "main", new: params.new ?? ref };
  }

  async begin() {
    const { context } = this;
    context.root.classList.add("full");
    this.types = (await context.schema()).types;
    await this.show();
  }

  go(params) {
    this.context.go({ params }, { replace: true });
  }

  async show() {
    const { old, new: fresh } = this.refs;
    const { type, op } = this.context.params;
    const key = JSON.stringify([old, fresh, type, op]);
    if (key === this.shown) {
      const tab = this.context.params.tab ?? "list";
      if (this.tabs && tab !== this.tabs.current) this.tabs.choose(tab);
      return;
    }
    this.shown = key;
    const { root, graph } = this.context;
    const pick = (name, label) =>
      refPicker(graph, this.refs[name], (chosen) => this.context.go({ params: { [name]: chosen } }), { label });
    const summary = h("div.counts", { role: "status" }, waiting());
    const body = h("div.compared");
    replace(
      root,
      h(
        "div.lookbar",
        h("span.hint", t("compare.old")), pick("old", t("compare.old")),
        button("", { icon: "compare", label: t("compare.swap"), kind: "quiet", onclick: () => this.context.go({ params: { old: fresh, new: old } }) }),
        h("span.hint", t("compare.new")), pick("new", t("compare.new")),
        h("span.space"),
        summary,
      ),
      body,
    );
    if (old === fresh) {
      replace(summary);
      replace(body, nothing(t("compare.same")));
      this.tabs = null;
      return;
    }
    try {
      const [told, schema] = await Promise.all([
        graph.get("/diff", { old, new: fresh, summary: "true" }),
        graph.get("/diff", { old, new: fresh, schema: "true" }),
      ]);
      if (key !== this.shown) return;
      this.counts = told.types;
      this.steps = schema;
      replace(summary, this.summary());
      this.fill(body);
    } catch (error) {
      replace(summary);
      const shown = trouble(error);
      if (shown) replace(body, shown);
    }
  }

  summary() {
    const all = { insert: 0, update: 0, delete: 0 };
    for (const counts of Object.values(this.counts)) for (const [op, number] of Object.entries(counts)) all[op] += number;
    const found = Object.entries(all).filter(([, number]) => number);
    return found.length ? found.map(([op, number]) => opBadge(op, number)) : badge(t("compare.none"));
  }

  fill(body) {
    const { context } = this;
    const list = [
      { name: "list", label: t("compare.list"), show: (panel) => this.list(panel) },
      { name: "overlay", label: t("compare.overlay"), show: (panel) => this.overlay(panel) },
    ];
    const mergeable = kindOf(this.refs.old) === "name" && kindOf(this.refs.new) === "name";
    if (mergeable) list.push({ name: "merge", label: t("compare.merge"), show: (panel) => this.merge(panel) });
    this.tabs = tabs(t("compare.title"), list, {
      chosen: context.params.tab,
      onchoose: (tab) => this.go({ tab: tab === "list" ? null : tab }),
    });
    replace(body, this.tabs.element);
  }

  async list(panel) {
    const { params } = this.context;
    const type = h("select", { oninput: (event) => this.go({ type: event.target.value || null }) },
      h("option", { value: "" }, t("compare.all_types")), Object.keys(this.counts).map((one) => h("option", { value: one }, one)));
    type.value = params.type ?? "";
    const op = h("select", { oninput: (event) => this.go({ op: event.target.value || null }) },
      h("option", { value: "" }, t("compare.all_ops")), Object.keys(OPS).map((one) => h("option", { value: one }, t(`changes.${OPS[one]}`))));
    op.value = params.op ?? "";
    const place = h("div.changes-in", waiting());
    replace(panel, h("div.comparelist", h("div.logfilter", field(t("compare.type"), type), field(t("compare.op"), op)), this.schemaSteps(), place));
    await this.more(place, null);
  }

  schemaSteps() {
    const { steps, queries } = this.steps;
    if (!steps.length && !queries.length) return null;
    return h(
      "section.card",
      h("h2", t("compare.schema")),
      h("ul", steps.map((one) => h("li", h("code", `${one.step} ${one.type ?? ""}`)))),
      queries.length ? h("p", t("compare.queries", { names: queries.map((one) => one.name).join(", ") })) : null,
    );
  }

  async more(place, cursor) {
    const { graph, signal, params } = this.context;
    const { old, new: fresh } = this.refs;
    const asked = { old, new: fresh, type: params.type, op: params.op, limit: PAGE, cursor };
    try {
      const found = await graph.get("/diff", asked, { signal });
      if (!cursor) replace(place);
      if (!found.items.length && !cursor) replace(place, nothing(t("compare.none")));
      const href = (one) => this.context.link({ view: "look", path: [one.type, one.id], ref: one.op === "delete" ? old : fresh, params: {} });
      place.append(changeList(found.items, this.types, href));
      if (found.cursor) {
        const next = button(t("compare.more"), { onclick: () => (next.remove(), this.more(place, found.cursor)) });
        place.append(next);
      }
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(place, shown);
    }
  }

  /** The changes on a drawing, with some of what is around them. */
  async overlay(panel) {
    const { graph, signal } = this.context;
    const { old, new: fresh } = this.refs;
    replace(panel, waiting());
    try {
      const { items, cursor } = await graph.get("/diff", { old, new: fresh, limit: DRAWN }, { signal });
      if (!items.length) {
        replace(panel, nothing(t("compare.none")));
        return;
      }
      const ops = new Map(items.map((one) => [JSON.stringify([one.type, one.id]), OPS[one.op]]));
      const nodes = items.filter((one) => one.kind === "node").map((one) => ({ type: one.type, id: one.id, data: one.after ?? one.before }));
      const kinds = new Map(this.types.map((one) => [one.name, one]));
      const edges = items.filter((one) => one.kind === "edge" && kinds.has(one.type)).map((one) => {
        const { src, dst, ...data } = one.after ?? one.before;
        const { source, target } = kinds.get(one.type);
        return { type: one.type, id: one.id, from: { type: source, id: src }, to: { type: target, id: dst }, data };
      });
      const there = nodes.filter((one) => ops.get(JSON.stringify([one.type, one.id])) !== "removed").slice(0, AROUND);
      const near = union(await Promise.all(there.map((one) => aroundNode(graph, fresh, this.types, one, { limit: 4, signal }))));
      const ends = edges.flatMap((one) => [one.from, one.to]).map((one) => ({ ...one, data: {} }));
      const all = union([{ nodes: [...ends, ...near.nodes, ...nodes], edges: [...near.edges, ...edges] }]);
      const between = await edgesBetween(graph, fresh, this.types, keysOf(all.nodes), { signal });
      this.drawn?.close();
      this.drawn = drawing({
        types: this.types,
        label: (shown) => t("compare.drawn", shown),
        marks: (_, one) => ops.get(JSON.stringify([one.type, one.id])) ?? "",
        onopen: (node) => this.context.go({ view: "look", path: [node.type, node.id], ref: fresh, params: {} }),
      });
      replace(
        panel,
        h("div.key", Object.keys(OPS).map((op) => opBadge(op)), cursor ? h("span.hint", t("compare.first", { shown: count(items.length) })) : null),
        this.drawn.element,
      );
      this.drawn.add({ nodes: all.nodes, edges: [...all.edges, ...between.edges] });
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(panel, shown);
    }
  }

  merge(panel) {
    replace(panel, h("div.mergetitle", h("code", this.refs.new), icon("right"), h("code", this.refs.old)), review(this.context, this.types, { source: this.refs.new, into: this.refs.old }));
  }

  close() {
    this.drawn?.close();
  }
}

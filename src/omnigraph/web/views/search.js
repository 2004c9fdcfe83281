/** Owns the view of everything that a search found, with the passages. */

import { badge, button, field, link, nothing, segmented, trouble, waiting } from "../components/controls.js";
import { afterPause, h, replace } from "../core/dom.js";
import { count, nameOf } from "../core/format.js";
import { nodesAndEdges } from "../core/neighbours.js";
import { hasVectors } from "../core/schema.js";
import { passage, searchGraph } from "../core/searching.js";
import { t } from "../core/texts.js";

const FOUND = 100;

export default {
  async open(context) {
    const { types } = await context.schema();
    const view = new Searching(context, types);
    view.begin();
    return { update: (next) => view.follow(next) };
  },
};

class Searching {
  constructor(context, types) {
    this.context = context;
    this.types = types;
    this.asking = null;
  }

  get wanted() {
    const { text = "", in: chosen = "", by = "words" } = this.context.params;
    return { text, by, types: chosen ? chosen.split(",") : [] };
  }

  begin() {
    const { root } = this.context;
    const { text, by } = this.wanted;
    this.input = h("input", { type: "search", value: text, autocomplete: "off" });
    this.input.addEventListener("input", afterPause(300, () => this.go({ text: this.input.value || null })));
    this.kinds = h("div.chips", { role: "group", "aria-label": t("search.types") });
    this.found = h("div.found");
    const ways = ["words", "meaning", "both"].map((value) => ({ value, label: t(`search.${value}`) }));
    replace(
      root,
      h("h1", t("search.title")),
      h(
        "div.searchform",
        field(t("search.text"), this.input),
        hasVectors(this.types)
          ? segmented(t("search.by"), ways, by, (value) => this.go({ by: value === "words" ? null : value }))
          : null,
        this.kinds,
      ),
      this.found,
    );
    if (!text) this.input.focus();
    this.search();
  }

  go(params) {
    this.context.go({ params }, { replace: true });
  }

  follow() {
    if (document.activeElement !== this.input) this.input.value = this.wanted.text;
    this.search();
  }

  showKinds() {
    const { types } = this.wanted;
    const searched = this.types.filter((one) => one.kind === "node");
    replace(
      this.kinds,
      searched.map((one) =>
        button(one.name, {
          "aria-pressed": String(types.includes(one.name)),
          onclick: () => {
            const next = types.includes(one.name)
              ? types.filter((name) => name !== one.name)
              : [...types, one.name];
            this.go({ in: next.join(",") || null });
          },
        }),
      ),
    );
  }

  async search() {
    const { graph, ref, signal } = this.context;
    this.showKinds();
    this.asking?.abort();
    const mine = (this.asking = new AbortController());
    signal.addEventListener("abort", () => mine.abort());
    const { wanted } = this;
    if (!wanted.text) {
      replace(this.found, nothing(t("search.idle")));
      return;
    }
    replace(this.found, waiting());
    try {
      const rows = await searchGraph(graph, ref, { ...wanted, limit: FOUND }, { signal: mine.signal });
      const names = await this.names(rows, mine.signal);
      if (!mine.signal.aborted) this.show(rows, names);
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(this.found, shown);
    }
  }

  /** What the entities are called. */
  async names(rows, signal) {
    const { graph, ref } = this.context;
    const keys = {};
    const nodes = new Set(this.types.filter((one) => one.kind === "node").map((one) => one.name));
    for (const { type, id } of rows) if (nodes.has(type)) (keys[type] ??= new Set()).add(id);
    const asked = Object.fromEntries(Object.entries(keys).map(([type, ids]) => [type, [...ids]]));
    const found = await nodesAndEdges(graph, ref, [], asked, { signal });
    const kinds = new Map(this.types.map((one) => [one.name, one]));
    return new Map(
      found.nodes.map((one) => [`${one.type} ${one.id}`, nameOf(kinds.get(one.type), one.id, one.data)]),
    );
  }

  show(rows, names) {
    const { context } = this;
    if (!rows.length) {
      replace(this.found, nothing(t("search.none")));
      return;
    }
    const keys = {};
    for (const { type, id } of rows) {
      const held = (keys[type] ??= []);
      if (!held.includes(id)) held.push(id);
    }
    const inGraph = (path, n) =>
      context.link({ view: "look", path, params: { n: n ? JSON.stringify(n) : null } });
    replace(
      this.found,
      h(
        "div.foundbar",
        h("p", { role: "status" }, t("search.found", { count: count(rows.length) })),
        link(t("search.all_in_graph"), inGraph([], keys), { class: "button" }),
      ),
      h(
        "ol.hits",
        rows.map(({ type, id, property, passage: text }) =>
          h(
            "li.card",
            h(
              "div.hithead",
              badge(type, "accent"),
              h("strong", names.get(`${type} ${id}`) ?? id),
              names.get(`${type} ${id}`) === id ? null : h("span.hint", id),
            ),
            h("p", h("span.hint", `${property}: `), passage(text)),
            link(t("search.in_graph"), inGraph([type, id]), { "aria-label": t("search.this_in_graph", { id }) }),
          ),
        ),
      ),
    );
  }
}

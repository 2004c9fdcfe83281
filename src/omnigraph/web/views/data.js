/** Owns the view of the entities of a type: a table of any length, an entity to edit, files to import. */

import { button, field, trouble, waiting } from "../components/controls.js";
import { popover } from "../components/popover.js";
import { table, windowedSource } from "../components/table.js";
import { h, replace } from "../core/dom.js";
import { count } from "../core/format.js";
import { kindOf } from "../core/refs.js";
import { t } from "../core/texts.js";
import { editEntity } from "./data/edit.js";
import { importFile } from "./data/import.js";
import { countRows, loadRows, TESTS } from "./data/rows.js";

export default {
  async open(context) {
    const view = new DataView(context);
    await view.begin();
    return { update: () => view.show(), close: () => view.close() };
  },
};

class DataView {
  constructor(context) {
    this.context = context;
    this.turn = 0;
  }

  get wanted() {
    const { params, path } = this.context;
    let filters = [];
    try {
      filters = params.where ? JSON.parse(params.where) : [];
    } catch {
      filters = [];
    }
    return { type: path[0] ?? this.types[0]?.name, filters, sort: params.sort, down: params.down === "1" };
  }

  async begin() {
    const { context } = this;
    const { root, ref } = context;
    root.classList.add("full");
    replace(root, waiting());
    const head = kindOf(ref) === "name";
    const [schema, stats, mayChange, mayLoad, mayBranch, mayMerge] = await Promise.all([
      context.schema(),
      context.graph.get("", { ref }, { signal: context.signal }),
      context.may("mutate"),
      context.may("load"),
      context.may("branch_create", "import/x"),
      context.may("merge"),
    ]);
    this.types = schema.types;
    this.counts = new Map(stats.types.map((one) => [one.name, one.count]));
    this.mayChange = head && mayChange;
    this.mayImport = head && mayLoad && mayBranch && mayMerge;
    await this.show();
  }

  go(params, path) {
    this.context.go({ params, path }, { replace: true });
  }

  async show() {
    this.turn += 1;
    const mine = this.turn;
    const { root } = this.context;
    const { wanted } = this;
    const kind = this.types.find((one) => one.name === wanted.type);
    const chooser = h(
      "select",
      { "aria-label": t("data.type"), oninput: (event) => this.go({ where: null, sort: null, down: null }, [event.target.value]) },
      this.types.map((one) => h("option", { value: one.name }, `${one.name} (${count(this.counts.get(one.name) ?? 0)})`)),
    );
    chooser.value = wanted.type;
    const status = h("div.status", { role: "status" });
    const place = h("div.rows-in", waiting());
    replace(
      root,
      h(
        "div.lookbar",
        chooser,
        this.filterButton(kind, wanted),
        wanted.filters.map((one, at) => this.chip(one, at, wanted)),
        status,
        this.mayImport ? button(t("data.import"), { icon: "download", onclick: () => importFile(this.context, this.types, () => this.context.again()) }) : null,
      ),
      place,
    );
    try {
      const total = wanted.filters.length
        ? await countRows(this.context, kind, wanted.filters)
        : (this.counts.get(wanted.type) ?? 0);
      if (mine !== this.turn) return;
      replace(status, t("data.rows", { rows: count(total) }));
      this.fill(place, kind, wanted, total);
    } catch (error) {
      const shown = trouble(error);
      if (shown && mine === this.turn) replace(place, shown);
    }
  }

  fill(place, kind, wanted, total) {
    const ends = kind.kind === "edge" ? ["src", "dst"] : [];
    const columns = [
      ...(kind.key.length ? [] : [{ name: "id", type: "String" }]),
      ...ends.map((name) => ({ name, type: "String" })),
      ...kind.properties.filter((one) => one.type !== "Blob"),
    ].map((one) => ({ name: one.name, type: one.type, hint: one.type, width: /^(I|U|F|Bool|Date)/.test(one.type) ? "12rem" : "20rem" }));
    this.grid?.close();
    this.grid = table({
      label: wanted.type,
      columns,
      source: windowedSource(total, (start, end, signal) => loadRows(this.context, kind, wanted, columns, start, end, signal)),
      sorted: wanted.sort ? { name: wanted.sort, down: wanted.down } : null,
      onsort: (name) => {
        const again = wanted.sort === name;
        this.go({ sort: again && wanted.down ? null : name, down: again && !wanted.down ? "1" : null });
      },
      onopen: (row) => editEntity(this.context, kind, row, { mayChange: this.mayChange, ondone: () => this.context.again() }),
    });
    replace(place, this.grid.element);
  }

  chip(one, at, wanted) {
    return h(
      "span.badge.accent",
      `${one.property} ${one.test} ${one.value} `,
      button("", {
        kind: "quiet", icon: "close", label: t("data.drop"),
        onclick: () => {
          const left = wanted.filters.filter((_, place) => place !== at);
          this.go({ where: left.length ? JSON.stringify(left) : null });
        },
      }),
    );
  }

  filterButton(kind, wanted) {
    const anchor = button(t("data.filter"), { icon: "filter" });
    const make = (close) => {
      const property = h("select", kind.properties.filter((one) => one.type !== "Blob").map((one) => h("option", { value: one.name }, one.name)));
      const test = h("select", TESTS.map((one) => h("option", { value: one }, one)));
      const value = h("input", { type: "text" });
      return h(
        "form.filterform",
        {
          onsubmit: (event) => {
            event.preventDefault();
            const one = { property: property.value, test: test.value, value: value.value };
            close();
            this.go({ where: JSON.stringify([...wanted.filters, one]) });
          },
        },
        field(t("look.property"), property),
        field(t("look.test"), test),
        field(t("look.value"), value),
        button(t("data.add"), { type: "submit", icon: "plus" }),
      );
    };
    popover(anchor, make, { label: t("data.filter") });
    return anchor;
  }

  close() {
    this.grid?.close();
  }
}

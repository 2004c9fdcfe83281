/** Owns the view that draws: a part of the graph, which grows, shrinks and is asked about. */

import { button, trouble, waiting } from "../components/controls.js";
import { drawing } from "../components/drawing.js";
import { rowsSource, table } from "../components/table.js";
import { toast, toastProblem } from "../components/toast.js";
import { h, replace } from "../core/dom.js";
import { count, nameOf } from "../core/format.js";
import { aroundNode, edgesBetween, keysOf, nodesAndEdges, sample } from "../core/neighbours.js";
import { t } from "../core/texts.js";
import { filterButton, passesAll } from "./look/filter.js";
import { inspector } from "./look/inspector.js";
import { shortestWay } from "./look/way.js";

const MOST = 2000;
const IN_ADDRESS = 150;
const BY_HOP = 25;
const MORE_BY_HOP = 250;
const UNDONE = 50;

export default {
  async open(context) {
    const looking = new Looking(context);
    await looking.begin();
    return { update: (next) => looking.follow(next), close: () => looking.close() };
  },
};

class Looking {
  constructor(context) {
    this.context = context;
    this.past = [];
    this.filters = parsed(context.params.f) ?? [];
    this.wayFrom = null;
    this.selected = [];
    this.list = null;
    this.told = context.params.n;
  }

  async begin() {
    const { context } = this;
    const { root, graph, ref, signal } = context;
    root.classList.add("full");
    replace(root, waiting());
    const [{ types }, stats] = await Promise.all([
      context.schema(),
      graph.get("", { ref }, { signal }),
    ]);
    this.types = types;
    this.total = stats.types.filter((one) => one.kind === "node").reduce((all, one) => all + one.count, 0);
    this.drawing = drawing({
      types,
      label: (shown) => t("look.told", shown),
      onselect: (nodes) => this.select(nodes),
      onexpand: (node) => this.expand(node),
      onlegend: (name) => this.do(() => this.drawing.toggle(name)),
    });
    this.status = h("div.status", { role: "status" });
    this.side = h("aside.side", { "aria-label": t("look.side") });
    this.makeTools();
    replace(
      root,
      h("div.lookbar", this.tools, this.status),
      h("div.lookin", h("div.looked", this.drawing.element), this.side),
    );
    try {
      await this.load();
    } catch (error) {
      replace(root, trouble(error, { retry: () => context.again() }));
      return;
    }
    this.drawing.only(passesAll(this.filters, this.types));
    this.changed({ address: false });
    this.showSide();
  }

  makeTools() {
    const tool = (name, icon, onclick, text = "") =>
      button(text, { icon, label: text ? null : t(`look.${name}`), onclick, "data-tool": name });
    this.undoTool = tool("undo", "undo", () => this.undo());
    this.expandTool = tool("expand", "spread", () => this.expand(this.selected[0]));
    this.pinTool = tool("pin", "pin", () => this.pin());
    this.hideTool = tool("hide", "hide", () => this.hide());
    this.wayTool = tool("way", "path", () => this.way());
    this.filterTool = filterButton(this.types, () => this.filters, (filters) =>
      this.do(() => {
        this.filters = filters;
        this.drawing.only(passesAll(filters, this.types));
      }),
    );
    this.tools = h(
      "div.toolbar",
      { role: "toolbar", "aria-label": t("look.tools") },
      this.undoTool, this.expandTool, this.pinTool, this.hideTool, this.wayTool,
      tool("arrange", "look", () => this.drawing.arrange()),
      this.filterTool,
      tool("again", "home", () => this.startAgain()),
    );
  }

  /** What the address says, or some of the graph. */
  async load() {
    const { graph, ref, signal, path, params } = this.context;
    const keys = parsed(params.n);
    const [type, id] = path;
    let found;
    if (keys) {
      if (type && id) (keys[type] ??= []).includes(id) || keys[type].push(id);
      found = await nodesAndEdges(graph, ref, this.types, keys, { signal });
    } else if (type && id) {
      const [self, near] = await Promise.all([
        nodesAndEdges(graph, ref, this.types, { [type]: [id] }, { signal }),
        aroundNode(graph, ref, this.types, { type, id }, { limit: BY_HOP, signal }),
      ]);
      found = { nodes: [...self.nodes, ...near.nodes], edges: near.edges };
    } else found = await sample(graph, ref, this.types, { signal });
    this.drawing.add(found);
    if (type && id) {
      const node = this.drawing.find(type, id);
      if (node.length) node.select();
      else toast(t("look.not_here", { type, id, ref }));
    }
  }

  /** Does something that can be undone. */
  do(work) {
    const { cy } = this.drawing;
    this.past.push({
      elements: cy.elements().jsons(),
      hidden: [...this.drawing.hidden],
      filters: this.filters,
    });
    if (this.past.length > UNDONE) this.past.shift();
    const done = work();
    this.changed();
    return done;
  }

  undo() {
    const before = this.past.pop();
    if (!before) return;
    const { cy, hidden } = this.drawing;
    cy.batch(() => {
      cy.elements().remove();
      cy.add(before.elements);
    });
    hidden.clear();
    for (const name of before.hidden) hidden.add(name);
    this.filters = before.filters;
    this.drawing.only(passesAll(this.filters, this.types));
    this.select(cy.nodes(":selected").map((one) => this.drawing.nodeOf(one)));
    this.changed();
  }

  changed({ address = true } = {}) {
    this.drawing.settle();
    const shown = this.drawing.shownNodes().length;
    replace(this.status, t("look.shown", { shown: count(shown), all: count(this.total) }));
    this.showTools();
    this.list?.setSource(rowsSource(this.listed()));
    if (address) this.remember();
  }

  showTools() {
    const one = this.selected.length === 1;
    this.undoTool.disabled = !this.past.length;
    this.expandTool.disabled = !one;
    this.pinTool.disabled = this.hideTool.disabled = !this.selected.length;
    this.wayTool.disabled = this.selected.length !== 2;
    this.filterTool.setAttribute("aria-pressed", String(this.filters.length > 0));
  }

  /** What is shown is in the address, as long as it is not too much for one. */
  remember() {
    const nodes = this.drawing.cy.nodes().map((one) => this.drawing.nodeOf(one));
    const few = nodes.length <= IN_ADDRESS && this.past.length > 0;
    const [one] = this.selected;
    this.told = few ? JSON.stringify(keysOf(nodes)) : this.past.length ? undefined : this.context.params.n;
    this.context.go(
      {
        path: this.selected.length === 1 ? [one.type, one.id] : [],
        params: {
          n: this.told ?? null,
          f: this.filters.length ? JSON.stringify(this.filters) : null,
        },
      },
      { replace: true },
    );
  }

  follow(context) {
    if (context.params.n !== this.told) {
      context.again();
      return;
    }
    const [type, id] = context.path;
    if (!type || !id) return;
    if (this.selected.length === 1 && this.selected[0].type === type && this.selected[0].id === id) return;
    const node = this.drawing.find(type, id);
    if (node.length) this.choose({ type, id });
    else this.bring({ type, id });
  }

  /** A node that is not drawn yet, with what is around it. */
  async bring(node) {
    const { graph, ref, signal } = this.context;
    try {
      const found = await nodesAndEdges(graph, ref, this.types, { [node.type]: [node.id] }, { signal });
      this.do(() => this.drawing.add(found, { layout: false }));
      await this.expand(node);
      this.choose(node);
    } catch (error) {
      toastProblem(error);
    }
  }

  select(nodes) {
    this.selected = nodes;
    if (this.wayFrom && nodes.length === 1 && !same(nodes[0], this.wayFrom)) {
      const from = this.wayFrom;
      this.wayFrom = null;
      this.way([from, nodes[0]]);
    }
    this.showTools();
    this.showSide();
    if (this.tools?.isConnected) this.remember();
  }

  /** Selects this node alone. */
  choose({ type, id }) {
    const { cy } = this.drawing;
    const node = this.drawing.find(type, id);
    cy.batch(() => {
      cy.elements(":selected").difference(node).unselect();
      node.select();
    });
    if (node.length) cy.animate({ center: { eles: node }, duration: 250 });
  }

  async expand(node, { hops, limit = BY_HOP } = {}) {
    if (!node) return;
    const { graph, ref, signal } = this.context;
    if (this.drawing.cy.nodes().length >= MOST) {
      toast(t("look.full", { most: count(MOST) }));
      return;
    }
    try {
      const found = await aroundNode(graph, ref, this.types, node, { limit, hops, signal });
      const known = new Set(this.drawing.cy.nodes().map((one) => one.id()));
      const all = [...found.nodes, ...this.drawing.cy.nodes().map((one) => this.drawing.nodeOf(one))];
      const between = known.size < 500 ? await edgesBetween(graph, ref, this.types, keysOf(all), { signal }) : { edges: [] };
      const added = this.do(() =>
        this.drawing.add({ nodes: found.nodes, edges: [...found.edges, ...between.edges] }, { near: node }),
      );
      toast(added ? t("look.came", { count: count(added) }) : t("look.none_came"));
    } catch (error) {
      toastProblem(error);
    }
  }

  pin() {
    this.do(() => {
      for (const one of this.selected) {
        const node = this.drawing.find(one.type, one.id);
        node.toggleClass("pinned");
        if (node.hasClass("pinned")) node.lock();
        else node.unlock();
      }
    });
  }

  hide() {
    this.do(() => {
      for (const one of this.selected) this.drawing.find(one.type, one.id).remove();
    });
    this.select([]);
  }

  async way(ends = this.selected) {
    const { graph, ref, signal } = this.context;
    const done = toast(t("look.searching"));
    try {
      const found = await shortestWay(graph, ref, this.types, ends[0], ends[1], { signal });
      done();
      if (!found) {
        toast(t("look.no_way"));
        return;
      }
      const keys = keysOf(found);
      const held = await nodesAndEdges(graph, ref, this.types, keys, { signal });
      this.do(() => {
        this.drawing.add(held, { near: ends[0] });
        this.mark(found);
      });
      toast(t("look.way_found", { steps: found.length - 1 }), { kind: "good" });
    } catch (error) {
      done();
      toastProblem(error);
    }
  }

  mark(way) {
    const { cy } = this.drawing;
    cy.elements().removeClass("way");
    way.forEach((one, at) => {
      const node = this.drawing.find(one.type, one.id).addClass("way");
      const next = way[at + 1];
      if (next) node.edgesWith(this.drawing.find(next.type, next.id)).first().addClass("way");
    });
  }

  startAgain() {
    this.context.go({ path: [], params: { n: null, f: null } }, { replace: true });
    this.context.again();
  }

  /** The entity that is selected, or a list of what is drawn: a drawing alone is not for everybody. */
  showSide() {
    this.list?.close();
    this.list = null;
    if (this.selected.length !== 1) {
      this.list = table({
        label: t("look.list"),
        columns: [
          { name: "name", label: t("look.name"), width: "minmax(9rem, 2fr)" },
          { name: "type", label: t("look.type"), width: "minmax(5rem, 1fr)" },
          { name: "degree", label: t("look.degree"), type: "I32", width: "5rem" },
        ],
        source: rowsSource(this.listed()),
        onopen: (row) => this.choose(row),
      });
      const told =
        this.selected.length > 1
          ? t("look.selected", { count: count(this.selected.length) })
          : t("look.list");
      replace(this.side, h("h2", told), this.wayFrom ? h("p.hint", t("look.way_to")) : null, this.list.element);
      return;
    }
    const [node] = this.selected;
    const { context } = this;
    replace(
      this.side,
      inspector(context, this.types, node, {
        colour: this.drawing.colourOf(node.type),
        tab: context.params.about,
        ontab: (tab) =>
          context.go({ params: { about: tab === "properties" ? null : tab } }, { replace: true }),
        onhop: (hop) => this.expand(node, { hops: [hop], limit: MORE_BY_HOP }),
        actions: [
          button(t("look.expand"), { icon: "spread", onclick: () => this.expand(node) }),
          button(t("look.way_from"), {
            icon: "path",
            onclick: () => {
              this.wayFrom = node;
              this.drawing.cy.elements(":selected").unselect();
              toast(t("look.way_to"));
            },
          }),
          button("", {
            kind: "quiet", icon: "close", label: t("look.unselect"),
            onclick: () => this.drawing.cy.elements(":selected").unselect(),
          }),
        ],
      }),
    );
  }

  listed() {
    const known = new Map(this.types.map((one) => [one.name, one]));
    return this.drawing
      .shownNodes()
      .map((one) => {
        const { type, id, data } = this.drawing.nodeOf(one);
        return { type, id, name: nameOf(known.get(type), id, data), degree: one.degree(false) };
      })
      .sort((a, b) => b.degree - a.degree || (a.name < b.name ? -1 : 1));
  }

  close() {
    this.list?.close();
    this.drawing?.close();
  }
}

function same(a, b) {
  return a.type === b.type && a.id === b.id;
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

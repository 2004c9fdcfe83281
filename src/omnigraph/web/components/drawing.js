/** Owns the drawing of a graph: nodes in the colour of their type, as large as their degree. */

import cytoscape from "../vendor/cytoscape.js";
import { h, replace } from "../core/dom.js";
import { count, nameOf } from "../core/format.js";
import { colour, onTheme, TYPE_COLOURS } from "../core/theme.js";
import { t } from "../core/texts.js";
import { button } from "./controls.js";

/** Above this, the layout is a draft and nothing is animated. */
const LARGE = 400;
const FEW_EDGES = 60;
/** A few nodes do not become giants. */
const CLOSEST = 1.3;

export const nodeKey = (type, id) => `${type} ${id}`;
const edgeKey = (one) => `edge ${one.type} ${one.id}`;

/** The colour of each node type, by its place in the schema. */
export function typeColours(types) {
  const nodes = types.filter((one) => one.kind === "node").map((one) => one.name);
  return new Map(nodes.map((name, at) => [name, `type-${at % TYPE_COLOURS}`]));
}

/**
 * `types` are those of the schema. `onselect(nodes)` is told what is selected, `onexpand(node)` of
 * a double click, `onopen(node)` the same where nothing expands. `marks` may give a node or an edge
 * a class: "added", "changed", "removed". Without `named` there is no legend. A node is
 * `{type, id, data}`.
 */
export function drawing({ types, label, onselect, onexpand, onopen, onlegend, marks, named = true }) {
  const canvas = h("div.canvas", { role: "img" });
  const legend = h("div.legend", { role: "group", "aria-label": t("drawing.legend") });
  const tools = h(
    "div.drawingtools",
    button("", { icon: "plus", label: t("drawing.closer"), onclick: () => zoom(1.4) }),
    button("", { icon: "minus", label: t("drawing.farther"), onclick: () => zoom(1 / 1.4) }),
    button("", { icon: "fit", label: t("drawing.fit"), onclick: () => fit() }),
  );
  const element = h("div.drawing", canvas, named ? legend : null, tools);
  const known = new Map(types.map((one) => [one.name, one]));
  const colours = typeColours(types);
  const hidden = new Set();
  let passes = () => true;
  let waits = null;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  const cy = cytoscape({
    container: canvas,
    elements: [],
    style: style(),
    minZoom: 0.05,
    maxZoom: 4,
    layout: { name: "preset" },
    boxSelectionEnabled: true,
  });
  const unthemed = onTheme(() => cy.style(style()));
  const nodeOf = (one) => ({ type: one.data("type"), id: one.data("key"), data: one.data("data") });

  cy.on("select unselect", "node", () => onselect?.(cy.nodes(":selected").map(nodeOf)));
  let tapped = { id: null, at: 0 };
  // Cytoscape takes two quick taps on two nodes for a double one.
  cy.on("tap", "node", ({ target, timeStamp }) => {
    const twice = tapped.id === target.id() && timeStamp - tapped.at < 400;
    tapped = { id: twice ? null : target.id(), at: timeStamp };
    if (twice) (onexpand ?? onopen)?.(nodeOf(target));
  });
  cy.on("mouseover", "node", (event) => event.target.connectedEdges().addClass("near"));
  cy.on("mouseout", "node", (event) => event.target.connectedEdges().removeClass("near"));
  const resized = new ResizeObserver(() => {
    cy.resize();
    if (waits) arrange(waits);
  });
  resized.observe(canvas);

  function style() {
    const text = colour("text");
    const rules = [
      {
        selector: "node",
        style: {
          width: "data(size)", height: "data(size)", label: "data(name)", color: text,
          "font-size": "data(font)", "font-family": "system-ui, sans-serif", "text-valign": "bottom",
          "text-margin-y": 4, "text-wrap": "ellipsis", "text-max-width": 120,
          "min-zoomed-font-size": 9, "background-color": colour("type-9"), "border-width": 2,
          "border-color": colour("surface"), "text-background-color": colour("ground"),
          "text-background-opacity": 0.75, "text-background-padding": 1,
        },
      },
      {
        selector: "edge",
        style: {
          width: 1.2, "line-color": colour("line-strong"), "target-arrow-color": colour("line-strong"),
          "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier",
          color: colour("text-soft"), "font-size": 9, "text-rotation": "autorotate",
          "min-zoomed-font-size": 7, "text-background-color": colour("ground"),
          "text-background-opacity": 0.85, "text-background-padding": 1,
        },
      },
      { selector: "edge.named, edge.near, edge:selected", style: { label: "data(type)" } },
      { selector: "edge.near", style: { "line-color": colour("accent"), "target-arrow-color": colour("accent"), width: 2 } },
      { selector: "node:selected", style: { "border-color": colour("accent"), "border-width": 4, "font-weight": "bold" } },
      { selector: "node.pinned", style: { "border-style": "double", "border-width": 5, "border-color": text } },
      { selector: ".way", style: { "line-color": colour("accent"), "target-arrow-color": colour("accent"), width: 4 } },
      { selector: "node.way", style: { width: "data(size)", "border-color": colour("accent"), "border-width": 4 } },
      { selector: ".dim", style: { opacity: 0.15 } },
      { selector: ".gone", style: { display: "none" } },
      ...[["added", "good"], ["changed", "warn"], ["removed", "bad"]].flatMap(([name, by]) => [
        { selector: `node.${name}`, style: { "border-color": colour(by), "border-width": 5 } },
        { selector: `edge.${name}`, style: { "line-color": colour(by), "target-arrow-color": colour(by), width: 3 } },
      ]),
      { selector: ".removed", style: { "line-style": "dashed", "border-style": "dashed" } },
    ];
    for (const [name, value] of colours)
      rules.splice(1, 0, { selector: `node[type = "${name}"]`, style: { "background-color": colour(value) } });
    return rules;
  }

  /** Adds what is not there yet; gives how many nodes were new. Edges without both ends stay out. */
  function add({ nodes = [], edges = [] }, { near, layout = true } = {}) {
    cy.resize();
    const before = cy.nodes().length;
    const from = near ? cy.$id(nodeKey(near.type, near.id)).position() : null;
    const fresh = [];
    for (const one of nodes) {
      const id = nodeKey(one.type, one.id);
      const held = cy.$id(id);
      if (held.length) continue;
      const at = fresh.length;
      fresh.push({
        group: "nodes",
        data: {
          id, type: one.type, key: one.id, data: one.data, size: 18, font: 11,
          name: nameOf(known.get(one.type), one.id, one.data),
        },
        position: from ? { x: from.x + 60 * Math.cos(at), y: from.y + 60 * Math.sin(at) } : undefined,
        classes: marks?.("node", one) ?? "",
      });
    }
    cy.batch(() => {
      cy.add(fresh);
      const lines = [];
      for (const one of edges) {
        const source = nodeKey(one.from.type, one.from.id);
        const target = nodeKey(one.to.type, one.to.id);
        if (cy.$id(edgeKey(one)).length || !cy.$id(source).length || !cy.$id(target).length) continue;
        lines.push({
          group: "edges",
          data: { id: edgeKey(one), source, target, type: one.type, key: one.id, data: one.data },
          classes: marks?.("edge", one) ?? "",
        });
      }
      cy.add(lines);
    });
    settle();
    if (layout && (fresh.length || !before)) arrange({ fresh: before === 0 });
    return fresh.length;
  }

  /** Sizes, names of edges, the legend and what a screen reader says, as they are now. */
  function settle() {
    cy.batch(() => {
      cy.nodes().forEach((one) => {
        const weight = Math.min(7, Math.sqrt(one.degree(false)));
        one.data("size", 16 + 5 * weight);
        one.data("font", 10 + weight);
        one.toggleClass("gone", hidden.has(one.data("type")) || !passes(nodeOf(one)));
      });
      cy.edges().toggleClass("named", cy.edges().length <= FEW_EDGES);
    });
    const told = { nodes: count(shownNodes().length), edges: count(shownEdges().length) };
    canvas.setAttribute("aria-label", label(told));
    showLegend();
  }

  function shownNodes() {
    return cy.nodes().filter((one) => !one.hasClass("gone"));
  }

  function shownEdges() {
    return cy
      .edges()
      .filter((one) => !one.source().hasClass("gone") && !one.target().hasClass("gone"));
  }

  function showLegend() {
    const held = new Map();
    cy.nodes().forEach((one) => held.set(one.data("type"), (held.get(one.data("type")) ?? 0) + 1));
    replace(
      legend,
      [...held].map(([name, number]) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(!hidden.has(name)),
            title: t("drawing.toggle", { type: name }),
            onclick: () => (onlegend ? onlegend(name) : toggle(name)),
          },
          h("span.dot", { style: { "--dot": `var(--${colours.get(name) ?? "type-9"})` } }),
          `${name} `,
          h("span.hint", count(number)),
        ),
      ),
    );
  }

  /** Only nodes for which this is true are shown. */
  function only(test) {
    passes = test ?? (() => true);
    settle();
  }

  /** Shows or hides a type. */
  function toggle(name) {
    if (hidden.has(name)) hidden.delete(name);
    else hidden.add(name);
    settle();
  }

  /** What has no place on the page yet waits for one. */
  function arrange({ fresh = false } = {}) {
    waits = canvas.clientWidth ? null : { fresh };
    if (waits) return;
    const shown = cy.elements().filter((one) => !one.hasClass("gone"));
    const pinned = cy.nodes(".pinned").map((one) => ({ nodeId: one.id(), position: one.position() }));
    const large = shown.nodes().length > LARGE;
    const layout = shown.layout({
      name: "fcose",
      quality: large ? "draft" : "default",
      randomize: fresh || large,
      animate: !still && !large && !fresh,
      animationDuration: 350,
      fit: true,
      padding: 40,
      nodeDimensionsIncludeLabels: false,
      idealEdgeLength: 85,
      nodeRepulsion: 7000,
      packComponents: true,
      fixedNodeConstraint: pinned.length ? pinned : undefined,
    });
    layout.one("layoutstop", () => {
      if (cy.zoom() > CLOSEST) fit();
    });
    layout.run();
  }

  function zoom(by) {
    cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 } });
  }

  function fit() {
    const shown = shownNodes();
    if (shown.length) cy.fit(shown, 40);
    if (cy.zoom() > CLOSEST) {
      cy.zoom(CLOSEST);
      cy.center(shown);
    }
  }

  return {
    element, cy, add, settle, arrange, toggle, only, fit, hidden, shownNodes, shownEdges, nodeOf,
    colourOf: (type) => `var(--${colours.get(type) ?? "type-9"})`,
    find: (type, id) => cy.$id(nodeKey(type, id)),
    close() {
      unthemed();
      resized.disconnect();
      cy.destroy();
    },
  };
}

"use strict";
// Draws the data of this page. Texts of the data only ever become text.
(async () => {
  const nonce = document.currentScript.nonce;
  const place = (id) => document.getElementById(id);
  const told = JSON.parse(place("data").textContent);
  const note = place("note");
  note.textContent = told.note;
  try {
    await load(place("library").textContent);
  } catch (error) {
    note.textContent = `${told.note}. The picture cannot be drawn here: ${error.message}`;
    return;
  }
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const [name, its] of told.groups) {
    const entry = document.createElement("span");
    const dot = document.createElement("i");
    dot.style.background = its;
    entry.append(dot, name);
    place("legend").append(entry);
  }
  const cy = cytoscape({
    container: place("graph"),
    elements: [
      ...told.nodes.map((node, at) => ({
        data: { id: `n${at}`, at, label: node.label, colour: node.colour },
      })),
      ...told.edges.map((edge, at) => ({
        data: {
          id: `e${at}`, at, source: `n${edge.source}`, target: `n${edge.target}`,
          label: told.edgeLabels ? edge.type : "",
        },
      })),
    ],
    style: [
      { selector: "node", style: {
        "background-color": "data(colour)", label: "data(label)", width: 22, height: 22,
        color: colour("--text"), "font-size": 10, "text-valign": "bottom", "text-margin-y": 3,
        "text-outline-width": 2, "text-outline-color": colour("--back"),
      } },
      { selector: "edge", style: {
        width: 1.3, "line-color": colour("--faint"), "target-arrow-color": colour("--faint"),
        "target-arrow-shape": "triangle", "arrow-scale": 0.8, "curve-style": "bezier",
        label: "data(label)", "font-size": 8, color: colour("--faint"),
        "text-rotation": "autorotate", "text-outline-width": 2,
        "text-outline-color": colour("--back"),
      } },
      { selector: ".faded", style: { opacity: 0.15 } },
      { selector: ":selected", style: { "border-width": 3, "border-color": colour("--text") } },
    ],
    layout: told.nodes.length < 2
      ? { name: "grid" }
      : { name: "fcose", animate: false, randomize: true, padding: 36, nodeSeparation: 90,
          idealEdgeLength: 90, nodeDimensionsIncludeLabels: true,
          tilingPaddingVertical: 40, tilingPaddingHorizontal: 60, quality: told.nodes.length > 150 ? "draft" : "default" },
    minZoom: 0.1, maxZoom: 4,
  });
  const fit = () => {
    cy.fit(undefined, 36);
    if (cy.zoom() > 1.5) {
      cy.zoom(1.5);
      cy.center();
    }
  };
  fit();
  const facts = place("facts");
  cy.on("tap", "node, edge", (event) => {
    const at = event.target.data("at");
    show(event.target.isNode() ? told.nodes[at] : told.edges[at]);
    const near = event.target.isNode() ? event.target.closedNeighborhood()
      : event.target.union(event.target.connectedNodes());
    cy.elements().addClass("faded");
    near.removeClass("faded");
  });
  cy.on("tap", (event) => {
    if (event.target === cy) {
      facts.hidden = true;
      cy.elements().removeClass("faded");
    }
  });
  place("fit").addEventListener("click", fit);
  globalThis.picture = cy;
  document.body.dataset.ready = "true";

  function show(one) {
    const title = document.createElement("b");
    title.textContent = `${one.type} ${one.id}`;
    const list = document.createElement("dl");
    for (const [name, value] of one.data) {
      const term = document.createElement("dt");
      const detail = document.createElement("dd");
      term.textContent = name;
      detail.textContent = value;
      list.append(term, detail);
    }
    facts.replaceChildren(title, list);
    facts.hidden = false;
  }

  async function load(packed) {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.nonce = nonce;
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    if (typeof cytoscape !== "function") throw new Error("its script did not run");
  }
})();

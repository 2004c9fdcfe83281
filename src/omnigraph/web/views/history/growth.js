/** Owns the slider over the commits of a ref: a drawing, or the answer to a query, as it was. */

import { button, field, nothing, segmented, trouble, waiting } from "../../components/controls.js";
import { drawing } from "../../components/drawing.js";
import { rowsSource, table } from "../../components/table.js";
import { afterPause, h, replace } from "../../core/dom.js";
import { actorName, count, moment, value as written } from "../../core/format.js";
import { keysOf, nodesAndEdges, sample } from "../../core/neighbours.js";
import { t } from "../../core/texts.js";

const COMMITS = 200;
const STEP = 900;

export function growth(context, types) {
  const { graph, ref, signal } = context;
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, step: 1 });
  const told = h("output.moment");
  const place = h("div.grown");
  const text = h("input", { type: "text", value: context.params.q ?? "", placeholder: t("history.query_hint"), spellcheck: "false" });
  const query = field(t("history.query"), text);
  let commits = [];
  let drawn = null;
  let grid = null;
  let all = null;
  let playing = 0;
  let turn = 0;
  let mode = context.params.q ? "query" : "drawing";
  query.hidden = mode !== "query";

  const play = button(t("history.play"), { icon: "play", onclick: () => (playing ? stop() : start()) });
  const element = h(
    "div.growth",
    h(
      "div.askbar",
      segmented(
        t("history.what"),
        [{ value: "drawing", label: t("history.a_drawing") }, { value: "query", label: t("history.a_query") }],
        mode,
        (value) => {
          mode = value;
          query.hidden = mode !== "query";
          context.go({ params: { q: mode === "query" ? text.value || null : null } }, { replace: true });
          begin();
        },
      ),
      query,
    ),
    h("div.timeline", play, field(t("history.slider"), slider), told),
    place,
  );
  slider.addEventListener("input", () => show());
  text.addEventListener(
    "input",
    afterPause(500, () => {
      context.go({ params: { q: text.value || null } }, { replace: true });
      show();
    }),
  );

  function start() {
    if (Number(slider.value) >= commits.length - 1) slider.value = 0;
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) >= commits.length - 1) stop();
    }, STEP);
    play.querySelector("span").textContent = t("history.pause");
    show();
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    play.querySelector("span").textContent = t("history.play");
  }

  async function begin() {
    drawn?.close();
    grid?.close();
    drawn = grid = null;
    replace(place, waiting());
    try {
      if (!commits.length) {
        const { items } = await graph.get("/commits", { ref, limit: COMMITS, first_parent: "true" }, { signal });
        commits = items.reverse();
        slider.max = commits.length - 1;
        slider.value = context.params.at ? Math.max(0, commits.findIndex((one) => one.commit === context.params.at)) : commits.length - 1;
      }
      if (mode === "drawing") await draw();
      else await show();
    } catch (error) {
      const problem = trouble(error);
      if (problem) replace(place, problem);
    }
  }

  /** The newest state is laid out once; the others show the part of it that was there. */
  async function draw() {
    all = await sample(graph, ref, types, { signal });
    if (!all.nodes.length) {
      replace(place, nothing(t("history.empty")));
      return;
    }
    drawn = drawing({ types, label: (shown) => t("history.drawn", shown) });
    replace(place, drawn.element);
    drawn.add(all);
    await show();
  }

  async function show() {
    const commit = commits[Number(slider.value)];
    if (!commit) return;
    turn += 1;
    const mine = turn;
    slider.setAttribute("aria-valuetext", commit.message || commit.kind);
    replace(told, h("strong", commit.message || commit.kind), ` ${actorName(commit.actor)}, ${moment(commit.created_at)} · ${Number(slider.value) + 1}/${commits.length}`);
    context.go({ params: { at: Number(slider.value) === commits.length - 1 ? null : commit.commit } }, { replace: true });
    try {
      if (mode === "drawing") await showDrawing(commit, mine);
      else await showAnswer(commit, mine);
    } catch (error) {
      if (mine !== turn) return;
      const problem = trouble(error);
      if (problem && mode === "query") replace(place, problem);
    }
  }

  async function showDrawing(commit, mine) {
    if (!drawn) return;
    const { types: then } = await graph.get("/schema", { ref: commit.commit }, { signal });
    const names = new Set(then.map((one) => one.name));
    const keys = Object.fromEntries(Object.entries(keysOf(all.nodes)).filter(([type]) => names.has(type)));
    const found = Object.keys(keys).length ? await nodesAndEdges(graph, commit.commit, then, keys, { signal }) : { nodes: [], edges: [] };
    if (mine !== turn || !drawn) return;
    const there = new Set(found.nodes.map((one) => JSON.stringify([one.type, one.id])));
    const lines = new Set(found.edges.map((one) => JSON.stringify([one.type, one.id])));
    drawn.cy.edges().forEach((one) => one.toggleClass("gone", !lines.has(JSON.stringify([one.data("type"), one.data("key")]))));
    drawn.only((node) => there.has(JSON.stringify([node.type, node.id])));
  }

  async function showAnswer(commit, mine) {
    if (!text.value.trim()) {
      replace(place, nothing(t("history.query_hint")));
      return;
    }
    const found = await graph.post("/query", { query: text.value, ref: commit.commit, limit: 1000 }, { signal });
    if (mine !== turn) return;
    grid?.close();
    grid = table({
      label: t("history.query"),
      columns: found.columns.map((one) => ({ name: one.name, type: one.type, width: "minmax(12ch, 26ch)", show: (row) => written(row[one.name]) })),
      source: rowsSource(found.rows),
    });
    replace(place, h("p.hint", t("history.rows", { rows: count(found.row_count) })), grid.element);
  }

  begin();
  return {
    element,
    close() {
      stop();
      drawn?.close();
      grid?.close();
    },
  };
}

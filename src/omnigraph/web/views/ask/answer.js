/** Owns an answer: as a table, as a graph, as JSON, and how it was found. */

import { button, nothing, trouble, waiting } from "../../components/controls.js";
import { openDialog } from "../../components/dialog.js";
import { rowsSource, table } from "../../components/table.js";
import { tabs } from "../../components/tabs.js";
import { toastProblem } from "../../components/toast.js";
import { breathe, h, replace } from "../../core/dom.js";
import { count, nameOf, value as written } from "../../core/format.js";
import { edgesBetween, keysOf } from "../../core/neighbours.js";
import { t } from "../../core/texts.js";
import { drawing } from "../../components/drawing.js";

const SHOWN_AS_JSON = 200;
const MOST_DRAWN = 1500;
/** So few that the edges between them are asked for, also those that the query gave no name. */
const MOST_JOINED = 500;

/** `told` is the first page; `asked` is the query at its commit. */
export function answerView(context, told, asked, { tab, ontab, onrows }) {
  const { graph } = context;
  const stop = new AbortController();
  let rows = told.rows;
  let grid = null;
  let drawn = null;

  const more = button(t("ask.all"), { icon: "down", onclick: () => all() });
  more.hidden = !told.truncated;

  async function all() {
    more.disabled = true;
    const found = [];
    try {
      for await (const some of graph.lines("POST", "/query", { body: asked, signal: stop.signal })) {
        for (const one of some) found.push(one);
        if (found.length >= rows.length) {
          rows = found;
          grid?.setSource(rowsSource(rows));
          onrows(rows.length, true);
        }
        await breathe();
      }
      rows = found;
      grid?.setSource(rowsSource(rows));
      onrows(rows.length, false);
      more.hidden = true;
    } catch (error) {
      toastProblem(error);
      more.disabled = false;
    }
  }

  function asTable(panel) {
    const columns = told.columns.map((one) => ({
      name: one.name,
      type: one.type,
      hint: one.type,
      width: columnWidth(one, told.rows),
      show: (row) => cellText(one, row[one.name]),
    }));
    grid?.close();
    grid = table({
      label: t("ask.table"),
      columns,
      source: rowsSource(rows),
      onopen: (row) => openRow(told.columns, row),
    });
    panel.append(grid.element);
  }

  function asJson(panel) {
    const text = JSON.stringify(rows.slice(0, SHOWN_AS_JSON), null, 2);
    if (rows.length > SHOWN_AS_JSON)
      panel.append(h("p.hint", t("ask.first_rows", { shown: SHOWN_AS_JSON, all: count(rows.length) })));
    panel.append(h("pre.json", { tabindex: "0", role: "region", "aria-label": t("ask.json") }, text));
  }

  async function asGraph(panel) {
    replace(panel, waiting());
    try {
      const [found, { types }] = await Promise.all([
        graph.post("/query", { ...asked, shape: "graph" }, { signal: stop.signal }),
        context.schema(),
      ]);
      if (!found.nodes.length) {
        replace(panel, nothing(t("ask.no_graph")));
        return;
      }
      drawn?.close();
      drawn = drawing({
        types,
        label: (shown) => t("ask.graph_told", shown),
        onopen: (node) => context.go({ view: "look", path: [node.type, node.id], params: {} }),
      });
      replace(
        panel,
        found.nodes.length > MOST_DRAWN
          ? h("p.hint", t("ask.drawn", { shown: count(MOST_DRAWN), all: count(found.nodes.length) }))
          : null,
        drawn.element,
      );
      const nodes = found.nodes.slice(0, MOST_DRAWN);
      const between =
        nodes.length <= MOST_JOINED
          ? await edgesBetween(graph, asked.ref, types, keysOf(nodes), { signal: stop.signal })
          : { edges: [] };
      drawn.add({ nodes, edges: [...found.edges, ...between.edges] });
    } catch (error) {
      replace(panel, trouble(error));
    }
  }

  async function asPlan(panel) {
    replace(panel, waiting());
    const { ref, ...query } = asked;
    const show = async (analyze) => {
      try {
        const { plan } = await graph.post("/explain", { ...query, ref, analyze }, { signal: stop.signal });
        replace(
          panel,
          analyze ? null : button(t("ask.analyze"), { onclick: () => show(true) }),
          h("pre.plan", { tabindex: "0", role: "region", "aria-label": t("ask.plan") }, plan),
        );
      } catch (error) {
        replace(panel, trouble(error));
      }
    };
    await show(false);
  }

  const shown = tabs(
    t("ask.answer"),
    [
      { name: "table", label: t("ask.table"), show: asTable },
      { name: "graph", label: t("ask.graph"), show: asGraph },
      { name: "json", label: t("ask.json"), show: asJson },
      { name: "plan", label: t("ask.plan"), show: asPlan },
    ],
    { chosen: tab, onchoose: ontab },
  );
  return {
    element: shown.element,
    tools: more,
    choose: (name) => name !== shown.current && shown.choose(name),
    close() {
      stop.abort();
      grid?.close();
      drawn?.close();
    },
  };
}

function cellText(column, value) {
  if (value && typeof value === "object" && "@id" in value) return nameOf(null, value["@id"], value);
  return written(value);
}

/** As wide as the longest of the first values, within reason. */
function columnWidth(column, rows) {
  const longest = rows
    .slice(0, 50)
    .reduce((most, row) => Math.max(most, cellText(column, row[column.name]).length), column.name.length + 6);
  return `${Math.min(60, Math.max(10, longest + 4))}ch`;
}

function openRow(columns, row) {
  const shown = columns.map(({ name, type }) => {
    const value = row[name];
    const text = value && typeof value === "object" ? JSON.stringify(value, null, 2) : written(value);
    return [h("dt", name, h("span.hint", type)), h("dd", text === "" ? t("null") : h("pre", text))];
  });
  openDialog(t("ask.row"), h("dl.properties", shown));
}

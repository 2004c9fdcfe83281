/** Owns answers as files: the query is asked again at the same commit, for all of its rows. */

import { button } from "../../components/controls.js";
import { popover } from "../../components/popover.js";
import { toast, toastProblem } from "../../components/toast.js";
import { saveFile } from "../../core/api.js";
import { breathe, h } from "../../core/dom.js";
import { t } from "../../core/texts.js";

const FORMS = [
  { name: "csv", make: asCsv },
  { name: "jsonl", make: (graph, asked) => asSent(graph, asked, "application/jsonl") },
  { name: "arrow", make: (graph, asked) => asSent(graph, asked, "application/vnd.apache.arrow.stream") },
];

export function downloads(graph, asked) {
  const anchor = button(t("ask.download"), { icon: "download" });
  popover(
    anchor,
    (close) =>
      h(
        "div.menu",
        FORMS.map(({ name, make }) =>
          button(t(`ask.as_${name}`), {
            kind: "quiet",
            onclick: async () => {
              close();
              const told = toast(t("ask.downloading"));
              try {
                saveFile(await make(graph, asked), `${graph.name}.${name}`);
              } catch (error) {
                toastProblem(error);
              } finally {
                told();
              }
            },
          }),
        ),
      ),
    { label: t("ask.download"), align: "end" },
  );
  return anchor;
}

async function asSent(graph, body, accept) {
  return (await graph.send("POST", "/query", { body, accept })).blob();
}

async function asCsv(graph, body) {
  const parts = [];
  let names = null;
  const first = await graph.post("/query", { ...body, limit: 1 });
  names = first.columns.map((one) => one.name);
  parts.push(`${names.map(quoted).join(",")}\r\n`);
  for await (const rows of graph.lines("POST", "/query", { body })) {
    parts.push(rows.map((row) => `${names.map((name) => quoted(row[name])).join(",")}\r\n`).join(""));
    await breathe();
  }
  return new Blob(parts, { type: "text/csv" });
}

function quoted(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}

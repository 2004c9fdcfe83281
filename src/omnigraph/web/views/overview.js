/** Owns the first view of a graph: what is in it, and what happened last. */

import { badge, link, trouble, waiting } from "../components/controls.js";
import { icon } from "../components/icons.js";
import { h, replace } from "../core/dom.js";
import { actorName, ago, count } from "../core/format.js";
import { shortCommit } from "../core/refs.js";
import { t } from "../core/texts.js";

export default {
  async open(context) {
    const { graph, ref, root, signal } = context;
    replace(root, waiting());
    try {
      const [stats, log] = await Promise.all([
        graph.get("", { ref }, { signal }),
        graph.get("/commits", { ref, limit: 8 }, { signal }),
      ]);
      replace(root, h("h1", graph.name), figures(stats), h("div.columns", types(stats), recent(log, context)));
    } catch (error) {
      replace(root, trouble(error, { retry: () => context.again() }));
    }
  },
};

function figures({ types: rows, branches, tags }) {
  const sum = (kind) =>
    rows.filter((one) => one.kind === kind).reduce((all, one) => all + one.count, 0);
  const shown = [
    [t("overview.nodes"), sum("node")],
    [t("overview.edges"), sum("edge")],
    [t("overview.branches"), branches.length],
    [t("overview.tags"), tags.length],
  ];
  return h(
    "dl.figures",
    shown.map(([name, number]) => h("div.figure", h("dt", name), h("dd", count(number)))),
  );
}

function types({ types: rows }) {
  const most = Math.max(1, ...rows.map((one) => one.count));
  return h(
    "section.card",
    h("h2", t("overview.types")),
    h(
      "table.plain",
      h(
        "thead",
        h(
          "tr",
          h("th", { scope: "col" }, t("overview.type")),
          h("th", { scope: "col" }, t("overview.kind")),
          h("th.number", { scope: "col" }, t("overview.count")),
        ),
      ),
      h(
        "tbody",
        rows.map((one) =>
          h(
            "tr",
            h("th", { scope: "row" }, one.name),
            h("td", badge(t(`overview.${one.kind}`))),
            h(
              "td.number.bar",
              { style: { "--share": `${(100 * one.count) / most}%` } },
              count(one.count),
            ),
          ),
        ),
      ),
    ),
  );
}

function recent({ items }, context) {
  return h(
    "section.card",
    h("h2", t("overview.head")),
    h(
      "ol.commits",
      items.map((one) =>
        h(
          "li",
          icon("commit"),
          h(
            "div",
            h("div.what", one.message || one.kind),
            h("div.who", t("overview.by", { actor: actorName(one.actor), ago: ago(one.created_at) })),
          ),
          link(shortCommit(one.commit), context.link({ ref: one.commit }), {
            class: "mono", title: one.commit,
          }),
        ),
      ),
    ),
  );
}

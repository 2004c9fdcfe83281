/** Owns what is told of one entity: its properties, what is around it, its history, who set what. */

import { badge, button, link, nothing, trouble, waiting } from "../../components/controls.js";
import { icon } from "../../components/icons.js";
import { tabs } from "../../components/tabs.js";
import { h, replace } from "../../core/dom.js";
import { actorName, ago, count, nameOf, value as written } from "../../core/format.js";
import { countAround } from "../../core/neighbours.js";
import { kindOf, shortCommit } from "../../core/refs.js";
import { t } from "../../core/texts.js";

/** `actions` are buttons; `onhop(hop)` shows the neighbours along one kind of edge. */
export function inspector(context, types, { type, id }, { colour, actions = [], onhop, tab, ontab }) {
  const { graph, ref, signal } = context;
  const kind = types.find((one) => one.name === type);
  const title = h("h2", id);

  async function properties(panel) {
    const found = await graph.get(`/entities/${type}`, { id, ref }, { signal });
    replace(title, nameOf(kind, id, found));
    const shown = kind ? kind.properties : Object.keys(found).map((name) => ({ name, type: "" }));
    panel.append(
      h(
        "dl.properties",
        h("dt", t("look.id")), h("dd", h("code", id)),
        shown.map((one) => {
          const text = written(found[one.name]);
          return [
            h("dt", one.name, h("span.hint", one.type)),
            h("dd", text === "" ? h("span.hint", t("null")) : text),
          ];
        }),
      ),
    );
  }

  async function neighbours(panel) {
    const found = await countAround(graph, ref, types, { type, id }, { signal });
    if (!found.length) {
      panel.append(nothing(t("look.no_edges")));
      return;
    }
    panel.append(
      h(
        "ul.hops",
        found.map((hop) =>
          h(
            "li",
            button(hop.edge, {
              kind: "quiet",
              icon: hop.out ? "right" : "left",
              disabled: hop.count === 0,
              "aria-label": t(hop.out ? "look.hop_out" : "look.hop_in", {
                edge: hop.edge, other: hop.other, count: count(hop.count),
              }),
              onclick: () => onhop?.(hop),
            }),
            h("span.hint", hop.other),
            badge(count(hop.count), hop.count ? "accent" : ""),
          ),
        ),
      ),
    );
  }

  async function history(panel) {
    const branch = kindOf(ref) === "time" || kindOf(ref) === "commit" ? ref : context.branch;
    const { items, cursor } = await graph.get(
      `/entities/${type}/history`, { id, branch, limit: 50 }, { signal },
    );
    panel.append(
      h(
        "ol.changes",
        items.map((one) =>
          h(
            "li",
            badge(t(`look.${one.change.op}`), { insert: "good", delete: "bad" }[one.change.op] ?? "warn"),
            h("strong", one.message || one.kind),
            h("span.hint", `${actorName(one.actor)}, ${ago(one.created_at)}`),
            link(shortCommit(one.commit), context.link({ ref: one.commit }), { class: "mono" }),
            one.change.op === "update" ? h("ul.values", one.change.changed.map((name) => changed(name, one.change))) : null,
          ),
        ),
      ),
      cursor ? h("p.hint", t("look.more_history")) : "",
    );
  }

  async function blame(panel) {
    const { items } = await graph.get(`/entities/${type}/blame`, { id, ref }, { signal });
    panel.append(
      h(
        "dl.properties",
        items.map((one) => [
          h("dt", one.property),
          h(
            "dd",
            h("div", written(one.value) || t("null")),
            one.commit
              ? h(
                  "span.hint",
                  `${actorName(one.commit.actor)}, ${ago(one.commit.created_at)}: ${one.commit.message || one.commit.kind} `,
                  link(shortCommit(one.commit.commit), context.link({ ref: one.commit.commit }), { class: "mono" }),
                )
              : null,
          ),
        ]),
      ),
    );
  }

  const shows = (fill) => async (panel) => {
    const mine = h("div.told", waiting());
    panel.append(mine);
    const found = h("div");
    try {
      await fill(found);
      replace(mine, found);
    } catch (error) {
      replace(mine, trouble(error));
    }
  };
  const shown = tabs(
    t("look.about"),
    [
      { name: "properties", label: t("look.properties"), show: shows(properties) },
      { name: "neighbours", label: t("look.neighbours"), show: shows(neighbours) },
      { name: "history", label: t("look.history"), show: shows(history) },
      { name: "blame", label: t("look.blame"), show: shows(blame) },
    ],
    { chosen: tab, onchoose: ontab },
  );
  return h(
    "section.inspector",
    { "aria-label": t("look.about") },
    h(
      "header",
      h("span.dot", { style: { "--dot": colour } }),
      h("div.names", title, h("p.hint", type)),
    ),
    actions.length ? h("div.actions", actions) : null,
    shown.element,
  );
}

function changed(name, { before, after }) {
  return h(
    "li",
    h("span.hint", `${name}: `),
    h("del", written(before?.[name]) || t("null")),
    " ",
    icon("right"),
    " ",
    h("ins", written(after?.[name]) || t("null")),
  );
}

/** Owns how changes of entities are shown: what was added, changed and removed, old beside new. */

import { h } from "../core/dom.js";
import { count, nameOf, value as written } from "../core/format.js";
import { t } from "../core/texts.js";
import { badge, link } from "./controls.js";

export const OPS = { insert: "added", update: "changed", delete: "removed" };
const LOOKS = { insert: "good", update: "warn", delete: "bad" };

export function opBadge(op, number) {
  const text = t(`changes.${OPS[op]}`);
  return badge(number === undefined ? text : `${text} ${count(number)}`, LOOKS[op]);
}

/** `hrefOf(change)` leads to the entity, if it leads anywhere. */
export function changeList(items, types, hrefOf) {
  const known = new Map(types.map((one) => [one.name, one]));
  return h(
    "ul.changelist",
    items.map((one) => {
      const name = nameOf(known.get(one.type), one.id, one.after ?? one.before ?? {});
      const href = one.kind === "node" ? hrefOf?.(one) : null;
      return h(
        "li",
        h(
          "div.changehead",
          opBadge(one.op),
          badge(one.type),
          href ? link(name, href) : h("span", name),
          name === one.id ? null : h("span.hint", one.id),
        ),
        values(one),
      );
    }),
  );
}

/** Old and new side by side. Of what was added or removed, everything is told. */
function values({ op, changed, before, after }) {
  const names = op === "update" ? changed : Object.keys(after ?? before ?? {}).filter((one) => one !== "id");
  const cell = (row, name, tag) =>
    row ? h(tag, written(row[name]) || h("span.hint", t("null"))) : h("span.hint", "–");
  if (!names.length) return null;
  return h(
    "table.sides",
    h(
      "thead.unseen",
      h("tr", h("th", { scope: "col" }, t("changes.property")), h("th", { scope: "col" }, t("changes.before")), h("th", { scope: "col" }, t("changes.after"))),
    ),
    h(
      "tbody",
      names.map((name) =>
        h("tr", h("th", { scope: "row" }, name), h("td", cell(before, name, "del")), h("td", cell(after, name, "ins"))),
      ),
    ),
  );
}

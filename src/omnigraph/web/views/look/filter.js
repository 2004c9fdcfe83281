/** Owns the conditions on what is drawn: a property of a type, an operator, a value. */

import { button, field, nothing } from "../../components/controls.js";
import { popover } from "../../components/popover.js";
import { h, replace } from "../../core/dom.js";
import { value as written } from "../../core/format.js";
import { t } from "../../core/texts.js";

const TESTS = {
  "=": (a, b) => compare(a, b) === 0,
  "≠": (a, b) => compare(a, b) !== 0,
  "<": (a, b) => compare(a, b) < 0,
  ">": (a, b) => compare(a, b) > 0,
  contains: (a, b) => written(a).toLowerCase().includes(String(b).toLowerCase()),
};

/** A test for nodes: those of a type must meet its conditions; others pass. */
export function passesAll(filters) {
  if (!filters.length) return null;
  return (node) =>
    filters.every(
      ({ type, property, test, value }) =>
        node.type !== type ||
        (node.data?.[property] !== null &&
          node.data?.[property] !== undefined &&
          TESTS[test](node.data[property], value)),
    );
}

/** Numbers as numbers, everything else as text. */
function compare(a, b) {
  const [x, y] = [Number(a), Number(b)];
  if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  const [one, other] = [written(a), String(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

export function filterButton(types, held, onchange) {
  const anchor = button("", { icon: "filter", label: t("look.filter") });
  popover(anchor, () => panel(types, held, onchange), { label: t("look.filter") });
  return anchor;
}

function panel(types, held, onchange) {
  const nodes = types.filter((one) => one.kind === "node");
  const type = h("select", nodes.map((one) => h("option", { value: one.name }, one.name)));
  const property = h("select");
  const test = h("select", Object.keys(TESTS).map((one) => h("option", { value: one }, one)));
  const value = h("input", { type: "text", required: true });
  const list = h("ul.filters");
  const properties = () => {
    const kind = nodes.find((one) => one.name === type.value);
    replace(property, (kind?.properties ?? []).map((one) => h("option", { value: one.name }, one.name)));
  };
  const show = () =>
    replace(
      list,
      held().length ? null : nothing(t("look.no_filters")),
      held().map((one, at) =>
        h(
          "li",
          h("code", `${one.type}.${one.property} ${one.test} ${one.value}`),
          button("", {
            kind: "quiet", icon: "close", label: t("look.drop_filter"),
            onclick: () => {
              onchange(held().filter((_, place) => place !== at));
              show();
            },
          }),
        ),
      ),
    );
  type.addEventListener("change", properties);
  properties();
  show();
  return h(
    "form.filterform",
    {
      onsubmit: (event) => {
        event.preventDefault();
        const one = { type: type.value, property: property.value, test: test.value, value: value.value };
        onchange([...held(), one]);
        value.value = "";
        show();
      },
    },
    list,
    field(t("look.type"), type),
    field(t("look.property"), property),
    field(t("look.test"), test),
    field(t("look.value"), value),
    button(t("look.add_filter"), { type: "submit", icon: "plus" }),
  );
}

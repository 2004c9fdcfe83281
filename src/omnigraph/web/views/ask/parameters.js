/** Owns the form for the parameters of a query: a field for each, as its type asks. */

import { field } from "../../components/controls.js";
import { h, replace } from "../../core/dom.js";
import { t } from "../../core/texts.js";

/** `values()` are those that were given; a field that is empty leaves its parameter away. */
export function parameterForm(onchange, given) {
  const element = h("form.parameters", { "aria-label": t("ask.parameters"), hidden: true });
  element.addEventListener("submit", (event) => event.preventDefault());
  element.addEventListener("input", () => onchange());
  let shown = [];
  let held = { ...given };
  let last = "";

  function show(list) {
    const key = JSON.stringify(list);
    if (key === last) return;
    for (const { name, control } of shown) held[name] = read(control);
    last = key;
    shown = list.map((one) => ({ ...one, control: controlFor(one, held[one.name]) }));
    element.hidden = !list.length;
    replace(
      element,
      h("h2", t("ask.parameters")),
      shown.map(({ name, kind, nullable, control }) =>
        field(`$${name}`, control, { hint: kind + (nullable ? "?" : "") }),
      ),
    );
  }

  function values() {
    const found = {};
    for (const { name, kind, control } of shown) {
      const value = valueOf(kind, read(control));
      if (value !== undefined) found[name] = value;
    }
    return found;
  }

  return {
    element,
    show,
    values,
    /** As it stands in an address. */
    text: () => JSON.stringify(values()),
    take(params) {
      held = { ...params };
      shown = [];
      last = "";
    },
  };
}

function controlFor({ kind }, value) {
  const text = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  if (kind === "Bool") {
    const options = ["", "true", "false"].map((one) => h("option", { value: one }, one));
    const select = h("select", options);
    select.value = text;
    return select;
  }
  const type = { Date: "date", DateTime: "text" }[kind] ?? "text";
  const numeric = /^[IUF]\d/.test(kind);
  return h("input", { type, value: text, inputmode: numeric ? "decimal" : null, spellcheck: "false" });
}

function read(control) {
  return control.value;
}

/** What JSON has for it. Numbers keep their digits: JavaScript would round the long ones. */
function valueOf(kind, text) {
  if (text === "") return undefined;
  if (kind === "Bool") return text === "true";
  if (kind.startsWith("[") || kind.startsWith("Vector")) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  if (/^[IUF]\d/.test(kind) && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim())) {
    const number = Number(text);
    const exact = Number.isSafeInteger(number) || !/^-?\d+$/.test(text.trim());
    return exact || !JSON.rawJSON ? number : JSON.rawJSON(text.trim());
  }
  return text;
}

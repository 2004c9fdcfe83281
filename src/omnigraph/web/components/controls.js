/** Owns the small parts: buttons, links, fields, badges, and what is shown while one waits, when
 * there is nothing, and when something went wrong. */

import { freshId, h } from "../core/dom.js";
import { asProblem } from "../core/problem.js";
import { t } from "../core/texts.js";
import { icon } from "./icons.js";

/** `kind` is "primary", "quiet" or "danger"; a button with an icon alone needs a `label`. */
export function button(text, { kind = "", icon: name, label, onclick, ...props } = {}) {
  const classes = ["button", kind, text ? "" : "bare"].filter(Boolean).join(".");
  const all = { type: "button", "aria-label": label, title: text ? null : label, onclick, ...props };
  return h(`button.${classes}`, all, name ? icon(name) : null, text ? h("span", text) : null);
}

export function link(text, href, props = {}) {
  return h("a", { href, ...props }, text);
}

/** A field under its name. The control gets the id. */
export function field(label, control, { hint } = {}) {
  const id = control.id || freshId("field");
  control.id = id;
  const about = hint ? h("span.hint", { id: `${id}-hint` }, hint) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  return h("div.field", h("label", { for: id }, label), control, about);
}

export function badge(text, kind = "") {
  return h(`span.badge${kind ? `.${kind}` : ""}`, text);
}

/** One of a few, all in sight. `onchoose` is called with the value. */
export function segmented(label, options, chosen, onchoose) {
  const group = h("div.segmented", { role: "group", "aria-label": label });
  const show = (value) => {
    for (const one of group.children)
      one.setAttribute("aria-pressed", String(one.dataset.value === value));
  };
  for (const { value, label: text, icon: name } of options) {
    const one = h(
      "button",
      {
        type: "button",
        "data-value": value,
        onclick: () => {
          show(value);
          onchoose(value);
        },
      },
      name ? icon(name) : null,
      text,
    );
    group.append(one);
  }
  show(chosen);
  group.choose = show;
  return group;
}

export function waiting(text = t("wait")) {
  return h("div.waiting", { role: "status" }, h("span.spinner", { "aria-hidden": "true" }), text);
}

export function nothing(text, ...more) {
  return h("div.nothing", h("p", text), more);
}

/** What went wrong, and what to do. Null if somebody only stopped waiting. */
export function trouble(error, { retry } = {}) {
  const problem = asProblem(error);
  if (!problem) return null;
  return h(
    "div.trouble",
    { role: "alert" },
    icon("warning"),
    h(
      "div",
      problem.diagnostics.length ? mistakes(problem) : h("p.what", problem.message),
      problem.help ? h("p.help", problem.help) : null,
      h("p.code", problem.code),
      retry ? button(t("retry"), { onclick: retry }) : null,
    ),
  );
}

/** The mistakes in a text, each in its words; the editor shows where. */
function mistakes({ message, diagnostics }) {
  return [
    h("p.what", message.split("\n", 1)[0]),
    h(
      "ul",
      diagnostics.map((one) => h("li", one.message, one.suggestion ? h("span.help", ` – ${one.suggestion}`) : null)),
    ),
  ];
}

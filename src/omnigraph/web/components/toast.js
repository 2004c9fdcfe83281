/** Owns short messages that go away. A screen reader tells them, too. */

import { h } from "../core/dom.js";
import { asProblem } from "../core/problem.js";
import { t } from "../core/texts.js";
import { button } from "./controls.js";

const SECONDS = 6;
let place = null;

/** `action` is `{label, onclick}`. */
export function toast(text, { kind = "", action } = {}) {
  place ??= document.body.appendChild(h("div.toasts", { role: "status", "aria-live": "polite" }));
  const shown = h(`div.toast${kind ? `.${kind}` : ""}`, h("span", text));
  const end = () => shown.remove();
  if (action)
    shown.append(
      button(action.label, {
        kind: "quiet",
        onclick: () => {
          end();
          action.onclick();
        },
      }),
    );
  shown.append(button("", { kind: "quiet", icon: "close", label: t("close"), onclick: end }));
  place.append(shown);
  let waits = setTimeout(end, SECONDS * 1000);
  shown.addEventListener("pointerenter", () => clearTimeout(waits));
  shown.addEventListener("pointerleave", () => (waits = setTimeout(end, SECONDS * 1000)));
  return end;
}

export function toastProblem(error) {
  const problem = asProblem(error);
  if (problem) toast([problem.message, problem.help].filter(Boolean).join(" "), { kind: "bad" });
}

/** Owns panels that hang below a button: they close on Escape and on a click elsewhere. */

import { h } from "../core/dom.js";

/** Makes the button open a panel. `make(close)` gives its content, anew each time. */
export function popover(anchor, make, { label, align = "start" } = {}) {
  let panel = null;
  anchor.setAttribute("aria-haspopup", "dialog");
  anchor.setAttribute("aria-expanded", "false");

  function close({ focus = true } = {}) {
    if (!panel) return;
    panel.remove();
    panel = null;
    anchor.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside, true);
    document.removeEventListener("keydown", keys, true);
    if (focus) anchor.focus();
  }
  function outside(event) {
    const path = event.composedPath();
    if (!path.includes(panel) && !path.includes(anchor)) close({ focus: false });
  }
  function keys(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  }
  function place() {
    const box = anchor.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const wide = panel.offsetWidth;
    const wanted = align === "end" ? box.right - wide : box.left;
    panel.style.left = `${Math.max(8, Math.min(wanted, room - wide - 8))}px`;
    panel.style.top = `${box.bottom + 6}px`;
    panel.style.maxHeight = `${Math.max(160, window.innerHeight - box.bottom - 18)}px`;
  }
  function open() {
    panel = h("div.popover", { role: "dialog", "aria-label": label });
    panel.append(make(close));
    document.body.append(panel);
    anchor.setAttribute("aria-expanded", "true");
    place();
    document.addEventListener("pointerdown", outside, true);
    document.addEventListener("keydown", keys, true);
    panel.querySelector("input, [autofocus], button, a, [tabindex]")?.focus();
  }
  anchor.addEventListener("click", () => (panel ? close() : open()));
  return { close, open };
}

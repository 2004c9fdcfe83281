/** Owns dark and light: as the system says, or as the user chose. */

import { h } from "./dom.js";
import { recall, remember } from "./storage.js";

export const THEMES = ["auto", "light", "dark"];
const listeners = new Set();

export function theme() {
  return recall("theme", "auto");
}

export function setTheme(name) {
  remember("theme", name);
  applyTheme();
}

export function applyTheme() {
  const name = theme();
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  for (const call of listeners) call();
}

/** For what draws with colours of its own, as a canvas. Gives the way to stop listening. */
export function onTheme(call) {
  listeners.add(call);
  return () => listeners.delete(call);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);

let probe = null;

/** A colour of the style sheet, as it is now: `colour("accent")`. */
export function colour(name) {
  probe ??= document.body.appendChild(h("div", { hidden: true, "aria-hidden": "true" }));
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** Types have so many colours, far apart, and readable on both grounds: `--type-0` and so on. */
export const TYPE_COLOURS = 10;

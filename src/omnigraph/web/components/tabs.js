/** Owns tabs: one of several panels is in sight. Arrow keys go from tab to tab. */

import { freshId, h, replace } from "../core/dom.js";

/** `tabs` are `{name, label, show(panel)}`; `show` fills the panel each time the tab is chosen. */
export function tabs(label, list, { chosen, onchoose } = {}) {
  const panelId = freshId("panel");
  const bar = h("div.tabbar", { role: "tablist", "aria-label": label });
  const panel = h("div.tabpanel", { role: "tabpanel", id: panelId, tabindex: "-1" });
  let current = null;

  const buttons = list.map(({ name, label: text }) => {
    const one = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: freshId("tab"),
        "data-name": name,
        "aria-controls": panelId,
        onclick: () => choose(name, { told: true }),
      },
      text,
    );
    bar.append(one);
    return one;
  });

  function choose(name, { told = false } = {}) {
    const found = list.find((one) => one.name === name) ?? list[0];
    current = found.name;
    for (const one of buttons) {
      const is = one.dataset.name === current;
      one.setAttribute("aria-selected", String(is));
      one.tabIndex = is ? 0 : -1;
      if (is) panel.setAttribute("aria-labelledby", one.id);
    }
    replace(panel);
    found.show(panel);
    if (told) onchoose?.(current);
  }

  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(document.activeElement);
    const ends = { Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || (step === undefined && ends === undefined)) return;
    event.preventDefault();
    const next = buttons[ends ?? (at + step + buttons.length) % buttons.length];
    next.focus();
    choose(next.dataset.name, { told: true });
  });

  const element = h("div.tabs", bar, panel);
  choose(chosen ?? list[0].name);
  return { element, panel, choose, again: () => choose(current), get current() { return current; } };
}

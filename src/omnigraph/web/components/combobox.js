/** Owns a field with a list of what could be meant. */

import { afterPause, freshId, h, replace } from "../core/dom.js";
import { asProblem } from "../core/problem.js";
import { t } from "../core/texts.js";

/**
 * `find(text, signal)` gives `{value, label, hint, group}`, or a promise of them; `onchoose` is
 * called with the one that was chosen. `inline` keeps the list in sight below the field.
 */
export function combobox({ label, placeholder, find, onchoose, onenter, inline = false, pause = 0 }) {
  const listId = freshId("list");
  const input = h("input", {
    type: "text",
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    placeholder,
    "aria-label": label,
    "aria-expanded": String(inline),
    "aria-controls": listId,
    "aria-autocomplete": "list",
  });
  const list = h("div.options", { role: "listbox", id: listId, "aria-label": label });
  list.hidden = !inline;
  const element = h(`div.combobox${inline ? ".inline" : ""}`, input, list);
  let shown = [];
  let active = -1;
  let asking = null;

  function mark(at) {
    active = at;
    shown.forEach(({ element: one }, place) =>
      one.setAttribute("aria-selected", String(place === at)),
    );
    const found = shown[at]?.element;
    if (found) {
      input.setAttribute("aria-activedescendant", found.id);
      found.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function open(is) {
    list.hidden = !is && !inline;
    input.setAttribute("aria-expanded", String(is || inline));
    if (!is) mark(-1);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await find(input.value.trim(), signal);
      if (!signal.aborted) show(found);
    } catch (error) {
      const problem = asProblem(error);
      if (problem && !signal.aborted) replace(list, h("p.none", problem.message));
    }
  }

  function show(found) {
    shown = [];
    replace(list);
    let group = null;
    let place = list;
    for (const item of found) {
      if (item.group && item.group !== group) {
        group = item.group;
        const id = freshId("group");
        place = h("div", { role: "group", "aria-labelledby": id }, h("div.group", { id }, group));
        list.append(place);
      }
      const one = h(
        "div.option",
        { role: "option", id: freshId("option"), "aria-selected": "false" },
        item.icon ?? null,
        h("span.label", item.label),
        item.hint ? h("span.hint", item.hint) : null,
      );
      one.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        choose(item);
      });
      place.append(one);
      shown.push({ item, element: one });
    }
    if (!found.length) list.append(h("p.none", t("combobox.none")));
    open(inline || document.activeElement === input);
    mark(-1);
  }

  function choose(item) {
    if (!inline) open(false);
    onchoose(item, input);
  }

  const later = afterPause(pause, ask);
  input.addEventListener("input", later);
  input.addEventListener("focus", () => {
    if (!inline) ask();
  });
  input.addEventListener("blur", () => open(false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!shown.length) return;
      const step = event.key === "ArrowDown" ? 1 : -1;
      const from = active < 0 && step < 0 ? 0 : active;
      mark((from + step + shown.length) % shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (active >= 0) choose(shown[active].item);
      else if (onenter) onenter(input.value.trim(), input);
      else if (shown.length === 1) choose(shown[0].item);
    } else if (event.key === "Escape" && !list.hidden && !inline) {
      event.stopPropagation();
      open(false);
    }
  });
  if (inline) ask();
  return { element, input, refresh: ask, close: () => open(false) };
}

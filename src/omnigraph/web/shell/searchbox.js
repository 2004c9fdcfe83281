/** Owns the search box of the bar: what is found leads into the drawing, Enter to all of it. */

import { combobox } from "../components/combobox.js";
import { icon } from "../components/icons.js";
import { h } from "../core/dom.js";
import { go } from "../core/router.js";
import { plainPassage, searchGraph } from "../core/searching.js";
import { t } from "../core/texts.js";

/** `place` is where one is; the ref is kept. */
export function searchBox(graph, ref, place) {
  const params = { ref: place.params.ref };
  const box = combobox({
    label: t("search.box"),
    placeholder: t("search.box"),
    pause: 200,
    find: async (text, signal) => {
      if (!text) return [];
      const found = await searchGraph(graph, ref, { text, limit: 8 }, { signal });
      return found.map((one) => ({
        value: one,
        label: `${one.id}`,
        hint: plainPassage(one.passage),
        group: one.type,
      }));
    },
    onchoose: ({ value: { type, id } }, input) => {
      input.value = "";
      input.blur();
      go({ graph: graph.name, view: "look", path: [type, id], params });
    },
    onenter: (text, input) => {
      if (!text) return;
      box.close();
      input.blur();
      go({ graph: graph.name, view: "search", params: { ...params, text } });
    },
  });
  box.input.type = "search";
  if (place.view === "search") box.input.value = place.params.text ?? "";
  return h("div.searchbox", { role: "search" }, icon("search"), box.element);
}

/** Owns the list of graphs, which is what the page begins with if there is more than one. */

import { badge, nothing, trouble, waiting } from "../components/controls.js";
import { icon } from "../components/icons.js";
import { server } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { linkTo } from "../core/router.js";
import { t } from "../core/texts.js";

export async function listGraphs() {
  return (await server.get("/graphs", { limit: 1000 })).items;
}

export async function showGraphs(root) {
  replace(root, waiting());
  try {
    const items = await listGraphs();
    replace(
      root,
      h("h1", t("graphs.title")),
      items.length ? h("ul.graphs", items.map(card)) : nothing(t("graphs.none")),
    );
  } catch (error) {
    replace(root, trouble(error, { retry: () => showGraphs(root) }));
  }
}

function card({ name, open }) {
  return h(
    "li",
    h("a.card", { href: linkTo({ graph: name }) }, icon("look"), h("span", name), open ? null : badge(t("graphs.closed"))),
  );
}

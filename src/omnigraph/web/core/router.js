/** Owns the address: `#/g/GRAPH/VIEW/part/part?ref=main&name=value`. Everything that one sees has
 * one, so that it can be sent to somebody else. */

/** Where the page is: `{graph, view, path, params}`. */
export function readPlace(hash = location.hash) {
  const [route, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = route.split("/").filter(Boolean).map(decodeURIComponent);
  const params = Object.fromEntries(new URLSearchParams(query));
  if (parts[0] !== "g") return { graph: null, view: parts[0] ?? null, path: parts.slice(1), params };
  const [, graph = null, view = null, ...path] = parts;
  return { graph, view, path, params };
}

/** The address of a place. */
export function linkTo({ graph, view, path = [], params = {} }) {
  const parts = graph ? ["g", graph, view, ...path] : [view, ...path];
  const route = parts.filter((part) => part !== null && part !== undefined && part !== "");
  const kept = Object.entries(params).filter(([, value]) => !isNothing(value));
  const query = new URLSearchParams(kept).toString();
  const shown = `#/${route.map(encodeURIComponent).join("/")}`;
  return query ? `${shown}?${query}` : shown;
}

function isNothing(value) {
  return value === null || value === undefined || value === "" || value === false;
}

/** Goes there. `replace` leaves no step to go back to: for what changes while one types. */
export function go(place, { replace = false } = {}) {
  const link = linkTo(place);
  if (link === location.hash) return;
  if (replace) {
    history.replaceState(null, "", link);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = link;
}

export function onPlace(call) {
  window.addEventListener("hashchange", () => call(readPlace()));
}

/** Owns the page: who the caller is, which view stands at the address, and what it is given. */

import { asProblem } from "./core/problem.js";
import { GraphApi, onUnknownCaller } from "./core/api.js";
import { h, replace } from "./core/dom.js";
import { forgetCaller, may, mayAll, whoami } from "./core/permissions.js";
import { branchOf } from "./core/refs.js";
import { go, linkTo, onPlace, readPlace } from "./core/router.js";
import { t } from "./core/texts.js";
import { applyTheme } from "./core/theme.js";
import { nothing, trouble } from "./components/controls.js";
import { makeFrame, showNav, showWhere } from "./shell/frame.js";
import { listGraphs, showGraphs } from "./shell/graphs.js";
import { searchBox } from "./shell/searchbox.js";
import { signIn } from "./shell/signin.js";
import { views } from "./views/registry.js";

const body = document.querySelector(".page");
applyTheme();

let frame = null;
let shown = null;
let turn = 0;

/** Begins anew: with another caller, or for the first time. */
async function begin({ failed = false } = {}) {
  leave();
  frame = null;
  let who;
  try {
    who = await whoami();
  } catch (error) {
    const problem = asProblem(error);
    if (problem?.status !== 401) {
      replace(body, h("main.signin", trouble(error, { retry: () => begin() })));
      return;
    }
    await signIn(body, { failed });
    who = await whoami();
  }
  frame = makeFrame(body, { who, onaccount: () => begin() });
  await show(readPlace());
}

onUnknownCaller(() => {
  if (!frame) return;
  forgetCaller();
  begin({ failed: true });
});

onPlace((place) => {
  if (frame) show(place);
});

function leave() {
  shown?.stop.abort();
  shown?.handle?.close?.();
  shown = null;
}

/** What identifies a view that stays: the rest of the address is its own to follow. */
function identity(place) {
  return JSON.stringify([place.graph, place.view, place.params.ref]);
}

async function show(place) {
  turn += 1;
  const mine = turn;
  if (!place.graph) {
    leave();
    const names = place.view ? [] : await listGraphs().catch(() => []);
    if (mine !== turn) return;
    if (names.length === 1) {
      go({ graph: names[0].name, view: null }, { replace: true });
      return;
    }
    document.title = t("title.none");
    showWhere(frame.where, null);
    replace(frame.tools);
    replace(frame.nav);
    await showGraphs(frame.main);
    return;
  }
  const ref = place.params.ref || "main";
  if (shown?.identity === identity(place) && (!shown.opened || shown.handle?.update)) {
    shown.context.path = place.path;
    shown.context.params = place.params;
    if (shown.opened) shown.handle.update(shown.context);
    else shown.moved = true;
    return;
  }
  const graph = new GraphApi(place.graph);
  const branch = branchOf(ref);
  const allowed = await Promise.all(
    [...views.values()].map((view) => mayAll(graph, view.actions, branch)),
  );
  if (mine !== turn) return;
  const offered = [...views.values()].filter((_, at) => allowed[at]);
  const view = place.view ? offered.find((one) => one.name === place.view) : offered[0];
  leave();
  const at = { ...place, view: view?.name ?? place.view, ref };
  showWhere(frame.where, graph, at, (chosen) => go(elsewhere(at, { ref: chosen })));
  showNav(frame.nav, offered.filter((one) => !one.hidden), view?.name, (one) =>
    linkTo({ graph: graph.name, view: one.name, params: { ref: place.params.ref } }),
  );
  const searches = offered.some((one) => one.name === "search");
  replace(frame.tools, searches ? searchBox(graph, ref, at) : null);
  document.title = view
    ? t("title.view", { view: view.title, graph: graph.name })
    : t("title.none");
  const root = h(`div.view.${view?.name ?? "none"}`);
  replace(frame.main, root);
  frame.main.scrollTop = 0;
  if (!view) {
    replace(root, nothing(t("problem.no_view")));
    return;
  }
  await openView(view, graph, at, root, identity(place));
}

/** A place like this one, but for what is said. Params that are null are left away. */
function elsewhere(at, { view, path, params, ref } = {}) {
  const same = view === undefined || view === at.view;
  const kept = same ? { ...at.params, ...params } : { ref: at.params.ref, ...params };
  if (ref !== undefined) kept.ref = ref === "main" ? null : ref;
  return { graph: at.graph, view: view ?? at.view, path: path ?? (same ? at.path : []), params: kept };
}

async function openView(view, graph, at, root, key) {
  const stop = new AbortController();
  const branch = branchOf(at.ref);
  let schema = null;
  const here = () => ({ ...at, path: context.path, params: context.params });
  /** What a view is given; docs/dev/web.md says what is in it. */
  const context = {
    graph,
    root,
    ref: at.ref,
    branch,
    path: at.path,
    params: at.params,
    signal: stop.signal,
    may: (action, on = branch) => may(graph, action, on),
    schema: () => (schema ??= graph.get("/schema", { ref: at.ref })),
    link: (change) => linkTo(elsewhere(here(), change)),
    go: (change, options) => go(elsewhere(here(), change), options),
    again: () => {
      leave();
      show(readPlace());
    },
  };
  const mine = { identity: key, context, stop, handle: null, opened: false, moved: false };
  shown = mine;
  try {
    const { default: module } = await view.load();
    if (shown !== mine) return;
    const handle = await module.open(context);
    mine.opened = true;
    if (shown === mine) mine.handle = handle;
    else handle?.close?.();
    if (shown === mine && mine.moved) handle?.update?.(context);
  } catch (error) {
    mine.opened = true;
    if (!stop.signal.aborted) replace(root, trouble(error, { retry: context.again }));
  }
}

begin();

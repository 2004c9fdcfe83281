/**
 * Owns the list of views, in the order of the navigation: what each is called, what its caller must
 * be allowed on the branch, and where it is. A view is loaded when it is first opened.
 * docs/dev/web.md tells how one is added.
 */

import { t } from "../core/texts.js";

const LIST = [
  { name: "overview", title: t("overview.title"), icon: "home", actions: ["read"], load: () => import("./overview.js") },
  { name: "ask", title: t("ask.title"), icon: "ask", actions: ["query"], load: () => import("./ask.js") },
  { name: "look", title: t("look.title"), icon: "look", actions: ["query"], load: () => import("./look.js") },
  { name: "history", title: t("history.title"), icon: "history", actions: ["read"], load: () => import("./history.js") },
  { name: "compare", title: t("compare.title"), icon: "compare", actions: ["read"], load: () => import("./compare.js") },
  { name: "search", title: t("search.title"), icon: "search", actions: ["query"], load: () => import("./search.js") },
  { name: "schema", title: t("schema.title"), icon: "schema", actions: ["read"], load: () => import("./schema.js") },
  { name: "data", title: t("data.title"), icon: "data", actions: ["query"], load: () => import("./data.js") },
  { name: "operations", title: t("operations.title"), icon: "operations", actions: ["read"], load: () => import("./operations.js") },
];

/** Every view, by name. */
export const views = new Map(LIST.map((view) => [view.name, view]));

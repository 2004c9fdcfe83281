/**
 * Owns the list of views, in the order of the navigation. A view is one module; its default export
 * says what it is and opens it. docs/dev/web.md tells how one is added.
 */

const MODULES = [
  "./overview.js",
  "./ask.js",
  "./look.js",
  "./history.js",
  "./compare.js",
  "./search.js",
  "./schema.js",
  "./data.js",
  "./operations.js",
];

/** Every view, by name. A module is loaded once. */
export const views = new Map(
  (await Promise.all(MODULES.map((path) => import(path)))).map(({ default: view }) => [
    view.name,
    view,
  ]),
);

/**
 * Owns every English text of the page. `t("nav.ask")` gives one; `{name}` in it is replaced by a
 * value. Each view has a section of its own name.
 */

const texts = {
  cancel: "Cancel",
  close: "Close",
  retry: "Try again",
  wait: "One moment …",
  null: "no value",
  nobody: "unknown",
  name: "OmniGraph",
  skip: "Skip to the content",

  nav: {
    label: "Views",
    overview: "Overview",
    more: "More",
  },
  title: { view: "{view} · {graph} · OmniGraph", none: "OmniGraph" },
  theme: { label: "Colours", auto: "As the system", light: "Light", dark: "Dark" },
  account: {
    label: "Account",
    actor: "Signed in as {actor}",
    local: "Everybody on this machine",
    roles: "Roles: {roles}",
    leave: "Forget the token",
    enter: "Use another token",
  },
  signin: {
    title: "Who are you?",
    about: "This server knows its callers by tokens. The token is kept until this tab is closed.",
    token: "Token",
    enter: "Sign in",
    wrong: "The server does not know this token.",
  },
  graphs: {
    title: "Graphs",
    none: "There is no graph here that you may see.",
    closed: "not open",
    choose: "Choose a graph",
    all: "All graphs",
  },
  ref: {
    label: "Ref: {ref}",
    title: "Which state of the graph",
    find: "Branch, tag, commit, or time",
    find_hint: "Search, or write any ref, such as main~2.",
    branches: "Branches",
    tags: "Tags",
    commits: "Newest commits of {branch}",
    typed: "As written",
    protected: "protected",
    time: "As it was at (UTC)",
    branch: "On branch",
    go: "Go there",
  },
  table: { none: "No rows.", rows: "{rows} rows" },
  combobox: { none: "Nothing found." },
  io: { told: "{reads} requests, {bytes} B" },
  problem: {
    unknown: "Something went wrong.",
    status: "The server answered with status {status}.",
    offline: "The server does not answer.",
    page: "This page made a mistake: {message}",
    no_view: "There is no such view, or you may not see it.",
  },

  overview: {
    title: "Overview",
    nodes: "Nodes",
    edges: "Edges",
    branches: "Branches",
    tags: "Tags",
    types: "Types",
    type: "Type",
    kind: "Kind",
    count: "Entities",
    node: "node",
    edge: "edge",
    format: "Format",
    head: "Newest commits",
    by: "{actor}, {ago}",
  },
};

/** The text of that name. A name that means nothing is a mistake of the page. */
export function t(name, values) {
  const found = name.split(".").reduce((held, part) => held?.[part], texts);
  if (typeof found !== "string") {
    console.error(`There is no text ${name}.`);
    return name;
  }
  if (!values) return found;
  return found.replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

/** Owns what refs are on this page: a branch, a tag, a commit, or a branch at a time. */

const COMMIT = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** What kind of ref this is; a name alone may be a branch or a tag. */
export function kindOf(ref) {
  if (ref.includes("*")) return "time";
  if (ref.includes("@") || COMMIT.test(ref)) return "commit";
  if (ref.includes("~")) return "commit";
  return "name";
}

/** The branch that a ref begins with: what a caller may is asked of it. */
export function branchOf(ref) {
  if (COMMIT.test(ref)) return "main";
  return ref.split(/[~@*]/, 1)[0] || "main";
}

/** A ref in few characters. */
export function shortRef(ref) {
  if (COMMIT.test(ref)) return shortCommit(ref);
  return ref.replace(/@([0-9A-Z]{26})$/, (_, id) => `@${shortCommit(id)}`);
}

/** The end of a commit's id: its beginning is the time, which neighbours share. */
export function shortCommit(id) {
  return id ? `…${id.slice(-6)}` : "";
}

export function timeRef(branch, moment) {
  return `${branch}*${moment.toISOString()}`;
}

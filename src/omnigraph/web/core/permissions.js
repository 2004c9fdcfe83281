/** Owns what the caller may do. What is not allowed is not offered. */

import { server } from "./api.js";

let caller = null;
const asked = new Map();

export async function whoami() {
  caller ??= await server.get("/whoami");
  return caller;
}

/** After another token. */
export function forgetCaller() {
  caller = null;
  asked.clear();
}

/** Whether the caller may do that to a branch. Branches change hands and become protected, so
 * what was told holds for a minute. */
export function may(graph, action, branch) {
  const key = JSON.stringify([graph.name, action, branch]);
  const held = asked.get(key);
  if (held && performance.now() - held.at < 60_000) return held.answer;
  const answer = graph.get("/may", { action, branch }).then(
    (told) => told.allowed,
    () => {
      asked.delete(key);
      return false;
    },
  );
  asked.set(key, { at: performance.now(), answer });
  return answer;
}

/** Whether all of these are allowed. */
export async function mayAll(graph, actions, branch) {
  const told = await Promise.all(actions.map((action) => may(graph, action, branch)));
  return told.every(Boolean);
}

/** Owns how the page searches the whole graph, and what it shows of what it finds. */

import { h } from "./dom.js";

/** What was found, best first: `{type, id, score, property, passage}`. */
export async function searchGraph(graph, ref, { text, types, by = "words", limit = 10 }, { signal } = {}) {
  const body = { text, by, limit, ref };
  if (types?.length) body.types = types;
  const told = await graph.post("/search", body, { signal });
  return told.rows;
}

/** A passage with the words that were found: `**word**` is one. */
export function passage(text) {
  if (!text) return null;
  const parts = text.split("**");
  return h("span.passage", parts.map((part, at) => (at % 2 ? h("mark", part) : part)));
}

export function plainPassage(text) {
  return (text ?? "").replaceAll("**", "");
}

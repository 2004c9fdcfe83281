/** Owns which queries were asked in this browser, by graph. */

import { recall, remember } from "../../core/storage.js";

const KEPT = 50;

export function askedBefore(graph) {
  return recall(`asked.${graph}`, []);
}

/** The newest first, each text once. */
export function keepAsked(graph, text) {
  const others = askedBefore(graph).filter((one) => one.text !== text);
  remember(`asked.${graph}`, [{ text, at: new Date().toISOString() }, ...others].slice(0, KEPT));
}

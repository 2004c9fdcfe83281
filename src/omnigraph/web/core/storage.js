/** Owns what this browser remembers: the theme, queries that were asked. It never holds data. */

const PREFIX = "omnigraph.";

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A browser that keeps nothing is a browser that forgets: nothing else depends on it.
  }
}

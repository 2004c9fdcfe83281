/** Owns small facts about schemas. */

/** How an edge type is written in a query. */
export function edgeWord(name) {
  return name[0].toLowerCase() + name.slice(1);
}

/** Whether texts may have vectors, so that one can search by meaning. */
export function hasVectors(types) {
  return types.some((one) => one.properties.some((each) => each.type.startsWith("Vector")));
}

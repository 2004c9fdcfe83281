/** Owns the questions about what lies around entities, each one in the query language. */

import { edgeWord } from "./schema.js";

/** The edges that can leave a node of a type, and those that can come to it. */
export function hopsOf(type, types) {
  const edges = types.filter((one) => one.kind === "edge");
  return edges.flatMap((edge) => [
    ...(edge.source === type ? [{ edge: edge.name, out: true, other: edge.target }] : []),
    ...(edge.target === type ? [{ edge: edge.name, out: false, other: edge.source }] : []),
  ]);
}

function step(hop, here, there) {
  const word = edgeWord(hop.edge);
  return hop.out ? `${here} $e:${word} ${there}` : `${there} $e:${word} ${here}`;
}

/** The nodes and edges around one node: at most so many by each kind of edge. */
export async function aroundNode(graph, ref, types, { type, id }, { limit = 25, hops, signal } = {}) {
  const chosen = hops ?? hopsOf(type, types);
  const found = await Promise.all(
    chosen.map((hop) =>
      graph.post(
        "/query",
        {
          query: `query around($id: String) { match { $a: ${type} $a.@id = $id ${step(hop, "$a", "$b")} } return { $a, $b, $e } limit ${limit} }`,
          params: { id },
          shape: "graph",
          ref,
        },
        { signal },
      ),
    ),
  );
  return union(found);
}

/** How many neighbours there are by each kind of edge. */
export async function countAround(graph, ref, types, { type, id }, { signal } = {}) {
  const hops = hopsOf(type, types);
  return Promise.all(
    hops.map(async (hop) => {
      const query = `query counted($id: String) { match { $a: ${type} $a.@id = $id ${step(hop, "$a", "$b")} } return { count($b) as n } }`;
      const told = await graph.post("/query", { query, params: { id }, ref }, { signal });
      return { ...hop, count: Number(told.rows[0]?.n ?? 0) };
    }),
  );
}

/** The nodes themselves, and every edge between them. `keys` is `{Type: [id, …]}`. */
export async function nodesAndEdges(graph, ref, types, keys, { signal } = {}) {
  const ask = (query, params) => graph.post("/query", { query, params, shape: "graph", ref }, { signal });
  const nodes = Object.entries(keys).map(([type, ids]) =>
    ask(`query some($ids: [String]) { match { $a: ${type} $a.@id in $ids } return { $a } }`, { ids }),
  );
  return union([...(await Promise.all(nodes)), await edgesBetween(graph, ref, types, keys, { signal })]);
}

/** Every edge between nodes that are known by `{Type: [id, …]}`. */
export async function edgesBetween(graph, ref, types, keys, { signal } = {}) {
  const edges = types.filter((one) => one.kind === "edge" && keys[one.source] && keys[one.target]);
  const found = await Promise.all(
    edges.map((edge) =>
      graph.post(
        "/query",
        {
          query: `query between($from: [String], $to: [String]) { match { $a: ${edge.source} $b: ${edge.target} $a.@id in $from $b.@id in $to $a $e:${edgeWord(edge.name)} $b } return { $a, $b, $e } }`,
          params: { from: keys[edge.source], to: keys[edge.target] },
          shape: "graph",
          ref,
        },
        { signal },
      ),
    ),
  );
  return union(found);
}

/** Some of the graph, to begin with: edges of each type, and nodes of those types that have none. */
export async function sample(graph, ref, types, { nodes = 120, signal } = {}) {
  const edges = types.filter((one) => one.kind === "edge");
  const alone = types.filter(
    (one) => one.kind === "node" && !edges.some((edge) => edge.source === one.name || edge.target === one.name),
  );
  const each = Math.max(5, Math.round(nodes / Math.max(1, edges.length + alone.length)));
  const asked = [
    ...edges.map((edge) => `match { $a: ${edge.source} $b: ${edge.target} $a $e:${edgeWord(edge.name)} $b } return { $a, $b, $e } limit ${each}`),
    ...alone.map((one) => `match { $a: ${one.name} } return { $a } limit ${each}`),
  ];
  const found = await Promise.all(
    asked.map((query) => graph.post("/query", { query, shape: "graph", ref }, { signal })),
  );
  return union(found);
}

/** Ids by type. */
export function keysOf(nodes) {
  const found = {};
  for (const { type, id } of nodes) (found[type] ??= []).push(id);
  return found;
}

export function union(parts) {
  const nodes = new Map();
  const edges = new Map();
  for (const part of parts) {
    for (const one of part.nodes) nodes.set(JSON.stringify([one.type, one.id]), one);
    for (const one of part.edges) edges.set(JSON.stringify([one.type, one.id]), one);
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

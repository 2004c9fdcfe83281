/** Owns the search for the shortest way between two nodes, from both ends at once. */

import { edgeWord } from "../../core/schema.js";
import { hopsOf } from "../../core/neighbours.js";

const LONGEST = 10;
const MOST = 20_000;
const AT_ONCE = 500;

/** The nodes of a shortest way as `{type, id}`, in order; null if there is none within reach. */
export async function shortestWay(graph, ref, types, from, to, { signal } = {}) {
  const key = ({ type, id }) => JSON.stringify([type, id]);
  if (key(from) === key(to)) return [from];
  const sides = [from, to].map((one) => ({
    before: new Map([[key(one), null]]),
    edge: [one],
  }));
  for (let steps = 0; steps < LONGEST; steps += 1) {
    const at = sides[0].edge.length <= sides[1].edge.length ? 0 : 1;
    const [side, other] = [sides[at], sides[1 - at]];
    if (!side.edge.length || side.before.size + other.before.size > MOST) return null;
    const next = [];
    let met = null;
    for await (const [here, there] of around(graph, ref, types, side.edge, signal)) {
      const name = key(there);
      if (side.before.has(name)) continue;
      side.before.set(name, here);
      next.push(there);
      if (other.before.has(name)) {
        met = there;
        break;
      }
    }
    if (met) return joined(sides, met, key);
    side.edge = next;
  }
  return null;
}

function joined([start, end], met, key) {
  const way = [met];
  for (let one = start.before.get(key(met)); one; one = start.before.get(key(one))) way.unshift(one);
  for (let one = end.before.get(key(met)); one; one = end.before.get(key(one))) way.push(one);
  return way;
}

async function* around(graph, ref, types, nodes, signal) {
  const byType = Map.groupBy(nodes, (one) => one.type);
  for (const [type, some] of byType) {
    for (const hop of hopsOf(type, types)) {
      const word = edgeWord(hop.edge);
      const walk = hop.out ? `$a ${word} $b` : `$b ${word} $a`;
      const query = `query step($ids: [String]) { match { $a: ${type} $a.@id in $ids ${walk} } return { $a.@id as a, $b.@id as b } }`;
      for (let start = 0; start < some.length; start += AT_ONCE) {
        const ids = some.slice(start, start + AT_ONCE).map((one) => one.id);
        const body = { query, params: { ids }, ref, limit: MOST };
        for await (const rows of graph.lines("POST", "/query", { body, signal }))
          for (const { a, b } of rows) yield [{ type, id: a }, { type: hop.other, id: b }];
      }
    }
  }
}

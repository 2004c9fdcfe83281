/** Owns how rows of a type are asked for: in the order of the table, or in an order of their own. */

import { edgeWord } from "../../core/schema.js";

export const TESTS = ["=", "!=", "<", ">", "contains", "starts_with", "is null"];

function literal(type, text) {
  if (/^(I|U|F)\d/.test(type) && /^-?\d+(\.\d+)?$/.test(text.trim())) return text.trim();
  if (type.startsWith("Bool") && /^(true|false)$/.test(text.trim())) return text.trim();
  const quoted = JSON.stringify(text);
  if (type === "Date") return `date(${quoted})`;
  if (type === "DateTime") return `datetime(${quoted})`;
  return quoted;
}

/** A condition of the query language; `of` stands before each property. */
function conditions(kind, filters, of) {
  return filters.map(({ property, test, value }) => {
    const { type } = kind.properties.find((one) => one.name === property);
    return test === "is null" ? `${of}${property} is null` : `${of}${property} ${test} ${literal(type, value)}`;
  });
}

function matching(kind, filters) {
  const found = conditions(kind, filters, "$a.").join(" ");
  if (kind.kind === "node") return `match { $a: ${kind.name} ${found} }`;
  return `match { $s: ${kind.source} $t: ${kind.target} $s $a:${edgeWord(kind.name)} $t ${found} }`;
}

export async function countRows({ graph, ref, signal }, kind, filters) {
  const query = `${matching(kind, filters)} return { count($a) as n }`;
  const told = await graph.post("/query", { query, ref }, { signal });
  return Number(told.rows[0].n);
}

/** Rows from `start` to `end`. Without an order of their own they come as the table has them. */
export async function loadRows({ graph, ref }, kind, { filters, sort, down }, columns, start, end, signal) {
  const limit = end - start;
  const names = columns.map((one) => one.name);
  if (!sort) {
    const body = { type: kind.name, ref, offset: start, limit, columns: [...new Set(["id", ...names])] };
    if (filters.length) body.filter = conditions(kind, filters, "").join(" and ");
    return (await graph.post("/scan", body, { signal })).rows;
  }
  const place = (name) => ({ id: "$a.@id", src: "$s.@id", dst: "$t.@id" })[name] ?? `$a.${name}`;
  const returned = [...new Set(["id", ...names])].map((name) => `${place(name)} as ${name}`);
  const query = `${matching(kind, filters)} return { ${returned.join(", ")} } order { ${place(sort)} ${down ? "desc" : "asc"} } limit ${limit} offset ${start}`;
  return (await graph.post("/query", { query, ref, limit: Math.max(1, limit) }, { signal })).rows;
}

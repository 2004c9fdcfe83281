/** Owns how the two languages look in an editor, and what can be written at a place. */

import { StreamLanguage } from "../vendor/codemirror.js";
import { edgeWord } from "../core/schema.js";
import { t } from "../core/texts.js";

const QUERY_WORDS =
  "match return optional not order limit offset distinct as asc desc and or in is null exists count case when then else end contains starts_with ends_with true false query insert update delete set where";
const SCHEMA_WORDS = "node edge interface implements enum true false null";
const FUNCTIONS =
  "now date datetime lower upper trim length abs round floor ceil year month day toString replace size split substring matches weeks days hours minutes seconds coalesce sum avg min max collect count search bm25 nearest rrf highlight match_text fuzzy";
const TYPES = "String Bool I32 I64 U32 U64 F32 F64 Date DateTime Blob Vector";

function language(words) {
  const known = new Set(words.split(" "));
  const functions = new Set(FUNCTIONS.split(" "));
  return StreamLanguage.define({
    name: "omnigraph",
    startState: () => ({ comment: false }),
    token(stream, state) {
      if (state.comment || stream.match("/*")) {
        state.comment = !stream.match(/.*?\*\//);
        if (state.comment) stream.skipToEnd();
        return "comment";
      }
      if (stream.eatSpace()) return null;
      if (stream.match("//")) {
        stream.skipToEnd();
        return "comment";
      }
      if (stream.match(/"(?:[^"\\]|\\.)*"?/)) return "string";
      if (stream.match(/\$[A-Za-z_]\w*/)) return "variableName";
      if (stream.match(/@\w+/)) return "meta";
      if (stream.match(/\d+(\.\d+)?([eE][+-]?\d+)?/)) return "number";
      if (stream.match(/[A-Z]\w*/)) return "typeName";
      if (stream.match(/[a-z_]\w*/)) {
        const word = stream.current();
        if (known.has(word)) return "keyword";
        if (functions.has(word) && stream.peek() === "(") return "function";
        return stream.peek() === ":" ? "propertyName" : "name";
      }
      stream.next();
      return null;
    },
    languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
    tokenTable: {},
  });
}

export const queryLanguage = language(QUERY_WORDS);
export const schemaLanguage = language(SCHEMA_WORDS);

/** The types of variables, as far as the text says them: `$x: Paper`, and along edges. */
function variableTypes(text, types) {
  const found = new Map();
  for (const [, name, type] of text.matchAll(/\$(\w+)\s*:\s*([A-Z]\w*)/g)) found.set(name, type);
  const edges = new Map(types.filter((one) => one.kind === "edge").map((one) => [edgeWord(one.name), one]));
  const hops = /\$(\w+)\s+(?:\$(\w+)\s*:\s*)?<?(\w+)>?(?:\{[\d,\s]*\})?\s+\$(\w+)/g;
  for (const [, from, variable, word, to] of text.matchAll(hops)) {
    const edge = edges.get(word);
    if (!edge) continue;
    if (variable) found.set(variable, edge.name);
    if (!found.has(from)) found.set(from, edge.source);
    if (!found.has(to)) found.set(to, edge.target);
  }
  return found;
}

/** What can follow, from the schema: `schema()` promises the types. */
export function queryCompletion(schema) {
  return async (context) => {
    const before = context.state.sliceDoc(Math.max(0, context.pos - 400), context.pos);
    const word = context.matchBefore(/[\w$@]*/);
    if (!context.explicit && word.from === word.to && !/[.:$]\s?$/.test(before)) return null;
    const { types } = await schema();
    const text = context.state.doc.toString();
    const variables = variableTypes(text, types);
    const at = (options, from = word.from) => ({ from, options, validFor: /^[\w$@]*$/ });
    const property = /\$(\w+)\.(\w*)$/.exec(before);
    if (property) {
      const kind = types.find((one) => one.name === variables.get(property[1]));
      const properties = kind ? kind.properties : types.flatMap((one) => one.properties);
      const seen = new Map(properties.map((one) => [one.name, one]));
      return at(
        [...seen.values()].map((one) => ({ label: one.name, type: "property", detail: one.type })),
        context.pos - property[2].length,
      );
    }
    if (/(:\s*|\b(?:insert|update|delete)\s+)\w*$/.test(before) && !/\(\s*[^)]*$/.test(before))
      return at(typeOptions(types, (one) => /:\s*\w*$/.test(before) ? one.kind === "node" : true));
    if (/\(\s*[^){}]*:\s*\w*$/.test(before))
      return at(TYPES.split(" ").map((label) => ({ label, type: "type" })));
    const hop = /\$(\w+)\s+(?:\$\w+:)?\w*$/.exec(before);
    const options = [];
    if (hop) {
      const type = variables.get(hop[1]);
      for (const one of types) {
        if (one.kind !== "edge" || (type && one.source !== type && one.target !== type)) continue;
        options.push({
          label: edgeWord(one.name), type: "class", boost: 2,
          detail: t("ask.hop", { from: one.source, to: one.target }),
        });
      }
    }
    const words = [...new Set(QUERY_WORDS.split(" "))].map((label) => ({ label, type: "keyword" }));
    const names = [...variables.keys()].map((name) => ({
      label: `$${name}`, type: "variable", detail: variables.get(name), boost: 1,
    }));
    const functions = [...new Set(FUNCTIONS.split(" "))].map((label) => ({
      label, type: "function", apply: `${label}(`,
    }));
    return at([...options, ...names, ...words, ...functions]);
  };
}

function typeOptions(types, wanted) {
  return types.filter(wanted).map((one) => ({
    label: one.name,
    type: one.kind === "node" ? "class" : "interface",
    detail: one.properties.map((each) => each.name).join(" "),
  }));
}

/** What can stand in a schema. */
export function schemaCompletion() {
  const options = [
    ...SCHEMA_WORDS.split(" ").map((label) => ({ label, type: "keyword" })),
    ...TYPES.split(" ").map((label) => ({ label, type: "type" })),
    ..."@key @index @analyzer @default @description @range @check @card @unique".split(" ").map((label) => ({
      label, type: "keyword",
    })),
  ];
  return (context) => {
    const word = context.matchBefore(/[\w@]+/);
    return word || context.explicit ? { from: word?.from ?? context.pos, options } : null;
  };
}

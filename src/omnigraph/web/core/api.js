/** Owns the requests: the token, JSON there and back, streams of lines and of events. It knows no
 * route; those who ask name theirs. */

import { Problem, problemOf } from "./problem.js";
import { t } from "./texts.js";

const TOKEN = "omnigraph.token";
/** Whole numbers beyond 2^53 come as texts: JavaScript would round them. */
const JSON_FORM = "application/json;int64=string";
const LINES_FORM = "application/jsonl;int64=string";

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (text) =>
    text ? sessionStorage.setItem(TOKEN, text) : sessionStorage.removeItem(TOKEN),
};

/** Called when the server knows us no longer. */
let unknown = () => {};
export function onUnknownCaller(call) {
  unknown = call;
}

function addressOf(path, params = {}) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, one);
  }
  const query = found.toString();
  return query ? `${path}?${query}` : path;
}

/** An answer that is no error. Paths are below the page, so that it may stand below a prefix. */
export async function send(method, path, { params, body, headers = {}, accept, signal } = {}) {
  const all = { Accept: accept ?? JSON_FORM, ...headers };
  const held = token.get();
  if (held) all.Authorization = `Bearer ${held}`;
  const binary = body instanceof Blob || body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  if (body !== undefined && !binary) all["Content-Type"] = "application/json";
  const response = await fetch(addressOf(`.${path}`, params), {
    method,
    headers: all,
    signal,
    body: body === undefined || binary ? body : JSON.stringify(body),
  });
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401) unknown(problem);
  throw problem;
}

async function json(...given) {
  return (await send(...given)).json();
}

/** Parts of a stream of bytes that end with a mark, as text. */
async function* parts(response, mark) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const found = (rest + value).split(mark);
      rest = found.pop();
      yield found;
    }
    if (rest.trim()) yield [rest];
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Lines of JSON, as arrays of values. A stream that broke is an error, never a short answer. */
export async function* lines(method, path, options = {}) {
  const response = await send(method, path, { accept: LINES_FORM, ...options });
  for await (const found of parts(response, "\n")) {
    const values = [];
    for (const line of found) {
      if (!line) continue;
      const value = JSON.parse(line);
      if (value["@error"]) throw new Problem(value["@error"]);
      values.push(value);
    }
    if (values.length) yield values;
  }
}

/** Events as `{event, data, id}`. */
export async function* events(method, path, options = {}) {
  const response = await send(method, path, { accept: "text/event-stream", ...options });
  for await (const blocks of parts(response, "\n\n")) {
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split("\n").map((line) => {
          const at = line.indexOf(":");
          return [line.slice(0, at), line.slice(at + 1).trimStart()];
        }),
      );
      if (fields.data) yield { ...fields, data: JSON.parse(fields.data) };
    }
  }
}

export const server = {
  get: (path, params, options) => json("GET", path, { params, ...options }),
  post: (path, body = {}, options) => json("POST", path, { body, ...options }),
  delete: (path, body, options) => json("DELETE", path, { body, ...options }),
  text: async (path, options) => (await send("GET", path, { accept: "*/*", ...options })).text(),
};

/** The routes below one graph: `graph.get("/schema", { ref })`. */
export class GraphApi {
  constructor(name) {
    this.name = name;
    this.path = `/graphs/${encodeURIComponent(name)}`;
  }

  get(path, params, options) {
    return json("GET", this.path + path, { params, ...options });
  }

  post(path, body = {}, options) {
    return json("POST", this.path + path, { body, ...options });
  }

  patch(path, body = {}, options) {
    return json("PATCH", this.path + path, { body, ...options });
  }

  delete(path, params, options) {
    return json("DELETE", this.path + path, { params, ...options });
  }

  /** Arrays of values, as they come. */
  lines(method, path, options) {
    return lines(method, this.path + path, options);
  }

  events(method, path, options) {
    return events(method, this.path + path, options);
  }

  /** The answer itself: for downloads, and for bodies that are files. */
  send(method, path, options) {
    return send(method, this.path + path, options);
  }
}

/** Offers bytes to the user as a file. */
export function saveFile(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

export function describeIo(io) {
  return io ? t("io.told", { reads: io.reads, bytes: io.bytes }) : "";
}

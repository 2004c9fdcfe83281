/** Owns what an error is on this page: a problem of the server, or a connection that broke. */

import { t } from "./texts.js";

export class Problem extends Error {
  constructor(told) {
    super(told.error ?? told.detail ?? told.title ?? t("problem.unknown"));
    this.code = told.code ?? "unknown";
    this.status = told.status ?? 0;
    this.help = told.help ?? "";
    this.retryable = Boolean(told.retryable);
    this.applied = told.applied ?? null;
    this.told = told;
  }

  get diagnostics() {
    return this.told.diagnostics ?? [];
  }
}

/** The problem that an answer tells of. */
export async function problemOf(response) {
  let told = {};
  try {
    told = await response.json();
  } catch {
    told = { error: t("problem.status", { status: response.status }) };
  }
  return new Problem({ status: response.status, ...told });
}

/** Whatever was thrown, as a problem; null if somebody only stopped waiting. */
export function asProblem(error) {
  if (error?.name === "AbortError") return null;
  if (error instanceof Problem) return error;
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message))
    return new Problem({ code: "offline", error: t("problem.offline"), retryable: true });
  console.error(error);
  return new Problem({ code: "page", error: t("problem.page", { message: error?.message ?? error }) });
}

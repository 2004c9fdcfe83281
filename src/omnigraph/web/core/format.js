/** Owns how values are written for people. */

import { t } from "./texts.js";

const NUMBER = new Intl.NumberFormat("en");
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit",
  hour12: false,
});
const STEPS = [
  [60, "second", 1],
  [3600, "minute", 60],
  [86_400, "hour", 3600],
  [86_400 * 30, "day", 86_400],
  [86_400 * 365, "month", 86_400 * 30],
  [Infinity, "year", 86_400 * 365],
];
const AGO = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function count(number) {
  return NUMBER.format(number);
}

export function bytes(size) {
  let left = Number(size);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (left < 1024) return `${left < 10 && unit !== "B" ? left.toFixed(1) : Math.round(left)} ${unit}`;
    left /= 1024;
  }
  return `${left.toFixed(1)} TiB`;
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

export function moment(text) {
  return MOMENT.format(new Date(text));
}

/** How long ago it was. */
export function ago(text) {
  const seconds = (Date.now() - new Date(text).getTime()) / 1000;
  const [, unit, size] = STEPS.find(([below]) => seconds < below);
  return AGO.format(-Math.floor(seconds / size), unit);
}

/** Who did something: nobody has to say. */
export function actorName(actor) {
  return actor || t("nobody");
}

/** A value in one line. */
export function value(one) {
  if (one === null || one === undefined) return "";
  if (typeof one === "string") return one;
  if (typeof one === "object") return JSON.stringify(one);
  return String(one);
}

/** Whether values of a type are written at the right. */
export function isNumeric(type) {
  return /^(I|U|F)\d+\??$|^Decimal|^(u?int|float|double|decimal)/.test(type ?? "");
}

/** What an entity is called: what looks like a name, else its key. */
export function nameOf(type, id, data = {}) {
  for (const key of ["name", "title", "label"]) if (data?.[key]) return value(data[key]);
  const held = (type?.key ?? []).map((key) => data?.[key]).filter((one) => one !== undefined);
  return held.length ? held.map(value).join(", ") : id;
}

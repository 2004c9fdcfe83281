/** Owns the lines beside a log: a lane for each line of work, as the server has drawn them. */

import { s } from "../core/dom.js";
import { TYPE_COLOURS } from "../core/theme.js";

const WIDE = 18;
export const TALL = 52;

const x = (lane) => 14 + lane * WIDE;
const colourOf = (lane) => `var(--type-${lane % TYPE_COLOURS})`;

/** How wide the lanes of all these rows are. */
export function lanesWidth(rows) {
  const most = rows.flatMap((row) => [row.lane, ...row.edges.flatMap((one) => [one.from, one.to])]);
  return x(Math.max(0, ...most)) + 14;
}

/** The piece beside one commit: lines that come from the row before, and go on to the next. */
export function lanePiece(row, before, width) {
  const middle = TALL / 2;
  const came = (before?.edges ?? []).filter((one) => one.kind !== "cut");
  const upper = came.map((one) => line(x(one.to), 0, x(one.to), middle, one));
  const lower = row.edges.map((one) => line(x(one.from), middle, x(one.to), TALL, one));
  return s(
    "svg",
    { class: "lanes", width, height: TALL, viewBox: `0 0 ${width} ${TALL}`, "aria-hidden": "true" },
    upper,
    lower,
    s("circle", { cx: x(row.lane), cy: middle, r: 5.5, style: { fill: colourOf(row.lane) } }),
  );
}

function line(fromX, fromY, toX, toY, one) {
  const bend = (fromY + toY) / 2;
  const path = fromX === toX ? `M${fromX} ${fromY}V${toY}` : `M${fromX} ${fromY}C${fromX} ${bend} ${toX} ${bend} ${toX} ${toY}`;
  return s("path", {
    d: path,
    "stroke-dasharray": one.kind === "cut" ? "2 4" : null,
    style: { stroke: colourOf(one.kind === "merge" || one.kind === "fork" ? Math.max(one.from, one.to) : one.to) },
  });
}

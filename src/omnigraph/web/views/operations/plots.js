/** Owns small plots of what the server measures: it is asked every two seconds while they are seen. */

import { trouble } from "../../components/controls.js";
import { server } from "../../core/api.js";
import { h, replace, s } from "../../core/dom.js";
import { bytes, count } from "../../core/format.js";
import { t } from "../../core/texts.js";

const EVERY = 2000;
const KEPT = 90;
const [WIDE, TALL] = [320, 80];

/** `rate` is the growth of a counter in a second; the others are shown as they are. */
const PLOTS = [
  { name: "requests", metric: "http_requests_total", rate: true, show: (v) => v.toFixed(1) },
  { name: "errors", metric: "http_requests_total", rate: true, only: /status="[45]/, show: (v) => v.toFixed(1) },
  { name: "in_flight", metric: "in_flight", show: count },
  { name: "commits", metric: "commits_total", rate: true, show: (v) => v.toFixed(1) },
  { name: "storage_requests", metric: "storage_requests_total", rate: true, show: (v) => v.toFixed(1) },
  { name: "memory", metric: "memory_reserved_bytes", show: bytes },
];

/** Sums by the name of the metric, from the text that Prometheus reads. */
function read(text, { metric, only }) {
  let sum = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith(`omnigraph_${metric}`) || (only && !only.test(line))) continue;
    const next = line[`omnigraph_${metric}`.length];
    if (next === "{" || next === " ") sum += Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return sum;
}

export function metricPlots() {
  const element = h("div.plots");
  const held = PLOTS.map(() => []);
  let last = null;
  let timer = 0;
  let closed = false;

  async function look() {
    try {
      const text = await server.text("/metrics");
      const at = performance.now();
      const now = PLOTS.map((plot) => read(text, plot));
      PLOTS.forEach((plot, place) => {
        if (plot.rate && !last) return;
        const value = plot.rate ? Math.max(0, (1000 * (now[place] - last.now[place])) / (at - last.at)) : now[place];
        held[place].push(value);
        if (held[place].length > KEPT) held[place].shift();
      });
      last = { at, now };
      if (!closed) replace(element, PLOTS.map((plot, place) => figure(plot, held[place])));
    } catch (error) {
      const shown = trouble(error);
      if (shown && !closed) replace(element, shown);
    }
    if (!closed) timer = setTimeout(look, EVERY);
  }

  look();
  return {
    element,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function figure({ name, show }, values) {
  const latest = values.at(-1);
  const most = Math.max(...values, 1e-9);
  const step = WIDE / Math.max(1, KEPT - 1);
  const from = KEPT - values.length;
  const points = values.map((value, at) => `${((from + at) * step).toFixed(1)} ${(TALL - 4 - (value / most) * (TALL - 12)).toFixed(1)}`);
  const label = t("operations.plot", { name: t(`operations.${name}`), value: latest === undefined ? "–" : show(latest) });
  return h(
    "figure.card.plot",
    h("figcaption", h("span", t(`operations.${name}`)), h("strong", latest === undefined ? "–" : show(latest))),
    s("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": label },
      points.length > 1 ? s("path", { class: "area", d: `M${points[0].split(" ")[0]} ${TALL}L${points.join("L")}L${WIDE} ${TALL}Z` }) : null,
      points.length ? s("path", { class: "line", d: `M${points.join("L")}` }) : null),
  );
}

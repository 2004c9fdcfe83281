/**
 * Owns tables of any length: only the rows in sight are elements. Rows come from a source by their
 * places, at once or later, so a million of them cost as much as a hundred.
 */

import { freshId, h, replace } from "../core/dom.js";
import { count, isNumeric, value as written } from "../core/format.js";
import { asProblem } from "../core/problem.js";
import { t } from "../core/texts.js";

const ROW = 32;
/** Browsers draw nothing below some 16 million pixels. Beyond this, scrolling is scaled. */
const TALLEST = 8_000_000;
const AROUND = 8;

/** Rows that are all here. */
export function rowsSource(rows) {
  return { count: rows.length, rows: (start, end) => rows.slice(start, end) };
}

/**
 * Rows that are asked for in windows: `load(start, end, signal)` promises them. Windows are kept,
 * the oldest go first.
 */
export function windowedSource(total, load, { size = 200, keep = 50 } = {}) {
  const held = new Map();
  const ask = (at) => {
    const found = held.get(at);
    if (found) {
      held.delete(at);
      held.set(at, found);
      return found;
    }
    const stop = new AbortController();
    const entry = { rows: null, stop };
    entry.promise = load(at * size, Math.min(total, (at + 1) * size), stop.signal).then(
      (rows) => (entry.rows = rows),
      (error) => {
        held.delete(at);
        throw error;
      },
    );
    held.set(at, entry);
    for (const [old, { stop: end, rows }] of held) {
      if (held.size <= keep) break;
      if (!rows) end.abort();
      held.delete(old);
    }
    return entry;
  };
  return {
    count: total,
    /** The rows if they are here, or a promise of them. */
    rows(start, end) {
      const windows = [];
      for (let at = Math.floor(start / size); at * size < end; at += 1) windows.push([at, ask(at)]);
      const cut = () =>
        windows.flatMap(([at, { rows }]) =>
          rows.slice(Math.max(0, start - at * size), Math.max(0, end - at * size)),
        );
      if (windows.every(([, one]) => one.rows)) return cut();
      return Promise.all(windows.map(([, one]) => one.promise)).then(cut);
    },
  };
}

/**
 * `columns` are `{name, label, type, width, show(row)}`: `show` gives text or an element. `source`
 * has `count` and `rows(start, end)`. `onopen(row, index)` is for Enter and a click on a row;
 * `onsort(name)` makes the heads buttons; `sorted` is `{name, down}`.
 */
export function table({ label, columns, source, onopen, onsort, sorted, rowClass }) {
  const id = freshId("table");
  const template = columns.map((one) => one.width ?? "minmax(8rem, 1fr)").join(" ");
  const head = h("div.row.head", { role: "row", "aria-rowindex": "1" });
  const body = h("div.rows", { role: "rowgroup" });
  const filler = h("div.filler", { "aria-hidden": "true" });
  const grid = h(
    "div.table",
    { role: "grid", tabindex: "0", id, "aria-label": label, "aria-colcount": columns.length },
    h("div", { role: "rowgroup", class: "headgroup" }, head),
    body,
    filler,
  );
  grid.style.setProperty("--columns", template);
  let rows = source;
  let active = -1;
  let wanted = "";

  columns.forEach((column, at) => {
    const is = sorted?.name === column.name;
    const title = column.label ?? column.name;
    const cell = h(
      "div.cell",
      {
        role: "columnheader",
        "aria-colindex": at + 1,
        "aria-sort": onsort ? (is ? (sorted.down ? "descending" : "ascending") : "none") : null,
        class: isNumeric(column.type) ? "number" : "",
      },
      onsort && column.sortable !== false
        ? h(
            "button.sort",
            { type: "button", onclick: () => onsort(column.name) },
            title,
            is ? h("span", { "aria-hidden": "true" }, sorted.down ? " ↓" : " ↑") : null,
          )
        : title,
      column.hint ? h("span.hint", column.hint) : null,
    );
    head.append(cell);
  });

  const tall = () => Math.min(TALLEST, rows.count * ROW);
  const inSight = () => Math.max(1, Math.floor((grid.clientHeight - head.offsetHeight) / ROW));

  /** The first row in sight. */
  function first() {
    const most = Math.max(1, tall() - inSight() * ROW);
    const last = Math.max(0, rows.count - inSight());
    if (rows.count * ROW <= TALLEST) return Math.min(last, Math.floor(grid.scrollTop / ROW));
    return Math.min(last, Math.round((grid.scrollTop / most) * last));
  }

  function scrollFor(index) {
    const last = Math.max(1, rows.count - inSight());
    if (rows.count * ROW <= TALLEST) return index * ROW;
    return (index / last) * Math.max(1, tall() - inSight() * ROW);
  }

  function paint() {
    filler.style.height = `${tall()}px`;
    grid.setAttribute("aria-rowcount", String(rows.count + 1));
    const begin = first();
    const scaled = rows.count * ROW > TALLEST;
    const start = Math.max(0, begin - AROUND);
    const end = Math.min(rows.count, begin + inSight() + AROUND + 1);
    const top = scaled ? grid.scrollTop - (begin - start) * ROW : start * ROW;
    const key = `${start}-${end}-${top}-${active}`;
    if (key === wanted) return;
    wanted = key;
    if (rows.count === 0) {
      replace(body, h("div.none", t("table.none")));
      return;
    }
    const found = rows.rows(start, end);
    if (!(found instanceof Promise)) {
      draw(found, start, top);
      return;
    }
    draw(new Array(end - start).fill(null), start, top);
    found.then(
      (held) => key === wanted && draw(held, start, top),
      (error) => {
        const problem = asProblem(error);
        if (problem && key === wanted) replace(body, h("div.none", problem.message));
      },
    );
  }

  function draw(found, start, top) {
    body.style.transform = `translateY(${top}px)`;
    replace(body, found.map((row, at) => line(row, start + at)));
    const held = active >= 0 ? `${id}-row-${active}` : null;
    if (held && body.querySelector(`#${held}`)) grid.setAttribute("aria-activedescendant", held);
    else grid.removeAttribute("aria-activedescendant");
  }

  function line(row, index) {
    const cells = columns.map((column, at) => {
      const shown = row === null ? "…" : column.show ? column.show(row) : written(row[column.name]);
      const text = typeof shown === "string" ? shown : null;
      return h(
        "div.cell",
        {
          role: "gridcell",
          "aria-colindex": at + 1,
          title: text && text.length > 20 ? text : null,
          class: isNumeric(column.type) ? "number" : "",
        },
        shown instanceof Node
          ? shown
          : row !== null && text === "" ? h("span.null", { "aria-label": t("null") }, "–") : shown,
      );
    });
    return h(
      "div.row",
      {
        role: "row",
        id: `${id}-row-${index}`,
        "aria-rowindex": index + 2,
        "aria-selected": index === active ? "true" : "false",
        class: [onopen ? "opens" : "", row === null ? "pending" : (rowClass?.(row) ?? "")].join(" "),
        onclick: () => {
          mark(index);
          if (row !== null) onopen?.(row, index);
        },
      },
      cells,
    );
  }

  function mark(index) {
    active = Math.max(0, Math.min(rows.count - 1, index));
    const begin = first();
    if (active < begin) grid.scrollTop = scrollFor(active);
    else if (active >= begin + inSight()) grid.scrollTop = scrollFor(active - inSight() + 1);
    paint();
  }

  grid.addEventListener("keydown", async (event) => {
    if (event.target !== grid) return;
    const page = inSight();
    const to = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: rows.count - 1,
    }[event.key];
    if (to !== undefined && rows.count) {
      event.preventDefault();
      mark(to);
    } else if (event.key === "Enter" && active >= 0) {
      const [row] = await rows.rows(active, active + 1);
      if (row) onopen?.(row, active);
    }
  });
  let frame = 0;
  grid.addEventListener("scroll", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(paint);
  });
  const watched = new ResizeObserver(() => paint());
  watched.observe(grid);

  return {
    element: grid,
    /** Other rows in the same columns, as when more have come. */
    setSource(next) {
      rows = next;
      wanted = "";
      paint();
    },
    /** Draws again what is in sight. */
    repaint() {
      wanted = "";
      paint();
    },
    scrollTo: (index) => {
      grid.scrollTop = scrollFor(index);
      paint();
    },
    close: () => watched.disconnect(),
    describe: () => t("table.rows", { rows: count(rows.count) }),
  };
}

/** Owns the icons: strokes on a grid of 24, in the colour of the text. */

import { s } from "../core/dom.js";

const PATHS = {
  home: "M4 11 12 4l8 7v9h-5v-6H9v6H4z",
  ask: "M5 7l5 5-5 5M12 18h7",
  look: "M6 18 11 8m2 0 5 8M8 19h8M12 6m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M6 19m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M18 18m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  schema: "M4 4h7v6H4zM13 14h7v6h-7zM7.5 10v7H13",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13M15.5 15.5 20 20",
  history: "M7 4v10m0 0a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5M17 5a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5m0 5c0 4-6 3-9 5",
  compare: "M9 4v16M15 4v16M3 8h6M3 13h6M15 11h6M15 16h6",
  data: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 10v9",
  operations: "M4 18v-5M9 18V8M14 18v-7M19 18V5",
  branch: "M7 4v16M7 13c5 0 10 0 10-5M17 8m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0",
  tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
  commit: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M2 12h6M16 12h6",
  time: "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M12 8v4l3 2",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  left: "M15 6l-6 6 6 6",
  close: "M6 6l12 12M18 6 6 18",
  check: "M5 13l4 4L19 7",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10",
  auto: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  person: "M12 4a4 4 0 1 0 0 8a4 4 0 0 0 0-8M4 20c1-4 4-6 8-6s7 2 8 6",
  undo: "M9 7 4 12l5 5M4 12h10a5 5 0 0 1 0 10",
  pin: "M9 4h6l-1 6 3 4H7l3-4zM12 14v6",
  hide: "M4 4l16 16M9.5 6.5C14.500 5 19 8 21 12c-.7 1.300-1.700 2.600-3 3.600M6.500 8C5 9 3.700 10.500 3 12c2 4 6.500 7 11.500 5.500",
  path: "M5 19m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M19 5m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M7 18c8-1 2-11 10-12",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  download: "M12 4v11m0 0 5-5m-5 5-5-5M4 20h16",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  warning: "M12 4 2.500 20h19zM12 10v4M12 17h.01",
  copy: "M8 8h12v12H8zM4 16V4h12",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  filter: "M4 5h16l-6 8v6l-4-2v-4z",
  spread: "M12 12m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0M12 8V3M12 21v-5M8 12H3M21 12h-5",
};

export function icon(name) {
  return s(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" },
    s("path", { d: PATHS[name] ?? PATHS.more }),
  );
}

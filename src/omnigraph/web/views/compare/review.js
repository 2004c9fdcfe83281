/** Owns the review of a merge: what it would do, conflict by conflict, and only then the merge. */

import { badge, button, field, nothing, segmented, trouble, waiting } from "../../components/controls.js";
import { opBadge } from "../../components/changes.js";
import { toast } from "../../components/toast.js";
import { h, replace } from "../../core/dom.js";
import { count, value as written } from "../../core/format.js";
import { t } from "../../core/texts.js";

/** What cannot be decided by a side: it asks for a change on one of the branches. */
const BEYOND = new Set(["Schema", "Query", "OrphanEdge", "UniqueViolation", "CardinalityViolation", "ValueConstraintViolation"]);

/** `source` is merged into `into`. */
export function review(context, types, { source, into }) {
  const { graph, signal } = context;
  const element = h("div.review", waiting());
  const kinds = new Map(types.map((one) => [one.name, one]));
  let conflicts = [];
  /** By place among the conflicts: `{side, value}`. */
  let choices = [];
  let told = null;
  let mayMerge = false;

  async function begin() {
    try {
      const body = { source, into, dry_run: true };
      [told, mayMerge] = await Promise.all([
        graph.post("/merge", body, { signal }),
        context.may("merge", into),
      ]);
      ({ conflicts } = told);
      choices = conflicts.map(() => null);
      show();
    } catch (error) {
      const problem = trouble(error);
      if (problem) replace(element, problem);
    }
  }

  function show() {
    const summary = h("div.counts", Object.entries(told.changes).map(([type, counts]) =>
      h("div", h("strong", type), Object.entries(counts).map(([op, number]) => opBadge(op, number)))));
    if (told.outcome === "up_to_date" || told.outcome === "already_up_to_date") {
      replace(element, nothing(t("review.nothing")));
      return;
    }
    replace(
      element,
      h("p.hint", t("review.about", { source, into })),
      told.adopted.length ? h("p", t("review.adopted", { types: told.adopted.map((one) => one.split(":").at(-1)).join(", ") })) : null,
      summary,
      conflicts.length ? [h("h2", t("review.conflicts", { count: count(conflicts.length) })), bulk(), h("ol.conflicts", conflicts.map(card))] : h("p.good", t("review.clean")),
      ending(),
    );
  }

  /** The same side for all, or for all of a type or a property. */
  function bulk() {
    const groups = new Map();
    conflicts.forEach((one, at) => {
      if (BEYOND.has(one.kind)) return;
      const name = one.property ? `${one.type}.${one.property}` : one.type;
      groups.set(name, [...(groups.get(name) ?? []), at]);
    });
    const all = [...groups.values()].flat();
    const line = (name, places) =>
      h(
        "li",
        h("span", name, " ", badge(count(places.length))),
        button(t("review.ours", { into }), { onclick: () => chooseAll(places, "ours") }),
        button(t("review.theirs", { source }), { onclick: () => chooseAll(places, "theirs") }),
      );
    return h("ul.bulk", { "aria-label": t("review.bulk") }, line(t("review.all"), all), groups.size > 1 ? [...groups].map(([name, places]) => line(name, places)) : null);
  }

  function chooseAll(places, side) {
    for (const at of places) choices[at] = { side, value: conflicts[at][side] };
    show();
  }

  function card(one, at) {
    const name = one.property ? `${one.type} ${one.id}: ${one.property}` : `${one.type} ${one.id ?? ""}`;
    const sides = ["base", "ours", "theirs"].map((side) =>
      h("div.side-value", h("h3", t(`review.${side}_name`, { source, into })), h("pre", shown(one[side]))),
    );
    const chosen = choices[at];
    const edit = field(t("review.own_value"), h("input", { type: "text", value: chosen?.side === "own" ? shownPlain(chosen.value) : shownPlain(one.theirs) }));
    edit.hidden = chosen?.side !== "own";
    const input = edit.querySelector("input");
    input.addEventListener("input", () => {
      choices[at] = { side: "own", value: valueFor(one, input.value) };
      refresh();
    });
    const options = [
      { value: "ours", label: t("review.ours", { into }) },
      { value: "theirs", label: t("review.theirs", { source }) },
      { value: "base", label: t("review.base") },
      ...(one.property ? [{ value: "own", label: t("review.own") }] : []),
    ];
    const choose = (side) => {
      edit.hidden = side !== "own";
      choices[at] = { side, value: side === "own" ? valueFor(one, input.value) : one[side] };
      if (side === "own") input.focus();
      refresh();
    };
    return h(
      "li.card",
      h("div.changehead", badge(one.kind, "warn"), h("strong", name)),
      h("p.hint", one.message),
      h("div.three", sides),
      BEYOND.has(one.kind) ? h("p.bad", t("review.beyond")) : [segmented(t("review.choose", { name }), options, chosen?.side, choose), edit],
    );
  }

  /** A text as the type of the property has it. */
  function valueFor(one, text) {
    const type = kinds.get(one.type)?.properties.find((each) => each.name === one.property)?.type ?? "String";
    if (text === "") return null;
    if (type.startsWith("String")) return text;
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }

  let status = null;
  let apply = null;
  let message = null;

  function ending() {
    status = h("p", { role: "status" });
    message = h("input", { type: "text", value: message?.value ?? "" });
    apply = button(t("review.merge", { source, into }), { kind: "primary", type: "submit" });
    const problem = h("div");
    refresh();
    if (!mayMerge) return h("p.hint", t("review.may_not"));
    return h(
      "form.ending",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          apply.disabled = true;
          try {
            await graph.post("/merge", { source, into, resolve: resolved(), message: message.value || null });
            toast(t("review.merged", { source, into }), { kind: "good" });
            context.again();
          } catch (error) {
            replace(problem, trouble(error));
            refresh();
          }
        },
      },
      field(t("review.message"), message),
      status,
      apply,
      problem,
    );
  }

  function refresh() {
    const left = choices.filter((one) => one === null).length;
    replace(status, left ? t("review.left", { count: count(left) }) : t("review.ready"));
    apply.disabled = left > 0;
  }

  /** What each entity is after the merge: the values that were chosen, or the whole row. */
  function resolved() {
    const rows = new Map();
    conflicts.forEach((one, at) => {
      const key = JSON.stringify([one.type, one.id]);
      const { value } = choices[at];
      if (one.property) {
        const held = rows.get(key) ?? { type: one.type, id: one.id, row: {} };
        if (held.row) held.row[one.property] = value;
        rows.set(key, held);
        return;
      }
      const { id: _, ...row } = value ?? {};
      rows.set(key, { type: one.type, id: one.id, row: value === null ? null : row });
    });
    return rows.size ? [...rows.values()] : null;
  }

  begin();
  return element;
}

function shown(value) {
  if (value === null || value === undefined) return t("null");
  return typeof value === "object" ? JSON.stringify(value, null, 2) : written(value);
}

function shownPlain(value) {
  return value === null || value === undefined ? "" : written(value);
}

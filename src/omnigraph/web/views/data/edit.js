/** Owns the window with one entity, where it is changed or deleted on the branch that is shown. */

import { button, field, link, trouble } from "../../components/controls.js";
import { confirm, openDialog } from "../../components/dialog.js";
import { toast, toastProblem } from "../../components/toast.js";
import { h, replace } from "../../core/dom.js";
import { value as written } from "../../core/format.js";
import { t } from "../../core/texts.js";

const BASES = /^(String|Bool|I32|I64|U32|U64|F32|F64|Date|DateTime)$/;

export function editEntity(context, kind, row, { mayChange, ondone }) {
  const { graph, branch } = context;
  const fields = kind.properties.filter((one) => one.type !== "Blob").map((one) => ({ ...one, control: controlFor(one, row[one.name]) }));
  const editable = (one) => mayChange && BASES.test(one.type) && !kind.key.includes(one.name);
  for (const one of fields) one.control.disabled = !editable(one);
  const message = h("input", { type: "text" });
  const problem = h("div");

  async function save() {
    const changed = fields.filter((one) => editable(one) && one.control.value !== shown(row[one.name]));
    if (!changed.length) {
      dialog.close();
      return;
    }
    const params = { id: row.id };
    for (const one of changed) params[`v_${one.name}`] = valueOf(one, one.control.value);
    const declared = changed.map((one) => `$v_${one.name}: ${one.type}${one.nullable ? "?" : ""}`);
    const sets = changed.map((one) => `${one.name}: $v_${one.name}`);
    const query = `query edit($id: String, ${declared.join(", ")}) { update ${kind.name} set { ${sets.join(", ")} } where @id = $id }`;
    try {
      await graph.post("/mutate", { query, params, branch, message: message.value || null });
      dialog.close();
      toast(t("data.saved", { branch }), { kind: "good" });
      ondone();
    } catch (error) {
      replace(problem, trouble(error));
    }
  }

  async function remove() {
    const sure = await confirm(t("data.delete"), t("data.delete_sure", { type: kind.name, id: row.id, branch }), { yes: t("data.delete"), danger: true });
    if (!sure) return;
    try {
      const query = `query gone($id: String) { delete ${kind.name} where @id = $id }`;
      await graph.post("/mutate", { query, params: { id: row.id }, branch });
      dialog.close();
      toast(t("data.deleted", { branch }), { kind: "good" });
      ondone();
    } catch (error) {
      toastProblem(error);
    }
  }

  const form = h(
    "form.entity",
    { onsubmit: (event) => (event.preventDefault(), save()) },
    h("p.hint", `${kind.name} `, h("code", row.id)),
    fields.map((one) => field(one.name, one.control, { hint: one.type + (one.nullable ? "?" : "") })),
    mayChange ? field(t("data.message"), message) : null,
    problem,
    h("button", { type: "submit", hidden: true }),
  );
  const actions = [
    kind.kind === "node" ? link(t("search.in_graph"), context.link({ view: "look", path: [kind.name, row.id], params: {} }), { class: "button", onclick: () => dialog.close() }) : null,
    mayChange ? button(t("data.delete"), { kind: "danger", icon: "trash", onclick: remove }) : null,
    mayChange ? button(t("data.save", { branch }), { kind: "primary", onclick: save }) : null,
  ];
  const dialog = openDialog(t(mayChange ? "data.edit" : "data.entity"), form, { actions });
  return dialog;
}

function shown(value) {
  return value === null || value === undefined ? "" : written(value);
}

function controlFor({ type }, value) {
  if (type === "Bool") {
    const select = h("select", ["", "true", "false"].map((one) => h("option", { value: one }, one)));
    select.value = shown(value);
    return select;
  }
  const text = shown(value);
  if (text.length > 60) return h("textarea", { value: text, rows: 3 });
  return h("input", { type: "text", value: text, spellcheck: "false" });
}

/** As JSON has it. What is not a number goes as it is written, and the server says what is wrong. */
function valueOf({ type, nullable }, text) {
  if (text === "" && (nullable || type !== "String")) return null;
  if (type === "Bool") return text === "true";
  if (/^(I|U|F)\d/.test(type) && /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim()))
    return Number.isSafeInteger(Number(text)) || !JSON.rawJSON ? Number(text) : JSON.rawJSON(text.trim());
  return text;
}

/**
 * Owns the import of a file: it goes to a branch of its own, where one sees what it would change and
 * which rows were refused; then the branch is merged, or thrown away.
 */

import { button, field, nothing, segmented, trouble, waiting } from "../../components/controls.js";
import { changeList, opBadge } from "../../components/changes.js";
import { openDialog } from "../../components/dialog.js";
import { rowsSource, table } from "../../components/table.js";
import { toast, toastProblem } from "../../components/toast.js";
import { h, replace } from "../../core/dom.js";
import { count } from "../../core/format.js";
import { t } from "../../core/texts.js";

const KINDS = { jsonl: "application/jsonl", json: "application/jsonl", csv: "text/csv", parquet: "application/vnd.apache.parquet", arrow: "application/vnd.apache.arrow.stream" };
const SHOWN = 50;

export function importFile(context, types, ondone) {
  const { graph, branch } = context;
  const file = h("input", { type: "file", accept: Object.keys(KINDS).map((one) => `.${one}`).join(",") });
  const type = h("select", h("option", { value: "" }, t("data.all_types")), types.map((one) => h("option", { value: one.name }, one.name)));
  let mode = "merge";
  const modes = ["append", "merge"].map((value) => ({ value, label: t(`data.${value}`) }));
  const told = h("div.preview", { role: "status" });
  let scratch = null;
  let kept = false;

  const preview = button(t("data.preview"), { onclick: () => tryOut() });
  const keep = button(t("data.keep", { branch }), { kind: "primary", onclick: () => merge() });
  keep.hidden = true;
  const dialog = openDialog(
    t("data.import"),
    h(
      "div.importing",
      h("p.hint", t("data.about_import", { branch })),
      field(t("data.file"), file),
      field(t("data.type"), type),
      h("div.field", h("span.hint", t("data.mode")), segmented(t("data.mode"), modes, mode, (value) => (mode = value))),
      told,
    ),
    { wide: true, actions: [button(t("cancel"), { onclick: () => dialog.close() }), preview, keep], onclose: () => kept || discard() },
  );

  async function discard() {
    if (!scratch) return;
    const name = scratch;
    scratch = null;
    await graph.delete("/branches", { name }).catch(toastProblem);
  }

  async function tryOut() {
    const [chosen] = file.files;
    if (!chosen) {
      file.focus();
      return;
    }
    await discard();
    keep.hidden = true;
    replace(told, waiting());
    const name = `import/${Date.now().toString(36)}`;
    const kind = KINDS[chosen.name.split(".").at(-1).toLowerCase()] ?? KINDS.jsonl;
    try {
      const response = await graph.send("POST", "/load", {
        params: { branch: name, from: branch, mode, type: type.value, on_error: "quarantine", rejects: 1000 },
        headers: { "Content-Type": kind },
        body: await chosen.arrayBuffer(),
      });
      let done = await response.json();
      scratch = name;
      if (response.status === 202) done = await finished(done);
      await show(done);
    } catch (error) {
      replace(told, trouble(error));
    }
  }

  /** A large file is a job, which tells how far it is. */
  async function finished(job) {
    for await (const { event, data } of graph.events("GET", `/jobs/${job.id}/events`)) {
      replace(told, waiting(`${data.doing || data.state} ${count(data.done)}`));
      if (event === "done") return data.result;
      if (event === "failed") throw Object.assign(new Error(data.problem?.error ?? t("problem.unknown")));
    }
    return {};
  }

  async function show(done) {
    const rejects = done.rejects ?? [];
    const { items } = done.commit ? await graph.get("/diff", { old: branch, new: scratch, limit: SHOWN }) : { items: [] };
    const counts = Object.entries(done.counts ?? {}).map(([name, one]) =>
      h("div", h("strong", name), one.inserted ? opBadge("insert", one.inserted) : null, one.updated ? opBadge("update", one.updated) : null, one.deleted ? opBadge("delete", one.deleted) : null));
    const refused = rejects.length
      ? table({
          label: t("data.rejected"),
          columns: [
            { name: "line", label: t("data.line"), type: "I64", width: "5rem" },
            { name: "type", label: t("data.type"), width: "8rem" },
            { name: "reason", label: t("data.reason"), width: "minmax(24rem, 2fr)" },
            { name: "row", label: t("data.row"), width: "minmax(16rem, 1fr)" },
          ],
          source: rowsSource(rejects),
        })
      : null;
    replace(
      told,
      h("div.counts", counts.length ? counts : t("compare.none")),
      done.rejected ? [h("h3.bad", t("data.refused", { count: count(done.rejected) })), refused.element] : null,
      items.length ? [h("h3", t("data.would_change")), changeList(items, types)] : nothing(t("compare.none")),
    );
    keep.hidden = !items.length;
  }

  async function merge() {
    keep.disabled = true;
    try {
      await graph.post("/merge", { source: scratch, into: branch, delete_source: true, message: t("data.imported_message", { file: file.files[0]?.name ?? "" }) });
      kept = true;
      dialog.close();
      toast(t("data.imported", { branch }), { kind: "good" });
      ondone();
    } catch (error) {
      keep.disabled = false;
      told.prepend(trouble(error));
    }
  }
}

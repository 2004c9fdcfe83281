/** Owns the view of how the graph and its server are: what is stored, long work, and what is measured. */

import { badge, button, trouble, waiting } from "../components/controls.js";
import { confirm, openDialog } from "../components/dialog.js";
import { tabs } from "../components/tabs.js";
import { toastProblem } from "../components/toast.js";
import { h, replace } from "../core/dom.js";
import { actorName, ago, bytes, count } from "../core/format.js";
import { t } from "../core/texts.js";
import { metricPlots } from "./operations/plots.js";

const STATES = { done: "good", failed: "bad", lost: "bad", cancelled: "warn", running: "accent", queued: "accent" };
const ENDED = new Set(["done", "failed", "lost", "cancelled", "unreadable"]);

export default {
  async open(context) {
    const view = new Operations(context);
    await view.begin();
    return {
      update: (next) => (next.params.tab ?? "jobs") !== view.tabs.current && view.tabs.choose(next.params.tab ?? "jobs"),
      close: () => view.close(),
    };
  },
};

class Operations {
  constructor(context) {
    this.context = context;
    this.followed = new Map();
  }

  async begin() {
    const { context } = this;
    [this.mayMaintain, this.mayClean] = await Promise.all([context.may("maintain"), context.may("cleanup")]);
    this.tabs = tabs(
      t("operations.title"),
      [
        { name: "jobs", label: t("operations.jobs"), show: (panel) => this.jobs(panel) },
        { name: "storage", label: t("operations.storage"), show: (panel) => this.storage(panel) },
        { name: "metrics", label: t("operations.metrics"), show: (panel) => this.metrics(panel) },
      ],
      { chosen: context.params.tab, onchoose: (tab) => context.go({ params: { tab: tab === "jobs" ? null : tab } }, { replace: true }) },
    );
    replace(context.root, h("h1", t("operations.title")), this.tabs.element);
  }

  async jobs(panel) {
    this.plots?.close();
    this.list = h("ul.jobs", { "aria-label": t("operations.jobs") });
    const begin = (kind, more) => () => this.start(kind, more);
    replace(
      panel,
      h(
        "div.toolbar",
        this.mayMaintain ? [
          button(t("operations.verify"), { icon: "check", onclick: begin("verify", {}) }),
          button(t("operations.optimize_dry"), { onclick: begin("optimize", { dry_run: true }) }),
          button(t("operations.optimize"), { icon: "operations", onclick: begin("optimize", {}) }),
        ] : null,
        this.mayClean ? button(t("operations.cleanup"), { icon: "trash", onclick: begin("cleanup", { dry_run: true }) }) : null,
      ),
      this.mayMaintain || this.mayClean ? null : h("p.hint", t("operations.may_not")),
      this.list,
    );
    replace(this.list, waiting());
    try {
      const { items } = await this.context.graph.get("/jobs", { limit: 50 }, { signal: this.context.signal });
      replace(this.list);
      items.sort((a, b) => b.created_at - a.created_at);
      for (const one of items) this.put(one);
      if (!items.length) replace(this.list, h("li.none", t("operations.none")));
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(this.list, shown);
    }
  }

  async start(kind, more) {
    try {
      const job = await this.context.graph.post("/jobs", { kind, ...more });
      this.list.querySelector(".none")?.remove();
      this.put(job, { first: true });
    } catch (error) {
      toastProblem(error);
    }
  }

  /** Shows a job, and how far it is for as long as it runs. */
  put(job, { first = false } = {}) {
    const row = h("li.card", { "data-job": job.id });
    const fill = (one) => replace(row, this.jobOf(one));
    fill(job);
    if (first) this.list.prepend(row);
    else this.list.append(row);
    if (!ENDED.has(job.state)) this.follow(job.id, fill);
  }

  async follow(id, fill) {
    const { graph, signal } = this.context;
    try {
      for await (const { data } of graph.events("GET", `/jobs/${id}/events`, { signal })) fill(data);
    } catch (error) {
      toastProblem(error);
    }
  }

  jobOf(job) {
    const dry = job.arguments?.dry_run;
    const ended = ENDED.has(job.state);
    const progress = ended ? null : h("progress", { max: job.total ?? null, value: job.total ? job.done : null, "aria-label": job.kind });
    return [
      h(
        "div.changehead",
        badge(t(`operations.state_${job.state}`), STATES[job.state] ?? ""),
        h("strong", dry ? t("operations.dry", { kind: job.kind }) : job.kind),
        h("span.hint", `${actorName(job.actor)}, ${ago(job.created_at / 1000)}`),
        h("span.space"),
        job.result ? button(t("operations.result"), { onclick: () => openDialog(job.kind, h("pre.json", { tabindex: "0" }, JSON.stringify(job.result, null, 2)), { wide: true }) }) : null,
        ended ? null : button(t("operations.cancel"), { onclick: () => this.context.graph.delete(`/jobs/${job.id}`).catch(toastProblem) }),
        dry && job.kind === "cleanup" && job.result?.files && this.mayClean ? button(t("operations.really"), { kind: "danger", onclick: () => this.clean(job) }) : null,
      ),
      progress,
      job.doing && !ended ? h("p.hint", job.doing) : null,
      job.problem ? h("p.bad", job.problem.error ?? "") : null,
      job.kind === "cleanup" && job.result ? h("p", t(dry ? "operations.would_free" : "operations.freed", { files: count(job.result.files), size: bytes(job.result.bytes) })) : null,
      job.kind === "verify" && job.result ? h(job.result.ok ? "p.good" : "p.bad", t(job.result.ok ? "operations.sound" : "operations.damaged", { files: count(job.result.looked_at.files) })) : null,
    ];
  }

  async clean(job) {
    const { files, bytes: size } = job.result;
    const sure = await confirm(t("operations.cleanup"), t("operations.clean_sure", { files: count(files), size: bytes(size) }), { yes: t("operations.really"), danger: true });
    if (sure) this.start("cleanup", { ...job.arguments, dry_run: false });
  }

  async storage(panel) {
    this.plots?.close();
    replace(panel, waiting());
    const { graph, ref, signal } = this.context;
    try {
      const [stats, indexes, manifest] = await Promise.all([
        graph.get("", { ref }, { signal }),
        graph.get("/indexes", { ref }, { signal }),
        graph.get("/manifest", { ref }, { signal }),
      ]);
      const tables = new Map(manifest.items.filter((one) => one.object_type === "table_version").map((one) => [one.table_key.split(":")[1], one]));
      const head = (...names) => h("thead", h("tr", names.map((name, at) => h(at > 1 ? "th.number" : "th", { scope: "col" }, t(`operations.${name}`)))));
      replace(
        panel,
        h("section.card", h("h2", t("operations.by_type")), h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t("operations.by_type") }, h("table.plain", head("type", "kind", "entities", "fragments", "version"),
          h("tbody", stats.types.map((one) => {
            const table = tables.get(one.name);
            return h("tr", h("th", { scope: "row" }, one.name), h("td", badge(one.kind)), h("td.number", count(one.count)),
              h("td.number", table ? count(JSON.parse(table.metadata).fragments ?? 0) : "–"), h("td.number", table ? count(table.table_version) : "–"));
          }))))),
        h("section.card", h("h2", t("operations.indexes")), h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t("operations.indexes") }, h("table.plain", head("type", "property", "rows", "covered"),
          h("tbody", indexes.items.map((one) => h("tr", h("th", { scope: "row" }, one.type), h("td", one.property, " ", badge(one.kind)), h("td.number", count(one.rows)), h("td.number", count(one.covered)))))))),
      );
    } catch (error) {
      const shown = trouble(error);
      if (shown) replace(panel, shown);
    }
  }

  metrics(panel) {
    this.plots?.close();
    this.plots = metricPlots();
    replace(panel, this.plots.element);
  }

  close() {
    this.plots?.close();
  }
}

/** Owns the choice of the state that is shown: a branch, a tag, a commit, or a branch at a time. */

import { button, field } from "../components/controls.js";
import { combobox } from "../components/combobox.js";
import { icon } from "../components/icons.js";
import { popover } from "../components/popover.js";
import { h } from "../core/dom.js";
import { actorName, ago } from "../core/format.js";
import { branchOf, kindOf, shortCommit, shortRef, timeRef } from "../core/refs.js";
import { t } from "../core/texts.js";

const ICONS = { name: "branch", commit: "commit", time: "time" };
const COMMITS = 100;

/** A button that shows the ref and lets one choose another; `onchoose` gets its text. */
export function refPicker(graph, ref, onchoose, { label } = {}) {
  const anchor = button(shortRef(ref), {
    icon: ICONS[kindOf(ref)],
    class: "refpicker",
    title: ref,
  });
  anchor.setAttribute("aria-label", label ? `${label}: ${ref}` : t("ref.label", { ref }));
  anchor.append(icon("down"));
  popover(anchor, (close) => panel(graph, ref, (chosen) => (close(), onchoose(chosen))), {
    label: t("ref.title"),
  });
  return anchor;
}

function panel(graph, ref, choose) {
  const branch = branchOf(ref);
  const known = load(graph, branch);
  const list = combobox({
    label: t("ref.find"),
    placeholder: t("ref.find"),
    inline: true,
    find: async (text) => matching(await known, text, branch),
    onchoose: ({ value }) => choose(value),
    onenter: (text) => text && choose(text),
  });
  return h("div.refpanel", h("p.hint", t("ref.find_hint")), list.element, timeForm(branch, known, choose));
}

async function load(graph, branch) {
  const [branches, tags, commits] = await Promise.all([
    graph.get("/branches", { limit: 1000 }),
    graph.get("/tags", { limit: 1000 }),
    graph.get("/commits", { ref: branch, limit: COMMITS }).catch(() => ({ items: [] })),
  ]);
  return { branches: branches.items, tags: tags.items, commits: commits.items };
}

function matching({ branches, tags, commits }, text, branch) {
  const all = [
    ...branches.map((one) => ({
      value: one.name,
      label: one.name,
      icon: icon("branch"),
      hint: [one.protected ? t("ref.protected") : "", ago(one.created_at)].filter(Boolean).join(" · "),
      group: t("ref.branches"),
      words: one.name,
    })),
    ...tags.map((one) => ({
      value: one.name,
      label: one.name,
      icon: icon("tag"),
      hint: ago(one.created_at),
      group: t("ref.tags"),
      words: one.name,
    })),
    ...commits.map((one) => ({
      value: one.commit,
      label: one.message || one.kind,
      icon: icon("commit"),
      hint: `${actorName(one.actor)} · ${ago(one.created_at)} · ${shortCommit(one.commit)}`,
      group: t("ref.commits", { branch }),
      words: `${one.commit} ${one.message ?? ""} ${one.actor ?? ""}`,
    })),
  ];
  const small = text.toLowerCase();
  const found = all.filter((one) => one.words.toLowerCase().includes(small));
  const exact = found.some((one) => one.value === text);
  if (text && !exact)
    found.push({ value: text, label: text, icon: icon("right"), group: t("ref.typed"), words: text });
  return found;
}

function timeForm(branch, known, choose) {
  const moment = h("input", { type: "datetime-local", step: "1" });
  const on = h("select");
  on.append(h("option", { value: branch }, branch));
  known.then(({ branches }) => {
    for (const { name } of branches)
      if (name !== branch) on.append(h("option", { value: name }, name));
  }, () => {});
  return h(
    "form.timeform",
    {
      onsubmit: (event) => {
        event.preventDefault();
        if (moment.value) choose(timeRef(on.value, new Date(`${moment.value}Z`)));
      },
    },
    field(t("ref.time"), moment),
    field(t("ref.branch"), on),
    h("button.button", { type: "submit" }, t("ref.go")),
  );
}

/** Owns what stands around every view: the graph, the ref, the navigation, the account. */

import { token } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { forgetCaller } from "../core/permissions.js";
import { linkTo } from "../core/router.js";
import { t } from "../core/texts.js";
import { setTheme, theme, THEMES } from "../core/theme.js";
import { button, link, segmented } from "../components/controls.js";
import { icon } from "../components/icons.js";
import { popover } from "../components/popover.js";
import { refPicker } from "./refpicker.js";

const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" };

/** The frame: `main` is for the view, `tools` for what is in the bar in every view. */
export function makeFrame(root, { who, onaccount }) {
  const brand = h("a.brand", { href: "#/", "aria-label": t("name") }, h("img", { src: "web/icon.svg", alt: "" }));
  const where = h("div.where");
  const tools = h("div.tools");
  const nav = h("nav.nav", { "aria-label": t("nav.label") });
  const main = h("main.main", { id: "content", tabindex: "-1" });
  const account = button("", { kind: "quiet", icon: "person", label: t("account.label") });
  popover(account, (close) => accountPanel(who, close, onaccount), {
    label: t("account.label"), align: "end",
  });
  const skip = h(
    "button.skip",
    { type: "button", onclick: () => main.focus() },
    t("skip"),
  );
  replace(
    root,
    skip,
    h("header.topbar", brand, where, tools, account),
    h("div.under", nav, main),
  );
  return { main, where, tools, nav };
}

function accountPanel(who, close, onaccount) {
  const again = (text) => {
    token.set(text);
    forgetCaller();
    close();
    onaccount();
  };
  const themes = THEMES.map((name) => ({
    value: name, label: t(`theme.${name}`), icon: THEME_ICONS[name],
  }));
  return h(
    "div.account",
    h("p.who", who.token || who.roles.length ? t("account.actor", { actor: who.actor }) : t("account.local")),
    who.roles.length ? h("p.hint", t("account.roles", { roles: who.roles.join(", ") })) : null,
    token.get() ? button(t("account.leave"), { onclick: () => again("") }) : null,
    h("p.hint", t("theme.label")),
    segmented(t("theme.label"), themes, theme(), setTheme),
  );
}

/** The graph and the ref, for the bar. */
export function showWhere(where, graph, place, onref) {
  if (!graph) {
    replace(where);
    return;
  }
  replace(
    where,
    link(graph.name, linkTo({ graph: graph.name, params: { ref: place.ref } }), { class: "graphname" }),
    refPicker(graph, place.ref, onref),
  );
}

/** The views that the caller may use. */
export function showNav(nav, list, current, hrefOf) {
  replace(
    nav,
    list.map((view) =>
      h(
        "a",
        { href: hrefOf(view), "aria-current": view.name === current ? "page" : null },
        icon(view.icon),
        h("span", view.title),
      ),
    ),
  );
}

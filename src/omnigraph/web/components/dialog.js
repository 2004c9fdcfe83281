/** Owns windows over the page: the browser's own dialog, which keeps the focus and gives it back. */

import { freshId, h } from "../core/dom.js";
import { t } from "../core/texts.js";
import { button } from "./controls.js";

/** Shows it. `close` ends it; `onclose` is called however it ended. */
export function openDialog(title, content, { actions = [], wide = false, onclose } = {}) {
  const id = freshId("dialog");
  const dialog = h(
    `dialog.dialog${wide ? ".wide" : ""}`,
    { "aria-labelledby": id },
    h(
      "header",
      h("h2", { id }, title),
      button("", { kind: "quiet", icon: "close", label: t("close"), onclick: () => dialog.close() }),
    ),
    h("div.content", content),
    actions.length ? h("footer", actions) : null,
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    onclose?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  return { element: dialog, close: () => dialog.close() };
}

/** Whether the user agrees. */
export function confirm(title, text, { yes, danger = false }) {
  return new Promise((resolve) => {
    let agreed = false;
    const sure = button(yes, {
      kind: danger ? "danger" : "primary",
      onclick: () => {
        agreed = true;
        shown.close();
      },
    });
    const shown = openDialog(title, h("p", text), {
      actions: [button(t("cancel"), { onclick: () => shown.close() }), sure],
      onclose: () => resolve(agreed),
    });
  });
}

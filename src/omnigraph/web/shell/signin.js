/** Owns the page that asks for a token. */

import { token } from "../core/api.js";
import { button, field } from "../components/controls.js";
import { h, replace } from "../core/dom.js";
import { forgetCaller, whoami } from "../core/permissions.js";
import { asProblem } from "../core/problem.js";
import { t } from "../core/texts.js";

/** Asks until the server knows the caller. */
export function signIn(root, { failed = false } = {}) {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const told = h("p.bad", { role: "alert" }, failed ? t("signin.wrong") : "");
    const enter = async (event) => {
      event.preventDefault();
      token.set(input.value.trim());
      forgetCaller();
      try {
        await whoami();
        resolve();
      } catch (error) {
        const problem = asProblem(error);
        token.set("");
        replace(told, problem?.status === 401 ? t("signin.wrong") : (problem?.message ?? ""));
        input.focus();
      }
    };
    replace(
      root,
      h(
        "main.signin",
        h(
          "form.card",
          { onsubmit: enter },
          h("h1", t("signin.title")),
          h("p", t("signin.about")),
          field(t("signin.token"), input),
          told,
          button(t("signin.enter"), { kind: "primary", type: "submit" }),
        ),
      ),
    );
    input.focus();
  });
}

// Signing in: a token is pasted, tried, and kept for this tab.

import { call, Problem, v1 } from "../api.js";
import { el } from "../dom.js";
import { showErrors, textField } from "../fields.js";
import { Notice } from "../parts/notice.js";
import { signIn, whyEnded } from "../session.js";

const HINT =
  "It begins with xtcp_, or is one of the issuer that this policer takes tokens of. " +
  "It is kept until this tab is closed.";
const SHAPE = /^(xtcp_[A-Za-z0-9_-]{1,128}|[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/;

export function signInView(root, { signal }) {
  const notice = new Notice();
  const label = "Token";
  const token = textField({
    name: "token",
    label,
    hint: HINT,
    type: "password",
    spellcheck: "false",
  });
  const button = el("p", { class: "actions" }, el("button", { class: "first" }, "Sign in"));
  const form = el("form", { novalidate: true }, token, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, notice, signal);
  });
  root.append(el("h1", { tabindex: "-1" }, "Sign in"), notice.node, form);
  if (whyEnded()) notice.show(whyEnded());
}

async function attempt(form, notice, signal) {
  const secret = form.elements.token.value.trim();
  notice.clear();
  if (!SHAPE.test(secret)) {
    const fix = "paste it whole, as it was shown when it was made";
    showErrors(form, [{ field: "token", problem: "this is no token", fix }]);
    return;
  }
  try {
    const { value } = await call("GET", v1("token"), { secret, signal });
    signIn(secret, value);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    refuse(form, notice, error);
  }
}

function refuse(form, notice, error) {
  if (error.status !== 401) return notice.show(error.message);
  const problem = "the service does not know it, or it has expired or was revoked";
  showErrors(form, [{ field: "token", problem, fix: "ask for another" }]);
}

// Asks for how long, and why, before something is overridden.

import { el, freshId } from "../dom.js";
import { choiceField, textField } from "../fields.js";

const HOUR_MS = 3600 * 1000;
const LONGEST_REASON = 200;
const ENDS = [
  ["1", "1 hour"],
  ["4", "4 hours"],
  ["24", "1 day"],
  ["168", "7 days"],
  ["720", "30 days"],
];
const ENDLESS = [["", "until it is ended"], ...ENDS];

/** Return {until, reason}, or null where a person does not confirm; Escape is no. */
export function terms({ question, consequence, yes, endless = true, harsh = false }) {
  const id = freshId("question");
  const choices = endless ? ENDLESS : ENDS;
  const end = choiceField({ name: "end", label: "For how long", hint: "", choices });
  const hint = "Shown wherever this is, and kept in the audit log.";
  const reason = textField({ name: "reason", label: "Reason", hint, maxlength: LONGEST_REASON });
  const close = () => box.close("no");
  const refuse = el("button", { type: "button", click: close }, "Cancel");
  const accept = el("button", { class: harsh ? "harsh" : "first", value: "yes" }, yes);
  const actions = el("p", { class: "actions" }, accept, refuse);
  const form = el("form", { method: "dialog" }, end, reason, actions);
  const words = [el("h2", { id }, question), el("p", {}, consequence)];
  const box = el("dialog", { "aria-labelledby": id }, words, form);
  document.body.append(box);
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => {
      const { end: chosen, reason: why } = form.elements;
      const given = { until: instantAfter(chosen.value), reason: why.value.trim() };
      resolve(box.returnValue === "yes" ? given : null);
      box.remove();
    });
  });
}

function instantAfter(hours) {
  return hours ? new Date(Date.now() + Number(hours) * HOUR_MS).toISOString() : null;
}

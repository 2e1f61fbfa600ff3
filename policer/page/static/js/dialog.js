// Asks before something that matters is done.

import { el, freshId } from "./dom.js";

/** Return whether a person confirms; Escape, or the other button, is no. */
export function confirmed({ question, consequence, yes, harsh = false }) {
  const id = freshId("question");
  const answer = (word) => () => box.close(word);
  const shape = { type: "button", class: harsh ? "harsh" : "first", click: answer("yes") };
  const refuse = el("button", { type: "button", autofocus: true, click: answer("no") }, "Cancel");
  const actions = el("p", { class: "actions" }, el("button", shape, yes), refuse);
  const words = [el("h2", { id }, question), el("p", {}, consequence)];
  const box = el("dialog", { "aria-labelledby": id }, words, actions);
  document.body.append(box);
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => {
      resolve(box.returnValue === "yes");
      box.remove();
    });
  });
}

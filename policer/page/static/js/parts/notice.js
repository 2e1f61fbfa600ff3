// A note that appears where something happened, and is read aloud.

import { el } from "../dom.js";

export class Notice {
  constructor() {
    this.node = el("div", { role: "alert" });
  }

  /** Show words and, where there are, buttons; a note that is wrong is a failure. */
  show(words, { wrong = true, buttons = [] } = {}) {
    const actions = buttons.length > 0 && el("p", { class: "actions" }, buttons);
    const note = el("div", { class: wrong ? "note wrong" : "note" }, el("p", {}, words), actions);
    this.node.replaceChildren(note);
  }

  clear() {
    this.node.replaceChildren();
  }
}

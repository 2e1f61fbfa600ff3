// A few facts by name, which follow what they say.

import { el, write } from "../dom.js";

export class Facts {
  #values = new Map();

  constructor(names) {
    const pairs = names.map((name) => el("div", {}, el("dt", {}, name), this.#value(name)));
    this.node = el("dl", { class: "facts" }, pairs);
  }

  #value(name) {
    const node = el("dd");
    this.#values.set(name, node);
    return node;
  }

  /** Show facts by name; a name that is not there stays as it is. */
  show(facts) {
    for (const [name, text] of Object.entries(facts)) write(this.#values.get(name), text);
  }
}

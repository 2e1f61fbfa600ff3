// How something stands that operators override, and the buttons that change it, for those who may.

import { Problem } from "../api.js";
import { el, write } from "../dom.js";
import { say } from "../say.js";
import { may } from "../session.js";
import { Notice } from "./notice.js";

export class Control {
  #works = new Map();

  constructor({ needs = "operate" } = {}) {
    this.needs = needs;
    this.state = el("p");
    this.notice = new Notice();
    this.actions = el("p", { class: "actions", hidden: true });
    this.node = el("div", {}, this.state, this.notice.node, this.actions);
  }

  /** Show how it stands; buttons are [name, work], and stay while their names do. */
  show(words, buttons) {
    write(this.state, words);
    this.state.hidden = !words;
    const same = buttons.map(([name]) => name).join() === [...this.#works.keys()].join();
    this.#works = new Map(buttons);
    if (!same) this.actions.replaceChildren(...buttons.map(([name]) => this.#button(name)));
    this.#hide();
  }

  #button(name) {
    return el("button", { type: "button", click: () => this.#works.get(name)() }, name);
  }

  #hide() {
    this.actions.hidden = this.#works.size === 0 || !may(this.needs);
  }

  /** Do something that the service may refuse; say what was done, or why it was not. */
  async attempt(work, done) {
    try {
      await work();
      this.notice.clear();
      say(done);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.notice.show(`Not done: ${error.message}`);
    }
  }
}

/** Return the ETag of a version. */
export const tag = (version) => `"v${version}"`;

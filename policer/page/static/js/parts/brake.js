// The brake of all ladders: what it does, and the buttons that put it on, off, or back.

import { call, v1 } from "../api.js";
import { confirmed } from "../dialog.js";
import { brakeWords } from "../overrides.js";
import { Control } from "./control.js";
import { terms } from "./terms.js";

const MODES = {
  automatic: {
    button: "Make the brake automatic",
    done: "The brake is automatic.",
  },
  on: {
    button: "Put the brake on",
    consequence: "No ladder is climbed anywhere. Steps that are in force stay.",
    done: "The brake is on.",
  },
  off: {
    button: "Switch the brake off",
    consequence: "Escalation goes on, however many routers misbehave at the same time.",
    done: "The brake is off.",
    harsh: true,
  },
};

export class Brake {
  #etag = null;

  constructor({ signal }) {
    this.signal = signal;
    this.control = new Control();
    this.node = this.control.node;
  }

  async load() {
    const { value, etag } = await call("GET", v1("brake"), { signal: this.signal });
    this.#stands(value, etag);
  }

  #stands(brake, etag) {
    this.#etag = etag;
    const others = Object.keys(MODES).filter((mode) => mode !== brake.mode);
    const buttons = others.map((mode) => [MODES[mode].button, () => this.#ask(mode)]);
    this.control.show(brakeWords(brake), buttons);
  }

  async #ask(mode) {
    const { button, consequence, done, harsh } = MODES[mode];
    const given = consequence
      ? await terms({ question: `${button}?`, consequence, yes: button, harsh })
      : (await automatic(button)) && { until: null, reason: "" };
    if (!given) return;
    const put = { body: { mode, ...given }, headers: { "If-Match": this.#etag } };
    await this.control.attempt(async () => {
      const { value, etag } = await call("PUT", v1("brake"), put);
      this.#stands(value, etag);
    }, done);
  }
}

function automatic(yes) {
  const consequence = "It stops escalation again when too many routers would be punished at the same time.";
  return confirmed({ question: `${yes}?`, consequence, yes });
}

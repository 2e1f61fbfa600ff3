// Whether the policer controls a host, and the way to suspend that.

import { call, v1 } from "../api.js";
import { standingWords } from "../overrides.js";
import { Control, tag } from "./control.js";
import { terms } from "./terms.js";

export class Suspension {
  constructor({ host }) {
    this.host = host;
    this.where = v1("hosts", host, "suspension");
    this.control = new Control();
    this.node = this.control.node;
  }

  /** Show a suspension, or null. */
  show(suspension) {
    if (suspension) {
      const resume = ["Resume control", () => this.#resume(suspension.version)];
      const words = `Control is suspended ${standingWords(suspension)}. Nothing is sent to this host.`;
      this.control.show(words, [resume]);
    } else {
      this.control.show("The policer controls this host.", [
        ["Suspend control", () => this.#suspend()],
      ]);
    }
  }

  async #suspend() {
    const question = `Suspend control of ${this.host}?`;
    const consequence =
      "The policer sends it nothing more. Its leases end within seconds, and its daemon goes by " +
      "its own configuration. What its routers do is still shown.";
    const given = await terms({ question, consequence, yes: "Suspend control", harsh: true });
    if (!given) return;
    const put = { body: given, headers: { "If-None-Match": "*" } };
    await this.control.attempt(async () => {
      this.show((await call("PUT", this.where, put)).value);
    }, `Control of ${this.host} is suspended.`);
  }

  async #resume(version) {
    await this.control.attempt(async () => {
      await call("DELETE", this.where, { headers: { "If-Match": tag(version) } });
      this.show(null);
    }, `Control of ${this.host} is resumed.`);
  }
}

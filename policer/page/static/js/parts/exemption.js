// Whether a router's ladder may be climbed, and the way to exempt it for a time.

import { call, v1 } from "../api.js";
import { standingWords } from "../overrides.js";
import { limited } from "../session.js";
import { Control, tag } from "./control.js";
import { terms } from "./terms.js";

export class Exemption {
  constructor({ host, vr }) {
    this.vr = vr;
    this.where = v1("hosts", host, "routers", vr, "exemption");
    this.control = new Control();
    this.node = this.control.node;
  }

  /** Show a router's exemption; one without a contract has no ladder. */
  show({ contract, exemption }) {
    if (limited()) {
      this.control.show(exemption ? `It is exempt ${standingWords(exemption)}.` : "", []);
    } else if (exemption) {
      const end = ["End the exemption", () => this.#end(exemption.version)];
      this.control.show(`It is exempt ${standingWords(exemption)}.`, [end]);
    } else if (contract) {
      this.control.show("", [["Exempt for a time", () => this.#exempt()]]);
    } else {
      this.control.show("", []);
    }
  }

  async #exempt() {
    const question = `Exempt ${this.vr}?`;
    const consequence =
      "No step is taken against it, and those in force are lifted. The rest of its contract " +
      "goes on. Afterwards its ladder begins with the first step.";
    const given = await terms({ question, consequence, yes: "Exempt", endless: false });
    if (!given) return;
    const put = { body: given, headers: { "If-None-Match": "*" } };
    await this.control.attempt(async () => {
      const { value } = await call("PUT", this.where, put);
      this.show({ contract: true, exemption: value });
    }, `${this.vr} is exempt.`);
  }

  async #end(version) {
    await this.control.attempt(async () => {
      await call("DELETE", this.where, { headers: { "If-Match": tag(version) } });
      this.show({ contract: true, exemption: null });
    }, `The exemption of ${this.vr} has ended.`);
  }
}

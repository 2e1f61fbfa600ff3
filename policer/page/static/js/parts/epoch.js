// A host that obeys a higher epoch than the leader's, and the way above it.

import { call, v1 } from "../api.js";
import { confirmed } from "../dialog.js";
import { Control } from "./control.js";

export class Epoch {
  constructor({ signal }) {
    this.signal = signal;
    this.control = new Control({ needs: "admin" });
    this.node = this.control.node;
  }

  /** Look whether a host that refuses orders obeys a higher epoch than the leader's. */
  async look({ refused, highest_epoch: highest }) {
    if (!refused || highest == null) return this.control.show("", []);
    const { value } = await call("GET", v1("leadership"), { signal: this.signal });
    if (highest < value.epoch) return this.control.show("", []);
    this.control.show(`Its daemon obeys epoch ${highest}; the leader's is ${value.epoch}.`, [
      ["Raise the epoch", () => this.#raise(highest)],
    ]);
  }

  async #raise(above) {
    const question = `Raise the epoch above ${above}?`;
    const consequence =
      "All hosts obey the new epoch, and it is never lowered. A policer that gave this epoch " +
      "is refused by its hosts from then on.";
    if (!(await confirmed({ question, consequence, yes: "Raise the epoch", harsh: true }))) return;
    const ask = { body: { above } };
    await this.control.attempt(
      () => call("POST", v1("leadership", "epoch"), ask),
      `The leader takes an epoch above ${above}.`,
    );
  }
}

// How the host of a router stands, for those who may see it.

import { call, Problem, v1 } from "./api.js";
import { partial } from "./session.js";

const HIDDEN = [403, 404];

/** Asks for a host, and no more once it is refused. */
export class HostLive {
  #hidden = false;

  constructor({ host, signal }) {
    Object.assign(this, { host, signal });
  }

  /** Return how the host stands; null where that is not known or not to be seen. */
  async read() {
    if (partial() || this.#hidden) return null;
    try {
      const { value } = await call("GET", v1("hosts", this.host), { signal: this.signal });
      return value.live;
    } catch (error) {
      if (!(error instanceof Problem) || !HIDDEN.includes(error.status)) throw error;
      this.#hidden = true;
      return null;
    }
  }
}

// What the token of this session may do; nothing beyond reading until the service has said it.

import { call, Problem, v1 } from "./api.js";
import { pause } from "./wait.js";

const SCOPES = ["read", "operate", "admin"];
const RETRY_MS = 3000;

let scope = "read";

/** Tells of "changed": what this session may do is known. */
export const scopes = new EventTarget();

/** Return whether this session's token has a scope. */
export const may = (needed) => SCOPES.indexOf(scope) >= SCOPES.indexOf(needed);

/** Ask what the token may do, until the service answers or the session ends. */
export async function learnScope(signal) {
  tell("read");
  while (!signal.aborted) {
    try {
      const { value } = await call("GET", v1("token"), { signal });
      return tell(value.scopes.at(-1));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      await pause(RETRY_MS, signal);
    }
  }
}

function tell(known) {
  scope = known;
  scopes.dispatchEvent(new Event("changed"));
}

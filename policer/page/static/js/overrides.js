// What operators override, in words.

import { stamp } from "./zone.js";

/** Return until when an override stands, who set it, and why. */
export function standingWords({ until, set_by: by, reason }) {
  const end = until == null ? "until it is ended" : `until ${instant(until)}`;
  return `${end}, by ${by}${reason ? `: ${reason}` : ""}`;
}

/** Return an instant as people read it. */
export const instant = stamp;

/** Return what the brake is to do, and what it does. */
export function brakeWords(brake) {
  const { mode, braked, braked_hosts: hosts } = brake;
  if (mode === "on") return `On ${standingWords(brake)}. No ladder is climbed.`;
  if (mode === "off") {
    return `Off ${standingWords(brake)}. Escalation goes on, however many routers misbehave.`;
  }
  if (braked) return "Automatic. Too many routers are guilty: no ladder is climbed.";
  if (hosts.length > 0) return `Automatic. No ladder is climbed on ${hosts.join(", ")}.`;
  return "Automatic. It stops all escalation when too many routers would be punished at the same time.";
}

// Why the fleet is red, if it is; pure.

import { count } from "./format.js";
import { to, toHost, toRouter } from "./routes.js";

/**
 * Return [{words, address}]: all that makes the page red; the address leads to what is concerned.
 *
 * hosts, punishments: as the service lists them; leadership: who leads, and the brake. What is
 * not known is empty or null.
 */
export function reasons({ hosts = [], punishments = [], leadership = null }) {
  return [
    ...ofBrake(leadership),
    ...hosts.flatMap(distrusted),
    ...hosts.flatMap(refusing),
    ...punishments.filter(({ only_reported: reported }) => !reported).map(punished),
  ];
}

const OVERRIDES = to("overrides");

function ofBrake(leadership) {
  if (!leadership) return [];
  const { brake, braked, braked_hosts: hosts = [] } = leadership;
  if (brake === "on")
    return [reason("Escalation is stopped: an operator put the brake on", OVERRIDES)];
  const fleet = "Escalation is stopped: too many routers would be punished at the same time";
  if (brake !== "off" && braked) return [reason(fleet, OVERRIDES)];
  return hosts.map((host) => reason(`The brake is on at ${host}`, toHost(host)));
}

function distrusted({ entry, live }) {
  if (!live.distrust) return [];
  return [reason(`${entry.name} is distrusted: ${live.distrust}`, toHost(entry.name))];
}

function refusing({ entry, live }) {
  if (!live.refused) return [];
  const words = `${entry.name} refuses ${count(live.refused, "order")}: ${live.refusal}`;
  return [reason(words, toHost(entry.name))];
}

function punished({ host, vr, step }) {
  return reason(`${vr} on ${host} is punished: ${step ?? "no step"}`, toRouter(host, vr));
}

const reason = (words, address) => ({ words, address });

/** Return the title of the document: how many reasons there are to look, then what it shows. */
export function titled(title, number) {
  return number > 0 ? `${count(number, "alarm")} · ${title}` : title;
}

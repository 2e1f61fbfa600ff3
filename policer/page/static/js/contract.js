// A contract as its form shows it, and back; pure.

import { BITS } from "./format.js";

export const STEPS = [
  ["warn", "warn"],
  ["lower", "lower its setpoint to its guarantee"],
  ["limit", "limit what the host sends into it"],
  ["pause", "pause it at the smallest cap"],
  ["stop", "stop it: nothing is sent into it"],
];

export const PUNISH = [
  ["never", "never"],
  ["when_harming", "while its host is contended"],
  ["always", "always"],
];

export const NEW = {
  guarantee_pps: "",
  ceiling_pps: null,
  weight: 1,
  burst: null,
  burst_packets: 0,
  cost: 1,
  packet_bytes: 350,
  measures: ["warn", "lower", "limit"],
  dry_run: false,
  punish: "when_harming",
  tenant: null,
};

const NUMBER = /^(\d+(?:\.\d*)?|\.\d+)(?:\s*([kM])?(?:p\/s|pps|packets(?:\/s)?)?)$/;
const IN_BITS = /^(\d+(?:\.\d*)?|\.\d+)\s*([kMG]?)(?:b|bit)\/s$/;
const SIZES = { k: 1e3, M: 1e6, G: 1e9 };

/** Return a number from what people write: "20000", "20k", "1.5 Mpps"; NaN where it is none. */
export function number(text) {
  const found = NUMBER.exec(text.trim());
  const value = found ? Number(found[1]) * (SIZES[found[2]] ?? 1) : Number.NaN;
  return Number.isFinite(value) ? value : Number.NaN;
}

/** Return bits/s from "50 Mb/s" or "1.5Gbit/s"; NaN where it is none. */
export function bits(text) {
  const found = IN_BITS.exec(text.trim());
  const value = found ? Number(found[1]) * (SIZES[found[2]] ?? 1) : Number.NaN;
  return Number.isFinite(value) ? value : Number.NaN;
}

/** Return a contract's rate as its field shows it: packets/s, or bits/s with their unit. */
export function rateText(contract, name) {
  const inBits = contract[`${name}_bps`];
  if (inBits == null) return contract[`${name}_pps`] ?? "";
  const exact = ([size]) => inBits >= size && Number(inBits / size) * size === inBits;
  const [size, prefix] = BITS.find(exact) ?? [1, ""];
  return `${inBits / size} ${prefix}b/s`;
}

/**
 * Return {contract, errors} of a form's values.
 *
 * Only what is no number at all is judged here; what a contract may say, the service judges.
 */
export function contractOf(values) {
  const errors = [];
  const read = (name) => {
    const value = number(values[name]);
    if (Number.isNaN(value)) errors.push(noNumber(name, values[name]));
    return value;
  };
  const readIfGiven = (name) => (values[name].trim() === "" ? null : read(name));
  const readRate = (name, none) => {
    const text = values[`${name}_pps`];
    const inBits = bits(text);
    if (!Number.isNaN(inBits)) return { [`${name}_pps`]: none, [`${name}_bps`]: inBits };
    const value = none === null ? readIfGiven(`${name}_pps`) : read(`${name}_pps`);
    return { [`${name}_pps`]: value, [`${name}_bps`]: null };
  };
  const contract = {
    ...readRate("guarantee", 0),
    ...readRate("ceiling", null),
    weight: read("weight"),
    burst: readIfGiven("burst"),
    burst_packets: read("burst_packets"),
    cost: read("cost"),
    packet_bytes: read("packet_bytes"),
    measures: STEPS.map(([step]) => step).filter((step) => values.measures.includes(step)),
    dry_run: values.dry_run,
    punish: values.punish,
    tenant: values.tenant.trim() || null,
  };
  return { contract, errors };
}

const SUCH_AS = { guarantee_pps: "20k or 50 Mb/s", ceiling_pps: "20k or 50 Mb/s" };

/** Return errors, those of a rate in bits/s at the field in which it is written. */
export function atFields(errors) {
  return errors.map((error) => ({ ...error, field: error.field.replace(/_bps$/, "_pps") }));
}

/** Return the error of a field that holds no number. */
export function noNumber(field, text) {
  const problem = text.trim() === "" ? "a number is needed" : `"${text}" is no number`;
  return { field, problem, fix: `write digits, such as ${SUCH_AS[field] ?? "20000 or 20k"}` };
}

const TEXTS = [
  "guarantee_pps",
  "ceiling_pps",
  "weight",
  "burst",
  "burst_packets",
  "cost",
  "packet_bytes",
];

/** Return the values of a form that was filled in. */
export function valuesOf(form) {
  const data = new FormData(form);
  return {
    ...Object.fromEntries(TEXTS.map((name) => [name, data.get(name) ?? ""])),
    measures: data.getAll("measures"),
    dry_run: data.has("dry_run"),
    punish: data.get("punish"),
    tenant: data.get("tenant") ?? "",
  };
}

const NAMES = {
  guarantee: "guarantee",
  ceiling: "ceiling",
  weight: "weight",
  burst: "burst",
  burst_packets: "saved burst",
  cost: "cost",
  packet_bytes: "packet size",
  measures: "measures",
  dry_run: "dry run",
  punish: "punish",
  tenant: "tenant",
};

/** Say what a version of a contract changed of the one before it. */
export function changes(before, after) {
  if (!after) return "removed";
  if (!before)
    return `made: ${Object.keys(NAMES)
      .map((name) => say(name, after))
      .join(", ")}`;
  const was = (name) => shown(termOf(before, name));
  const now = (name) => shown(termOf(after, name));
  const changed = Object.keys(NAMES).filter((name) => was(name) !== now(name));
  const words = changed.map((name) => `${NAMES[name]} ${was(name)} → ${now(name)}`);
  return words.join(", ") || "nothing";
}

const say = (name, contract) => `${NAMES[name]} ${shown(termOf(contract, name))}`;

const RATES = ["guarantee", "ceiling"];
const termOf = (contract, name) =>
  RATES.includes(name) ? rateText(contract, name) || null : contract[name];

function shown(value) {
  if (value == null) return "none";
  if (Array.isArray(value)) return value.join(" ") || "none";
  return value === true ? "yes" : value === false ? "no" : String(value);
}

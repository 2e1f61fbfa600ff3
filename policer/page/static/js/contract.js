// A contract as its form shows it, and back; pure.

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
  measures: ["warn", "lower", "limit"],
  dry_run: false,
  punish: "when_harming",
  tenant: null,
};

const NUMBER = /^(\d+(?:\.\d*)?|\.\d+)(?:\s*([kM])?(?:p\/s|pps|packets(?:\/s)?)?)$/;
const SIZES = { k: 1e3, M: 1e6 };

/** Return a number from what people write: "20000", "20k", "1.5 Mpps"; NaN where it is none. */
export function number(text) {
  const found = NUMBER.exec(text.trim());
  const value = found ? Number(found[1]) * (SIZES[found[2]] ?? 1) : Number.NaN;
  return Number.isFinite(value) ? value : Number.NaN;
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
  const contract = {
    guarantee_pps: read("guarantee_pps"),
    ceiling_pps: readIfGiven("ceiling_pps"),
    weight: read("weight"),
    burst: readIfGiven("burst"),
    burst_packets: read("burst_packets"),
    cost: read("cost"),
    measures: STEPS.map(([step]) => step).filter((step) => values.measures.includes(step)),
    dry_run: values.dry_run,
    punish: values.punish,
    tenant: values.tenant.trim() || null,
  };
  return { contract, errors };
}

/** Return the error of a field that holds no number. */
export function noNumber(field, text) {
  const problem = text.trim() === "" ? "a number is needed" : `"${text}" is no number`;
  return { field, problem, fix: "write digits, such as 20000 or 20k" };
}

/** Return the values of a form that was filled in. */
export function valuesOf(form) {
  const data = new FormData(form);
  const texts = ["guarantee_pps", "ceiling_pps", "weight", "burst", "burst_packets", "cost"];
  return {
    ...Object.fromEntries(texts.map((name) => [name, data.get(name) ?? ""])),
    measures: data.getAll("measures"),
    dry_run: data.has("dry_run"),
    punish: data.get("punish"),
    tenant: data.get("tenant") ?? "",
  };
}

const NAMES = {
  guarantee_pps: "guarantee",
  ceiling_pps: "ceiling",
  weight: "weight",
  burst: "burst",
  burst_packets: "saved burst",
  cost: "cost",
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
  const changed = Object.keys(NAMES).filter((name) => shown(before[name]) !== shown(after[name]));
  const words = changed.map(
    (name) => `${NAMES[name]} ${shown(before[name])} → ${shown(after[name])}`,
  );
  return words.join(", ") || "nothing";
}

const say = (name, contract) => `${NAMES[name]} ${shown(contract[name])}`;

function shown(value) {
  if (value == null) return "none";
  if (Array.isArray(value)) return value.join(" ") || "none";
  return value === true ? "yes" : value === false ? "no" : String(value);
}

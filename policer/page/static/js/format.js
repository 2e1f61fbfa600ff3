// Numbers as people read them: packets/s in thousands, caps in percent; pure.

export const UNKNOWN = "–";
export const BITS = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Return packets/s in thousands with three digits that matter. */
export function kilo(pps) {
  if (pps == null) return UNKNOWN;
  const value = pps / 1000;
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : 3);
}

/** Return packets/s with their unit. */
export function rate(pps) {
  return pps == null ? UNKNOWN : `${kilo(pps)} kp/s`;
}

/** Return bits/s with their unit, in three digits that matter. */
export function bitRate(bps) {
  if (bps == null) return UNKNOWN;
  const [scale, prefix] = BITS.find(([size]) => bps >= size) ?? [1, ""];
  const digits = Number((bps / scale).toPrecision(3));
  return `${digits} ${prefix}b/s`;
}

/** Return a share of one CPU in percent; null is uncapped. */
export function cap(share) {
  return share == null ? "uncapped" : percent(share, 1);
}

/** Return a share in percent. */
export function percent(share, digits = 0) {
  return `${(100 * share).toFixed(digits)} %`;
}

/** Return a length of time in seconds as one number and its unit. */
export function lasting(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** Return a kind of event, mode or finding as words: `guarantee_missed` is "guarantee missed". */
export function words(name) {
  return String(name).replaceAll("_", " ");
}

/** Return a count with its noun. */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

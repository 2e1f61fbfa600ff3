// Whether what is shown is true now: each source says how it stands, the worst is shown.

const standings = new Map();

/** Tells of "changed". */
export const health = new EventTarget();

/**
 * Say how a source stands.
 *
 * source: what people call it, such as "telemetry of edge-1".
 * since: milliseconds since which nothing was heard of it; null while it is live.
 * why: what is wrong, in words.
 */
export function report(source, since, why = "") {
  standings.set(source, { source, since, why });
  health.dispatchEvent(new Event("changed"));
}

export function forget(source) {
  standings.delete(source);
  health.dispatchEvent(new Event("changed"));
}

/** Return the source that was silent for longest, or null where all are live. */
export function worst() {
  const silent = [...standings.values()].filter(({ since }) => since !== null);
  return silent.sort((a, b) => a.since - b.since)[0] ?? null;
}

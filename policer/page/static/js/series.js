// The last ten minutes of a few quantities, second by second; pure.

export const SPAN_S = 600;
const GAP_S = 3;

export class Series {
  #since = null;

  /** names: of the quantities; each becomes a column beside the instants. */
  constructor(names) {
    this.names = names;
    this.columns = [[], ...names.map(() => [])];
  }

  /** Add what was seen at an instant, in seconds; what was not seen is null. */
  add(at, values) {
    const last = this.columns[0].at(-1);
    if (last !== undefined && at <= last && this.#since !== null) return;
    if (this.#since === null) this.#begin(at);
    this.#follow(at, values);
    this.#forget();
  }

  /** Note when the first instant was seen: what the service remembers ends there. */
  #begin(at) {
    this.#since = at;
    while (this.columns[0].at(-1) >= at) this.columns.forEach((column) => column.pop());
  }

  /** Add an instant; where some time is missing before it, the line breaks. */
  #follow(at, values) {
    const last = this.columns[0].at(-1);
    if (last !== undefined && at - last > GAP_S) this.#push(last + 1, {});
    this.#push(at, values);
  }

  #forget() {
    const oldest = this.columns[0].at(-1) - SPAN_S;
    while (this.columns[0][0] < oldest) this.columns.forEach((column) => column.shift());
  }

  #push(at, values) {
    this.columns[0].push(at);
    this.names.forEach((name, index) => this.columns[index + 1].push(values[name] ?? null));
  }

  /**
   * Put what the service remembers before what was seen, in the place of what it said before.
   *
   * points: [instant in seconds, values by name], the earliest first.
   */
  remember(points) {
    const first = this.columns[0].findIndex((at) => at >= (this.#since ?? Infinity));
    const seen = first < 0 ? [] : this.columns.map((column) => column.slice(first));
    this.columns = [[], ...this.names.map(() => [])];
    for (const [at, values] of points) if (at < (this.#since ?? Infinity)) this.#follow(at, values);
    if (seen.length === 0) return;
    const last = this.columns[0].at(-1);
    if (last !== undefined && seen[0][0] - last > GAP_S) this.#push(last + 1, {});
    this.columns.forEach((column, index) => column.push(...seen[index]));
    this.#forget();
  }

  /** Return how many seconds were seen. */
  get length() {
    return this.columns[0].length;
  }

  /** Return {now, least, most, mean} of a quantity over what was seen; null where nothing was. */
  summary(name) {
    const column = this.columns[this.names.indexOf(name) + 1];
    const seen = column.filter((value) => value !== null);
    if (seen.length === 0) return { now: null, least: null, most: null, mean: null };
    const mean = seen.reduce((sum, value) => sum + value, 0) / seen.length;
    return { now: column.at(-1), least: Math.min(...seen), most: Math.max(...seen), mean };
  }
}

/**
 * Return points, [instant, values by name], with the sums of several series; instants are whole
 * seconds, and one that a series does not know counts for nothing.
 */
export function summed(all, names) {
  const sums = new Map();
  for (const { columns, names: own } of all) {
    columns[0].forEach((at, row) => {
      const values = sums.get(Math.round(at)) ?? {};
      for (const name of names) add(values, name, columns[own.indexOf(name) + 1][row]);
      sums.set(Math.round(at), values);
    });
  }
  return [...sums].sort(([a], [b]) => a - b);
}

function add(values, name, value) {
  if (value !== null) values[name] = (values[name] ?? 0) + value;
}

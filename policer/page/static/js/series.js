// The last ten minutes of a few quantities, second by second; pure.

export const SPAN_S = 600;
const GAP_S = 3;

export class Series {
  /** names: of the quantities; each becomes a column beside the instants. */
  constructor(names) {
    this.names = names;
    this.columns = [[], ...names.map(() => [])];
  }

  /** Add what was seen at an instant, in seconds; what was not seen is null. */
  add(at, values) {
    const last = this.columns[0].at(-1);
    if (last !== undefined && at <= last) return;
    if (last !== undefined && at - last > GAP_S) this.#push(last + 1, {});
    this.#push(at, values);
    while (this.columns[0][0] < at - SPAN_S) this.columns.forEach((column) => column.shift());
  }

  #push(at, values) {
    this.columns[0].push(at);
    this.names.forEach((name, index) => this.columns[index + 1].push(values[name] ?? null));
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

// What the routers of one host do and did, second by second, while some view looks at that host.

import { call, Problem, query, v1 } from "./api.js";
import { inPackets } from "./hosts.js";
import { Series, summed } from "./series.js";
import { partial } from "./session.js";
import { Stream } from "./stream.js";
import { pause } from "./wait.js";

const SILENT_MS = 5000;
const ROUTER = ["throughput_pps", "offered_pps", "setpoint_pps", "cap"];
const TOTAL = ["throughput_pps", "offered_pps"];
const ADRIFT_S = 3;
const WRITTEN_MS = 20000;
/** Routers of a host whose history is asked for: one request each. */
const MOST_REMEMBERED = 40;

class Feed extends EventTarget {
  latest = new Map();
  total = new Series(TOTAL);
  #routers = new Map();
  #offset = null;
  #end = new AbortController();
  #remembered = new Set();

  constructor(host) {
    super();
    this.host = host;
  }

  open() {
    const stream = new Stream(query(v1("stream"), { host: this.host }), {
      source: `telemetry of ${this.host}`,
      named: "telemetry",
      silentMs: SILENT_MS,
      signal: this.#end.signal,
      onEvent: ({ data }) => this.#take(JSON.parse(data)),
    });
    stream.run();
  }

  close() {
    this.#end.abort();
  }

  /** Return what was seen of a router, which may be nothing yet. */
  seriesOf(vr) {
    if (!this.#routers.has(vr)) this.#routers.set(vr, new Series(ROUTER));
    return this.#routers.get(vr);
  }

  /**
   * Show what the service remembers of a host's routers, and of all together: soon and once more.
   */
  async rememberAll(vrs) {
    const asked = vrs.slice(0, MOST_REMEMBERED).filter((vr) => !this.#remembered.has(vr));
    if (asked.length === 0) return;
    for (const vr of asked) this.#remembered.add(vr);
    await this.#recallAll(asked, vrs);
    await pause(WRITTEN_MS, this.#end.signal);
    await this.#recallAll(asked, vrs);
  }

  /** Ask for some routers one after the other, so that a large host is no burden; sum them all. */
  async #recallAll(asked, vrs) {
    for (const vr of asked) if (!this.#end.signal.aborted) await this.#recall(vr);
    if (vrs.length > MOST_REMEMBERED) return;
    const all = vrs.map((vr) => this.seriesOf(vr));
    const sums = summed(all, TOTAL).slice(1, -1); // at its ends, routers may be missing
    this.total.remember(sums);
    this.dispatchEvent(new Event("tick"));
  }

  /**
   * Show what the service remembers of a router before what is seen of it, soon and once more:
   * the latest seconds take a while to be written. Tokens that see no whole host get none of it.
   */
  remember(vr) {
    if (partial() || this.#remembered.has(vr)) return;
    this.#remembered.add(vr);
    this.#recall(vr);
    const later = setTimeout(() => this.#recall(vr), WRITTEN_MS);
    this.#end.signal.addEventListener("abort", () => clearTimeout(later));
  }

  async #recall(vr) {
    const where = query(v1("hosts", this.host, "routers", vr, "history"), { step: 1 });
    try {
      const { value } = await call("GET", where, { signal: this.#end.signal });
      const late = (Date.now() - Date.parse(value.end)) / 1000;
      this.seriesOf(vr).remember(
        value.points.map((point) => [Date.parse(point.at) / 1000 + late, point]),
      );
      this.dispatchEvent(new Event("tick"));
    } catch (error) {
      if (!(error instanceof Problem) && !this.#end.signal.aborted) throw error;
    }
  }

  /** Take one message; a router that is not in it is not known at that instant. */
  #take({ at, hosts }) {
    const instant = this.#instant(at);
    const told = Object.entries(hosts[this.host]?.routers ?? {});
    const routers = Object.fromEntries(told.map(([vr, router]) => [vr, inPackets(router)]));
    this.latest = new Map(Object.entries(routers));
    for (const vr of this.latest.keys()) this.seriesOf(vr);
    for (const [vr, series] of this.#routers) series.add(instant, routers[vr] ?? {});
    const sums = TOTAL.map((name) => [name, sum(Object.values(routers), name)]);
    this.total.add(instant, Object.fromEntries(sums));
    this.dispatchEvent(new Event("tick"));
  }

  /** Return the time of day, in seconds, of the policer's clock, whose start is unknown. */
  #instant(at) {
    const offset = Date.now() / 1000 - at;
    if (this.#offset === null || Math.abs(offset - this.#offset) > ADRIFT_S) this.#offset = offset;
    return at + this.#offset;
  }
}

function sum(routers, name) {
  const seen = routers.map((router) => router[name]).filter((value) => value != null);
  return seen.length ? seen.reduce((total, value) => total + value, 0) : null;
}

let feed = null;

/** Return the feed of a host; that of another host is closed. */
export function feedOf(host) {
  if (feed?.host === host) return feed;
  closeFeed();
  feed = new Feed(host);
  feed.open();
  return feed;
}

/** Release the feed when no view shows its host. */
export function closeFeed() {
  feed?.close();
  feed = null;
}

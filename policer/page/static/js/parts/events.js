// Events, newest first: those that were, and those that come.

import { call, Problem, query, v1 } from "../api.js";
import { el, time, write } from "../dom.js";
import { count, words } from "../format.js";
import { display, held } from "../hold.js";
import { toHost, toRouter } from "../routes.js";
import { say } from "../say.js";
import { Stream } from "../stream.js";
import { LiveTable, link } from "../table.js";
import { pause } from "../wait.js";

const PAGE = 50;
const MOST = 2000;
const SILENT_MS = 15000;
const SAY_MS = 3000;
const RETRY_MS = 3000;

const COLUMNS = [
  { head: "When", header: true, fill: when },
  { head: "Host", fill: hostLink },
  { head: "Router", fill: routerLink },
  { head: "Kind", text: ({ kind }) => words(kind) },
  { head: "What", text: (event) => event.words, words: true },
  { head: "By", text: ({ actor }) => actor },
];

function when(cell, { at }) {
  if (!cell.firstElementChild) cell.append(time(at));
}

/** An event of the policer itself has no host. */
function hostLink(cell, event) {
  if (event.host)
    link(
      ({ host }) => toHost(host),
      ({ host }) => host,
    )(cell, event);
}

function routerLink(cell, event) {
  if (event.vr)
    link(
      ({ host, vr }) => toRouter(host, vr),
      ({ vr }) => vr,
    )(cell, event);
}

export class EventList {
  #known = new Map();
  #next = null;
  #unsaid = [];
  #inVain = false;

  /** filters: {host, vr, kind}, each of which may be missing. */
  constructor({ caption, filters, signal }) {
    Object.assign(this, { filters, signal });
    const key = ({ id }) => id;
    this.table = new LiveTable({ caption, columns: COLUMNS, key, empty: "No events." });
    this.older = el("button", { type: "button", hidden: true }, "Load older events");
    this.wrong = el("p", { class: "note wrong", role: "alert", hidden: true });
    this.older.addEventListener("click", () => this.#load());
    this.node = el(
      "div",
      {},
      this.wrong,
      this.table.node,
      el("p", { class: "actions" }, this.older),
    );
  }

  /** Load what was, then follow what comes. */
  async start() {
    while (!(await this.#load()) && !this.#inVain) await pause(RETRY_MS, this.signal);
    if (this.#inVain) return;
    display.addEventListener("changed", () => this.#show(), { signal: this.signal });
    const saying = setInterval(() => this.#sayNews(), SAY_MS);
    this.signal.addEventListener("abort", () => clearInterval(saying));
    this.#follow();
  }

  #follow() {
    const { host, kind } = this.filters;
    const stream = new Stream(query(v1("events", "stream"), { host, kind }), {
      source: "events",
      named: "event",
      silentMs: SILENT_MS,
      signal: this.signal,
      lastId: String(Math.max(0, ...this.#known.keys())),
      onEvent: ({ data }) => this.#take(JSON.parse(data)),
    });
    stream.run();
  }

  /** Load the next older events; return whether they came. */
  async #load() {
    const where = query(v1("events"), { ...this.filters, limit: PAGE, after: this.#next });
    try {
      const { value } = await call("GET", where, { signal: this.signal });
      this.#loaded(value);
      return true;
    } catch (error) {
      this.#inVain = this.signal.aborted;
      if (this.#inVain) return false;
      if (!(error instanceof Problem)) throw error;
      this.#sayWrong(`Events could not be loaded: ${error.message}`);
      this.#inVain = error.status === 422;
      return false;
    }
  }

  #loaded({ items, next }) {
    this.#next = next ?? null;
    for (const event of items) this.#known.set(event.id, event);
    this.#sayWrong("");
    this.#show();
    this.older.hidden = this.#next === null;
  }

  #sayWrong(text) {
    write(this.wrong, text);
    this.wrong.hidden = !text;
  }

  #take(event) {
    const other = this.filters.vr && event.vr !== this.filters.vr;
    if (other || this.#known.has(event.id)) return;
    this.#known.set(event.id, event);
    this.#trim();
    this.#unsaid.push(event);
    if (!held()) this.#show();
  }

  #show() {
    this.table.show([...this.#known.values()].sort((a, b) => b.id - a.id));
  }

  /** Forget the oldest of very many; those before them cannot be loaded without a gap then. */
  #trim() {
    if (this.#known.size <= MOST) return;
    const ids = [...this.#known.keys()].sort((a, b) => b - a);
    for (const id of ids.slice(MOST)) this.#known.delete(id);
    this.older.hidden = true;
  }

  /** Say what came, but not each of many. */
  #sayNews() {
    if (this.#unsaid.length === 0 || held()) return;
    const { host, vr, kind, words: text } = this.#unsaid.at(-1);
    const more =
      this.#unsaid.length > 1 ? `${count(this.#unsaid.length, "event")}, the last: ` : "";
    say(`${more}${vr || host} ${words(kind)}: ${text}`);
    this.#unsaid = [];
  }
}

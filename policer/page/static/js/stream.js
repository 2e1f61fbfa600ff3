// Follows a stream of the service for as long as it is wanted, whatever comes between.
//
// By fetch: EventSource cannot show a bearer token. A stream that ends or falls silent is taken up
// again, with the id of the last event that arrived.

import { bearer, Problem, refused } from "./api.js";
import { forget, report } from "./health.js";
import { EventParser } from "./sse.js";
import { pause, untilSeen } from "./wait.js";

const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 10000;
const HIDDEN_MS = 30000;
const LOOK_MS = 500;

export class Stream {
  #heardAt = Date.now();
  #attempt = null;
  #waitMs = FIRST_WAIT_MS;

  /**
   * source: what people call it; named: the kind of event that is wanted;
   * silentMs: it is stale after so long without a word;
   * lastId: of the last event that is known already; onEvent: is given {id, event, data}.
   */
  constructor(where, { source, named, silentMs, onEvent, signal, lastId = "" }) {
    Object.assign(this, { where, source, named, silentMs, onEvent, signal, lastId });
  }

  /** Follow until the signal aborts; never throws. */
  async run() {
    const watch = setInterval(() => this.#look(), LOOK_MS);
    document.addEventListener("visibilitychange", () => this.#rest(), { signal: this.signal });
    while (!this.signal.aborted) {
      await this.#once();
      await pause(this.#waitMs, this.signal);
      await untilSeen(this.signal);
    }
    clearInterval(watch);
    forget(this.source);
  }

  async #once() {
    this.#attempt = new AbortController();
    try {
      await this.#listen(AbortSignal.any([this.signal, this.#attempt.signal]));
    } catch (error) {
      if (!this.signal.aborted) this.#lost(error);
    }
  }

  async #listen(signal) {
    const known = this.lastId ? { "Last-Event-ID": this.lastId } : {};
    const headers = { ...bearer(), ...known, Accept: "text/event-stream" };
    const answer = await fetch(this.where, { headers, signal });
    if (!answer.ok) throw await refused(answer);
    this.#heard();
    await this.#read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
  }

  async #read(reader) {
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#heard();
      for (const event of parser.feed(value)) this.#take(event);
    }
  }

  #take(event) {
    if (event.event === "problem") throw new Problem(0, { title: event.data });
    if (event.event !== this.named) return;
    if (event.id) this.lastId = event.id;
    try {
      this.onEvent(event);
    } catch (error) {
      reportError(error); // a view's fault ends no stream
    }
  }

  #heard() {
    if (this.signal.aborted) return;
    this.#heardAt = Date.now();
    this.#waitMs = FIRST_WAIT_MS;
    report(this.source, null);
  }

  #lost(error) {
    report(this.source, this.#heardAt, error instanceof Problem ? error.message : "");
    const asked = 1000 * (error.retryAfter ?? 0);
    this.#waitMs = Math.max(asked, Math.min(2 * this.#waitMs, LONGEST_WAIT_MS));
  }

  /** Show a silent stream as stale, and reopen it when it stays silent. */
  #look() {
    const silent = Date.now() - this.#heardAt;
    if (this.signal.aborted || silent <= this.silentMs) return;
    report(this.source, this.#heardAt);
    if (silent > 3 * this.silentMs) this.#attempt?.abort();
  }

  /** Close the connection while no view needs it: browsers have few for each service. */
  async #rest() {
    if (!document.hidden) return;
    await pause(HIDDEN_MS, this.signal);
    if (document.hidden) this.#attempt?.abort();
  }
}

// Who changed what, the latest first: the audit log, a page at a time.

import { call, Problem, query, v1 } from "../api.js";
import { el, time } from "../dom.js";
import { LiveTable } from "../table.js";
import { Notice } from "./notice.js";

const PAGE = 50;
const COLUMNS = [
  {
    head: "When",
    header: true,
    fill: (cell, { at }) => cell.firstElementChild ?? cell.append(time(at)),
  },
  { head: "Who", text: ({ actor }) => actor },
  { head: "Id", text: ({ actor_id: id }) => id || "not known" },
  { head: "From", text: ({ address }) => address || "no network" },
  { head: "Did", text: ({ action }) => action },
  { head: "What", text: ({ target }) => target, words: true },
];

export class Changes {
  #rows = [];
  #next = null;

  constructor({ signal }) {
    this.signal = signal;
    const caption = "Changes, the latest first";
    const key = ({ id }) => id;
    this.table = new LiveTable({ caption, columns: COLUMNS, key, empty: "Nothing was changed." });
    this.notice = new Notice();
    this.older = el("button", { type: "button", click: () => this.#load() }, "Load older changes");
    const actions = el("p", { class: "actions" }, this.older);
    this.node = el("div", {}, this.notice.node, this.table.node, actions);
    this.#load();
  }

  async #load() {
    const where = query(v1("audit"), { limit: PAGE, after: this.#next });
    try {
      const { value } = await call("GET", where, { signal: this.signal });
      this.#rows.push(...value.items);
      this.#next = value.next;
      this.notice.clear();
      this.table.show(this.#rows);
      this.older.hidden = this.#next === null;
    } catch (error) {
      if (this.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      this.notice.show(`Changes could not be loaded: ${error.message}`);
    }
  }
}

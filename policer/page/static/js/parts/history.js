// All versions of a contract, the latest first, and what each changed.

import { call, Problem } from "../api.js";
import { changes } from "../contract.js";
import { contractPlace } from "../contractplace.js";
import { time } from "../dom.js";
import { LiveTable } from "../table.js";

const COLUMNS = [
  { head: "Version", header: true, text: ({ version }) => String(version) },
  { head: "When", fill: (cell, { at }) => cell.firstElementChild ?? cell.append(time(at)) },
  { head: "By", text: ({ by }) => by },
  { head: "What changed", text: ({ changed }) => changed, words: true },
];

export class History {
  constructor({ host, vr, signal }) {
    Object.assign(this, { host, vr, signal });
    const caption = `Versions of the contract of ${vr}, the latest first`;
    const key = ({ version }) => version;
    this.table = new LiveTable({ caption, columns: COLUMNS, key, empty: "There was none." });
    this.node = this.table.node;
  }

  async load() {
    try {
      const where = `${await contractPlace(this)}/history`;
      const { value } = await call("GET", where, { signal: this.signal });
      this.table.show(compared(value.items));
    } catch (error) {
      if (this.signal.aborted) return;
      if (!(error instanceof Problem)) throw error;
      if (error.status === 404) this.table.show([]);
      // Of a service that is away, the page says so elsewhere; what is shown stays.
    }
  }
}

/** Return revisions, latest first, each with what it changed of the one before. */
function compared(revisions) {
  return revisions.map((revision, index) => ({
    ...revision,
    changed: changes(revisions[index + 1]?.contract ?? null, revision.contract),
  }));
}

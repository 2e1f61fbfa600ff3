// What operators decided instead of the policer, and the ways to change and to end it.

import { call, Problem, readAll, v1 } from "../api.js";
import { el, section, time } from "../dom.js";
import { held } from "../hold.js";
import { Brake } from "../parts/brake.js";
import { tag } from "../parts/control.js";
import { Notice } from "../parts/notice.js";
import { poll } from "../poll.js";
import { toHost, toRouter } from "../routes.js";
import { say } from "../say.js";
import { limited, may } from "../session.js";
import { LiveTable, link } from "../table.js";

const EVERY_S = 3;

export function overridesView(root, { signal }) {
  const brake = limited() ? null : new Brake({ signal });
  const list = new Standing({ signal });
  root.append(el("h1", { tabindex: "-1" }, "Overrides"));
  if (brake) root.append(section(2, "Brake", brake.node));
  root.append(section(2, "In force", list.node));
  poll("overrides", EVERY_S, signal, async () => {
    await brake?.load();
    await list.load();
  });
}

/** The overrides that stand, with buttons that end those of hosts and routers. */
class Standing {
  #rows = [];

  constructor({ signal }) {
    this.signal = signal;
    this.notice = new Notice();
    this.table = new LiveTable({
      caption: "Overrides in force, renewed every 3 seconds",
      columns: [...COLUMNS, { head: "End", fill: (cell, row) => this.#ending(cell, row) }],
      key: keyOf,
      empty: "Nothing is overridden.",
    });
    this.node = el("div", {}, this.notice.node, this.table.node);
  }

  async load() {
    this.#rows = await readAll(v1("overrides"), { signal: this.signal });
    if (!held()) this.table.show(this.#rows);
  }

  #ending(cell, row) {
    const where = may("operate") && placeOf(row);
    const words = `End the ${row.kind} of ${row.vr ?? row.host}`;
    if (!where) cell.replaceChildren();
    else if (cell.firstElementChild?.title !== words)
      cell.replaceChildren(
        el(
          "button",
          { type: "button", title: words, "aria-label": words, click: () => this.#end(row) },
          "End",
        ),
      );
  }

  async #end(row) {
    try {
      const current = this.#rows.find((one) => keyOf(one) === keyOf(row)) ?? row;
      await call("DELETE", placeOf(row), { headers: { "If-Match": tag(current.version) } });
      this.notice.clear();
      say(`The ${row.kind} of ${row.vr ?? row.host} has ended.`);
      await this.load();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.notice.show(`Not done: ${error.message}`);
    }
  }
}

const keyOf = ({ kind, host, vr }) => `${kind} ${host ?? ""} ${vr ?? ""}`;

/** Return where an override is removed; null of the fleet's, which have controls of their own. */
function placeOf({ kind, host, vr }) {
  if (kind === "suspension" && host) return v1("hosts", host, "suspension");
  if (kind === "exemption" && host && vr) return v1("hosts", host, "routers", vr, "exemption");
  return null;
}

const COLUMNS = [
  { head: "Override", header: true, text: nameOf },
  { head: "Of", fill: concerned },
  { head: "Until", fill: (cell, { until }) => moment(cell, until, "it is ended") },
  { head: "Reason", text: ({ reason }) => reason || "none given", words: true },
  { head: "By", text: ({ set_by: by }) => by },
  { head: "Since", fill: (cell, { set_at: at }) => moment(cell, at, "not known") },
];

/** Return what an override is; the kind says it all, but of a brake. */
function nameOf({ kind, mode, above }) {
  if (kind === "brake") return `brake ${mode}`;
  return kind === "epoch" ? `epoch above ${above}` : kind;
}

function concerned(cell, { host, vr }) {
  if (!host) cell.textContent = vr ?? "the fleet";
  else if (vr)
    link(
      () => toRouter(host, vr),
      () => `${vr} on ${host}`,
    )(cell, null);
  else
    link(
      () => toHost(host),
      () => host,
    )(cell, null);
}

function moment(cell, at, otherwise) {
  if (at == null) cell.textContent = otherwise;
  else if (cell.firstElementChild?.dateTime !== new Date(at).toISOString())
    cell.replaceChildren(time(at));
}

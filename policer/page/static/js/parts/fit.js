// Which hosts can keep one more guarantee.

import { bits, noNumber, number } from "../contract.js";
import { el, write } from "../dom.js";
import { clearErrors, showErrors, textField } from "../fields.js";
import { kilo, rate } from "../format.js";
import { fitting, free } from "../planning.js";
import { toHost } from "../routes.js";
import { LiveTable, link } from "../table.js";

const FIELDS = [
  ["guarantee_pps", "Guarantee, packets/s or b/s", "Such as 20k or 50 Mb/s.", "20k"],
  ["cost", "Cost of a packet", "Relative to an ordinary packet, which costs 1.", "1"],
  ["packet_bytes", "Packet size, bytes", "For a rate in b/s.", "350"],
];
const COLUMNS = [
  {
    head: "Host",
    header: true,
    fill: link(
      ({ host }) => toHost(host),
      ({ host }) => host,
    ),
  },
  { head: "Free, kp/s", number: true, text: (room) => kilo(free(room)) },
  {
    head: "Free then, kp/s",
    number: true,
    text: (room) => kilo(Math.max(0, free(room) - room.pps)),
  },
];

export class Fit {
  #rooms = [];
  #pps = null;

  constructor() {
    const caption = "Hosts that can keep it, the fullest first";
    const empty = "No host has room: add one, or lower a guarantee.";
    this.state = el("p", { role: "status" });
    this.table = new LiveTable({ caption, columns: COLUMNS, key: ({ host }) => host, empty });
    this.table.node.hidden = true;
    this.form = this.#build();
    this.node = el("div", {}, this.form, this.state, this.table.node);
  }

  #build() {
    const fields = FIELDS.map(([name, label, hint, value]) =>
      textField({ name, label, hint, value }),
    );
    const find = el("p", { class: "actions" }, el("button", { class: "first" }, "Find hosts"));
    const form = el("form", { novalidate: true }, el("div", { class: "fields" }, fields), find);
    form.addEventListener("submit", (event) => this.#submit(event));
    return form;
  }

  /** Take the hosts that something can be moved to. */
  take(rooms) {
    this.#rooms = rooms;
    if (this.#pps !== null) this.#show();
  }

  #submit(event) {
    event.preventDefault();
    clearErrors(this.form);
    const values = Object.fromEntries(
      FIELDS.map(([name]) => [name, this.form.elements[name].value]),
    );
    const errors = FIELDS.filter(([name]) => Number.isNaN(valueOf(name, values[name])));
    if (errors.length > 0)
      return showErrors(
        this.form,
        errors.map(([name]) => noNumber(name, values[name])),
      );
    this.#pps = taken(values);
    this.#show();
  }

  #show() {
    const found = fitting(this.#rooms, this.#pps);
    write(
      this.state,
      `It takes ${rate(this.#pps)}; ${found.length} of ${this.#rooms.length} hosts have room.`,
    );
    this.table.show(found.map((room) => ({ ...room, pps: this.#pps })));
    this.table.node.hidden = false;
  }
}

function valueOf(name, text) {
  const inBits = name === "guarantee_pps" ? bits(text) : Number.NaN;
  return Number.isNaN(inBits) ? number(text) : inBits;
}

/** Return what a guarantee takes of a host, in packets/s of cost 1. */
function taken({ guarantee_pps: text, cost, packet_bytes: size }) {
  const inBits = bits(text);
  const packets = Number.isNaN(inBits) ? number(text) : inBits / (8 * number(size));
  return number(cost) * packets;
}

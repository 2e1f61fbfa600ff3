// Where the guaranteed routers of lost hosts could go; nothing is moved.

import { el, freshId, write } from "../dom.js";
import { tickField } from "../fields.js";
import { count, kilo } from "../format.js";
import { moved } from "../planning.js";
import { toRouter } from "../routes.js";
import { LiveTable, link } from "../table.js";

const NO_ROOM = { tone: "bad", words: "no host has room" };
const COLUMNS = [
  {
    head: "Router",
    header: true,
    fill: link(
      ({ host, vr }) => toRouter(host, vr),
      ({ vr }) => vr,
    ),
  },
  { head: "From", text: ({ host }) => host },
  { head: "Takes, kp/s", number: true, text: ({ pps }) => kilo(pps) },
  { head: "To", fill: destination },
];

function destination(cell, { target }) {
  cell.className = target === null ? `mark ${NO_ROOM.tone}` : "";
  write(cell, target ?? NO_ROOM.words);
}

export class WhatIf {
  #names = [];
  #rooms = [];
  #routers = [];

  constructor() {
    const caption = "Routers of the lost hosts, the largest guarantee first";
    const key = ({ host, vr }) => `${host}/${vr}`;
    const empty = "Nothing is guaranteed to routers of these hosts.";
    this.state = el("p", { role: "status" }, "Choose hosts that are lost.");
    this.table = new LiveTable({ caption, columns: COLUMNS, key, empty });
    this.table.node.hidden = true;
    this.boxes = el("div", { class: "choices" });
    this.form = this.#build();
    this.node = el("div", {}, this.form, this.state, this.table.node);
  }

  #build() {
    const hint = freshId("hint");
    const legend = el("legend", {}, "Lost hosts");
    const words = el("p", { class: "hint", id: hint }, "Nothing is moved: this only counts.");
    const group = el("fieldset", { class: "field", "aria-describedby": hint }, legend, words);
    group.append(this.boxes);
    const form = el("form", {}, group);
    form.addEventListener("input", () => this.#show());
    form.addEventListener("submit", (event) => event.preventDefault());
    return form;
  }

  /** Take the names of all hosts, the rooms that something can be moved to, and the guarantees. */
  take(names, rooms, routers) {
    if (names.join() !== this.#names.join()) this.#offer(names);
    [this.#names, this.#rooms, this.#routers] = [names, rooms, routers];
    this.#show();
  }

  #offer(names) {
    const lost = this.#lost();
    const box = (host) =>
      tickField({ name: "lost", label: host, value: host, checked: lost.has(host) });
    this.boxes.replaceChildren(...names.map(box));
  }

  #lost() {
    return new Set(new FormData(this.form).getAll("lost"));
  }

  #show() {
    const lost = this.#lost();
    const moves = moved(this.#rooms, this.#routers, lost);
    this.table.node.hidden = lost.size === 0;
    this.table.show(moves);
    write(this.state, said(lost, moves));
  }
}

function said(lost, moves) {
  if (lost.size === 0) return "Choose hosts that are lost.";
  const homeless = moves.filter(({ target }) => target === null);
  if (homeless.length === 0) return `All of ${count(moves.length, "router")} find a place.`;
  const pps = homeless.reduce((sum, one) => sum + one.pps, 0);
  return `${homeless.length} of ${count(moves.length, "router")} find no place; they take ${kilo(pps)} kp/s in all.`;
}

// What the fleet can still promise: room on each host, where a guarantee fits, and what a loss does.

import { readAll, v1 } from "../api.js";
import { bar } from "../bar.js";
import { el, section } from "../dom.js";
import { kilo, rate } from "../format.js";
import { held } from "../hold.js";
import { hostState } from "../hosts.js";
import { Facts } from "../parts/facts.js";
import { Fit } from "../parts/fit.js";
import { WhatIf } from "../parts/whatif.js";
import { guaranteed, roomsOf } from "../planning.js";
import { poll } from "../poll.js";
import { toHost } from "../routes.js";
import { LiveTable, link, mark } from "../table.js";

const EVERY_S = 5;
const name = ({ entry }) => entry.name;
const left = ({ entry, live }) => entry.capacity_pps - live.promised_pps;

const COLUMNS = [
  { head: "Host", header: true, fill: link((row) => toHost(name(row)), name), sort: name },
  { head: "State", fill: mark(hostState) },
  number("Capacity, kp/s", ({ entry }) => entry.capacity_pps),
  {
    head: "Promised",
    fill: bar(
      "promised",
      ({ live }) => live.promised_pps,
      ({ entry }) => entry.capacity_pps,
    ),
  },
  number("Free, kp/s", (row) => Math.max(0, left(row))),
  { head: "Source", text: ({ entry }) => entry.capacity_source },
];

function number(head, value) {
  return { head, number: true, sort: value, text: (row) => kilo(value(row)) };
}

export function capacityView(root, { signal }) {
  const facts = new Facts(["Capacity", "Promised", "Free"]);
  const caption = "Hosts, and what can still be promised on them";
  const table = new LiveTable({ caption, columns: COLUMNS, key: name, empty: "There is no host." });
  const fit = new Fit();
  const loss = new WhatIf();
  root.append(el("h1", { tabindex: "-1" }, "Capacity"), facts.node);
  root.append(section(2, "Room", table.node), section(2, "Where a guarantee fits", fit.node));
  root.append(section(2, "What if hosts are lost", loss.node));
  poll("capacity", EVERY_S, signal, async () => {
    const hosts = await readAll(v1("hosts"), { signal });
    const contracts = await readAll(v1("contracts"), { signal });
    if (held()) return;
    facts.show(totals(hosts));
    table.show(hosts);
    fit.take(roomsOf(hosts));
    loss.take(hosts.map(name), roomsOf(hosts), contracts.map(guaranteed));
  });
}

function totals(hosts) {
  const sum = (value) => rate(hosts.reduce((total, host) => total + value(host), 0));
  return {
    Capacity: sum(({ entry }) => entry.capacity_pps),
    Promised: sum(({ live }) => live.promised_pps),
    Free: sum((host) => Math.max(0, left(host))),
  };
}

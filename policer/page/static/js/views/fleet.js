// All hosts: who is here, what each was promised of what it can, and what is wrong.

import { readAll, v1 } from "../api.js";
import { bar } from "../bar.js";
import { el, section } from "../dom.js";
import { textField, tickField } from "../fields.js";
import { count, kilo, rate } from "../format.js";
import { held } from "../hold.js";
import { hostProblems, hostState, known } from "../hosts.js";
import { Brake } from "../parts/brake.js";
import { Facts } from "../parts/facts.js";
import { poll } from "../poll.js";
import { toHost } from "../routes.js";
import { limited } from "../session.js";
import { LiveTable, link, mark } from "../table.js";

const EVERY_S = 3;

const name = ({ entry }) => entry.name;
const promised = bar(
  "promised",
  ({ live }) => live.promised_pps,
  ({ entry }) => entry.capacity_pps,
);

const COLUMNS = [
  { head: "Host", header: true, fill: link((row) => toHost(name(row)), name), sort: name },
  { head: "State", fill: mark(hostState), sort: (row) => hostState(row).words },
  {
    head: "Promised",
    fill: promised,
    sort: ({ entry, live }) => live.promised_pps / entry.capacity_pps,
  },
  number("Forwarded, kp/s", ({ live }) => known(live, live.forwarded_pps), kilo),
  number("Offered, kp/s", ({ live }) => known(live, live.offered_pps), kilo),
  number("Routers", ({ live }) => live.routers, String),
  number("Punished", ({ live }) => live.punished, String),
  { head: "Problems", text: (row) => hostProblems(row).join(". "), words: true },
];

function number(head, value, words) {
  return { head, number: true, sort: value, text: (row) => words(value(row)) };
}

export function fleetView(root, { signal }) {
  const facts = new Facts(["Hosts", "Routers", "Capacity", "Promised", "Forwarded", "Offered"]);
  const caption = "Hosts, renewed every 3 seconds";
  const table = new LiveTable({ caption, columns: COLUMNS, key: name, empty: "No host fits." });
  const filter = filters();
  const brake = limited() ? null : new Brake({ signal });
  let hosts = [];
  const show = () => table.show(hosts.filter((host) => fits(host, filter)));
  filter.addEventListener("input", show);
  root.append(el("h1", { tabindex: "-1" }, "Fleet"), facts.node);
  if (brake) root.append(section(2, "Brake", brake.node));
  root.append(section(2, "Hosts", filter, table.node));
  poll("hosts", EVERY_S, signal, async () => {
    const read = await readAll(v1("hosts"), { signal });
    if (held()) return;
    await brake?.load();
    hosts = read;
    facts.show(totals(hosts));
    show();
  });
}

function filters() {
  const find = textField({ name: "find", label: "Find a host", type: "search" });
  const wrong = tickField({ name: "wrong", label: "Only hosts with a problem" });
  const form = el("form", { class: "filters", role: "search" }, find, wrong);
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
}

function fits(host, filter) {
  const { find, wrong } = filter.elements;
  const named = name(host).toLowerCase().includes(find.value.trim().toLowerCase());
  return (
    named && (!wrong.checked || hostState(host).tone !== "good" || hostProblems(host).length > 0)
  );
}

function totals(hosts) {
  const sum = (value) => hosts.reduce((total, host) => total + value(host), 0);
  const gone = hosts.filter(({ live }) => !live.reachable).length;
  return {
    Hosts: gone > 0 ? `${hosts.length}, of which ${gone} gone` : String(hosts.length),
    Routers: `${sum(({ live }) => live.routers)}, ${sum(({ live }) => live.punished)} punished`,
    Capacity: rate(sum(({ entry }) => entry.capacity_pps)),
    Promised: `${rate(sum(({ live }) => live.promised_pps))}, ${contracts(hosts)}`,
    Forwarded: rate(sum(({ live }) => live.forwarded_pps)),
    Offered: rate(sum(({ live }) => live.offered_pps)),
  };
}

function contracts(hosts) {
  return count(
    hosts.reduce((total, { live }) => total + live.contracts, 0),
    "contract",
  );
}

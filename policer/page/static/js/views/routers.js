// The routers that a token reaches, where it sees no host as a whole; of all hosts, or of one.

import { readAll, v1 } from "../api.js";
import { routerConditions } from "../conditions.js";
import { el } from "../dom.js";
import { kilo } from "../format.js";
import { held } from "../hold.js";
import { poll } from "../poll.js";
import { toHost, toRouter } from "../routes.js";
import { LiveTable, link, marks } from "../table.js";

const EVERY_S = 3;

const COLUMNS = [
  {
    head: "Router",
    header: true,
    fill: link(
      ({ host, vr }) => toRouter(host, vr),
      ({ vr }) => vr,
    ),
    sort: ({ vr }) => vr,
  },
  {
    head: "Host",
    fill: link(
      ({ host }) => toHost(host),
      ({ host }) => host,
    ),
    sort: ({ host }) => host,
  },
  { head: "State", fill: marks((router) => routerConditions(router)) },
  number("Throughput, kp/s", ({ report }) => report?.throughput_pps),
  number("Offered, kp/s", ({ report }) => report?.offered_pps),
  number("Setpoint, kp/s", ({ order }) => order?.setpoint_pps),
  number("Guarantee, kp/s", ({ contract }) => contract?.guarantee_pps),
  number("Ceiling, kp/s", ({ contract }) => contract?.ceiling_pps),
];

function number(head, value) {
  return { head, number: true, sort: value, text: (router) => kilo(value(router)) };
}

export function routersView(root, { host, signal }) {
  const caption = "Routers that your token reaches, renewed every 3 seconds";
  const key = ({ host: where, vr }) => `${where}/${vr}`;
  const empty = "Your token reaches no router here.";
  const table = new LiveTable({ caption, columns: COLUMNS, key, empty });
  root.append(el("h1", { tabindex: "-1" }, host ?? "Routers"), table.node);
  poll("routers", EVERY_S, signal, async () => {
    const routers = await readAll(v1("routers"), { signal, host });
    if (!held()) table.show(routers);
  });
}

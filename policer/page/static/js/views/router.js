// One router: its rates and its cap second by second, its contract, its punishment, its events.

import { call, v1 } from "../api.js";
import { routerConditions } from "../conditions.js";
import { el, section, write } from "../dom.js";
import { bitRate, cap, kilo, percent, rate, UNKNOWN, words } from "../format.js";
import { held } from "../hold.js";
import { HostLive } from "../hostlive.js";
import { starved } from "../hosts.js";
import { feedOf } from "../live.js";
import { ContractForm } from "../parts/contractform.js";
import { EventList } from "../parts/events.js";
import { Exemption } from "../parts/exemption.js";
import { Facts } from "../parts/facts.js";
import { History } from "../parts/history.js";
import { Ladder } from "../parts/ladder.js";
import { quantities } from "../parts/quantities.js";
import { trail } from "../parts/trail.js";
import { livePlot } from "../plot.js";
import { poll } from "../poll.js";
import { marks } from "../table.js";

const EVERY_S = 2;
const FACTS = [
  "Mode",
  "Finding",
  "Told",
  "Burst",
  "Lease",
  "Limit",
  "Saved burst",
  "Over its promise",
  "Under its promise",
  "In breach",
  "Interfaces",
];
const STARVED =
  "It forwards less than it is sent, and its cap is not why: its CPU is contended, or it drops " +
  "packets itself.";
const RATES = [
  line("throughput_pps", "Throughput", "throughput", kilo),
  { ...line("offered_pps", "Offered load", "offered", kilo), dash: [8, 5] },
  { ...line("setpoint_pps", "Setpoint", "setpoint", kilo), dash: [2, 4], stepped: true },
];
const CAPS = [
  {
    ...line("cap", "Cap", "cap", (share) => (share == null ? "none" : percent(share, 1))),
    stepped: true,
  },
];

function line(name, label, sample, show) {
  return { name, label, sample, tone: `--${sample}`, show };
}

export function routerView(root, { host, vr, signal }) {
  const problem = el("p", { class: "note wrong", role: "alert", hidden: true });
  const facts = new Facts(FACTS);
  const state = el("div", { class: "state", role: "group", "aria-label": "State" });
  const ladder = new Ladder({ host, vr });
  const exemption = new Exemption({ host, vr });
  const history = new History({ host, vr, signal });
  const form = new ContractForm({ host, vr, signal, changed: () => history.load() });
  const events = new EventList({ caption: `Events of ${vr}`, filters: { host, vr }, signal });
  root.append(trail(host, vr), el("h1", { tabindex: "-1" }, vr), problem, state, facts.node);
  root.append(...plots(host, vr, signal), section(2, "Punishment", ladder.node, exemption.node));
  root.append(section(2, "Contract", form.node, section(3, "History", history.node)));
  root.append(section(2, "Events", events.node));
  form.load();
  history.load();
  events.start();
  follow({ host, vr, signal, problem, state, facts, ladder, exemption });
}

function plots(host, vr, signal) {
  const feed = feedOf(host);
  feed.remember(vr);
  const common = { series: feed.seriesOf(vr), feed, signal };
  const rates = `Throughput, offered load and setpoint of ${vr}`;
  const caps = `Cap of ${vr}; gaps are times without a cap`;
  const thousandth = (value) => value / 1000;
  const hundred = (value) => 100 * value;
  return [
    section(
      2,
      "Rates",
      pair({ ...common, lines: RATES, unit: "kp/s", words: rates, scale: thousandth }),
    ),
    section(
      2,
      "Cap",
      pair({ ...common, lines: CAPS, unit: "% of a CPU", words: caps, scale: hundred }),
    ),
  ];
}

function pair(shown) {
  const words = `${shown.words}; the table next to it has the numbers.`;
  return el(
    "div",
    { class: "beside" },
    livePlot({ ...shown, words }),
    quantities({ ...shown, caption: `In ${shown.unit}, over at most the last ten minutes` }),
  );
}

function follow({ host, vr, signal, problem, state, facts, ladder, exemption }) {
  const hostLive = new HostLive({ host, signal });
  const showState = marks(({ router, live }) => routerConditions(router, live));
  const work = async () => {
    const { value } = await call("GET", v1("hosts", host, "routers", vr), { signal });
    const live = await hostLive.read();
    if (held()) return;
    showState(state, { router: value, live });
    facts.show(factsOf(value));
    ladder.show(value);
    exemption.show(value);
    sayProblem(problem, problemOf(value));
  };
  poll(`router ${vr}`, EVERY_S, signal, work, (error) => {
    if (error.status !== 404) return false;
    sayProblem(
      problem,
      `There is no router ${vr} on ${host}: it was promised nothing, and is not seen.`,
    );
    return false;
  });
}

function factsOf({ report, order, saved_burst_packets: saved, kept }) {
  const told = order?.setpoint_pps ?? order?.setpoint_bps;
  const inBits = order?.setpoint_bps != null;
  return {
    Mode: report ? words(report.mode) : UNKNOWN,
    Finding: report ? words(report.finding) : UNKNOWN,
    Told: told == null ? "released" : toldOf(order),
    Burst: told == null ? "none" : amountOr(order.burst, "0.2 s of its setpoint", inBits),
    Lease: leaseOf(report),
    Limit: report?.limit_pps == null ? "none" : rate(report.limit_pps),
    "Saved burst": amountOr(saved),
    "Over its promise": countedOf(kept, "over"),
    "Under its promise": countedOf(kept, "under"),
    "In breach": kept ? `${kept.breach_seconds.toFixed(1)} s` : UNKNOWN,
    Interfaces: report?.interfaces.join(", ") || UNKNOWN,
  };
}

function toldOf({ setpoint_pps: pps, setpoint_bps: bps, punishment }) {
  return `${bps == null ? rate(pps) : bitRate(bps)}${punishment ? ", as a punishment" : ""}`;
}

function amountOr(amount, otherwise = UNKNOWN, inBits = false) {
  return amount == null ? otherwise : `${Math.round(amount)} ${inBits ? "bits" : "packets"}`;
}

function countedOf(kept, which) {
  const bits = kept?.[`${which}_promise_bits`];
  const packets = amountOr(kept?.[`${which}_promise_packets`]);
  return bits > 0 ? `${packets} and ${amountOr(bits, UNKNOWN, true)}` : packets;
}

function leaseOf(report) {
  if (!report?.active) return "none";
  const left = report.lease_remaining_s;
  return left == null ? "without an end" : `${left.toFixed(0)} s left`;
}

function problemOf({ host, report, contract, refusal }) {
  if (!report) return `${host} is gone, or does not know this router: what is shown is old.`;
  const uncertain = report.cap_known ? "" : `Its cap could not be read; it was ${cap(report.cap)}.`;
  const refused = refusal && `Its daemon refused: ${refusal}.`;
  const lacks = starved(report, contract) && STARVED;
  return [report.problem, refused, lacks, uncertain].filter(Boolean).join(" ");
}

function sayProblem(node, text) {
  write(node, text);
  node.hidden = !text;
}

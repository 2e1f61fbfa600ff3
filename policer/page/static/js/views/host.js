// One host: how it stands, its routers second by second, and what it can forward.

import { call, readAll, v1 } from "../api.js";
import { routerConditions } from "../conditions.js";
import { el, section, write } from "../dom.js";
import { bitRate, cap, kilo, lasting, rate } from "../format.js";
import { display, held } from "../hold.js";
import { hostProblems, hostState, known } from "../hosts.js";
import { feedOf } from "../live.js";
import { CapacityForm } from "../parts/capacityform.js";
import { Epoch } from "../parts/epoch.js";
import { Facts } from "../parts/facts.js";
import { quantities } from "../parts/quantities.js";
import { spark } from "../parts/spark.js";
import { Suspension } from "../parts/suspension.js";
import { trail } from "../parts/trail.js";
import { livePlot } from "../plot.js";
import { poll } from "../poll.js";
import { to, toRouter } from "../routes.js";
import { limited } from "../session.js";
import { LiveTable, link, marks } from "../table.js";

const EVERY_S = 3;
const FACTS = ["State", "Last heard", "Capacity", "Promised", "Forwarded", "Offered", "Punished"];
const TOTAL = [
  line("throughput_pps", "Throughput", "throughput"),
  { ...line("offered_pps", "Offered load", "offered"), dash: [8, 5] },
];

function line(name, label, sample) {
  return { name, label, sample, tone: `--${sample}`, show: kilo };
}

export function hostView(root, { host, signal }) {
  const feed = feedOf(host);
  const facts = new Facts(FACTS);
  const problems = el("p", { class: "note wrong", role: "alert", hidden: true });
  const table = routersTable(host, feed, signal);
  const suspension = new Suspension({ host });
  const epoch = limited() ? null : new Epoch({ signal });
  const more = el("p", {}, el("a", { href: `${to("events")}?host=${host}` }, `Events of ${host}`));
  root.append(trail(host), el("h1", { tabindex: "-1" }, host), problems, facts.node);
  root.append(
    section(2, "Rates", plot(host, feed, signal)),
    section(2, "Routers", table.node, more),
  );
  root.append(section(2, "Control", suspension.node, epoch?.node ?? []));
  if (!limited()) root.append(section(2, "Capacity", capacity(host, signal)));
  follow({ host, feed, signal, facts, problems, table, suspension, epoch });
}

function capacity(host, signal) {
  const form = new CapacityForm({ host, signal });
  form.load();
  return form.node;
}

function plot(host, feed, signal) {
  const words = `Throughput and offered load of ${host}; the table next to it has the numbers.`;
  const scale = (value) => value / 1000;
  const common = { series: feed.total, lines: TOTAL, feed, signal };
  return el(
    "div",
    { class: "beside" },
    livePlot({ ...common, unit: "kp/s", words, scale }),
    quantities({
      ...common,
      caption: "All routers together, in kp/s, over at most the last ten minutes",
    }),
  );
}

/** Ask how the host stands every few seconds, and take what its routers do from its telemetry. */
function follow({ host, feed, signal, facts, problems, table, suspension, epoch }) {
  let [routers, live] = [[], null];
  const now = (router) => ({ ...router, live, now: feed.latest.get(router.vr) });
  const show = () => {
    if (!held()) table.show(routers.map(now));
  };
  feed.addEventListener("tick", show, { signal });
  display.addEventListener("changed", show, { signal });
  const work = async () => {
    const { value } = await call("GET", v1("hosts", host), { signal });
    routers = await readAll(v1("hosts", host, "routers"), { signal });
    live = value.live;
    feed.rememberAll(routers.map(({ vr }) => vr));
    if (held()) return;
    facts.show(factsOf(value));
    sayProblems(problems, value);
    suspension.show(value.live.suspension);
    show();
    await epoch?.look(value.live);
  };
  poll(`host ${host}`, EVERY_S, signal, work, (error) => gone(error, host, problems));
}

function factsOf({ entry, live }) {
  return {
    State: hostState({ entry, live }).words,
    "Last heard": live.heard_s_ago == null ? "never" : `${lasting(live.heard_s_ago)} ago`,
    Capacity: rate(entry.capacity_pps),
    Promised: rate(live.promised_pps),
    Forwarded: rate(known(live, live.forwarded_pps)),
    Offered: rate(known(live, live.offered_pps)),
    Punished: String(live.punished),
  };
}

function sayProblems(node, host) {
  const problems = hostProblems(host);
  if (!host.live.reachable)
    problems.unshift(`${host.entry.name} is gone: ${hostState(host).words}`);
  write(node, problems.map((problem) => `${problem}.`).join(" "));
  node.hidden = problems.length === 0;
}

function gone(error, host, node) {
  if (error.status !== 404) return false;
  write(node, `There is no host ${host}.`);
  node.hidden = false;
  return true;
}

function routersTable(host, feed, signal) {
  const vr = (router) => router.vr;
  const seen = (name) => (router) => (router.now ?? router.report)?.[name];
  const number = (head, value, words) => ({
    head,
    number: true,
    sort: value,
    text: (router) => words(value(router)),
  });
  const columns = [
    {
      head: "Router",
      header: true,
      fill: link((router) => toRouter(host, router.vr), vr),
      sort: vr,
    },
    { head: "State", fill: marks((router) => routerConditions(router, router.live)) },
    number("Throughput, kp/s", seen("throughput_pps"), kilo),
    number("Offered, kp/s", seen("offered_pps"), kilo),
    number("Setpoint, kp/s", seen("setpoint_pps"), kilo),
    { head: "Cap", number: true, text: (router) => capOf(router) },
    promised("Guarantee, kp/s", "guarantee"),
    promised("Ceiling, kp/s", "ceiling"),
    { head: "Last ten minutes", fill: spark(feed, signal) },
  ];
  const caption = `Routers of ${host}, renewed every second`;
  return new LiveTable({
    caption,
    columns,
    key: vr,
    empty: "None was promised anything, or seen.",
  });
}

/** Return a column of a contract's rate: bits/s are shown as such, and sorted by what they take. */
function promised(head, name) {
  const sort = ({ contract }) => {
    const inBits = contract?.[`${name}_bps`];
    return inBits == null ? contract?.[`${name}_pps`] : inBits / (8 * contract.packet_bytes);
  };
  const text = (router) => {
    const inBits = router.contract?.[`${name}_bps`];
    return inBits == null ? kilo(sort(router)) : bitRate(inBits);
  };
  return { head, number: true, sort, text };
}

function capOf({ now, report }) {
  const seen = now ?? report;
  if (!seen) return "–";
  return report && !report.cap_known ? "unknown" : cap(seen.cap);
}

// Wires the page: the address decides the view, the session whether there is one.

import { call, v1 } from "./api.js";
import { el, renewTimes, write } from "./dom.js";
import { health, worst } from "./health.js";
import { display, hold, holdButton } from "./hold.js";
import { closeFeed } from "./live.js";
import { Alarm } from "./parts/alarm.js";
import { poll } from "./poll.js";
import { route } from "./routes.js";
import { limited, may, partial, session, signOut, token } from "./session.js";
import { guarded, mayLeave } from "./unsaved.js";
import { accessView } from "./views/access.js";
import { auditView } from "./views/audit.js";
import { capacityView } from "./views/capacity.js";
import { classesView } from "./views/classes.js";
import { eventsView } from "./views/events.js";
import { fleetView } from "./views/fleet.js";
import { hostView } from "./views/host.js";
import { overridesView } from "./views/overrides.js";
import { punishmentsView } from "./views/punishments.js";
import { reportsView } from "./views/reports.js";
import { routerView } from "./views/router.js";
import { routersView } from "./views/routers.js";
import { signInView } from "./views/signin.js";
import { timeOfDay, wireZone, zones } from "./zone.js";

const VIEWS = {
  access: [accessView, () => "Access"],
  audit: [auditView, () => "Audit"],
  capacity: [capacityView, () => "Capacity"],
  classes: [classesView, () => "Classes"],
  events: [eventsView, () => "Events"],
  fleet: [fleetView, () => "Fleet"],
  host: [hostView, ({ host }) => host],
  nowhere: [nowhere, () => "Not found"],
  overrides: [overridesView, () => "Overrides"],
  punishments: [punishmentsView, () => "Punishments"],
  reports: [reportsView, () => "Reports"],
  router: [routerView, ({ host, vr }) => `${vr} on ${host}`],
  signin: [signInView, () => "Sign in"],
};
/** What stands in for views of hosts where no host is seen as a whole. */
const OF_ROUTERS = {
  fleet: [routersView, () => "Routers"],
  host: [routersView, ({ host }) => host],
};
const LEADER_EVERY_S = 5;

const main = document.getElementById("view");
const alarm = new Alarm({
  node: document.getElementById("alarms"),
  icon: document.querySelector("link[rel=icon]"),
});
let leaving = new AbortController();
let signedIn = new AbortController();

function nowhere(root) {
  const home = el("a", { href: "#/" }, "the fleet");
  root.append(
    el("h1", { tabindex: "-1" }, "Not found"),
    el("p", {}, "There is no such view. See ", home, "."),
  );
}

/** Show the view that the address names, and take the focus there. */
function show({ focus = true } = {}) {
  leaving.abort();
  hold(false);
  leaving = new AbortController();
  const { name, params, query } = token() ? route(location.hash) : { name: "signin", params: {} };
  if (params.host === undefined) closeFeed();
  const [view, title] = (partial() && OF_ROUTERS[name]) || VIEWS[name];
  for (const question of document.querySelectorAll("dialog")) question.close("no");
  main.replaceChildren();
  alarm.entitle(`${title(params)} · policer`);
  markCurrent(name);
  view(main, { ...params, query, signal: leaving.signal });
  if (focus) (main.querySelector("h1") ?? main).focus();
}

function markCurrent(name) {
  const group = { host: "fleet", router: "fleet" }[name] ?? name;
  for (const a of document.querySelectorAll("#views a")) {
    const here = route(new URL(a.href).hash).name === group;
    if (here) a.setAttribute("aria-current", name === group ? "page" : "true");
    else a.removeAttribute("aria-current");
  }
}

/** Hide views that the token of this session may not see. */
function hideViews() {
  for (const item of document.querySelectorAll("#views [data-needs]"))
    item.hidden = !may(item.dataset.needs) || limited();
}

/** Apply a sign-in or sign-out. */
function takeSession() {
  signedIn.abort();
  signedIn = new AbortController();
  const here = token() !== null;
  document.getElementById("views").hidden = !here;
  document.getElementById("leave").hidden = !here;
  document.getElementById("holding").hidden = !here;
  write(document.getElementById("leader"), "");
  write(document.getElementById("alarm"), "");
  write(document.querySelector('#views a[href="#/"]'), here && partial() ? "Routers" : "Fleet");
  alarm.clear();
  if (!here) return;
  hideViews();
  alarm.follow(signedIn.signal);
  if (!limited()) followLeader(signedIn.signal);
}

function followLeader(signal) {
  poll("the service", LEADER_EVERY_S, signal, async () => {
    const { value } = await call("GET", v1("leadership"), { signal });
    write(document.getElementById("leader"), sayLeader(value));
    write(document.getElementById("alarm"), sayAlarm(value));
    alarm.know({ leadership: value });
  });
}

function sayLeader({ leading, epoch, holder }) {
  return leading ? `This policer leads, epoch ${epoch}.` : `${holder || "No policer"} leads.`;
}

/** Say what else keeps the fleet as a whole from being policed. */
function sayAlarm({ problem, brake }) {
  const words = [];
  if (problem) words.push(`Who leads is not sure: ${problem}.`);
  if (brake === "off")
    words.push("The brake is off: escalation goes on, however many routers misbehave.");
  return words.join(" ");
}

function sayHealth() {
  const silent = worst();
  const text =
    silent && `${silent.source}: stale since ${timeOfDay(silent.since)}. ${silent.why}`.trim();
  write(document.getElementById("health"), text ?? "");
  document.documentElement.toggleAttribute("data-stale", Boolean(silent));
}

document.getElementById("holding").append(holdButton());
document.getElementById("leave").addEventListener("click", async () => {
  if (await mayLeave()) signOut();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names a view, and must go on doing so
  main.focus();
});
addEventListener("hashchange", guarded(show));
wireZone(document.getElementById("zone"));
zones.addEventListener("changed", () => {
  renewTimes();
  sayHealth();
  display.dispatchEvent(new Event("changed"));
});
health.addEventListener("changed", sayHealth);
session.addEventListener("changed", () => {
  takeSession();
  show();
});
takeSession();
show({ focus: false });

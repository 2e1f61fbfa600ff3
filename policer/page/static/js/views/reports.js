// How contracts were kept in a month: to look at, to print and to save.

import { Problem, query, readAll, save, v1 } from "../api.js";
import { el, write } from "../dom.js";
import { textField } from "../fields.js";
import { kilo, UNKNOWN } from "../format.js";
import { to, toHost, toRouter } from "../routes.js";
import { LiveTable, link } from "../table.js";

const COLUMNS = [
  {
    head: "Router",
    header: true,
    fill: (cell, row) => (row.host === null ? write(cell, row.vr) : toItsPage(cell, row)),
  },
  {
    head: "Hosts",
    fill: (cell, row) => cell.replaceChildren(...hostsOf(row).flatMap(toEach)),
    sort: (row) => hostsOf(row).join(" "),
  },
  number("Guarantee, kp/s", "guarantee_pps", kilo),
  number("In force", "in_force_s", long),
  number("No data", "no_data_s", long),
  number("Wanted", "wanted_packets", packets),
  number("Delivered", "delivered_packets", packets),
  number("Missing", "missing_packets", packets),
  number("In breach", "breach_s", long),
  number("Punished", "punished_s", long),
  number("Punishments", "punishments", String),
];
const WORDS =
  "Wanted is what was sent to a router, up to its guarantee; missing is what of it was not " +
  "delivered, beyond the contract's burst. Times are hours, minutes and seconds.";

const toItsPage = link(
  ({ host, vr }) => toRouter(host, vr),
  ({ vr }) => vr,
);

/** Return where a router was: a contract that follows it has no host of its own. */
function hostsOf({ host, hosts }) {
  return host === null ? hosts : [host];
}

function toEach(host, index) {
  const a = el("a", { href: toHost(host) }, host);
  return index ? [", ", a] : [a];
}

function number(head, name, words) {
  const value = (row) => row[name];
  return { head, number: true, sort: value, text: (row) => words(value(row)) };
}

function long(seconds) {
  if (seconds == null) return UNKNOWN;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

function packets(count) {
  return Math.round(count).toLocaleString("en").replaceAll(",", "\u202f");
}

export function reportsView(root, { query: asked, signal }) {
  const month = asked.get("month") || new Date().toISOString().slice(0, 7);
  const wrong = el("p", { class: "note wrong", role: "alert", hidden: true });
  const state = el("p", { role: "status" }, "Loading");
  const table = new LiveTable({
    caption: `Contracts in force in ${month} (UTC); wanted, delivered and missing in packets`,
    columns: COLUMNS,
    key: ({ host, vr }) => `${host}/${vr}`,
    empty: "No contract was in force.",
  });
  const say = (error) => sayWrong(wrong, error);
  root.append(el("h1", { tabindex: "-1" }, `Service levels in ${month}`), form(month, say, signal));
  root.append(wrong, state, el("p", {}, WORDS), table.node);
  load(month, signal).then(
    (lines) => {
      write(state, `Read at ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC.`);
      table.show(lines);
    },
    (error) => {
      write(state, "");
      say(error);
    },
  );
}

const load = (month, signal) => readAll(v1("reports", month), { signal });

/** Return what chooses the month, prints, and saves. */
function form(month, say, signal) {
  const field = textField({ name: "month", label: "Month", value: month, type: "month" });
  const print = el("button", { type: "button", click: () => globalThis.print() }, "Print");
  const keep = async () => {
    try {
      await save(query(v1("reports", month), { format: "csv" }), `sla-${month}.csv`, signal);
      say(null);
    } catch (error) {
      say(error);
    }
  };
  const csv = el("button", { type: "button", click: keep }, "Save as CSV");
  const show = el("button", { class: "first" }, "Show");
  const box = el("form", { class: "filters" }, field, show, print, csv);
  box.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = query(to("reports"), { month: box.elements.month.value });
  });
  return box;
}

function sayWrong(node, error) {
  if (error !== null && !(error instanceof Problem)) {
    if (error.name === "AbortError") return;
    throw error;
  }
  write(node, error ? error.message : "");
  node.hidden = !error;
}

// Who is punished now, and how far it went.

import { readAll, v1 } from "../api.js";
import { el, time } from "../dom.js";
import { held } from "../hold.js";
import { poll } from "../poll.js";
import { toHost, toRouter } from "../routes.js";
import { LiveTable, link, mark } from "../table.js";

const EVERY_S = 3;

const COLUMNS = [
  {
    head: "Router",
    header: true,
    fill: link(
      ({ host, vr }) => toRouter(host, vr),
      ({ vr }) => vr,
    ),
  },
  {
    head: "Host",
    fill: link(
      ({ host }) => toHost(host),
      ({ host }) => host,
    ),
    sort: ({ host }) => host,
  },
  { head: "Step", text: stepOf, sort: ({ height }) => height },
  { head: "Verdict", fill: mark(verdict) },
  { head: "Since", fill: since },
];

function stepOf({ step, only_reported: reported }) {
  return `${step ?? "none that its contract allows"}${reported ? ", only reported" : ""}`;
}

function verdict({ guilty }) {
  return guilty ? { tone: "warn", words: "misbehaves" } : { tone: "good", words: "behaves now" };
}

function since(cell, row) {
  const was = cell.firstElementChild?.getAttribute("datetime") ?? 0;
  if (Math.abs(new Date(row.since) - new Date(was)) > 2000) cell.replaceChildren(time(row.since));
}

export function punishmentsView(root, { signal }) {
  const table = new LiveTable({
    caption: "Routers with a step in force; a router's own page has the pardon",
    columns: COLUMNS,
    key: ({ host, vr }) => `${host}/${vr}`,
    empty: "No router is punished.",
  });
  root.append(el("h1", { tabindex: "-1" }, "Punishments"), table.node);
  poll("punishments", EVERY_S, signal, async () => {
    const punishments = await readAll(v1("punishments"), { signal });
    if (!held()) table.show(punishments);
  });
}

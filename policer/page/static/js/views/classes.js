// Terms that many contracts share, and how many contracts have them.

import { readAll, v1 } from "../api.js";
import { changes, rateText } from "../contract.js";
import { el, time } from "../dom.js";
import { held } from "../hold.js";
import { poll } from "../poll.js";
import { LiveTable } from "../table.js";

const EVERY_S = 10;

const COLUMNS = [
  { head: "Class", header: true, text: ({ name }) => name, sort: ({ name }) => name },
  { head: "Guarantee", number: true, text: ({ terms }) => promised(terms, "guarantee") },
  { head: "Ceiling", number: true, text: ({ terms }) => promised(terms, "ceiling") },
  { head: "Contracts", number: true, text: ({ used }) => String(used), sort: ({ used }) => used },
  { head: "Terms", text: ({ terms }) => sentence(changes(null, terms)), words: true },
  { head: "Version", number: true, text: ({ version }) => String(version) },
  { head: "Changed", fill: when },
  { head: "By", text: ({ changed_by: by }) => by },
];

/** Return a rate of a class as operators write it. */
function promised(terms, name) {
  const text = String(rateText(terms, name));
  if (text === "" || text === "0") return "none";
  return text.endsWith("/s") ? text : `${text} p/s`;
}

const sentence = (words) => words.replace(/^made: /, "");

function when(cell, { changed_at: at }) {
  if (cell.firstElementChild?.dateTime !== new Date(at).toISOString())
    cell.replaceChildren(time(at));
}

export function classesView(root, { signal }) {
  const table = new LiveTable({
    caption: "Classes: a change of one changes all its contracts",
    columns: COLUMNS,
    key: ({ name }) => name,
    empty: "There is no class.",
  });
  const how = el(
    "p",
    {},
    "Classes are made and changed by ",
    el("code", {}, "policer class set"),
    ".",
  );
  root.append(el("h1", { tabindex: "-1" }, "Classes"), how, table.node);
  poll("classes", EVERY_S, signal, async () => {
    const classes = await readAll(v1("classes"), { signal });
    const contracts = await readAll(v1("contracts"), { signal });
    if (!held()) table.show(classes.map((one) => ({ ...one, used: users(contracts, one.name) })));
  });
}

const users = (contracts, name) =>
  contracts.filter(({ contract }) => contract.class === name).length;

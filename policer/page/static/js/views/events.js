// All events, as they come; filtered by host, router and kind.

import { el } from "../dom.js";
import { textField } from "../fields.js";
import { EventList } from "../parts/events.js";
import { to } from "../routes.js";

const NAMES = ["host", "vr", "kind"];
const LABELS = { host: "Host", vr: "Router", kind: "Kind" };

export function eventsView(root, { query, signal }) {
  const filters = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  const list = new EventList({ caption: "Events, the latest first", filters, signal });
  root.append(el("h1", { tabindex: "-1" }, "Events"), form(filters), list.node);
  list.start();
}

/** Return the form whose choice becomes the address, so that it can be kept and sent. */
function form(filters) {
  const fields = NAMES.map((name) =>
    textField({ name, label: LABELS[name], value: filters[name] }),
  );
  const button = el("button", { class: "first" }, "Filter");
  const box = el("form", { class: "filters", role: "search" }, fields, button);
  box.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = NAMES.map((name) => [name, box.elements[name].value.trim().replaceAll(" ", "_")]);
    const said = new URLSearchParams(given.filter(([, value]) => value));
    location.hash = `${to("events")}?${said}`;
  });
  return box;
}

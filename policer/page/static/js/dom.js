// Builds elements; whatever is data becomes text, never markup.

import { stamp } from "./zone.js";

/**
 * Return an element. Functions among the attributes listen to the event of that name; null and
 * false are left out, among attributes and children alike; lists of children may be nested.
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) give(node, name, value);
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

function give(node, name, value) {
  if (typeof value === "function") node.addEventListener(name, value);
  else if (value === true) node.setAttribute(name, "");
  else if (value != null && value !== false) node.setAttribute(name, value);
}

/** Change a node's text, if it differs: a screen reader is not told twice. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let made = 0;

/** Return an id that nothing else has. */
export function freshId(word) {
  made += 1;
  return `${word}-${made}`;
}

/** Return a section with its heading; `level` keeps headings in order. */
export function section(level, heading, ...children) {
  const id = freshId("heading");
  const title = el(`h${level}`, { id }, heading);
  return el("section", { "aria-labelledby": id }, title, ...children);
}

/** Return a moment as people read it, and as machines do. */
export function time(iso) {
  return el("time", { datetime: new Date(iso).toISOString() }, stamp(iso));
}

/** Show all moments of the page in the zone that is chosen now. */
export function renewTimes() {
  for (const node of document.querySelectorAll("time")) write(node, stamp(node.dateTime));
}

// How much of a capacity is taken: a bar, and the same in words.

import { el, write } from "./dom.js";
import { percent, rate } from "./format.js";

/** Return the `fill` of a column that shows a part of a whole, both in packets/s. */
export function bar(name, part, whole) {
  return (cell, row) => {
    cell.className = "bar";
    if (!cell.firstElementChild) cell.append(...parts(name));
    const [meter, words] = cell.children;
    draw(meter, words, part(row), whole(row));
  };
}

function parts(name) {
  const meter = el("div", { role: "meter", "aria-label": name, "aria-valuemin": 0 }, el("span"));
  return [meter, el("span", { class: "quiet" })];
}

function draw(meter, words, part, whole) {
  const share = whole > 0 ? part / whole : 0;
  const text = `${percent(share)} of ${rate(whole)}`;
  meter.setAttribute("aria-valuemax", 100);
  meter.setAttribute("aria-valuenow", Math.min(100, Math.round(100 * share)));
  meter.setAttribute("aria-valuetext", text);
  meter.classList.toggle("over", share > 1);
  meter.firstElementChild.style.width = `${Math.min(100, 100 * share)}%`;
  write(words, text);
}

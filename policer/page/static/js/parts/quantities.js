// The text beside a plot: each line's value now, and its least, most and mean of what was seen.

import { el, freshId, write } from "../dom.js";
import { display, held } from "../hold.js";
import { scrolling } from "../table.js";

const SEEN = ["now", "least", "most", "mean"];

/** Return a table that follows a series; lines as in plot.js, `show(value)` words a value. */
export function quantities({ caption, series, lines, feed, signal }) {
  const id = freshId("caption");
  const rows = lines.map((line) => ({
    line,
    cells: SEEN.map(() => el("td", { class: "number" })),
  }));
  const renew = () => {
    if (!held()) rows.forEach(({ line, cells }) => fill(cells, line, series.summary(line.name)));
  };
  feed.addEventListener("tick", renew, { signal });
  display.addEventListener("changed", renew, { signal });
  renew();
  const body = el(
    "tbody",
    {},
    rows.map(({ line, cells }) => el("tr", {}, head(line), cells)),
  );
  return scrolling(el("table", {}, el("caption", { id }, caption), heads(), body), id);
}

function heads() {
  const names = ["Quantity", "Now", "Lowest", "Highest", "Mean"];
  const cells = names.map((name, index) =>
    el("th", { scope: "col", class: index > 0 && "number" }, name),
  );
  return el("thead", {}, el("tr", {}, cells));
}

function head({ label, sample }) {
  return el("th", { scope: "row" }, el("span", { class: `sample ${sample}` }), label);
}

function fill(cells, line, summary) {
  SEEN.forEach((seen, index) => write(cells[index], line.show(summary[seen])));
}

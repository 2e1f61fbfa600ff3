// The text beside a plot: each line's value now, and its least, most and mean of what was seen.

import { el, freshId, write } from "../dom.js";
import { display, held } from "../hold.js";
import { scrolling } from "../table.js";

const NAMES = ["Quantity", "Now", "Lowest", "Highest", "Mean"];
const SEEN = ["now", "least", "most", "mean"];

/** Return a table that follows a series; lines as in plot.js, `show(value)` words a value. */
export function quantities({ caption, series, lines, feed, signal }) {
  const id = freshId("caption");
  const rows = lines.map((line) => ({
    line,
    cells: NAMES.slice(1).map(cellOf),
  }));
  const renew = () => {
    if (!held()) rows.forEach(({ line, cells }) => fill(cells, line, series.summary(line.name)));
  };
  feed.addEventListener("tick", renew, { signal });
  display.addEventListener("changed", renew, { signal });
  renew();
  const body = el(
    "tbody",
    { role: "rowgroup" },
    rows.map(({ line, cells }) => el("tr", { role: "row" }, head(line), cells)),
  );
  const shape = { role: "table", class: "cards" };
  return scrolling(el("table", shape, el("caption", { id }, caption), heads(), body), id);
}

const cellOf = (name) => el("td", { class: "number", role: "cell", "data-head": name });

function heads() {
  const cells = NAMES.map((name, index) =>
    el("th", { scope: "col", role: "columnheader", class: index > 0 && "number" }, name),
  );
  return el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, cells));
}

function head({ label, sample }) {
  return el(
    "th",
    { scope: "row", role: "rowheader" },
    el("span", { class: `sample ${sample}` }),
    label,
  );
}

function fill(cells, line, summary) {
  SEEN.forEach((seen, index) => write(cells[index], line.show(summary[seen])));
}

// A router's throughput in a table's cell, small and without axes; the numbers are in its row.

import { el } from "../dom.js";
import uPlot from "../../vendor/uPlot.esm.js";

const SIZE = { width: 120, height: 28 };

/** Return the `fill` of a column that shows the throughput of a row's `vr`. */
export function spark(feed, signal) {
  const drawn = new WeakMap();
  return (cell, { vr }) => {
    if (!drawn.has(cell)) drawn.set(cell, make(cell, signal));
    const [instants, throughput] = feed.seriesOf(vr).columns;
    drawn.get(cell).setData([instants.slice(), throughput.slice()]);
  };
}

function make(cell, signal) {
  const box = cell.appendChild(el("div", { class: "spark", "aria-hidden": "true" }));
  const stroke = () => getComputedStyle(box).color;
  const options = {
    ...SIZE,
    legend: { show: false },
    cursor: { show: false },
    axes: [{ show: false }, { show: false }],
    scales: { y: { range: (plot, least, most) => [0, Math.max(1, 1.15 * (most ?? 0))] } },
    series: [{}, { stroke, width: 1.5, points: { show: false } }],
  };
  const plot = new uPlot(options, [[], []], box);
  signal.addEventListener("abort", () => plot.destroy());
  return plot;
}

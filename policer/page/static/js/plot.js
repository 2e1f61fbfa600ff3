// A live plot of the last ten minutes; the numbers are in a table beside it.

import { display, held } from "./hold.js";
import { el } from "./dom.js";
import { SPAN_S } from "./series.js";
import { tick, zoneName, zones } from "./zone.js";
import uPlot from "../vendor/uPlot.esm.js";

const HEIGHT = 220;
const SLOW_S = 5;
const LEAST_S = 60;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

/**
 * Draw some quantities of a series until the signal ends.
 *
 * series: gives {columns, names}; lines: [{name, label, tone, dash, stepped}], where tone is a
 * custom property of the style sheet; scale: turns a value into what the axis shows.
 */
export function livePlot({ series, lines, unit, words, scale, feed, signal }) {
  const box = el("div", { class: "plot", role: "img", "aria-label": words });
  const data = columns(series, lines, scale);
  const drawn = new uPlot(options(box, { lines, unit }), data, box);
  let shownAt = 0;
  const draw = (now = false) => {
    if (held() || (!now && calm.matches && Date.now() - shownAt < 1000 * SLOW_S)) return;
    shownAt = Date.now();
    drawn.setData(columns(series, lines, scale));
    box.dataset.points = series.length;
  };
  watch(box, drawn, draw, feed, signal);
  draw(true);
  return box;
}

function columns(series, lines, scale) {
  const [instants, ...rest] = series.columns;
  const scaled = lines.map(({ name }) =>
    rest[series.names.indexOf(name)].map((value) => (value === null ? null : scale(value))),
  );
  return [instants.slice(), ...scaled];
}

function watch(box, drawn, draw, feed, signal) {
  const resized = new ResizeObserver(() => {
    if (box.clientWidth) drawn.setSize({ width: box.clientWidth, height: HEIGHT });
  });
  resized.observe(box);
  feed.addEventListener("tick", () => draw(), { signal });
  display.addEventListener("changed", () => draw(true), { signal });
  zones.addEventListener("changed", () => drawn.redraw(false, true), { signal });
  document.documentElement.addEventListener("themechange", () => drawn.redraw(), { signal });
  signal.addEventListener("abort", () => {
    resized.disconnect();
    drawn.destroy();
  });
}

function options(box, { lines, unit }) {
  return {
    width: 600,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { range: (plot, least, most) => lastMinutes(least, most) },
      y: { range: (plot, least, most) => [0, Math.max(1.1 * (most ?? 0), 1e-3)] },
    },
    axes: [
      { ...axis(box, instants), space: 80, label: zoneName, labelSize: 18 },
      { ...axis(box, numbers), label: unit, labelSize: 20, size: 52 },
    ],
    series: [{}, ...lines.map((line) => lineOf(box, line))],
  };
}

/** Return the instants that are shown: what was seen, at least a minute, at most ten. */
function lastMinutes(least, most) {
  const end = most ?? Date.now() / 1000;
  return [Math.max(end - SPAN_S, Math.min(least ?? end, end - LEAST_S)), end];
}

function axis(box, values) {
  return {
    values,
    stroke: () => tone(box, "--quiet"),
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    grid: { stroke: () => tone(box, "--rule"), width: 1 },
    ticks: { stroke: () => tone(box, "--rule"), width: 1 },
  };
}

/** Word the instants of an axis; seconds only where its steps are shorter than a minute. */
function instants(plot, splits, index, space, step) {
  return splits.map((at) => tick(1000 * at, { seconds: step < 60 }));
}

const numbers = (plot, splits) => splits.map((value) => `${+value.toPrecision(6)}`);

function lineOf(box, { label, tone: name, dash, stepped, width = 2 }) {
  return {
    label,
    width,
    dash,
    stroke: () => tone(box, name),
    paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    points: { show: false },
    spanGaps: false,
  };
}

/** Return a colour of the style sheet as the canvas takes it, light or dark. */
function tone(box, name) {
  const probe = box.querySelector(".tone") ?? box.appendChild(el("span", { class: "tone" }));
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

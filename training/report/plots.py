"""Draw a fit and a design: on given axes (notebooks), or as SVG (reports)."""

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from models.logcap import PACKETS_PER_KP, PERCENT_PER_CPU
from training.design.gains import Design
from training.fit.fit import Fit
from training.fit.shape import Comparison
from training.fit.shape_candidate import Shape
from training.fit.shape_fit import Name
from training.recording.recording import Recording
from training.report.responses import Responses

INK, LINE = "#1b1f24", "#d0d7de"
FIRST, SECOND, THIRD = "#0b5cad", "#b3470b", "#1a7f37"
FOURTH, FIFTH, SIXTH = "#8a3ffc", "#a2195b", "#7a6200"
_THEME = {
    INK: "var(--ink)",
    LINE: "var(--line)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
    THIRD: "var(--third)",
    FOURTH: "var(--fourth)",
    FIFTH: "var(--fifth)",
    SIXTH: "var(--sixth)",
}
"""Names of the colours in `page.css`, so that drawings follow light and dark."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text as text, for screen readers and search
    "svg.hashsalt": "xtc",  # reproducible: the same data gives the same page
    "font.size": 11.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINE,
}
_PHASES = {
    "uncapped": (INK, "s"),
    "settling": (SECOND, "."),
    "steady": (FIRST, "o"),
    "step": (THIRD, "o"),
    "held_out": (SECOND, "D"),
    "load": (INK, "+"),
}
"""Colour and marker of each phase."""
_SHAPES: dict[Name, Any] = {
    "hinge": ":",
    "affine hinge": "-.",
    "logarithm": "--",
    "power law": (0, (1, 4)),
}
"""Line style of each shape."""
SMOOTH = 200
"""Points of a drawn curve."""

SVG_DPI = 72
"""Font of matplotlib's SVG; a layout for another font would not fit."""

Draw = Callable[[Axes], None]


def svg(draw: Draw, size: tuple[float, float] = (5.0, 3.6)) -> str:
    """Return a drawing as SVG in the colours of the page."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, dpi=SVG_DPI, layout="constrained")
        draw(figure.subplots())
        # Saving would compute the layout twice again, which takes half of the time.
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    for colour, name in _THEME.items():
        text = text.replace(colour, name)
    return text


def draw_samples(axes: Axes, recording: Recording, fit: Fit) -> None:
    """Draw every sample over time, by its phase, and mark outliers."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for sample in recording.samples:
        at = (sample.at, sample.throughput_pps / PACKETS_PER_KP)
        groups.setdefault(sample.phase, []).append(at)
    for phase, (colour, marker) in _PHASES.items():
        if phase in groups:
            name = phase.replace("_", " ")
            points = _columns(groups[phase])
            axes.plot(*points, marker, color=colour, markersize=4, label=name)
    if fit.outliers:
        left_out = [(one.at, one.throughput_pps / PACKETS_PER_KP) for one in fit.outliers]
        axes.plot(*_columns(left_out), "x", color=INK, markersize=9, label="left out")
    axes.set_yscale("symlog", linthresh=max(fit.top_pps / PACKETS_PER_KP / 100, 1e-6))
    _finish(axes, "seconds since the sweep began", "throughput (kp/s)")
    axes.set_ylim(bottom=0)


def draw_curve(axes: Axes, fit: Fit, *, log: bool = False) -> None:
    """Draw means with 95 % intervals, the curve, shapes, the threshold, and held-out caps.

    The shapes are a hinge and a logarithm for comparison, and those that the host may have.

    The axis of caps can be logarithmic, as that of Eq. 1.
    """
    caps = [p.cap * PERCENT_PER_CPU for p in fit.points]
    rates = [p.throughput_pps for p in fit.points]
    halves = [
        [(rate.value - rate.low) / PACKETS_PER_KP for rate in rates],
        [(rate.high - rate.value) / PACKETS_PER_KP for rate in rates],
    ]
    grid = [caps[-1] * (n + 1) / SMOOTH for n in range(SMOOTH)]
    smooth = [p.smoothed_pps / PACKETS_PER_KP for p in fit.points]
    axes.plot([0, *caps], [0, *smooth], color=FIRST, label="monotone curve")
    for shape in _drawn(fit.shapes):
        rates_at = [shape.throughput(cap / PERCENT_PER_CPU) / PACKETS_PER_KP for cap in grid]
        axes.plot(
            grid, rates_at, linestyle=_SHAPES[shape.name], color=INK, label=shape.name, linewidth=1
        )
    means = [rate.value / PACKETS_PER_KP for rate in rates]
    axes.errorbar(
        *(caps, means, halves), fmt="o", color=FIRST, capsize=3, label="measured, 95 %", zorder=3
    )
    if fit.held_out:
        held = [h.cap * PERCENT_PER_CPU for h in fit.held_out]
        measured = [h.measured_pps / PACKETS_PER_KP for h in fit.held_out]
        axes.plot(held, measured, "D", color=SECOND, label="held out", zorder=4)
    axes.axvline(fit.cap_threshold * PERCENT_PER_CPU, color=THIRD, label="cap threshold")
    _finish(axes, "cap (% of one CPU)", "throughput (kp/s)")
    axes.set_ylim(bottom=0)
    if log:
        axes.set_xscale("log")
        axes.set_xlim(left=0.8 * caps[0])
    else:
        axes.set_xlim(left=0)


def _drawn(shapes: Comparison) -> list[Shape]:
    usual = (shapes.hinge, shapes.logarithm)
    return [shape for shape in shapes.shapes if shape in usual or shape in shapes.possible]


def draw_residuals(axes: Axes, fit: Fit) -> None:
    """Draw estimates by Eq. 1 against measured samples, as Fig. 4 of the paper."""
    estimated = [r.estimated for r in fit.eq1.residuals]
    actual = [r.actual for r in fit.eq1.residuals]
    ends = [min(*estimated, *actual), max(*estimated, *actual)]
    axes.plot(ends, ends, color=INK, linewidth=1, label="unit slope: a perfect model")
    axes.plot(actual, estimated, "o", color=FIRST, markersize=4, alpha=0.6, label="samples")
    _finish(axes, "actual throughput (kp/s)", "estimated by Eq. 1 (kp/s)")


def draw_responses(axes: Axes, found: Responses) -> None:
    """Draw each measured step response, and the fitted lag and delay with their band."""
    for number, step in enumerate(found.steps):
        line = [(0.0, 0.0), *((float(point.samples), point.share) for point in step.points)]
        label = "measured, each change" if number == 0 else "_"
        axes.plot(*_columns(line), color=FIRST, linewidth=1, alpha=0.7, label=label)
    grid = range(found.longest + 1)
    ways = [found.way(at) for at in grid]
    low, high = [way.low for way in ways], [way.high for way in ways]
    axes.fill_between(grid, low, high, color=SECOND, alpha=0.3, linewidth=0, label="its 95 % band")
    fitted = [way.value for way in ways]
    axes.plot(
        *(grid, fitted, "o-"),
        color=SECOND,
        linewidth=2.5,
        markersize=5,
        label="fitted lag and delay",
    )
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(axes, "samples since the change of cap", "share of the way (1: level after)")


def draw_poles(axes: Axes, design: Design) -> None:
    """Draw the poles and zeros of both loops, and the unit circle of stability."""
    turn = [2 * math.pi * n / SMOOTH for n in range(SMOOTH + 1)]
    axes.plot([math.cos(t) for t in turn], [math.sin(t) for t in turn], color=INK, linewidth=1)
    for loop, colour, name in (
        (design.pi, FIRST, "PI"),
        (design.dead_beat, SECOND, "dead-beat"),
    ):
        at = [(pole.re, pole.im) for pole in loop.poles]
        axes.plot(*_columns(at), "x", color=colour, markersize=9, label=f"{name}: poles")
        if loop.zero is not None:
            axes.plot(
                *([loop.zero], [0.0], "o"),
                color=colour,
                markersize=9,
                fillstyle="none",
                label=f"{name}: zero",
            )
    axes.set_aspect("equal", adjustable="datalim")
    _finish(axes, "real part", "imaginary part")


def draw_step(axes: Axes, design: Design) -> None:
    """Draw the answer of both loops to a step of the setpoint, on Eq. 1."""
    for loop, colour, name in (
        (design.pi, FIRST, "PI"),
        (design.dead_beat, SECOND, "dead-beat"),
    ):
        times = [n * design.period_s for n in range(len(loop.step))]
        axes.step(times, loop.step, where="post", color=colour, marker="o", label=name)
    axes.axhspan(0.98, 1.02, color=LINE, label="within 2 %", zorder=0)
    _finish(axes, "seconds after the step", "throughput (share of the setpoint)")


def draw_lines(
    axes: Axes, x: Sequence[float], lines: dict[str, Sequence[float]], names: tuple[str, str]
) -> None:
    """Draw one line per series over a common axis; notebooks compare laws with it."""
    for (label, values), marker in zip(lines.items(), "osD^vP*X", strict=False):
        axes.plot(x, values, marker=marker, markersize=5, label=label)
    _finish(axes, *names)


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _finish(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    # Above the drawing: inside, it would cover lines and grid.
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,  # three would not fit on a phone
        borderaxespad=0.3,
        columnspacing=1.0,
        handlelength=1.6,
        frameon=False,
    )

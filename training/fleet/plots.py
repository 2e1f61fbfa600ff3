"""Draw the curves of a fleet; drawings are not escaped, so they contain no host names."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from models.logcap import PACKETS_PER_KP, PERCENT_PER_CPU
from training.fit.fit import Fit
from training.report.plots import FIFTH, FIRST, FOURTH, LINE, SECOND, SIXTH, THIRD

COLOURS = (FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH)
LINES = ("-", "--", ":")
MARGIN = 1.05
SMALL = (3.2, 2.5)
"""Inches of a small drawing."""


def style_of(number: int) -> tuple[int, int]:
    """Return the colour and the line of a host, as numbers; from 18 hosts on they repeat."""
    return number % len(COLOURS), number // len(COLOURS) % len(LINES)


def draw_all(axes: Axes, fits: Sequence[Fit]) -> None:
    """Draw every host's curve over the others."""
    for number, fit in enumerate(fits):
        colour, line = style_of(number)
        axes.plot(*_curve(fit), LINES[line], color=COLOURS[colour], linewidth=1.5)
    _finish(axes, fits)


def draw_one(axes: Axes, fits: Sequence[Fit], number: int) -> None:
    """Draw one host's curve with the intervals of its caps, and the others faintly behind."""
    for other in (fit for place, fit in enumerate(fits) if place != number):
        axes.plot(*_curve(other), color=LINE, linewidth=1)
    colour, line = style_of(number)
    axes.plot(*_curve(fits[number]), LINES[line], color=COLOURS[colour], linewidth=2)
    points = fits[number].points
    rates = [point.throughput_pps for point in points]
    axes.errorbar(
        [point.cap * PERCENT_PER_CPU for point in points],
        [rate.value / PACKETS_PER_KP for rate in rates],
        [
            [(rate.value - rate.low) / PACKETS_PER_KP for rate in rates],
            [(rate.high - rate.value) / PACKETS_PER_KP for rate in rates],
        ],
        fmt="o",
        color=COLOURS[colour],
        markersize=3,
        zorder=3,
    )
    _finish(axes, fits)


def _curve(fit: Fit) -> tuple[list[float], list[float]]:
    caps = [point.cap * PERCENT_PER_CPU for point in fit.points]
    return [0.0, *caps], [0.0, *(point.smoothed_pps / PACKETS_PER_KP for point in fit.points)]


def _finish(axes: Axes, fits: Sequence[Fit]) -> None:
    """Give all drawings of a fleet the same axes, so that they can be compared."""
    axes.set_xlabel("cap (% of one CPU)")
    axes.set_ylabel("throughput (kp/s)")
    axes.set_xlim(0, MARGIN * max(fit.points[-1].cap for fit in fits) * PERCENT_PER_CPU)
    axes.set_ylim(0, MARGIN * max(_highest(fit) for fit in fits) / PACKETS_PER_KP)
    axes.grid(visible=True)
    axes.set_axisbelow(True)


def _highest(fit: Fit) -> float:
    return max(max(point.throughput_pps.high, point.smoothed_pps) for point in fit.points)

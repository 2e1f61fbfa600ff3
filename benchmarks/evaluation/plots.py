"""Plots of an experiment's results as SVG text, to be put into a page."""

import io
from collections.abc import Sequence
from typing import Final

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.evaluation.result import Result

COLOURS: Final = ("#8a8f98", "#c9a227", "#5b7083", "#a0522d", "#2f7d4f", "#6b4c9a", "#c0504d")
PAPER_COLOUR: Final = "#000000"
BAR_SPACE: Final = 0.8
"""Of the distance between two points, for the bars of all ways."""


def svg(results: Sequence[Result]) -> str:
    """Return a plot with a row for each metric: a bar for each way at each point."""
    metrics = list(dict.fromkeys(one.metric for one in results))
    ways = list(dict.fromkeys(one.way for one in results))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "evaluation", "font.size": 9}):
        figure, rows = plt.subplots(
            len(metrics), 1, figsize=(10, 2.4 * len(metrics) + 0.6), squeeze=False
        )
        for metric, (axes,) in zip(metrics, rows, strict=True):
            _draw(axes, [one for one in results if one.metric == metric], ways)
            axes.set_ylabel(metric)
        rows[0][0].legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
        figure.tight_layout()
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def _draw(axes: Axes, results: Sequence[Result], ways: Sequence[str]) -> None:
    points = list(dict.fromkeys(one.experiment for one in results))
    width = BAR_SPACE / max(1, len(ways))
    labelled = set[str]()
    for one in results:
        number = ways.index(one.way)
        at = points.index(one.experiment) + (number - (len(ways) - 1) / 2) * width
        label = None if one.way in labelled else one.way
        axes.bar(at, one.value, width, color=COLOURS[number % len(COLOURS)], label=label)
        labelled.add(one.way)
        if one.low is not None and one.high is not None:
            axes.vlines(at, one.low, one.high, color="black", linewidth=0.8)
        if one.paper_value is not None:
            axes.hlines(one.paper_value, at - width / 2, at + width / 2, color=PAPER_COLOUR)
    axes.set_xticks(range(len(points)), [_short(point) for point in points])
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _short(experiment: str) -> str:
    """Return the point of an experiment, in lines."""
    point = experiment.partition(": ")[2] or experiment
    return point.replace(", ", "\n")

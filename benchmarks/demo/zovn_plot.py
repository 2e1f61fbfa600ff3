"""The picture of the demo of zovn: completion times of queries, lossy and lossless."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from lab.traffic.completion import rank

COLOURS = {"lossless": "#1b7837", "lossy": "#b35806"}


class Bar(NamedTuple):
    """The queries of one mode at one point."""

    mode: str
    queue: int
    size_bytes: int
    times_ms: Sequence[float]

    @property
    def point(self) -> str:
        """Where it is."""
        return f"{self.size_bytes // 1000} KB,\nqueue {self.queue}"


def plot(bars: Sequence[Bar], workers: int, path: Path) -> None:
    """Draw means with their 99th percentiles, and the share of queries that were complete in time.

    Args:
        bars: all modes at all points.
        workers: their number.
        path: of the picture.
    """
    figure, (means, shares) = plt.subplots(1, 2, figsize=(12, 5))
    complete = [bar for bar in bars if bar.times_ms]
    _draw_means(means, complete)
    _draw_shares(shares, complete)
    figure.suptitle(
        f"{workers} workers answer one aggregator through a port of 1 Gb/s,"
        " TCP without tail loss probes"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_means(axes: Axes, bars: Sequence[Bar]) -> None:
    places = list(dict.fromkeys(bar.point for bar in bars))
    for number, (mode, colour) in enumerate(COLOURS.items()):
        mine = [bar for bar in bars if bar.mode == mode]
        at = [places.index(bar.point) + 0.4 * (number - 0.5) for bar in mine]
        heights = [sum(bar.times_ms) / len(bar.times_ms) for bar in mine]
        axes.bar(at, heights, 0.38, color=colour, label=f"{mode}, mean")
        tops = [rank(sorted(bar.times_ms), 0.99) for bar in mine]
        axes.plot(at, tops, "_", color="black", label="99th percentile" if number else None)
    axes.set_xticks(range(len(places)), places)
    axes.set_yscale("log")
    axes.set_ylim(1, 1_000)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylabel("ms until a query is complete")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=8, loc="upper left", ncols=3)


def _draw_shares(axes: Axes, bars: Sequence[Bar]) -> None:
    smallest = min((bar.size_bytes for bar in bars), default=0)
    for bar in bars:
        if bar.size_bytes == smallest:
            times = sorted(bar.times_ms)
            shares = [(number + 1) / len(times) for number in range(len(times))]
            style = "-" if bar.queue == min(other.queue for other in bars) else "--"
            words = "no queue limit, beside" if bar.mode == "lossless" else "queue of"
            label = f"{bar.mode}, {words} {bar.queue}"
            axes.step(times, shares, style, color=COLOURS[bar.mode], label=label, where="post")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"ms, answers of {smallest // 1000} KB")
    axes.set_ylabel("share of queries that are complete")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")

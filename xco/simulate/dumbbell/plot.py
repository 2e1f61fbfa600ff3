"""Plots runs of the dumbbell: the tagged sender's goodput, and the port's queue."""

from collections.abc import Sequence
from pathlib import Path

from xco.figures import figure_class, save
from xco.simulate.dumbbell.run import DumbbellResult


def plot_dumbbells(results: Sequence[DumbbellResult], path: Path) -> None:
    """Plot the tagged sender's goodput and the port's queue over time, one line per run.

    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    figure = figure_class()(figsize=(9, 6), layout="constrained")
    rate, queue = figure.subplots(2, sharex=True, height_ratios=[2, 1])
    for result in results:
        rate.plot(result.seconds, result.tagged_series_mbps, label=result.name)
        queue.plot(result.seconds, result.queue_packets)
    rate.set_title(results[0].title)
    rate.set_ylabel("tagged, Mb/s of payload")
    queue.set_ylabel("queue, packets")
    queue.set_xlabel("seconds")
    for axes in (rate, queue):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    rate.legend()
    save(figure, path)

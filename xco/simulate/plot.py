"""Plots a run, or loss against the number of hosts as in figure 27 of the paper."""

from collections.abc import Sequence
from pathlib import Path

from xco.figures import figure_class, save
from xco.simulate.results import Result


def plot_runs(results: Sequence[Result], path: Path) -> None:
    """Plot delivered and dropped bytes over time, one pair of lines per run.

    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    figure = figure_class()(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for result in results:
        series, name = result.series, result.strategy
        (line,) = axes.plot(series.seconds, _gigabits(series.delivered_bps), label=name)
        axes.plot(series.seconds, _gigabits(series.dropped_bps), ":", color=line.get_color())
    axes.set_title(f"{results[0].hosts} hosts, {results[0].flows} flows (simulated)")
    axes.set_xlabel("seconds")
    axes.set_ylabel("delivered, Gb/s (dotted: dropped)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path)


def plot_losses(results: Sequence[Result], path: Path) -> None:
    """Plot end-to-end loss against the number of hosts, one line per strategy (paper, figure 27).

    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    figure = figure_class()(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for strategy in dict.fromkeys(result.strategy for result in results):
        of_it = [result for result in results if result.strategy == strategy]
        losses = [result.loss * 100 for result in of_it]
        axes.plot([result.hosts for result in of_it], losses, "o-", label=strategy)
    axes.set_title("Half of the hosts send to the other half (simulated)")
    axes.set_xlabel("hosts")
    axes.set_ylabel("frames lost, %")
    axes.set_ylim(0, 100)
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path)


def _gigabits(rates: Sequence[float]) -> list[float]:
    return [rate / 1e9 for rate in rates]

"""Plots completion times as in figure 12 of the paper: a panel for each background."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError
from zovn.simulate.results import Result
from zovn.simulate.scenario import MODES
from zovn.simulate.table import background_of, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_results(results: Sequence[Result], path: Path) -> None:
    """Plot means, with the 5 and 95 percentiles as bars.

    Raises:
        ConfigError: matplotlib is not installed, or the file cannot be written.
    """
    panels = list(dict.fromkeys(map(background_of, results)))
    figure = _figure_class()(figsize=(4 * len(panels), 4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _plot_panel(axes, [one for one in results if background_of(one) == panel])
        axes.set_title(f"background: {panel}")
    _save(figure, path)


def _plot_panel(axes: Any, results: Sequence[Result]) -> None:
    rows = rows_of(results)
    for at, mode in enumerate(MODES):
        found = [(x, one) for x, row in enumerate(rows) for one in row if one.mode == mode]
        shown = [(x + 0.2 * at, one.times) for x, one in found if one.times is not None]
        means = [times.mean_ms for _, times in shown]
        bars = [
            [max(0, times.mean_ms - times.p5_ms) for _, times in shown],
            [max(0, times.p95_ms - times.mean_ms) for _, times in shown],
        ]
        axes.bar([x for x, _ in shown], means, width=0.2, yerr=bars, capsize=2, label=mode)
    axes.set_xticks([x + 0.3 for x in range(len(rows))], [row[0].tcp for row in rows])
    axes.set_yscale("log")
    axes.set_ylabel("query completion time, ms (simulated)")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()


def _figure_class() -> "type[Figure]":
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  only plots need it
    except ImportError as error:
        raise ConfigError(
            "--plot", "matplotlib is not installed", "pip install matplotlib"
        ) from error
    return Figure


def _save(figure: "Figure", path: Path) -> None:
    try:
        figure.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        fix = "name a file ending in .png or .svg in a folder that can be written"
        raise ConfigError("--plot", f"{path}: {error}", fix) from error

"""The picture of the demo of XCo: what each sender gets, the wire, and what the port drops."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.demo.xco_watch import SAMPLE_S, Recording

TCP = ("#00441b", "#1b7837", "#5aae61", "#a6dba0", "#d9f0d3")
UDP = ("#b35806", "#fdb863", "#e08214", "#fee0b6", "#7f3b08")


def plot(recording: Recording, path: Path) -> None:
    """Draw goodput by sender, stacked, under the wire's rate; below it the dropped packets."""
    figure, (rates, drops) = plt.subplots(2, 1, figsize=(11, 7), sharex=True, height_ratios=(3, 1))
    _draw_rates(rates, recording)
    _draw_drops(drops, recording)
    for axes in (rates, drops):
        axes.grid(alpha=0.3)
        for phase in recording.phases:
            axes.axvline(phase.begins_s, color="grey", linewidth=0.8, linestyle=":")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_rates(axes: Axes, recording: Recording) -> None:
    link, samples = recording.link_bps / 1e6, recording.samples
    times = [sample.at_s for sample in samples]
    for rows, colours, kind in (
        ([sample.udp_bps for sample in samples], UDP, "UDP"),
        ([sample.tcp_bps for sample in samples], TCP, "TCP"),
    ):
        base = [sum(s.udp_bps) / 1e6 if kind == "TCP" else 0.0 for s in samples]
        _stack(axes, times, rows, base, colours, kind)
    axes.plot(
        times, [s.wire_bps / 1e6 for s in samples], color="black", linewidth=1, label="on the wire"
    )
    axes.axhline(link, color="grey", linewidth=0.8)
    axes.set_ylim(0, 1.22 * link)
    axes.set_ylabel("Mb/s that applications get")
    axes.set_title("Five hosts send to one through a port of 32 KB")
    for number, phase in enumerate(recording.phases):
        height = (1.16 - 0.06 * (number % 3)) * link
        axes.text(phase.begins_s + 0.2, height, phase.words, fontsize=8)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)


def _stack(  # noqa: PLR0917  one band's worth of plotting
    axes: Axes,
    times: Sequence[float],
    rows: Sequence[Sequence[float]],
    base: list[float],
    colours: Sequence[str],
    kind: str,
) -> None:
    """Draw one kind of traffic, a band for each of its senders."""
    for index, flow in enumerate(zip(*rows, strict=True)):
        if max(flow) <= 0:
            continue
        top = [low + value / 1e6 for low, value in zip(base, flow, strict=True)]
        axes.fill_between(
            times, base, top, color=colours[index], step="pre", label=f"h{index + 1}, {kind}"
        )
        base = top


def _draw_drops(axes: Axes, recording: Recording) -> None:
    times = [sample.at_s for sample in recording.samples]
    axes.fill_between(
        times, [s.drops / SAMPLE_S for s in recording.samples], color="#762a83", step="pre"
    )
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("packets dropped/s")
    axes.set_xlabel("seconds")

"""The picture of the demo of SDN-GCC: goodput by sender over time, a panel for each way."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.xco.phases import FULL_FRAME, Recording
from benchmarks.xco.phases_judged import TCP_PAYLOAD

TAGGED = "#1b7837"
OTHERS = ("#b35806", "#e08214", "#fdb863", "#fee0b6")
SHORTEST_S = 0.05
"""Of samples shown: a rate over less is of few packets."""


def plot(panels: Mapping[str, Recording], port_bps: int, path: Path) -> None:
    """Draw the goodput of each sender, in Mb/s, under the titles of the panels.

    Args:
        panels: recordings by title.
        port_bps: rate of the port on the wire, in bits/s.
        path: of the picture.
    """
    height = 1.0 + 2.2 * len(panels)
    figure, rows = plt.subplots(
        len(panels), 1, figsize=(10, height), sharex=True, sharey=True, squeeze=False
    )
    for axes, (title, recording) in zip(rows[:, 0], panels.items(), strict=True):
        _draw(axes, recording)
        _draw_ideal(axes, recording, port_bps / 1e6 * TCP_PAYLOAD / FULL_FRAME)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylabel("Mb/s")
        axes.grid(alpha=0.3)
    rows[0, 0].set_ylim(0, 1.1 * port_bps / 1e6)
    rows[0, 0].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    rows[-1, 0].set_xlabel("seconds")
    figure.suptitle("A TCP flow beside UDP floods to one host: what applications get")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(axes: Axes, recording: Recording) -> None:
    began = recording.samples[0].at_s
    steps = [(a, b) for a, b in pairwise(recording.samples) if b.at_s - a.at_s > SHORTEST_S]
    times = [b.at_s - began for _, b in steps]
    senders = len(recording.samples[0].bytes)
    for index in (*range(1, senders), 0):
        rates = [(b.bytes[index] - a.bytes[index]) * 8e-6 / (b.at_s - a.at_s) for a, b in steps]
        label = f"other {index}, UDP" if index else "tagged, TCP"
        colour = OTHERS[(index - 1) % len(OTHERS)] if index else TAGGED
        axes.plot(times, rates, color=colour, linewidth=1.2 if index else 2.0, label=label)


def _draw_ideal(axes: Axes, recording: Recording, payload_mbps: float) -> None:
    """Draw what an equal share carries for the tagged flow."""
    began, senders = recording.samples[0].at_s, len(recording.samples[0].bytes)
    edges = [recording.samples[edge].at_s - began for edge in recording.edges]
    shares = (0.0, payload_mbps / senders, payload_mbps)
    axes.stairs(shares, edges, baseline=None, color="grey", linestyle="--", label="tagged, ideal")
    for edge in edges[1:-1]:
        axes.axvline(edge, color="grey", linewidth=0.8, linestyle=":")

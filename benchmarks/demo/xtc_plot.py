"""The picture of the demo: throughput against setpoint, and the caps behind it."""

from math import nan
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.rig import Recording

COLOURS = ("#c9a227", "#5b7083", "#a0522d")


def plot(
    recording: Recording, routers: list[str], path: Path, plant: str, marks: tuple[float, float]
) -> None:
    """Draw every router's throughput and setpoint above, and its cap below, on a log scale."""
    figure, (rates, caps) = plt.subplots(2, 1, figsize=(10, 7), sharex=True, height_ratios=(3, 2))
    origin = marks[0]
    for vr, colour in zip(routers, COLOURS, strict=False):
        _draw(rates, caps, recording, vr, colour, origin)
    for axes in (rates, caps):
        axes.axvline(0, color="grey", linewidth=0.8, linestyle=":")
        axes.axvline(marks[1] - origin, color="grey", linewidth=0.8, linestyle=":")
        axes.grid(alpha=0.3)
    rates.set_title(f"Three flooded routers, {plant} packets: held, then retuned and disturbed")
    rates.set_ylabel("throughput, kp/s (dashed: setpoint)")
    rates.legend(loc="upper right")
    caps.set_ylabel("cap, % of one CPU")
    caps.set_yscale("log")
    caps.set_xlabel("seconds since the routers were activated")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw(  # noqa: PLR0917  one line's worth of plotting
    rates: Axes, caps: Axes, recording: Recording, vr: str, colour: str, origin: float
) -> None:
    reports = recording.of(vr)
    times = [at - origin for at, _ in reports]
    rates.plot(
        times,
        [(r.throughput_pps or 0.0) / 1e3 for _, r in reports],
        color=colour,
        label=vr,
    )
    setpoints = [nan if r.setpoint_pps is None else r.setpoint_pps / 1e3 for _, r in reports]
    rates.step(times, setpoints, color=colour, linestyle="--", linewidth=1, where="post")
    shown = [nan if r.cap is None else r.cap * 100 for _, r in reports]
    caps.step(times, shown, color=colour, where="post")

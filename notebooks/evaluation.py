# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: title,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: -jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% Evaluation: the model and the laws on real packets, from the raw values of one run [markdown]
# # Evaluation
#
# [The evaluation](../docs/evaluation.md) repeats the paper's experiments on real packets of the
# lab. This notebook tells its story of the model and of the laws, from the raw values of the run
# that the document shows. Rates are in the paper's kp/s: one factor scales all of them.

# %%
# ruff: noqa: ERA001  (the header of this file is what Jupyter wants to know, not code)
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

sys.path.append("..")  # benchmarks are part of the repository, and of no package

from benchmarks.evaluation.archive import load
from benchmarks.evaluation.raw import machines
from benchmarks.evaluation.result import Result
from benchmarks.evaluation.xtc import actuators, hold
from benchmarks.evaluation.xtc.stage import DEAD_BEAT, FIXED, OURS, OURS_BURST, OURS_CAP, PI

COLOURS = {FIXED: "#6a737d", PI: "#b3470b", DEAD_BEAT: "#7a3e9d", OURS: "#0b5cad"}
COLOURS |= {OURS_BURST: "#2f7d4f", OURS_CAP: "#8a6d00"}
archive = load(Path(os.environ.get("XTC_EVALUATION", "../docs/measured/evaluation.jsonl")))
calibration = archive.calibration
results = archive.results()
for machine in machines(archive.raws):
    print(machine.words)
print(f"{len(archive.raws)} runs; {calibration.scale:.3f} packets/s here are one of the paper's")

# %% The model [markdown]
# ## The model: throughput against cap
#
# The paper's Table 1 is a map of caps, and Eq. 1 a straight line against the logarithm of the cap,
# fitted at caps up to 60 %. Both were measured here before any experiment.
#
# **Question:** the line stands for the whole range in the paper's laws. Where is it wrong?

# %%
caps, rates = np.array(calibration.cap_map).T
measured = rates / calibration.scale / 1e3
eq = calibration.equation
steady = eq.b / (1 - eq.a)
offset = eq.mean_kpps - steady * eq.mean_log_cap


def by_equation(percent: np.ndarray) -> np.ndarray:
    """Return what Eq. 1 settles at, in the paper's kp/s."""
    own_kpps = offset + steady * np.log10(percent)
    return own_kpps / calibration.scale


figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(caps, measured, "o", color=COLOURS[OURS], label="measured")
axes.plot(caps, by_equation(caps), color=COLOURS[PI], label="Eq. 1, fitted here")
axes.set(xscale="log", xlabel="cap (% of one CPU)", ylabel="throughput (kp/s of the paper)")
axes.set_xticks(caps, [f"{cap:g}" for cap in caps])
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()
for cap, rate, line in zip(caps, measured, by_equation(caps), strict=True):
    print(f"cap {cap:5.1f} %: {rate:6.1f} kp/s, by Eq. 1 {line:6.1f}")

# %% What the logarithm costs [markdown]
# A router in a container forwards in proportion to its cap: twice the cap, twice the packets. A
# line against the logarithm can be right at two caps only, and is negative at the smallest. The
# paper's laws do not need it to be right, only its slope; where the true slope is smaller than the
# line's, they are slow, and where it is larger, they swing. `xtc` uses a line through the origin
# instead, which it learns while it runs.

# %% The laws [markdown]
# ## The laws: what was promised, and what was forwarded
#
# Each point is the mean of five runs, with its 95 % interval. 0 is the setpoint; the grey band is
# the dead zone of the paper's laws.


# %%
def errors(traffic: str, way: str) -> tuple[Sequence[float], Sequence[Result]]:
    """Return setpoints and what was achieved at them."""
    found = [
        (hold.POINTS[one.experiment.partition(": ")[2]].setpoint, one)
        for one in results["xtc-hold"]
        if one.metric == hold.ACHIEVED and one.way == way
    ]
    points = {hold.Point(traffic, setpoint).words for setpoint in hold.SETPOINTS[traffic]}
    kept = [(s, one) for s, one in found if one.experiment.partition(": ")[2] in points]
    return [s for s, _ in kept], [one for _, one in kept]


def draw(axes: Axes, traffic: str, ways: Sequence[str]) -> None:
    """Draw the error of each way in percent of the setpoint."""
    axes.axhspan(-10, 10, color="#e3e7eb")
    for number, way in enumerate(ways):
        setpoints, found = errors(traffic, way)
        middle = [100 * (one.value / s - 1) for s, one in zip(setpoints, found, strict=True)]
        half = [50 * (one.high - one.low) / s for s, one in zip(setpoints, found, strict=True)]
        at = np.array(setpoints) * (0.94 + 0.03 * number)
        axes.errorbar(at, middle, half, fmt="o", capsize=3, color=COLOURS[way], label=way)
    axes.set(xscale="log", xlabel="setpoint (kp/s of the paper)", title=traffic)
    axes.set_xticks(hold.SETPOINTS[traffic], [f"{s:g}" for s in hold.SETPOINTS[traffic]])
    axes.minorticks_off()


# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
draw(left, hold.UDP, (FIXED, PI, DEAD_BEAT, OURS))
draw(right, hold.TCP, (FIXED, PI, DEAD_BEAT, OURS, OURS_BURST))
left.set(ylabel="error of the mean (%)")
right.legend(frameon=False, fontsize="small")
plt.show()

# %% A thief [markdown]
# ## A thief of CPU
#
# Another process takes 15 % of the CPU that the fixed cap of the setpoint gives. A cap that was
# right before is too small now; a loop sees the throughput fall and makes up for it.

# %%
for setpoint in hold.SETPOINTS[hold.THIEF]:
    point = f"xtc-hold: {hold.Point(hold.THIEF, setpoint).words}"
    for one in results["xtc-hold"]:
        if one.experiment == point and one.metric == hold.ACHIEVED:
            half = (one.high - one.low) / 2
            print(f"{setpoint:g} kp/s, {one.way:27} {one.value:5.1f} ± {half:.1f} kp/s")

# %% One TCP flow [markdown]
# ## One TCP flow, and the burst
#
# The shield drops what exceeds setpoint and burst, so a flow with a round trip far below a
# millisecond sends until the burst is used up, loses a whole window, and waits for its
# retransmission timer: 0.2 s at least. The default burst is 0.2 s of the setpoint: what the flow
# could have sent in a longer pause is lost. A burst of 0.4 s makes up for a longer pause.
#
# **Question:** which of the three ways below makes the flow wait instead, and what does it cost?

# %%
point = f"xtc-hold: {hold.Point(hold.TCP, 20).words}"
for way in (OURS, OURS_BURST, OURS_CAP):
    mine = {
        one.metric: one for one in results["xtc-hold"] if (one.experiment, one.way) == (point, way)
    }
    print(
        f"{way:22} {mine[hold.ACHIEVED].value:5.1f} of 20 kp/s, "
        f"round trip {mine[hold.RTT].value:6.2f} ms, probe loss {mine[hold.LOSS].value:5.1f} %"
    )

# %% Waiting [markdown]
# ## Waiting: round trips by actuator
#
# A router that used up its quota stands still until the next period. So the period sets the
# longest wait of a packet; the paper's credit scheduler has slices of 30 ms, and 55 ms at 20 kp/s.
# With a shield the cap has room, and packets seldom wait.

# %%
figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
trips = [one for one in results["xtc-actuators"] if one.metric == actuators.RTT]
for number, one in enumerate(trips):
    axes.barh(number, one.value, color=COLOURS[OURS if one.way.startswith("ours") else FIXED])
    axes.text(one.value, number, f" {one.value:.2f} ms", va="center")
axes.axvline(actuators.PAPER_RTT_MS, linestyle=":", color="black")
traffic = [one.experiment.partition(": ")[2].partition(",")[0] for one in trips]
names = [f"{one.way}, {sent}" for one, sent in zip(trips, traffic, strict=True)]
axes.set_yticks(range(len(trips)), names)
axes.set(xlabel="mean round trip of a probe (ms); dotted: the paper's")
axes.margins(x=0.15)
plt.show()

# %% Xen [markdown]
# ## The same on the paper's scheduler
#
# Real Xen with its credit scheduler, all of it emulated: rates are a thousandth of those of a real
# machine, and noisy. The laws are the same programs as above.
#
# **Question:** is the order of the laws the same as in the lab?

# %%
for one in results["xen-hold"]:
    point = one.experiment.partition(": ")[2]
    if one.metric == hold.ERROR:
        half = (one.high - one.low) / 2
        print(f"{point:45} {one.way:27} error {one.value:5.1f} ± {half:4.1f} %")

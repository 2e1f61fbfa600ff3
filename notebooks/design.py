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

# %% Design: from a host's model to the gains of its loop, and how far to trust them [markdown]
# # Design
#
# The paper's law (Eq. 2) moves the logarithm of the cap by what the error says:
#
# $$u(k) = u(k-1) + (K_p + K_i)\,e(k) - K_p\,e(k-1).$$
#
# Together with Eq. 1 it makes a loop with two poles. Where they lie decides how fast the loop
# settles and whether it swings; pole placement chooses them, and the gains follow.

# %%
# ruff: noqa: ERA001  (the header of this file is what Jupyter wants to know, not code)
import cmath
import os
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from models import paper_host
from training.design.gains import design, gains_of, loop_of, placed, poles_of
from training.design.host_model import b_of, lag_of
from training.fit.eq1 import log_percent
from training.fit.fit import fit
from training.recording.recording import read_csv
from training.report.plots import draw_lines, draw_poles, draw_step
from training.report.summary import steepest

# %% The paper's gains [markdown]
# ## The paper's gains, to every digit that it prints
#
# The paper says that its gains lead "to a small settling time"; not which. They are those of 5 s
# and an overshoot of 8 %, if radius and angle of the poles are rounded to three decimals on the
# way: 0.449 and 0.995.

# %%
eq1 = paper_host().log_model
PRINTED = ((-1.747e-3, 11.311e-3), (1.452e-3, 14.419e-3))
found = design(eq1.a, eq1.b, settling_s=5.0, overshoot=0.08)
print(f"{'':10}{'Kp, 1e-3':>10}{'Ki, 1e-3':>10}    printed")
for name, loop, printed in (
    ("PI", found.pi, "-1.747 and 11.311"),
    ("dead-beat", found.dead_beat, "1.452 and 14.419"),
):
    print(f"{name:10}{loop.kp * 1e3:10.3f}{loop.ki * 1e3:10.3f}    {printed}")

# %% A second opinion [markdown]
# A second opinion: python-control places the same poles by Ackermann's formula, and finds the same
# gains. Below them, the answer of both loops to a step of the setpoint: PI overshoots by 8 %,
# dead-beat is there after one sample and stays. The dots are the printed gains, put through the
# printed Eq. 1 and Eq. 2 sample by sample, without any of this project's code. The dotted line is
# the settling time that the paper states.

# %%
poles = poles_of(5.0, 0.08)
radius, angle = cmath.polar(poles[0])
print(f"poles {poles[0]:.4f} and {poles[1]:.4f}: radius {radius:.3f}, angle {angle:.3f}")
print("Kp {:.6e}, Ki {:.6e} by python-control".format(*placed(eq1.a, eq1.b, poles)))
print("Kp {:.6e}, Ki {:.6e} by Eq. 3".format(*gains_of(eq1.a, eq1.b, poles)))


# %%
def answer(a: float, b: float, kp: float, ki: float, count: int) -> list[float]:
    """Return what Eq. 1 answers to a step of the setpoint from 0 to 1, under Eq. 2."""
    y, u, before = [0.0], 0.0, 0.0
    while len(y) < count:
        error = 1 - y[-1]
        u += (kp + ki) * error - kp * before
        before = error
        y.append(a * y[-1] + b * u)
    return y


figure, axes = plt.subplots(layout="constrained")
draw_step(axes, found)
for kp, ki in PRINTED:
    axes.plot(answer(eq1.a, eq1.b, kp, ki, len(found.pi.step)), ".", color="black", zorder=3)
axes.axvline(10, linestyle=":", color="black")
plt.show()

# %% Where the paper disagrees with itself [markdown]
# ## Where the paper's words and its equations part
#
# - "A settling time of 10 seconds" (section 6, by Simulink). By Eq. 1 and Eq. 2 the loop stays
#   within 2 % from the fifth second on. A loop designed for 10 s would have other gains (it takes
#   11 s: the zero is not part of the specification).
# - "All poles in the origin" (section 7.2.1). With Kp = a/b and Ki = (1 - a)/b one pole is at 0 and
#   the other at a, where the zero cancels it; that makes F(z) = 1/z, as the paper says. Both poles
#   in the origin would give another Ki, overshoot by a, and settle a sample later.
#
# The figure shows the poles and zeros of the gains as printed. Within the circle a loop is stable;
# the nearer to its middle, the faster it settles. The squares are the roots of the denominator of
# Eq. 3 with the printed numbers.

# %%
ten = design(eq1.a, eq1.b, settling_s=10.0, overshoot=0.08).pi
origin = loop_of(eq1.a, eq1.b, gains_of(eq1.a, eq1.b, (0j, 0j)))
for name, loop in (
    ("PI as printed", found.pi),
    ("PI for 10 s", ten),
    ("dead-beat as printed", found.dead_beat),
    ("both poles at 0", origin),
):
    radii = " and ".join(f"{pole.radius:.3f}" for pole in loop.poles)
    print(
        f"{name:22} Kp {loop.kp:+.3e}  Ki {loop.ki:.3e}  settles in {loop.settling_s:g} s, "
        f"overshoot {loop.overshoot:.1%}, radii {radii}"
    )

# %%
figure, axes = plt.subplots(layout="constrained")
draw_poles(axes, found)
for kp, ki in PRINTED:
    roots = np.roots([1, (kp + ki) * eq1.b - (eq1.a + 1), eq1.a - kp * eq1.b])
    axes.plot(roots.real, roots.imag, "s", color="black", fillstyle="none", markersize=13)
plt.show()

# %% Margins [markdown]
# ## How wrong may the model be?
#
# A loop of one gain meets hosts of many: Table 1 is not one line in log(cap). Its local slope is
# 0.56 to 1.79 times the printed gain, so dead-beat, which bears 2.0 times, is near its end; PI
# bears 4.43 times. The figure shows what a wrong gain costs before it comes to that: over these
# slopes PI settles in 4 to 7 s, dead-beat in 1 to 17 s.

# %%
slopes = [
    (high - low) / 1e3 / (log_percent(to) - log_percent(cap)) / eq1.gain
    for (cap, low), (to, high) in pairwise(paper_host().curve.points)
]
print(f"local slope of Table 1: {min(slopes):.2f} to {max(slopes):.2f} times the printed gain")
for name, loop in (("PI", found.pi), ("dead-beat", found.dead_beat)):
    print(
        f"{name:10} bears {loop.largest_gain:.2f} times the gain, "
        f"phase margin {loop.phase_margin_deg:.1f} degrees"
    )

# %%
factors = (0.56, 0.8, 1.0, 1.2, 1.5, 1.79)
figure, axes = plt.subplots(layout="constrained")
lines = {
    name: [loop_of(eq1.a, factor * eq1.b, (loop.kp, loop.ki)).settling_s for factor in factors]
    for name, loop in (("PI", found.pi), ("dead-beat", found.dead_beat))
}
draw_lines(axes, factors, lines, ("gain of the host (times the model's)", "settles within 2 % (s)"))
plt.show()
for factor, pi, dead_beat in zip(factors, *lines.values(), strict=True):
    print(f"gain times {factor:4}: PI settles in {pi:g} s, dead-beat in {dead_beat:g} s")

# %% The lab [markdown]
# ## The same for the lab's router
#
# With the model of [identification.py](identification.py). Its lag is not told from 0, so that
# dead-beat is all integral. The curve of this router is a hinge, and somewhere it is steeper than
# dead-beat bears: there that law swings. The default law needs none of these gains: it goes
# through the curve.

# %%
recording = read_csv(Path(os.environ.get("XTC_CSV", "data/lab-user-space.csv")))
lab = fit(recording)
own = design(lag_of(lab), b_of(lab), period_s=recording.metadata.period_s)
for name, loop in (("PI", own.pi), ("dead-beat", own.dead_beat)):
    print(
        f"{name:10} Kp {loop.kp:+.3e}  Ki {loop.ki:.3e}  settles in {loop.settling_s:g} s, "
        f"bears {loop.largest_gain:.2f} times the gain, margin {loop.phase_margin_deg:.0f} degrees"
    )
print(f"the curve is up to {steepest(lab):.1f} times as steep as Eq. 1 says")

# %% Gains of another host [markdown]
# ## What if you use the paper's gains as they are?
#
# Gains are decades of cap per kp/s, so they belong to one host. The figure shows the answer to a
# step of the setpoint on Eq. 1 of this host: with its own PI gains, with the paper's, and with the
# paper's scaled by the ratio of the two steady gains b/(1 - a).
#
# Eq. 1 is a mean over the whole curve. Where the curve is steeper, a loop has that much more gain;
# a loop whose gain exceeds what it bears swings there, however well it looks in the figure.

# %%
ratio = b_of(lab) / (1 - lag_of(lab)) / eq1.gain
print(f"this host gains {ratio:.2f} times as much per decade of cap as the paper's")
print(f"where its curve is steepest: {ratio * steepest(lab):.2f} times")
print(f"the paper's PI gains bear {found.pi.largest_gain:.2f} times, dead-beat 2.00 times")

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for label, style, (kp, ki) in (
    ("own gains", "o-", (own.pi.kp, own.pi.ki)),
    ("the paper's gains", "s--", PRINTED[0]),
    ("the paper's gains, scaled", "^:", (PRINTED[0][0] / ratio, PRINTED[0][1] / ratio)),
):
    axes.plot(answer(lag_of(lab), b_of(lab), kp, ki, 15), style, label=label)
axes.axhspan(0.98, 1.02, color="#d0d7de", zorder=0)
axes.set(ylim=(-0.2, 2.2), xlabel="samples after the step", ylabel="share of the setpoint")
axes.legend(frameon=False)
plt.show()

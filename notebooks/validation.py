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

# %% Validation: the laws against the paper's tables and curve shapes, and on the lab [markdown]
# # Validation
#
# Does the loop do what the model says? First the paper's own experiments (section 7), simulated on
# the paper's host: Eq. 1's lag around the points of Table 1, whole-percent caps, one sample a
# second, from a cap of 1 % as the paper starts. Then real packets, on a router of the lab.

# %%
# ruff: noqa: ERA001  (the header of this file is what Jupyter wants to know, not code)
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from lab import requirements
from models import paper_host
from training.data import read_csv
from training.design import design
from training.expect import expected, fixed_cap, smallest_held
from training.fit import fit
from training.model import b_of, host_model, lag_of
from training.plots import draw_lines
from training.sites import lab_site
from training.validate import foretell, validate
from training.watch import Stop
from xtc.laws import law_named
from xtc.units import Seconds

LAWS = ("pi", "dead-beat", "dead-beat-min3", "default")
host = paper_host()

# %% The operating range [markdown]
# ## Operating range (Fig. 5a, 9, 13)
#
# The paper finds that PI does not work below 20 kp/s, dead-beat not below 15, and dead-beat with a
# minimum cap of 3 works down to about 10 (UDP). Here a setpoint counts as held when the mean is
# within the published dead zone, 10 %, or within 3.2 kp/s, which is a whole percent of cap. Below
# that, the published laws are stuck at cap 1 or at their minimum of 3: their rounded cap is fed
# back, and a small step rounds to none. The default law alternates between neighbouring caps within
# the second. Setpoints are 2 kp/s apart.

# %%
setpoints = [1e3 * kpps for kpps in range(2, 97, 2)]
runs = {law: expected(host, law_named(law, host), setpoints, start_cap=0.01) for law in LAWS}
said = {"pi": "20", "dead-beat": "15", "dead-beat-min3": "10", "default": "-"}
print(f"{'law':16}{'held from':>12}{'paper':>8}   kp/s")
for law, found in runs.items():
    lowest = smallest_held(found, share=0.1, least_pps=3.2e3)
    shown = "never" if lowest is None else f"{lowest / 1e3:g}"
    print(f"{law:16}{shown:>12}{said[law]:>8}")

# %%
figure, axes = plt.subplots(layout="constrained")
draw_lines(
    axes,
    [setpoint / 1e3 for setpoint in setpoints],
    {law: [run.mean_pps / 1e3 for run in found] for law, found in runs.items()},
    ("setpoint (kp/s)", "throughput (kp/s)"),
)
plt.show()

# %% Other packet rates [markdown]
# ## Other packet rates (Fig. 5a)
#
# The shape is the paper's: from 20 kp/s on, where PI works, throughput follows the setpoint up to
# what is sent, and stays there.

# %%
figure, axes = plt.subplots(layout="constrained")
lines = {}
for offered in (40e3, 60e3, 80e3, 100e3):
    found = expected(host, law_named("pi", host), setpoints, start_cap=0.01, offered=offered)
    lines[f"PI, {offered / 1e3:g} kp/s sent"] = [run.mean_pps / 1e3 for run in found]
names = ("setpoint (kp/s)", "throughput (kp/s)")
draw_lines(axes, [setpoint / 1e3 for setpoint in setpoints], lines, names)
plt.show()

# %% A disturbance [markdown]
# ## A process that takes 15 % of the CPU (Table 1, Fig. 6b)
#
# A fixed cap, looked up in Table 1, loses what is taken; less of it where the curve is flat. The
# loops make up for it, as far as whole percents and the dead zone of 10 % let them: the published
# laws end up to 10 % away, and a percent of cap, 2.7 kp/s here, is much of a small setpoint. At
# 16 kp/s PI is stuck, thief or not: it starts at cap 1.

# %%
rates = [rate for _, rate in host.curve.points]
laws = {law: law_named(law, host) for law in ("pi", "dead-beat-min3", "default")}
stolen = {
    name: expected(host, law, rates, stolen=0.15, start_cap=0.01) for name, law in laws.items()
}
print(f"{'setpoint':>8}{'fixed cap':>11}" + "".join(f"{name:>16}" for name in stolen))
for index, rate in enumerate(rates):
    means = "".join(f"{found[index].mean_pps / 1e3:16.1f}" for found in stolen.values())
    print(f"{rate / 1e3:8g}{fixed_cap(host, rate, 0.15) / 1e3:11.1f}{means}")

# %% What is not compared [markdown]
# ### What is not compared
#
# - Oscillation (Fig. 5b, 6a): the paper prints no scatter at a fixed cap that a simulation could
#   start from. `docs/figures.md` compares loops with fixed caps on real packets.
# - Round trips and losses (Fig. 7, 8), six routers that share Dom0 (Table 2, Fig. 15 to 18): no
#   part of a host's model.

# %% The lab [markdown]
# ## Real packets
#
# The model of the recorded sweep foretells what the default law does with a router of the lab. As
# root, on a machine that can hold a lab, the loop runs for real (15 periods of 0.5 s a setpoint);
# elsewhere only what is foretold is shown. On another machine than the recorded one, foretold and
# fact differ as much as the machines do; on any, by what else runs on its CPUs at the time.
# Foretold is without noise.

# %%
recording = read_csv(Path("data/lab-user-space.csv"))
swept = fit(recording)
gains = design(lag_of(swept), b_of(swept), period_s=recording.metadata.period_s)
model = host_model(swept, gains, recording.metadata)
missing = requirements.missing()
goals = [0.2 * model.curve.top, 0.6 * model.curve.top]

# %%
if missing:
    print(f"no lab here ({'; '.join(missing)}): foretold alone")
    pairs = [(goal, foretell(model, model, goal, samples=15, period=0.5), None) for goal in goals]
else:
    with (
        TemporaryDirectory() as state,
        Stop() as stop,
        lab_site("user-space", Seconds(0.5), Path(state), stop) as site,
    ):
        site.load.set_rate(model.curve.offered)
        found = validate(site, model, goals, hold=15, watcher=lambda *_: None)
    pairs = [(one.setpoint_pps, one.foretold, one.fact) for one in found]

# %%
for goal, foretold, fact in pairs:
    for name, outcome in (("foretold", foretold), ("fact", fact)):
        if outcome is not None:
            settled = "never" if outcome.settling_s is None else f"{outcome.settling_s:g} s"
            print(
                f"{goal / 1e3:6.1f} kp/s, {name:8}: cap {outcome.cap:.1%}, settled {settled}, "
                f"mean error {outcome.mean_error:+.1%}, RMSE {outcome.relative_rmse:.1%}"
            )

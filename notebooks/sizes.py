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

# %% Sizes: what packets of several sizes cost on several vCPUs, on simulated hosts [markdown]
# # Packet sizes
#
# **All hosts of this notebook are simulated.** Their truth is known, so that a fit can be compared
# with it; no figure here was measured. `xtc-train sweep --packet-size 64 --packet-size 1400` takes
# the same samples from a real router.
#
# A packet of s bytes costs c_packet + c_byte * s of CPU time. At the same binding cap, throughputs
# at two sizes are as the costs at the other one. That holds for any shape of the curve. Sizes are
# bytes of the Ethernet frame without its checksum.

# %%
# ruff: noqa: ERA001  (the header of this file is what Jupyter wants to know, not code)
from collections.abc import Callable
from itertools import count

import matplotlib.pyplot as plt
import numpy as np

from models import HostModel
from training.design.mix import parse_mix, predicted
from training.fit.cost import bend, in_words
from training.fit.fit import fit
from training.recording.recording import Metadata, Recording, Sample
from training.report.plots import draw_lines

Cost = Callable[[float], float]
OFFERED = 1e6
NOISE = 0.01
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.02, 1.1)

# %% The simulated hosts [markdown]
# ## The simulated hosts
#
# Each vCPU beyond the first makes all of them slower by 5 % (locks, caches). Samples have a noise
# of 1 %. The sweep is simple: every cap twice, steps between two caps, then three caps with each
# further size.


# %%
def straight(size: float) -> float:
    """Return the CPU seconds of a packet of so many bytes."""
    return 4e-6 + 2e-9 * size


def throughput(cap: float, size: float, vcpus: int, cost: Cost) -> float:
    """Return the packets/s at a cap in CPUs."""
    used = min(cap, vcpus)
    return min(OFFERED, used / (1 + 0.05 * max(used - 1, 0)) / cost(size))


# %%
def simulated(sizes: tuple[int, ...], vcpus: int = 1, cost: Cost = straight) -> Recording:
    """Return a sweep at the first size, with a few caps at each of the others."""
    random, at, visits = np.random.default_rng(0), count(1), count()
    caps = [share * vcpus for share in SHARES]
    plan = [("steady", cap, sizes[0], 6) for cap in [*caps, *caps]]
    plan += [("step", cap, sizes[0], 5) for _ in range(4) for cap in (caps[3], caps[6])]
    plan += [("load", caps[n], size, 8) for size in sizes[1:] for n in (4, 6, 7)]
    samples = []
    for phase, cap, size, length in plan:
        visit, rate = next(visits), throughput(cap, size, vcpus, cost)
        facts = {"offered_pps": OFFERED, "packet_bytes": size, "phase": phase, "visit": visit}
        facts |= {"cap": cap, "used": min(cap, vcpus), "binding": cap < vcpus}
        rates = rate * (1 + NOISE * random.standard_normal(length))
        samples += [Sample(at=next(at), throughput_pps=one, **facts) for one in rates]
    metadata = Metadata(host="simulated", offered_pps=OFFERED, packet_bytes=sizes[0])
    return Recording(metadata, tuple(samples))


# %% One, two and four vCPUs [markdown]
# ## One, two and four vCPUs
#
# With packets of 64 bytes. More vCPUs forward more, but not so many times as much.

# %%
fits = {vcpus: fit(simulated((64, 512, 1400), vcpus)) for vcpus in (1, 2, 4)}
for vcpus, found in fits.items():
    print(f"{vcpus} vCPUs: top {found.top_pps / 1e3:.0f} kp/s, threshold {found.cap_threshold:.0%}")

# %%
figure, axes = plt.subplots(layout="constrained")
for vcpus, found in fits.items():
    caps = [100 * point.cap for point in found.points]
    rates = [point.smoothed_pps / 1e3 for point in found.points]
    axes.plot(caps, rates, "o-", label=f"{vcpus} vCPUs")
axes.set(xlabel="cap (% of one CPU)", ylabel="throughput (kp/s)")
axes.legend()
plt.show()

# %% What packets cost [markdown]
# ## What packets cost, at three sizes
#
# The truth of one vCPU is 4 us a packet and 2 ns a byte. On several, the same ratio of the two
# comes out, while both are larger: what the vCPUs cost each other is CPU time, too. It grows with
# the cap, and the intervals count that.

# %%
for vcpus, found in fits.items():
    print(f"{vcpus} vCPUs: {in_words(found.cost)}")
    packet, byte = found.cost.per_packet_us.value, found.cost.per_byte_ns.value
    print(f"         a packet costs as much as {1e3 * packet / byte:.0f} bytes (truth: 2000)")

# %% What a mix does [markdown]
# ## What a mix does
#
# A mix costs what packets of its mean size do, since the cost is linear. `imix` is 7:4:1 of frames
# of 60, 590 and 1514 bytes without checksum. Fewer packets pass, but more bits.

# %%
found = fits[2]
host = HostModel(name="two", measured_curve=found.curve, cost=found.cost.cost, cap_ceiling=2.2)
mixes = {"64 bytes": "64:1", "half 64, half 1400": "64:0.5,1400:0.5", "imix": "imix"}
curves = {}
for name, text in mixes.items():
    mix = parse_mix(text)
    model, says = predicted(host, mix, [])
    truth = throughput(2.0, says.mean_bytes, 2, straight)
    curves[name] = model.curve
    print(
        f"{name:20} mean {says.mean_bytes:6.1f} bytes, top {says.top_pps / 1e3:.0f} kp/s "
        f"(truth {truth / 1e3:.0f}), {says.top_bps / 1e6:.0f} Mb/s"
    )

# %%
figure, axes = plt.subplots(layout="constrained")
caps = [cap for cap, _ in found.curve.points]
lines = {name: [c.throughput(cap) / 1e3 for cap in caps] for name, c in curves.items()}
names = ("cap (% of one CPU)", "throughput (kp/s)")
draw_lines(axes, [100 * cap for cap in caps], lines, names)
plt.show()

# %% Where the straight line fails [markdown]
# ## Where the straight line fails
#
# Here a frame above 1024 bytes takes a second buffer, which costs 2 us. With two sizes one cannot
# know that: two points always lie on a line. With five sizes the fit says so, and names the size
# that is farthest from the line. Predict nothing between sizes then: measure the sizes that count.


# %%
def stepped(size: float) -> float:
    """Return the CPU seconds of a packet where large ones take a second buffer."""
    return straight(size) + (2e-6 if size > 1024 else 0.0)


two = fit(simulated((64, 1400), cost=stepped)).cost
many = fit(simulated((64, 256, 512, 1000, 1100, 1400), cost=stepped)).cost
print(f"two sizes:  {in_words(two)}")
print(f"at 1000 bytes: {two.cost.of(1000) / stepped(1000) - 1:+.0%} of the truth")
print(f"six sizes:  {bend(many)}; by chance: {many.straight:.1g}")
figure, axes = plt.subplots(layout="constrained")
sizes = [one.packet_bytes for one in many.sizes]
axes.plot(sizes, [one.ratio.value for one in many.sizes], "o", label="as measured")
axes.plot(sizes, [one.line for one in many.sizes], label="straight line of six sizes")
axes.plot(sizes, [two.cost.of(s) / two.cost.of(64) for s in sizes], "--", label="of two sizes")
axes.set(xlabel="packet size (bytes)", ylabel="cost over that at 64 bytes")
axes.legend()
plt.show()

"""What the samples say of the emulator: whether they let a router and its loop be judged."""

import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from support.inconclusive import inconclusive
from xen.samples import Sample

STEADY: Final = 1.5
"""Packets for a second of a guest's CPU, third quartile to first: above, no cap means a rate."""
DISTURBED: Final = 0.15
"""Part of the time that the guests' CPU waited, below which a changing cost is not the emulator's:
a small cap makes packets dearer."""
STARVED: Final = 0.3
"""Part of the time in which an emulated CPU was to run, but waited for a real one."""

SWING: Final = (0.1, 1.2)
"""How far a cap may move from sample to sample, in logarithms: by itself, and for each part by
which the cost of a packet moves. A loop that follows a noisy emulator moves less, one that swings
moves far more.
"""


@contextmanager
def judging(aspect: str, samples: Sequence[Sample]) -> Iterator[None]:
    """Judge what rests on rates or times: what is wrong on an unsteady emulator tells nothing.

    Raises:
        AssertionError: something is wrong, and the emulator was steady.
        Inconclusive: something is wrong, and the emulator was not.
    """
    try:
        yield
    except AssertionError as error:
        reason = excuse(samples)
        if not reason:
            raise
        inconclusive(f"{aspect}: {reason} ({str(error).splitlines()[0]})")


def excuse(samples: Sequence[Sample]) -> str:
    """Return why samples tell nothing of the loop; "" if they tell."""
    routers = dict.fromkeys(sample["vr"] for sample in samples)
    reasons = [_starved(who, samples) for who in ("dom0", "guests")]
    reasons += [_unsteady(vr, [one for one in samples if one["vr"] == vr]) for vr in routers]
    return "; ".join(reason for reason in reasons if reason)


def _starved(who: str, samples: Sequence[Sample]) -> str:
    waited = _waited(who, samples)
    return f"the CPU of {who} waited for {waited:.0%} of its time" if waited > STARVED else ""


def _waited(who: str, samples: Sequence[Sample]) -> float:
    waits = [one[key] for one in samples if one.get(key := f"{who}_waited") is not None]
    return statistics.fmean(waits or [0.0])


def _unsteady(vr: str, samples: Sequence[Sample]) -> str:
    costs = [one["packets_per_cpu_s"] for one in samples if one.get("packets_per_cpu_s")]
    if len(costs) < 4 or _waited("guests", samples) <= DISTURBED:
        return ""
    low, _, high = statistics.quantiles(costs, n=4)
    if high <= STEADY * low:
        return ""
    return f"a second of {vr}'s CPU forwarded {low:.0f} to {high:.0f} packets (quartiles)"


def check_calm(samples: Sequence[Sample]) -> None:
    """Check that a held router's cap moves no more than the emulator makes it: on any emulator.

    Raises:
        AssertionError: the loop swings by itself.
    """
    own, part = SWING
    caps, variation = _moves(samples, "cap"), _moves(samples, "packets_per_cpu_s")
    assert caps <= own + part * variation, (
        f"the cap moves by {caps:.2f} a sample, the cost of a packet by {variation:.2f}: "
        f"{[one['cap'] for one in samples]}"
    )


def _moves(samples: Sequence[Sample], key: str) -> float:
    """Return the mean move from one sample that has a value to the next."""
    values = [float(one[key]) for one in samples if one.get(key)]
    return statistics.fmean([abs(math.log(b / a)) for a, b in pairwise(values)] or [0.0])

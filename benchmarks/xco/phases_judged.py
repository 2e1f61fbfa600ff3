"""Figures of the lab's three phases: the tagged flow's mean next to its ideal, and fairness."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.xco.phases import FULL_FRAME, Recording
from lab.traffic.counts import FlowsSent
from xco.arrays import jain

TCP_PAYLOAD: Final = 1448
"""Bytes of payload in a full frame of TCP with timestamps."""


@dataclass(frozen=True)
class Mice:
    """Short flows that ended in the second phase; None: too few."""

    flows: int
    failed: int
    mean_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class Figures:
    """One run; rates are of payload, in Mb/s."""

    tagged_mbps: float
    """Mean of the tagged flow over the three phases."""
    ideal_mbps: float
    """The same at equal shares of the whole port: 0, 1/n and 1 of it in the phases."""
    of_ideal: float
    jain: float
    """Jain's index of all senders in the second phase."""
    phases_mbps: tuple[float, ...]
    """Of the tagged flow in each phase."""
    used: tuple[float, ...]
    """Share of the port's rate that was used in each phase."""
    drops: int
    """Packets dropped by the port."""
    drops_in_second: int
    marks: int
    """Packets marked by the port."""
    mice: Mice | None


def judge(recording: Recording, capacity_bps: int, foreign: float = 0.0) -> Figures:
    """Return the figures of a run.

    Args:
        recording: of the run.
        capacity_bps: rate of the port on the wire, in bits/s.
        foreign: share of the port that a foreign sender takes in the second phase.
    """
    spans = recording.spans()
    first, last = spans[0][0], spans[-1][1]
    lasted = [end.at_s - begin.at_s for begin, end in spans]
    rates = [
        [_mbps(a, b, seconds) for a, b in zip(begin.bytes, end.bytes, strict=True)]
        for (begin, end), seconds in zip(spans, lasted, strict=True)
    ]
    tagged = _mbps(first.bytes[0], last.bytes[0], sum(lasted))
    ideal = ideal_mbps(lasted, capacity_bps, len(first.bytes), foreign)
    wire = [_mbps(a.wire_bytes, b.wire_bytes, s) for (a, b), s in zip(spans, lasted, strict=True)]
    return Figures(
        tagged_mbps=tagged,
        ideal_mbps=ideal,
        of_ideal=tagged / ideal,
        jain=jain(np.array(rates[1])),
        phases_mbps=tuple(rate[0] for rate in rates),
        used=tuple(rate / capacity_bps * 1e6 for rate in wire),
        drops=last.drops - first.drops,
        drops_in_second=spans[1][1].drops - spans[1][0].drops,
        marks=last.marks - first.marks,
        mice=None if recording.mice is None else judge_mice(recording.mice),
    )


def ideal_mbps(
    lasted: Sequence[float], capacity_bps: int, senders: int, foreign: float = 0.0
) -> float:
    """Return the payload that equal shares carry for one sender, in Mb/s over all phases.

    Args:
        lasted: seconds of the three phases.
        capacity_bps: rate of the port on the wire, in bits/s.
        senders: of the second phase; the third has one, the first not this one.
        foreign: share of the port that others have in the second phase.
    """
    payload_mbps = capacity_bps / 1e6 * TCP_PAYLOAD / FULL_FRAME
    shares = (0.0, (1 - foreign) / senders, 1.0)
    weighted = sum(share * s for share, s in zip(shares, lasted, strict=True))
    return payload_mbps * weighted / sum(lasted)


def judge_mice(mice: FlowsSent) -> Mice:
    """Return the figures of short flows."""
    took = sorted(ns / 1e6 for ns in mice.flow_ns)
    if len(took) < 2:
        return Mice(mice.flows, mice.failed, None, None)
    p99 = statistics.quantiles(took, n=100, method="inclusive")[98]
    return Mice(mice.flows, mice.failed, statistics.mean(took), p99)


def _mbps(before: int, after: int, seconds: float) -> float:
    return (after - before) * 8e-6 / seconds

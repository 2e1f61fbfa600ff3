"""Results of a simulated run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from zovn.simulate.scenario import Scenario

CARD: Final = "network_card"
"""Drops of a server's network card, whose virtual switch has no room."""


class RawResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine writes (zovn/core/simulate/report.c)."""

    query_ps: tuple[int, ...]
    unfinished: int
    flow_ps: tuple[int, ...]
    drops: dict[str, tuple[int, int]]
    overruns: int
    links: dict[str, tuple[int, int, int]]
    sent: int
    received: int
    retransmitted: int
    timeouts: int
    recoveries: int
    reordered: int
    background_flows: int
    datagrams_sent: int
    datagrams_received: int
    background_bytes: int
    background_ps: int
    left: int
    events: int
    end_ps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Completion times of queries in milliseconds; with unfinished ones, lower bounds."""

    mean_ms: float
    p5_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What happened at all links of a kind."""

    bytes: int
    dropped: tuple[int, int]
    """Packets by class, dropped because this link's queue was full."""
    most_held: int
    """Most that a receiver held of one class: bytes, or packets from a VM."""
    pauses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run's results, with what distinguishes it from other runs."""

    mode: str
    tcp: str
    load: float
    own_class: bool
    queries: int
    unfinished: int
    """Queries that were not complete at the limit."""
    times: Times | None
    """None without queries."""
    query_ms: Sequence[float]
    flow_s: Sequence[float | None]
    """When each flow was complete; None: never, or of datagrams."""
    dropped: Mapping[str, int]
    """Packets by place, all classes; places without drops are left out."""
    places: Mapping[str, Place]
    overruns: int
    """Packets that lossless links dropped: a mistake of the model if not 0."""
    timeouts: int
    recoveries: int
    retransmitted: int
    reordered: int
    """Segments that arrived ahead of a missing one."""
    segments_sent: int
    segments_received: int
    background_flows: int
    datagrams_sent: int
    datagrams_received: int
    background_bps: float
    """Payload of the background that arrived while queries ran."""
    left: int
    """Packets that were in the network at the end."""
    events: int
    simulated_s: float

    @property
    def drops(self) -> int:
        """All packets that were dropped."""
        return sum(self.dropped.values()) + self.overruns


def result_of(scenario: Scenario, raw: RawResult) -> Result:
    """Return the results of a scenario from what the engine wrote."""
    query_ms = sorted(time / 1e9 for time in raw.query_ps)
    return Result(
        mode=scenario.mode,
        tcp=scenario.tcp.algorithm,
        load=scenario.background.load,
        own_class=scenario.background.own_class,
        queries=scenario.queries.count,
        unfinished=raw.unfinished,
        times=times_of(query_ms) if query_ms else None,
        query_ms=query_ms,
        flow_s=[None if time < 0 else time / 1e12 for time in raw.flow_ps],
        dropped={name: sum(by) for name, by in raw.drops.items() if any(by)},
        places={
            name: Place(bytes=of[0], dropped=raw.drops[name], most_held=of[1], pauses=of[2])
            for name, of in raw.links.items()
        },
        overruns=raw.overruns,
        timeouts=raw.timeouts,
        recoveries=raw.recoveries,
        retransmitted=raw.retransmitted,
        reordered=raw.reordered,
        segments_sent=raw.sent,
        segments_received=raw.received,
        background_flows=raw.background_flows,
        datagrams_sent=raw.datagrams_sent,
        datagrams_received=raw.datagrams_received,
        background_bps=raw.background_bytes * 8e12 / max(1, raw.background_ps),
        left=raw.left,
        events=raw.events,
        simulated_s=raw.end_ps / 1e12,
    )


def times_of(ordered_ms: Sequence[float]) -> Times:
    """Return mean and percentiles of at least one time, given in ascending order."""

    def percentile(percent: int) -> float:
        return ordered_ms[min(len(ordered_ms) - 1, len(ordered_ms) * percent // 100)]

    return Times(
        mean_ms=sum(ordered_ms) / len(ordered_ms),
        p5_ms=percentile(5),
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        p99_ms=percentile(99),
    )

"""Results of a simulated run."""

import msgspec


class Layer(msgspec.Struct, frozen=True):
    """The directed links at the same distance along the paths."""

    hop: int
    """1 for the hosts' own links."""
    example: str
    """The first of these links, as ``from > to``."""
    links: int
    capacity_bps: int
    """Sum over these links."""
    utilisation: float
    """Bytes carried, as a share of capacity."""
    loss: float
    """Bytes dropped before these links, as a share of the bytes that arrived there."""
    dropped_bytes: float


class FlowResult(msgspec.Struct, frozen=True):
    """One V2V flow."""

    source: str
    destination: str
    kind: str
    """udp or tcp."""
    sent_bps: float
    goodput_bps: float
    """Bits/s that arrived."""
    application_bps: float
    """Bits/s that arrived in whole messages; with TCP all that arrived."""
    loss: float


class Speed(msgspec.Struct, frozen=True):
    """Time and speed of the run; the only figures that differ between runs of one scenario."""

    wall_seconds: float
    slots_per_second: float
    scheduler_seconds: float
    decisions_per_second: float | None
    """Per second of the scheduler's wall time; None without decisions."""


class Series(msgspec.Struct, frozen=True):
    """The run over time, in at most 200 equal parts."""

    seconds: list[float]
    """Midpoint of each part."""
    delivered_bps: list[float]
    dropped_bps: list[float]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run: totals, layers, flows, speed. All offered bytes are sent or still wait in a host."""

    strategy: str
    policy: str | None
    """None without a scheduler."""
    hosts: int
    flows: int
    seconds: float
    slots: int
    offered_bytes: float
    """Bytes that applications wrote."""
    waiting_bytes: float
    """Bytes that wait in hosts at the end."""
    sent_bytes: float
    """Bytes that hosts sent: delivered, dropped, or queued in a switch."""
    delivered_bytes: float
    dropped_bytes: float
    queued_bytes: float
    loss: float
    """Dropped, as a share of sent."""
    goodput_bps: float
    application_bps: float
    fairness: float
    """Jain's index of the flows' goodput: 1 when all got the same, 1/n when one got all."""
    starved_flows: int
    """Number of flows that delivered nothing."""
    least_bps: float
    most_bps: float
    timeouts: int
    """TCP only."""
    events: int
    decisions: int
    layers: list[Layer]
    flow: list[FlowResult]
    """Every flow, if there are at most 64."""
    series: Series
    speed: Speed

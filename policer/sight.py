"""What the policer sees of one host: its last believable telemetry, and why it doubts it; pure.

The link tells which host a message came from (its socket, CURVE on TCP); what the message says is
checked here. A replayed or reordered tick is dropped, an impossible one makes the host distrusted:
its routers keep their leases, and nothing that it says counts as evidence.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from common.units import MAX_BIT_RATE
from policer.contract import MAX_PPS
from xtc.wire import HostDrops, Report, Telemetry

GONE_AFTER_S = 5.0
"""Silence after which a host is shown as gone."""
REBOOT_S = 5.0
"""A host whose clock went back within less time has not rebooted: the message is an old one."""
LIFETIME_S = 1e9
"""No daemon runs for longer than these thirty years."""
_HIGHEST = dict.fromkeys(
    ("throughput_pps", "offered_pps", "setpoint_pps", "limit_pps", "cap", "used"), MAX_PPS
) | dict.fromkeys(("throughput_bps", "offered_bps", "setpoint_bps"), MAX_BIT_RATE)
_HIGHEST |= dict.fromkeys(
    (
        "over_promise_packets",
        "under_promise_packets",
        "over_promise_bits",
        "under_promise_bits",
        "breach_seconds",
    ),
    LIFETIME_S * MAX_BIT_RATE,
)
"""What no report of a router exceeds."""
_bounded = attrgetter(*_HIGHEST)
BEYOND = 2.0
"""Routers that forward so many times the host's capacity are not believed."""
EXHAUSTED = 0.97
"""At this share of a second, a CPU has no time left."""
LOST = 0.01
"""A host that drops this share of what its routers forward before any of them has none either."""
MOST_ROUTERS = 4096
_ORDINARY: Mapping[str, float] = {}
"""No router's packets cost more or less than others."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One host as its telemetry shows it."""

    heard_at: float | None = None
    """Instant of the policer's monotonic clock; None before the first word."""
    host_clock: float = -1.0
    """The host's own monotonic seconds, by the last tick that was believed."""
    tick: int = -1
    routers: Mapping[str, Report] = field(default_factory=dict)
    distrust: str = ""
    """Why what it says is not believed; empty while it is."""
    dropped: int = 0
    """Messages that were replayed, reordered or came in a flood."""
    drops: HostDrops | None = None
    """Packets that the host loses before any router; None where its daemon does not tell."""
    highest_epoch: int | None = None
    """The highest epoch that it obeyed; None where its daemon does not tell."""
    busiest_cpu: float | None = None
    """How much of the last second its busiest CPU was not idle; None where its daemon does not
    tell."""
    simulated: bool = False
    """Whether its daemon says that its routers are simulated."""

    @property
    def exhausted(self) -> bool:
        """Whether one of its CPUs has no time left, or it drops packets before any router."""
        lost = 0.0 if self.drops is None else sum(self.drops.cards.values())
        lost += 0.0 if self.drops is None else self.drops.backlog or 0.0
        forwarded = sum(report.throughput_pps or 0.0 for report in self.routers.values())
        return (self.busiest_cpu or 0.0) >= EXHAUSTED or lost > LOST * (forwarded + 1.0)

    def reachable(self, now: float) -> bool:
        """Whether the host was heard lately."""
        return self.heard_at is not None and now - self.heard_at < GONE_AFTER_S


def seen(
    before: Sight,
    telemetry: Telemetry,
    now: float,
    capacity_pps: float,
    costs: Mapping[str, float] = _ORDINARY,
) -> Sight:
    """Return what is known of a host after a message.

    Args:
        before: what was known.
        telemetry: the message.
        now: seconds of the policer's clock.
        capacity_pps: what its routers can forward together, in ordinary packets.
        costs: what a packet of a router takes beside an ordinary one, where that is not 1.
    """
    rebooted = before.heard_at is not None and now - before.heard_at >= REBOOT_S
    old = telemetry.at <= before.host_clock
    if old and not rebooted:
        return replace(before, dropped=before.dropped + 1)
    if not math.isfinite(telemetry.at):
        return replace(before, heard_at=now, distrust=f"a clock at {telemetry.at:g}")
    doubt = next(_doubts(telemetry, capacity_pps, costs), "")
    if doubt:
        return replace(before, heard_at=now, host_clock=telemetry.at, distrust=doubt)
    return Sight(
        heard_at=now,
        host_clock=telemetry.at,
        tick=telemetry.tick,
        routers={report.vr: report for report in telemetry.routers},
        dropped=before.dropped,
        drops=telemetry.drops,
        highest_epoch=telemetry.highest_epoch,
        simulated=telemetry.simulated,
        busiest_cpu=telemetry.busiest_cpu,
    )


def _doubts(telemetry: Telemetry, capacity_pps: float, costs: Mapping[str, float]) -> Iterator[str]:
    """Yield what in a message cannot be."""
    reports, bounds = telemetry.routers, tuple(_HIGHEST.items())
    if len(reports) > MOST_ROUTERS:
        yield f"{len(reports)} routers on one host"
    if len({report.vr for report in reports}) < len(reports):
        yield "a router is reported twice"
    for report in reports:
        for value, (name, most) in zip(_bounded(report), bounds, strict=True):
            if value is not None and not 0 <= value <= most:
                yield f"{report.vr}: {name} of {value:g}"
    drops = telemetry.drops or HostDrops({}, None)
    for rate in (*drops.cards.values(), drops.backlog or 0.0):
        if not 0 <= rate <= MAX_PPS:
            yield f"{rate:g} packets/s dropped before any router"
    if telemetry.busiest_cpu is not None and not 0 <= telemetry.busiest_cpu <= 1:
        yield f"a CPU that was busy for {telemetry.busiest_cpu:g} of a second"
    total = sum(costs.get(report.vr, 1.0) * (report.throughput_pps or 0.0) for report in reports)
    if total > BEYOND * capacity_pps:
        counted = " (counted at their costs)" if costs else ""
        yield f"{total:.0f} packets/s forwarded{counted}, with a capacity of {capacity_pps:.0f}"

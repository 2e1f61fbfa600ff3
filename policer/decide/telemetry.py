"""View of one host: its last believable telemetry, and the reason if it is distrusted; pure.

The link authenticates the host of a message (its socket, CURVE on TCP); this module checks the
content. It drops a replayed or reordered tick. An impossible tick makes the host distrusted: its
routers keep their leases, and its reports do not count as evidence.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from common.units import MAX_BIT_RATE
from policer.contracts.contract import MAX_PPS
from xtc.wire import HostDrops, Report, Telemetry

GONE_AFTER_S = 5.0
"""After this silence a host is shown as gone."""
REBOOT_S = 5.0
"""If a host's clock went back by less than this, the message is old; else the host rebooted."""
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
"""Upper limits for the values of a router's report."""
_bounded = attrgetter(*_HIGHEST)
BEYOND = 2.0
"""Reports of routers that forward this many times the host's capacity are not believed."""
EXHAUSTED = 0.97
"""At this share of a second, a CPU has no time left."""
LOST = 0.01
"""A host that drops this share of its forwarded packets before any router has no time left
either."""
MOST_ROUTERS = 4096
_ORDINARY: Mapping[str, float] = {}
"""The packets of no router cost more or less than others."""


@dataclass(frozen=True, slots=True)
class HostTelemetry:
    """One host as its telemetry shows it."""

    heard_at: float | None = None
    """Time on the policer's monotonic clock; None before the first message."""
    host_clock: float = -1.0
    """The host's own monotonic seconds, by the last tick that was believed."""
    tick: int = -1
    routers: Mapping[str, Report] = field(default_factory=dict)
    distrust: str = ""
    """Why its telemetry is not believed; empty while it is believed."""
    dropped: int = 0
    """Messages that were replayed, reordered or came in a flood."""
    drops: HostDrops | None = None
    """Packets that the host loses before any router; None if its daemon does not report them."""
    highest_epoch: int | None = None
    """The highest epoch that it obeyed; None if its daemon does not report it."""
    busiest_cpu: float | None = None
    """Busy share of the last second of its busiest CPU; None if its daemon does not report it."""
    simulated: bool = False
    """Whether its daemon reports that its routers are simulated."""

    @property
    def exhausted(self) -> bool:
        """Whether one of its CPUs has no time left, or it drops packets before any router."""
        lost = 0.0 if self.drops is None else sum(self.drops.cards.values())
        lost += 0.0 if self.drops is None else self.drops.backlog or 0.0
        forwarded = sum(report.throughput_pps or 0.0 for report in self.routers.values())
        return (self.busiest_cpu or 0.0) >= EXHAUSTED or lost > LOST * (forwarded + 1.0)

    def reachable(self, now: float) -> bool:
        """Whether a message of the host arrived recently."""
        return self.heard_at is not None and now - self.heard_at < GONE_AFTER_S


def seen(
    before: HostTelemetry,
    telemetry: Telemetry,
    now: float,
    capacity_pps: float,
    costs: Mapping[str, float] = _ORDINARY,
) -> HostTelemetry:
    """Return the view of a host after a message.

    Args:
        before: the previous view.
        telemetry: the message.
        now: seconds of the policer's clock.
        capacity_pps: total throughput of its routers, in ordinary packets.
        costs: cost of a router's packet relative to an ordinary one, if not 1.
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
    return HostTelemetry(
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
    """Yield the impossible values of a message."""
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

"""Decides whether a cap binds: the only definition, for the reports of every platform.

A cap that does not bind did not shape the throughput, so nothing is learned from the sample and the
cap is kept. Reports differ: a quota counts the periods that it throttled, Xen and QEMU count only
CPU time (QEMU for each vCPU, which has its own quota), and some platforms count nothing.
`docs/reference/binding.md` has the truth table.

A router that polls (VPP, DPDK) uses all of its cap at any load, so that CPU use is no evidence. The
work per packet is: it rises as the load falls. Such a router is recognised by a full CPU while all
offered load is forwarded, at a fraction of its best packets per second of CPU. A router that sleeps
when idle, and is held at its cap by adaptive senders (TCP), also forwards all offered load, but at
its full efficiency.
"""

import msgspec
from msgspec.structs import replace

from common.units import CapFraction, PacketsPerSecond

BINDING_USE = 0.75
"""Minimum share of its cap that a router uses while the cap binds."""
FORWARDS_ALL = 0.98
"""At this share of the offered load, a router counts as forwarding all of it."""
IDLE_WORK = 1.5
"""Work per packet, as a multiple of the least seen, at which a full CPU counts as polling."""
OTHER_WORK = 3.0
"""The same at which the CPU does other work, in any kind of router."""
SLOWEST = 1e3
"""Packets per second of CPU below which no router works."""
STEADY = 0.9
"""Offered load, as a share of the last period's, that counts as the same."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """Measurements of one router in one period, as far as its platform reports them."""

    cap: CapFraction | None
    """In force; None where the router is uncapped."""
    throughput: PacketsPerSecond | None = None
    offered: PacketsPerSecond | None = None
    used: CapFraction | None = None
    """CPUs used on average, n times the hottest vCPU's if each of n has its own quota."""
    throttled: float | None = None
    """Share of its periods in which the quota throttled the router."""

    @property
    def use(self) -> float | None:
        """The share of the cap that was used."""
        return None if self.cap is None or self.used is None else self.used / self.cap

    @property
    def forwards_all(self) -> bool:
        """Whether all offered load is forwarded; False where unknown."""
        if self.throughput is None or self.offered is None:
            return False
        return self.throughput >= FORWARDS_ALL * self.offered

    @property
    def efficiency(self) -> float | None:
        """Packets forwarded in a second of CPU."""
        if self.throughput is None or not self.used:
            return None
        return self.throughput / self.used


class Polling(msgspec.Struct, frozen=True, gc=False):
    """What is known about how a router spends CPU that it does not need."""

    polls: bool = False
    sleeps: bool = False
    """Whether it left CPU unused as its load fell; such a router never polls."""
    best: float = 0.0
    """The most packets that it forwarded in a second of CPU."""
    offered: float = 0.0
    """The load of the last period, 0 unless it exceeded the throughput."""


def observed(polling: Polling, evidence: Evidence) -> Polling:
    """Return the knowledge after one more period."""
    use, efficiency = evidence.use, evidence.efficiency
    backlog = 0.0 if evidence.forwards_all else evidence.offered or 0.0
    if use is None or efficiency is None:
        return replace(polling, offered=backlog)
    sleeps = polling.sleeps or _slept(polling, evidence, use, efficiency)
    idles = efficiency < max(SLOWEST, polling.best / IDLE_WORK)
    full = use >= BINDING_USE
    polls = full and (idles if evidence.forwards_all else polling.polls)
    best = max(polling.best, efficiency) if use >= BINDING_USE else polling.best
    return Polling(polls and not sleeps, sleeps, best, backlog)


def _slept(polling: Polling, evidence: Evidence, use: float, efficiency: float) -> bool:
    """Whether the router used only what its packets cost, unlike a poller short of CPU."""
    partly = evidence.forwards_all and use < BINDING_USE
    return partly and efficiency >= max(SLOWEST, polling.best / IDLE_WORK)


def binds(evidence: Evidence, polling: Polling | None = None) -> bool:
    """Return whether the cap shaped the period's throughput.

    Args:
        evidence: of the period.
        polling: previous knowledge of the router; None for a router that sleeps.
    """
    if evidence.cap is None:
        return False
    if evidence.use is None and evidence.throttled is None:
        return not evidence.forwards_all
    if evidence.use is not None and evidence.use < BINDING_USE:
        return False
    if evidence.throttled == 0.0 or (polling is not None and _works_elsewhere(evidence, polling)):
        return False
    polls = polling is not None and observed(polling, evidence).polls
    return not polls or _backlogged(evidence, 0.0 if polling is None else polling.offered)


def _works_elsewhere(evidence: Evidence, polling: Polling) -> bool:
    """Whether a full CPU forwards all offered load, but far less efficiently than at best."""
    if not evidence.forwards_all or evidence.efficiency is None:
        return False
    return evidence.efficiency < max(SLOWEST, polling.best / OTHER_WORK)


def _backlogged(evidence: Evidence, before: float) -> bool:
    """Whether a polling router was overloaded during the whole period.

    If a load begins or ends within the period, part of the period is idle polling, and throughput
    does not measure the cap.
    """
    if evidence.offered is None or evidence.forwards_all:
        return False
    return before > 0 and evidence.offered >= STEADY * before

"""Whether a cap binds: the one definition, of what each platform reports.

A cap that does not bind did not shape the throughput, so nothing is learned from the sample and
the cap is kept. What is reported differs: a quota counts the periods that it throttled, Xen and
QEMU count CPU time alone (QEMU for each vCPU, which has a quota of its own), and some platforms
count nothing. `docs/binding.md` has the truth table.

A router that polls (VPP, DPDK) uses all of its cap whatever is offered, so that CPU use tells
nothing; the work per packet does: it rises as the load falls. Such a router is known by a CPU
that is full although all that is offered is forwarded, at a fraction of the packets per second of
CPU that it has shown it can do. A router that sleeps when it has nothing to do, and is held at its
cap by senders that adapt (TCP), forwards all that is offered, too, but at its full efficiency.
"""

import msgspec
from msgspec.structs import replace

from common.units import CapFraction, PacketsPerSecond

BINDING_USE = 0.75
"""Share of its cap that a router uses at least while the cap binds."""
FORWARDS_ALL = 0.98
"""At this share of the offered load a router forwards all that it gets."""
IDLE_WORK = 1.5
"""Work per packet, as a multiple of the least seen, at which a full CPU is known to poll."""
OTHER_WORK = 3.0
"""The same at which the CPU goes into something else, whatever the router is known to do."""
SLOWEST = 1e3
"""Packets per second of CPU below which no router works, however slow it is."""
STEADY = 0.9
"""Offered load, as a share of the last period's, that counts as the same."""


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """What one period showed of one router, as far as its platform reports it."""

    cap: CapFraction | None
    """In force; None where the router is uncapped."""
    throughput: PacketsPerSecond | None = None
    offered: PacketsPerSecond | None = None
    used: CapFraction | None = None
    """CPUs used on average, n times the hottest vCPU's where each of n has its own quota."""
    throttled: float | None = None
    """Share of its periods in which the quota stopped the router."""

    @property
    def use(self) -> float | None:
        """The share of the cap that was used."""
        return None if self.cap is None or self.used is None else self.used / self.cap

    @property
    def forwards_all(self) -> bool:
        """Whether all that is offered is forwarded; False where that is not known."""
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
    """What is known of how a router spends the CPU that it does not need."""

    polls: bool = False
    sleeps: bool = False
    """Whether it was seen to leave CPU unused as its load fell; such a router never polls."""
    best: float = 0.0
    """The most packets that it forwarded in a second of CPU."""
    offered: float = 0.0
    """The load of the last period, 0 unless more was offered than it forwarded."""


def observed(polling: Polling, evidence: Evidence) -> Polling:
    """Return what is known after one more period."""
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
    """Whether the router used no more than its packets cost, as a poller short of CPU would not."""
    partly = evidence.forwards_all and use < BINDING_USE
    return partly and efficiency >= max(SLOWEST, polling.best / IDLE_WORK)


def binds(evidence: Evidence, polling: Polling | None = None) -> bool:
    """Return whether the cap shaped the period's throughput.

    Args:
        evidence: what the period showed.
        polling: what was known of the router before it; None for a router that sleeps.
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
    """Whether a full CPU forwards all that is offered, at far less than it has shown it can do."""
    if not evidence.forwards_all or evidence.efficiency is None:
        return False
    return evidence.efficiency < max(SLOWEST, polling.best / OTHER_WORK)


def _backlogged(evidence: Evidence, before: float) -> bool:
    """Whether a polling router had more to do than it could, in all of the period.

    A load that begins or ends within the period leaves a part of it to polling: the throughput is
    then no measure of the cap.
    """
    if evidence.offered is None or evidence.forwards_all:
        return False
    return before > 0 and evidence.offered >= STEADY * before

"""Limits on traffic from the host into each router: set, lifted on expiry, and counted.

No interface counter shows what a limit drops (the kernel counts it at the queueing discipline
only). It is added to the reported offered load: limiting a flood must not hide it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from common.units import PacketsPerSecond, Seconds
from xtc.errors import ActuatorError, Refused
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.removals import Lifts
from xtc.manager.router import ManagedRouter
from xtc.measure.collector import Side
from xtc.measure.meter import WRAP_RATE
from xtc.wire import Limit

NOTHING = PacketsPerSecond(0.0)


class CountingLimiter(Protocol):
    """The manager's view of `xtc.shield.tbf`."""

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit the traffic that the host sends through an interface."""
        ...

    def lift(self, interface: str) -> None:
        """Remove the limit."""
        ...

    def dropped(self, interfaces: Iterable[str]) -> Mapping[str, int]:
        """Return how many packets the limit on each interface has dropped since it was set."""
        ...


class Limits:
    """Sets and lifts limits; the manager makes each durable before it is set."""

    def __init__(self, limiter: CountingLimiter, guard: Firewall) -> None:
        self._limiter, self._guard = limiter, guard
        self.lifts = Lifts("limit", limiter.lift, guard)
        """The limits that must still be lifted."""
        self._counts: Mapping[str, int] = {}
        """The drop count of every limit at the last check."""
        self._looked_at: Seconds | None = None
        self._readable = True
        """Whether the last check could read the limits in force."""

    def check(self, request: Limit, *, highest_epoch: int) -> None:
        """Reject limits from a stale epoch; an operator's limits have no epoch.

        Raises:
            Refused: the epoch is lower than the highest accepted.
        """
        if request.epoch is not None and request.epoch < highest_epoch:
            problem = f"{request.epoch} is lower than {highest_epoch}, which was already accepted"
            fix = "a policer that lost its leadership must stop; `xtc limit` needs no epoch"
            raise Refused("stale_epoch", "epoch", problem, fix)

    def claim(self, managed: ManagedRouter) -> None:
        """Note for the journal which interfaces will be limited.

        Raises:
            Refused: the router has no interface at the moment.
        """
        if not managed.interfaces:
            raise Refused(
                "no_interface", "vr", f"{managed.plan.name} has no interface at the moment"
            )
        managed.limited = tuple(sorted({*managed.limited, *managed.interfaces}))
        self.lifts.leave(managed.interfaces)

    def set(self, managed: ManagedRouter, rate: PacketsPerSecond, ends_at: Seconds | None) -> None:
        """Limit the interfaces of a router, until an instant if one is given.

        Raises:
            Refused: an interface cannot be limited; no new limit is left behind.
        """
        if not self._stands(managed, rate):
            try:
                self._set(managed, rate)
            except ActuatorError as error:
                words = f"{error.target}: {error.problem}"
                raise Refused(error.kind, "vr", words, error.fix) from None
        managed.limit, managed.limit_ends_at, managed.limit_problem = rate, ends_at, ""

    def _set(self, managed: ManagedRouter, rate: PacketsPerSecond) -> None:
        """Limit every interface; on any error, no new limit is left behind."""
        try:
            for interface in managed.interfaces:
                self._limiter.limit(interface, rate)
        except Exception:
            if managed.limit is None:
                self.lift(managed)
            raise

    def renew(self, managed: ManagedRouter) -> None:
        """Set a limit again that was removed by others or with its interface."""
        assert managed.limit is not None  # look() has found it
        try:
            self.set(managed, managed.limit, managed.limit_ends_at)
        except Refused as refused:
            managed.limit_problem = f"its limit is not in force: {refused}"

    def _stands(self, managed: ManagedRouter, rate: PacketsPerSecond) -> bool:
        """Whether the limit was in force at the last check, so that only its end changes."""
        return rate == managed.limit and self._counts.keys() >= set(managed.interfaces)

    def lift(self, managed: ManagedRouter) -> str:
        """Lift a router's limits; return why not, where it must be retried."""
        trouble = self.lifts.lift(managed.limited)
        managed.limit, managed.limit_ends_at, managed.limited = None, None, ()
        managed.limit_problem = ""
        managed.kept_back = NOTHING
        return trouble

    def look(self, routers: Iterable[ManagedRouter], now: Seconds) -> list[ManagedRouter]:
        """Lift expired limits, and read what the others dropped; once a period.

        Returns:
            The routers with an interface that lost its limit.
        """
        limited = [managed for managed in routers if managed.limited]
        for managed in limited:
            if managed.limit_ends_at is not None and now >= managed.limit_ends_at:
                self.lift(managed)
        before, elapsed = self._counts, None if self._looked_at is None else now - self._looked_at
        counts = self._dropped([name for managed in limited for name in managed.limited])
        for managed in limited:
            if managed.limited:
                managed.kept_back = _kept_back(managed, before, counts, elapsed)
        self._counts, self._looked_at = counts, now
        for managed in limited:
            self._forget_gone(managed)
        return [managed for managed in limited if managed.limit and self._lost(managed)]

    def _forget_gone(self, managed: ManagedRouter) -> None:
        """Forget former interfaces of a router: a guest gets new ones with each restart."""
        if not self._readable or not managed.interfaces:
            return
        left = {*managed.limited} - {*managed.interfaces} - self._counts.keys()
        if left:
            self.lifts.lift(sorted(left))
            managed.limited = tuple(name for name in managed.limited if name not in left)

    def _lost(self, managed: ManagedRouter) -> bool:
        """Whether an existing interface has lost our limit; false where none can be read."""
        return self._readable and not self._counts.keys() >= set(managed.interfaces)

    def _dropped(self, interfaces: Sequence[str]) -> Mapping[str, int]:
        """Return what limits have dropped, as far as it can be read; read only if there are any."""
        if not interfaces:
            self._readable = True
            return {}
        counts: Mapping[str, int] | Unforeseen | None = None
        read = partial(self._limiter.dropped, interfaces)
        with suppress(ActuatorError):
            counts = self._guard.run("limit", "", read, passing=(ActuatorError,))
        self._readable = counts is not None and not isinstance(counts, Unforeseen)
        # if it cannot be read, reports say that the offered load is unknown
        return {} if counts is None or isinstance(counts, Unforeseen) else counts


def _kept_back(
    managed: ManagedRouter,
    before: Mapping[str, int],
    counts: Mapping[str, int],
    elapsed: float | None,
) -> PacketsPerSecond | None:
    """Return the dropped part of the offered load, in packets/s; None where unknown."""
    if managed.plan.binding.side is Side.ROUTER:
        return NOTHING  # at its own end, the limit applies to what a router sends
    bearing = {*managed.limited} & {*managed.interfaces}
    if not elapsed or not before.keys() & counts.keys() >= bearing:
        return None
    drops = sum(_passed(before[interface], counts[interface], elapsed) for interface in bearing)
    return PacketsPerSecond(drops / elapsed)


def _passed(old: int, new: int, elapsed: float) -> int:
    """Return the packets between two counts; a lower count has wrapped or was reset."""
    if new >= old:
        return new - old
    wrapped = new + (1 << 32) - old
    return wrapped if wrapped <= WRAP_RATE * elapsed else new

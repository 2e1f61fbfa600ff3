"""Limits of what the host sends into each router: set, ended when their time is up, and counted.

What a limit drops, no counter of the interface shows (the kernel counts it at the queueing
discipline alone). It was offered all the same, so it is added to the offered load that is reported:
a flood does not look like peace because it is limited.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from common.units import PacketsPerSecond, Seconds
from xtc.errors import ActuatorError, Refused
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.removals import Lifts
from xtc.manager.router import Managed
from xtc.measure.collector import Side
from xtc.measure.meter import WRAP_RATE
from xtc.wire import Limit

NOTHING = PacketsPerSecond(0.0)


class CountingLimiter(Protocol):
    """What the manager needs of `xtc.shield.tbf`."""

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit what the host sends through an interface."""
        ...

    def lift(self, interface: str) -> None:
        """Remove the limit."""
        ...

    def dropped(self, interfaces: Iterable[str]) -> Mapping[str, int]:
        """Return how many packets the limit on each interface has dropped since it was set."""
        ...


class Limits:
    """Sets and lifts limits; the manager makes durable that there is one before it is set."""

    def __init__(self, limiter: CountingLimiter, guard: Firewall) -> None:
        self._limiter, self._guard = limiter, guard
        self.lifts = Lifts("limit", limiter.lift, guard)
        """What is still to be lifted."""
        self._counts: Mapping[str, int] = {}
        """What every limit had dropped at the last look."""
        self._looked_at: Seconds | None = None
        self._readable = True
        """Whether the last look could see which limits are in force."""

    def check(self, request: Limit, *, highest_epoch: int) -> None:
        """Refuse what a former leader asks; an operator's limits have no epoch.

        Raises:
            Refused: the epoch is lower than the highest that was obeyed.
        """
        if request.epoch is not None and request.epoch < highest_epoch:
            problem = f"{request.epoch} is lower than {highest_epoch}, which was already obeyed"
            fix = "a policer that lost its leadership must stop; `xtc limit` needs no epoch"
            raise Refused("stale_epoch", "epoch", problem, fix)

    def claim(self, managed: Managed) -> None:
        """Note which interfaces are about to be limited, for the journal.

        Raises:
            Refused: the router has no interface now.
        """
        if not managed.interfaces:
            raise Refused("no_interface", "vr", f"{managed.plan.name} has no interface now")
        managed.limited = tuple(sorted({*managed.limited, *managed.interfaces}))
        self.lifts.leave(managed.interfaces)

    def set(self, managed: Managed, rate: PacketsPerSecond, ends_at: Seconds | None) -> None:
        """Limit the interfaces of a router, until an instant if one is given.

        Raises:
            Refused: an interface cannot be limited; where there was no limit, there is none.
        """
        if not self._stands(managed, rate):
            try:
                self._set(managed, rate)
            except ActuatorError as error:
                words = f"{error.target}: {error.problem}"
                raise Refused(error.kind, "vr", words, error.fix) from None
        managed.limit, managed.limit_ends_at, managed.limit_problem = rate, ends_at, ""

    def _set(self, managed: Managed, rate: PacketsPerSecond) -> None:
        """Limit every interface; where there was no limit, none is left by an error of any kind."""
        try:
            for interface in managed.interfaces:
                self._limiter.limit(interface, rate)
        except Exception:
            if managed.limit is None:
                self.lift(managed)
            raise

    def renew(self, managed: Managed) -> None:
        """Set a limit again that an interface has lost: it was replaced, or another removed it."""
        assert managed.limit is not None  # look() has found it
        try:
            self.set(managed, managed.limit, managed.limit_ends_at)
        except Refused as refused:
            managed.limit_problem = f"its limit is not in force: {refused}"

    def _stands(self, managed: Managed, rate: PacketsPerSecond) -> bool:
        """Whether the limit was seen in force at the last look, so that only its end moves."""
        return rate == managed.limit and self._counts.keys() >= set(managed.interfaces)

    def lift(self, managed: Managed) -> str:
        """Lift a router's limits; why not, in words, where it must be tried again."""
        trouble = self.lifts.lift(managed.limited)
        managed.limit, managed.limit_ends_at, managed.limited = None, None, ()
        managed.limit_problem = ""
        managed.kept_back = NOTHING
        return trouble

    def look(self, routers: Iterable[Managed], now: Seconds) -> list[Managed]:
        """Lift the limits whose time is up, and see what the others dropped; once a period.

        Returns:
            The routers with an interface on which their limit was not seen.
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

    def _forget_gone(self, managed: Managed) -> None:
        """Forget interfaces that a router had once: a guest that restarts has others each time."""
        if not self._readable or not managed.interfaces:
            return
        left = {*managed.limited} - {*managed.interfaces} - self._counts.keys()
        if left:
            self.lifts.lift(sorted(left))
            managed.limited = tuple(name for name in managed.limited if name not in left)

    def _lost(self, managed: Managed) -> bool:
        """Whether an interface that is there has no limit of ours; not where none can be read."""
        return self._readable and not self._counts.keys() >= set(managed.interfaces)

    def _dropped(self, interfaces: Sequence[str]) -> Mapping[str, int]:
        """Return what limits have dropped, as far as it can be read; ask only if there are any."""
        if not interfaces:
            self._readable = True
            return {}
        counts: Mapping[str, int] | Unforeseen | None = None
        read = partial(self._limiter.dropped, interfaces)
        with suppress(ActuatorError):
            counts = self._guard.run("limit", "", read, passing=(ActuatorError,))
        self._readable = counts is not None and not isinstance(counts, Unforeseen)
        # where it cannot be read, the reports say that the offered load is not known
        return {} if counts is None or isinstance(counts, Unforeseen) else counts


def _kept_back(
    managed: Managed,
    before: Mapping[str, int],
    counts: Mapping[str, int],
    elapsed: float | None,
) -> PacketsPerSecond | None:
    """Return what was dropped of what was offered, in packets/s; None where that is not known."""
    if managed.plan.binding.side is Side.ROUTER:
        return NOTHING  # at its own end a router is limited in what it sends
    bearing = {*managed.limited} & {*managed.interfaces}
    if not elapsed or not before.keys() & counts.keys() >= bearing:
        return None
    drops = sum(_passed(before[interface], counts[interface], elapsed) for interface in bearing)
    return PacketsPerSecond(drops / elapsed)


def _passed(old: int, new: int, elapsed: float) -> int:
    """Return the packets between two counts; a count that fell has wrapped or begun anew."""
    if new >= old:
        return new - old
    wrapped = new + (1 << 32) - old
    return wrapped if wrapped <= WRAP_RATE * elapsed else new

"""The routers of a host and what works on them, one router at a time."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from common.units import Seconds
from xtc.actuator.places import PlaceOf
from xtc.config.plan import RouterPlan
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.activation import Beginnings
from xtc.manager.host_floors import HostFloors
from xtc.manager.limits import CountingLimiter, Limits
from xtc.manager.orphans import Orphans
from xtc.manager.reports import bare_report, report
from xtc.manager.router import ManagedRouter, OpenActuator
from xtc.manager.shields import ShieldPort, Shields
from xtc.wire import Report

_Result = TypeVar("_Result")


class Host:
    """Every configured router by name, with its limits, shields, floors and pending work."""

    def __init__(
        self,
        plans: Mapping[str, RouterPlan],
        *,
        open_actuator: OpenActuator,
        place: PlaceOf,
        limiter: CountingLimiter,
        shield: ShieldPort | None,
        observe: str,
        unexpected: Callable[[str], None],
    ) -> None:
        """Take over the routers; the arguments are those of `xtc.manager.manager.Manager`."""
        self.open, self.place = open_actuator, place
        self.guard = Firewall(unexpected)
        self.observe = observe
        """Why every router is only observed; empty where they are controlled."""
        self.orphans = Orphans(self.guard)
        self.limits = Limits(limiter, self.guard)
        self.shields = Shields(shield, self.guard)
        self.floors = HostFloors(self.guard)
        self.beginnings = Beginnings(self.shields)
        self.routers = {name: ManagedRouter(plan, open_actuator) for name, plan in plans.items()}

    def work_on(
        self, managed: ManagedRouter, where: str, work: Callable[[], _Result]
    ) -> _Result | None:
        """Work on one router; an unforeseen error becomes its problem, and the result is None."""
        result = self.guard.run(where, managed.plan.name, work)
        if isinstance(result, Unforeseen):
            managed.fault = result.words
            return None
        return result

    def each(self, where: str, work: Callable[[ManagedRouter], _Result]) -> dict[str, _Result]:
        """Work on every router; the results omit those with an unforeseen error."""
        results: dict[str, _Result] = {}
        for name, result in self.guard.each(where, self.routers, work).items():
            if isinstance(result, Unforeseen):
                self.routers[name].fault = result.words
            else:
                results[name] = result
        return results

    def undo(self, managed: ManagedRouter) -> list[str]:
        """Release a router's cap, limit and shield; return what could not be undone yet."""
        works: Iterable[Callable[[], str]] = (
            partial(release, managed),
            partial(self.limits.lift, managed),
            partial(self.shields.lift, managed),
        )
        results = [self.work_on(managed, "release", work) for work in works]
        troubles = [result for result in results if result]
        return [*troubles, managed.fault] if None in results else troubles

    def reports(self, now: Seconds) -> tuple[Report, ...]:
        """Return a report of every router."""
        return tuple(self.report(managed, now) for managed in self.routers.values())

    def report(self, managed: ManagedRouter, now: Seconds) -> Report:
        """Return the report of one router; a bare one where an unforeseen error prevents it."""
        found = self.work_on(managed, "report", partial(report, managed, now))
        return found or bare_report(managed)


def release(managed: ManagedRouter) -> str:
    """Restore a router's original settings; return why not, if so."""
    return "" if managed.release() else f"{managed.plan.name}: {managed.controller.problem}"

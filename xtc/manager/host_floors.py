"""The floors of all controlled routers: their weights, and what is left of the host.

Weights are checked in turns and written on change: their cost per tick is negligible.
"""

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import Final, TypeVar

from common.units import CapFraction
from xtc.actuator.weights import Weights
from xtc.control.floors import AUTO, KEEP, Claim, Grant, fits, grants, shortage, uncovered
from xtc.errors import ActuatorError
from xtc.isolation import Firewall, Unforeseen
from xtc.manager.router import ManagedRouter
from xtc.spec import DeadlineSpec, Scale

_Answer = TypeVar("_Answer")

LOOK_EVERY: Final = 10
"""Periods between two checks of a router's weight, need and rivals."""


class HostFloors:
    """Decides on the floors of a host; the loop writes them."""

    def __init__(self, guard: Firewall) -> None:
        self._guard = guard
        self._periods = 0
        self._rivals: dict[Hashable, Mapping[str, int]] = {}
        """The rivals in each arena, as of the last check."""

    def decide(self, routers: Mapping[str, ManagedRouter]) -> None:
        """Decide on the weights for a period."""
        self._periods += 1
        turns = count(self._periods)
        looks = self._guard.each("floor", routers, lambda managed: self._look(managed, turns))
        held = [routers[name] for name, look in looks.items() if isinstance(look, bool)]
        all_due = self._periods % LOOK_EVERY == 0
        if all_due:
            self._rivals.clear()
        if all_due or any(look is True for look in looks.values()):
            self._guard.run("floor", "", partial(self._weigh, held))

    def _look(self, managed: ManagedRouter, turns: Iterator[int]) -> bool | None:
        """Check one router, if it is its turn or its sample adds information.

        Returns:
            Whether that changes the decision; None where the router has no floor.
        """
        if not managed.weighable:
            return None
        turn = next(turns) % LOOK_EVERY == 0
        instance, floor = managed.instance, managed.floor
        if instance is None or not floor.is_due(instance.lease, managed.sample, turn=turn):
            return False
        before = floor.terms
        managed.look_at_floor()
        return floor.terms != before

    def _weigh(self, held: list[ManagedRouter]) -> None:
        """Divide the CPU of each arena, and report where the host has too little."""
        routers = {managed.plan.name: managed for managed in held}
        known = self._told(routers, _need)
        self._tell_shortage(held, known)
        arenas: dict[Hashable, dict[str, ManagedRouter]] = {}
        for name, (place, member) in self._told(routers, _arena).items():
            arenas.setdefault(place, {})[member] = routers[name]
        for place, members in arenas.items():
            share = partial(self._share_out, place, members)
            self._guard.run("floor", ", ".join(members), share)

    def _told(
        self, routers: Mapping[str, ManagedRouter], ask: Callable[[ManagedRouter], _Answer | None]
    ) -> dict[str, _Answer]:
        """Return each router's result, without those that have none or fail."""
        return {
            name: answer
            for name, answer in self._guard.each("floor", routers, ask).items()
            if answer is not None and not isinstance(answer, Unforeseen)
        }

    def _tell_shortage(
        self, held: Iterable[ManagedRouter], known: Mapping[str, CapFraction]
    ) -> None:
        total = sum(known.values())
        for managed in held:
            cpus = _cpus(managed.controller.weights)
            short = cpus is not None and not fits(total, cpus)
            managed.floor.short = shortage(managed.plan.name, known, cpus or 1) if short else ""

    def _share_out(self, place: Hashable, members: Mapping[str, ManagedRouter]) -> None:
        """Weigh the routers of one arena."""
        one = next(iter(members.values())).controller.weights
        assert one is not None  # _weigh() has checked
        assert one.scale is not None  # may_weigh() has checked
        following = {
            name: managed for name, managed in members.items() if managed.floor.mode == AUTO
        }
        rivals = self._contending(place, one, following)
        if rivals is None:
            return  # rivals are not known: weights stay
        others = sum(weight for name, weight in rivals.items() if name not in following)
        claims = {
            name: claim
            for name, managed in following.items()
            if (claim := _claim(managed)) is not None
        }
        found = grants(claims, float(others), one.scale)
        for name, managed in members.items():
            decide = partial(_decide, managed, found.get(name), one.scale)
            self._guard.run("floor", managed.plan.name, decide)

    def _contending(
        self, place: Hashable, weights: Weights, but: Collection[str]
    ) -> Mapping[str, int] | None:
        if place not in self._rivals:
            try:
                self._rivals[place] = weights.rivals(but)
            except ActuatorError:
                return None
        return self._rivals[place]


def _claim(managed: ManagedRouter) -> Claim | None:
    """Return what a router needs; None where that is not known yet."""
    need, standing = managed.floor.need, managed.floor.standing
    return None if need is None or standing is None else Claim(need, standing)


def _decide(managed: ManagedRouter, grant: Grant | None, scale: Scale) -> None:
    floor = managed.floor
    if isinstance(floor.mode, int):
        floor.want(min(max(floor.mode, scale.least), scale.most))
        if not scale.least <= floor.mode <= scale.most:
            floor.short = f"{scale.parameter} takes {scale.least} to {scale.most}"
    elif grant is not None and floor.need is not None:
        floor.want(grant.weight)
        floor.short = floor.short or uncovered(floor.need, grant, scale)


def _need(managed: ManagedRouter) -> CapFraction | None:
    """Return the host CPU that a router's setpoint takes; None where no floor covers it."""
    backed = isinstance(managed.plan.spec, DeadlineSpec) or managed.controller.weights is not None
    return managed.floor.need if backed and managed.floor.mode != KEEP else None


def _arena(managed: ManagedRouter) -> tuple[Hashable, str] | None:
    """Return the arena of a router's weight, and its name there; None where none is set."""
    weights = managed.controller.weights
    return None if weights is None or not managed.floor.may_weigh else weights.arena


def _cpus(weights: Weights | None) -> int | None:
    return os.cpu_count() if weights is None else weights.cpus

"""Applies the brake: counts guilty routers, follows operators, and reports changes."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import structlog

from policer.contracts.overrides import FLEET, braked, excused, stops_ladders
from policer.decide.brake import Brake, Routers, routers_of
from policer.fleet.live import Fleet
from policer.store import Event

_ON = "too many routers {where} would be punished at the same time"
_OFF = "no longer too many routers {where} are guilty"


class Braking:
    """Decides whether ladders may be climbed; updates the fleet's brakes."""

    def __init__(
        self, fleet: Fleet, clock: Callable[[], float], note: Callable[[Event], None]
    ) -> None:
        self._fleet, self._clock, self._note = fleet, clock, note
        self._brake = Brake()
        self._routers: Mapping[str, Routers] = {}
        """Of each host, when last counted."""
        self._log = structlog.get_logger("policer.brake")

    def stops(self, host: str) -> bool:
        """Whether ladders are stopped on a host."""
        mode = self._fleet.overrides.brake_mode
        return stops_ladders(mode, counted=self._brake.stops(host))

    def count(self) -> None:
        """Count the routers that the brake depends on."""
        exempt_on = self._fleet.overrides.exempt_on
        self._routers = {
            name: routers_of(
                excused(live.contracts, exempt_on(name, live.follows)),
                live.telemetry.routers,
                live.state,
            )
            for name, live in self._fleet.hosts.items()
        }

    def convicted(self, host: str, routers: int) -> None:
        """Record that routers of a host took the first step of their ladders."""
        if routers:
            self._brake = self._brake.after(self._clock(), host, routers)
            self.look()

    def look(self) -> None:
        """Put brakes on or release them by the count, and report it."""
        self._brake = self._brake.looked(self._clock(), self._routers)
        now, before = datetime.now(UTC), self._fleet.counted
        counted = {name: before.get(name, now) for name in self._counted()}
        for name in sorted(counted.keys() ^ before.keys()):
            self._say(name, on=name in counted)
        self._fleet.counted = counted
        self._show()

    def follow(self) -> None:
        """Show the operators' overrides, without a count, on a policer that does not lead."""
        self._fleet.counted = {}
        self._show()

    def _counted(self) -> Iterator[str]:
        if self._brake.on:
            yield FLEET
        yield from self._brake.hosts

    def _show(self) -> None:
        """Show which ladders are stopped, by the count or by an operator."""
        fleet = self._fleet
        fleet.braked, fleet.braked_hosts = braked(fleet.overrides.brake_mode, fleet.counted)

    def _say(self, host: str, *, on: bool) -> None:
        where = "on this host" if host else "in the fleet"
        mode = self._fleet.overrides.brake_mode
        effect = {
            "automatic": "escalation is stopped" if on else "escalation continues",
            "on": "an operator's brake is on in any case",
            "off": "an operator's override lets escalation continue",
        }[mode]
        words = f"{(_ON if on else _OFF).format(where=where)}: {effect}"
        kind = "brake" if on else "brake_off"
        self._log.error(kind, words=words, host=host)
        self._note(Event(host, kind, words, at=datetime.now(UTC)))

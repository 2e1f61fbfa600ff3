"""Overrides by operators: the brake, control of a host, a router's ladder, the epoch; pure.

An override holds until it is cleared or expires. Time is a parameter.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.errors import Problem
from xtc.wire import highest_possible

Kind = Literal["brake", "epoch", "exemption", "suspension"]
BrakeMode = Literal["automatic", "off", "on"]
Mode = Literal["automatic", "off", "on", "above", "exempt", "suspended"]

LONGEST: Final[Mapping[Kind, timedelta]] = {
    "brake": timedelta(days=366),
    "exemption": timedelta(days=30),
    "suspension": timedelta(days=366),
}
"""Latest end of an override; an epoch has no end."""
FLEET: Final = ""
"""Key of the fleet's brake among those of hosts."""
MOST_REASON: Final = 200
"""Characters of a reason."""
_REASON: Final = re.compile(rf"[^\x00-\x1f\x7f]{{0,{MOST_REASON}}}")


class Override(msgspec.Struct, frozen=True):
    """A decision of an operator that replaces the policer's."""

    kind: Kind
    mode: Mode
    """`automatic`, `on` or `off` for a brake; each other kind has one mode."""
    host: str = ""
    """"" for the fleet, or for a router that its contract follows."""
    vr: str = ""
    """"" for no router in particular; the contract's name if it follows its router."""
    until: datetime | None = None
    """UTC; None holds until it is cleared."""
    reason: str = ""
    above: int | None = None
    """For an epoch: the next one must exceed this."""
    by: str = ""
    """Actor that set it, or cleared it."""
    at: datetime | None = None
    """When, in UTC."""
    version: int = 0
    """Rises with every change, including its removal or expiry."""

    def ended(self, now: datetime) -> bool:
        """Whether it has expired."""
        return self.until is not None and self.until <= now


@dataclass(frozen=True, slots=True)
class Overrides:
    """All overrides that hold at one instant."""

    brake: Override | None = None
    """None leaves the brake to the count of guilty routers."""
    suspended: Mapping[str, Override] = field(default_factory=dict)
    """By host."""
    exempt: Mapping[str, Mapping[str, Override]] = field(default_factory=dict)
    """By host and router; by ANYWHERE and the contract's name if the contract follows its
    router."""
    epoch: Override | None = None
    """The epoch to exceed, until a leader has done so."""
    until: datetime | None = None
    """When the first of them ends."""

    @property
    def brake_mode(self) -> BrakeMode:
        """Mode of the fleet's brake."""
        mode = "automatic" if self.brake is None else self.brake.mode
        return mode if mode in {"on", "off"} else "automatic"

    def exempt_on(self, host: str, follows: Mapping[str, str]) -> Mapping[str, Override]:
        """Return the routers of a host that are exempt from its ladders.

        Args:
            host: its name.
            follows: the names of the contracts that followed routers there, by router: their
                exemptions follow them, too.
        """
        if not self.exempt:
            return {}
        moving = self.exempt.get(ANYWHERE, {})
        came = {vr: moving[router] for vr, router in follows.items() if router in moving}
        return {**came, **self.exempt.get(host, {})}

    def count(self) -> Mapping[Kind, int]:
        """Return how many overrides hold, by kind."""
        return {
            "brake": int(self.brake_mode != "automatic"),
            "epoch": int(self.epoch is not None),
            "exemption": sum(map(len, self.exempt.values())),
            "suspension": len(self.suspended),
        }


def standing(overrides: Iterable[Override], now: datetime) -> Overrides:
    """Return the overrides that hold at an instant, of all that were set and not cleared."""
    brake: Override | None = None
    epoch: Override | None = None
    suspended: dict[str, Override] = {}
    exempt: dict[str, dict[str, Override]] = {}
    ends: list[datetime] = []
    for one in overrides:
        if one.ended(now):
            continue
        if one.until is not None:
            ends.append(one.until)
        if one.kind == "brake":
            brake = one
        elif one.kind == "epoch":
            epoch = one
        elif one.kind == "suspension":
            suspended[one.host] = one
        else:
            exempt.setdefault(one.host, {})[one.vr] = one
    return Overrides(brake, suspended, exempt, epoch, min(ends, default=None))


def stops_ladders(mode: BrakeMode, *, counted: bool) -> bool:
    """Whether all ladders are stopped.

    Args:
        mode: mode of the brake set by operators.
        counted: whether too many routers are guilty.
    """
    return mode == "on" or (mode == "automatic" and counted)


def braked(mode: BrakeMode, counted: Collection[str]) -> tuple[bool, frozenset[str]]:
    """Return whether all ladders are stopped, and the hosts on which only theirs are.

    Args:
        mode: mode of the brake set by operators.
        counted: the hosts with too many guilty routers; `FLEET` is the fleet.
    """
    hosts = frozenset() if mode == "off" else frozenset(counted) - {FLEET}
    return stops_ladders(mode, counted=FLEET in counted), hosts


def excused(
    contracts: Mapping[str, Contract], exempt: Mapping[str, Override]
) -> Mapping[str, Contract]:
    """Return a host's contracts, with punishment disabled for exempt routers."""
    if not exempt:
        return contracts
    return {
        vr: msgspec.structs.replace(contract, punish="never") if vr in exempt else contract
        for vr, contract in contracts.items()
    }


def problems(override: Override, now: datetime) -> Iterator[Problem]:
    """Yield the reasons why an override cannot be set at an instant, by field."""
    if not _REASON.fullmatch(override.reason):
        problem = f"it is longer than {MOST_REASON} characters, or has control characters"
        yield Problem("reason", problem, f"write one line of at most {MOST_REASON} characters")
    if override.kind == "epoch":
        yield from _problems_of_epoch(override.above, now)
    else:
        yield from _problems_of_end(override, now)


def _problems_of_end(override: Override, now: datetime) -> Iterator[Problem]:
    longest = LONGEST[override.kind]
    if override.until is None:
        if override.kind == "exemption":
            fix = f"give one at most {longest.days} days ahead; for good, change its contract"
            yield Problem("until", "an exemption must have an end", fix)
    elif override.mode == "automatic":
        yield Problem("until", "an automatic brake has no end", "leave it out")
    elif override.until.tzinfo is None:
        yield Problem("until", "it has no time zone", "give one, such as Z")
    elif override.until <= now:
        yield Problem("until", "it is over", "give an instant to come")
    elif override.until - now > longest:
        problem = f"it is more than {longest.days} days ahead"
        yield Problem("until", problem, "give an earlier instant; set it again when that is near")


def _problems_of_epoch(above: int | None, now: datetime) -> Iterator[Problem]:
    most = highest_possible(now.timestamp()) - 1
    if above is None or above < 0:
        yield Problem("above", f"{above} is no epoch", "give the epoch in the daemon's refusal")
    elif above > most:
        problem = f"{above} is years ahead of the clock: daemons refuse an epoch above {most + 1}"
        fix = f"give {most} or less; on a host that obeys a higher one, run `xtc epoch reset`"
        yield Problem("above", problem, fix)


def words_of(override: Override) -> str:
    """Describe for an event what an override does, until when, and why."""
    does = {
        "automatic": "the brake is automatic",
        "on": "the brake is on: escalation is stopped",
        "off": "the brake is off: escalation goes on, however many routers misbehave",
        "suspended": "control is suspended: the policer sends nothing to this host",
        "exempt": "it is exempt: no measure is in force, and none will be taken",
        "above": f"the leader is to take an epoch above {override.above}",
    }[override.mode]
    end = "" if override.until is None else f", until {moment(override.until)}"
    return f"{does}{end}" + (f": {override.reason}" if override.reason else "")


def end_words(kind: Kind) -> str:
    """Describe for an event what holds again without an override."""
    return {
        "brake": "the brake is automatic again",
        "suspension": "control is resumed",
        "exemption": "escalation applies to it again, from the first step",
        "epoch": "the leader keeps its epoch",
    }[kind]


def moment(at: datetime) -> str:
    """Format an instant to the second, in UTC (RFC 3339)."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

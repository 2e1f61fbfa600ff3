"""Requests and answers about overrides."""

from datetime import datetime
from typing import Annotated

import msgspec

from policer.contracts.host import HostName
from policer.contracts.overrides import MOST_REASON, BrakeMode, Kind, Mode, Override
from xtc.wire import VrName

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Reason = Annotated[
    str,
    msgspec.Meta(
        max_length=MOST_REASON,
        pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)",
        description="Why, in one line; shown wherever the override is, and kept in the audit log.",
    ),
]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class NewBrake(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """New mode of the brake."""

    mode: BrakeMode
    """`on`: ladders are stopped; `off`: ladders are climbed, however many routers are guilty;
    `automatic`: the count of guilty routers decides."""
    until: Moment | None = None
    """When it becomes automatic again, at most 366 days ahead; null is when an operator sets
    that."""
    reason: Reason = ""


class NewSuspension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stops all orders of the policer to a host."""

    until: Moment | None = None
    """When control is resumed, at most 366 days ahead; null is when the suspension is removed."""
    reason: Reason = ""


class NewExemption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stops a router's ladder."""

    until: Moment
    """When its ladder applies again, at most 30 days ahead."""
    reason: Reason = ""


class NewEpoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Makes the leader take a higher epoch."""

    above: Epoch
    """The epoch that a daemon obeys, from its refusal."""
    reason: Reason = ""


class OverrideAnswer(msgspec.Struct, frozen=True):
    """A decision of an operator that replaces the policer's."""

    kind: Kind
    mode: Mode
    """`on`, `off` or `automatic` for a brake; each other kind has one mode."""
    host: HostName | None
    """null is the fleet, or a router that its contract follows from host to host."""
    vr: VrName | None
    """null is no router in particular; the contract's name if the contract follows its router."""
    until: datetime | None
    """null holds until it is removed."""
    reason: str
    above: int | None
    """For an epoch: the next one must exceed this."""
    set_by: str
    set_at: datetime | None
    version: int
    """The number in its ETag."""


class OverridePage(msgspec.Struct, frozen=True):
    """Current overrides, by kind, host and router."""

    items: list[OverrideAnswer]
    next: str | None = None


class CountedBrake(msgspec.Struct, frozen=True):
    """A brake put on by the count of guilty routers."""

    host: HostName | None
    """null is the fleet's brake."""
    since: datetime


class BrakeAnswer(msgspec.Struct, frozen=True):
    """Mode and state of the brake."""

    mode: BrakeMode
    until: datetime | None
    """When it becomes automatic again; null is when an operator sets that."""
    reason: str
    set_by: str
    set_at: datetime | None
    version: int
    """The number in its ETag."""
    braked: bool
    """Whether all ladders of the fleet are stopped now, by the count or by an operator."""
    braked_hosts: list[HostName]
    """Hosts on which ladders are stopped now, by the count."""
    counted: list[CountedBrake]
    """Brakes put on by the count, even if overridden; only the leader counts."""
    leading: bool
    """Whether this policer leads, and so counts."""


def override_answer(override: Override) -> OverrideAnswer:
    """Return the answer for an override."""
    return OverrideAnswer(
        kind=override.kind,
        mode=override.mode,
        host=override.host or None,
        vr=override.vr or None,
        until=override.until,
        reason=override.reason,
        above=override.above,
        set_by=override.by,
        set_at=override.at,
        version=override.version,
    )

"""What is sent and answered about overrides."""

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
    """What the brake is to do."""

    mode: BrakeMode
    """`on`: no ladder is climbed; `off`: ladders are, however many routers are guilty;
    `automatic`: the count of guilty routers decides."""
    until: Moment | None = None
    """When it is automatic again, at most 366 days ahead; null is when that is set."""
    reason: Reason = ""


class NewSuspension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That the policer is to send nothing to a host."""

    until: Moment | None = None
    """When control is resumed, at most 366 days ahead; null is when the suspension is removed."""
    reason: Reason = ""


class NewExemption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That a router's ladder is not to be climbed."""

    until: Moment
    """When its ladder applies again, at most 30 days ahead."""
    reason: Reason = ""


class NewEpoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That the leader is to take a higher epoch."""

    above: Epoch
    """The epoch that a daemon obeys, by its refusal."""
    reason: Reason = ""


class OverrideAnswer(msgspec.Struct, frozen=True):
    """What an operator decided instead of the policer."""

    kind: Kind
    mode: Mode
    """Of a brake `on`, `off` or `automatic`; each other kind has one mode."""
    host: HostName | None
    """null is the fleet, or a router that its contract follows from host to host."""
    vr: VrName | None
    """null is no router in particular; of a contract that follows its router, that is its name."""
    until: datetime | None
    """null stands until it is removed."""
    reason: str
    above: int | None
    """Of an epoch: what the next one is to be higher than."""
    set_by: str
    set_at: datetime | None
    version: int
    """The number in its ETag."""


class OverridePage(msgspec.Struct, frozen=True):
    """The overrides that stand, by kind, host and router."""

    items: list[OverrideAnswer]
    next: str | None = None


class CountedBrake(msgspec.Struct, frozen=True):
    """A brake that the count of guilty routers puts on."""

    host: HostName | None
    """null is the fleet's."""
    since: datetime


class BrakeAnswer(msgspec.Struct, frozen=True):
    """What the brake is to do, and what it does."""

    mode: BrakeMode
    until: datetime | None
    """When it is automatic again; null is when that is set."""
    reason: str
    set_by: str
    set_at: datetime | None
    version: int
    """The number in its ETag."""
    braked: bool
    """Whether no ladder is climbed in the fleet now, by the count or by an operator."""
    braked_hosts: list[HostName]
    """Hosts whose own ladders are stopped now, by the count."""
    counted: list[CountedBrake]
    """What the count puts on, whether it is heeded or not; the leader alone counts."""
    leading: bool
    """Whether this policer leads, and so counts."""


def override_answer(override: Override) -> OverrideAnswer:
    """Return an override as it is answered."""
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

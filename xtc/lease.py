"""Leases: a setpoint with epoch, sequence and time to live; lower epochs are never obeyed."""

import math
from enum import Enum
from typing import Annotated

import msgspec

from xtc.errors import Refused
from xtc.units import MAX_RATE, PacketsPerSecond, Seconds

Rate = Annotated[float, msgspec.Meta(gt=0, le=MAX_RATE)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62) - 1)]


class Kind(Enum):
    """Why the setpoint was given."""

    NORMAL = "normal"
    PUNISHMENT = "punishment"
    """Stays until it ends: blinding the meter or a new ordinary lease does not lift it."""


class Lease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setpoint, who gave it (epoch and sequence), and until when it holds."""

    setpoint_pps: Rate
    epoch: Count = 0
    sequence: Count = 0
    expires_at: float | None = None
    """Instant of the monotonic clock; None holds for ever."""
    kind: Kind = Kind.NORMAL
    configured: bool = False
    """Whether the setpoint is the configuration's own, and changes with it."""

    @property
    def setpoint(self) -> PacketsPerSecond:
        """The throughput that the router is to be held at."""
        return PacketsPerSecond(self.setpoint_pps)

    def configured_as(self, setpoint: PacketsPerSecond) -> "Lease":
        """Return the configuration's lease after this one; what was ordered before stays old."""
        return Lease(
            setpoint_pps=setpoint, epoch=self.epoch, sequence=self.sequence, configured=True
        )

    def ended(self) -> "Lease":
        """Return this lease, over."""
        return msgspec.structs.replace(self, expires_at=0.0)

    def expired(self, now: Seconds) -> bool:
        """Whether the lease holds no more."""
        return self.expires_at is not None and now >= self.expires_at

    def remaining(self, now: Seconds) -> float:
        """Return the seconds left; infinity for a lease without end."""
        return math.inf if self.expires_at is None else max(0.0, self.expires_at - now)


def check_successor(
    current: Lease | None, offer: Lease, now: Seconds, *, highest_epoch: int
) -> None:
    """Refuse a lease that must not take the place of the present one.

    Raises:
        Refused: the epoch is lower than the highest ever seen, the sequence is not higher within
            the same epoch, or a punishment still runs and this is none.
    """
    if offer.epoch < highest_epoch:
        raise Refused(
            "stale_epoch",
            "epoch",
            f"{offer.epoch} is lower than {highest_epoch}, which this host has already obeyed",
            f"by hand, give --epoch {highest_epoch} and a --sequence above the last, which `xtc "
            "status` shows; a policer that lost its leadership must stop; `xtc epoch reset` undoes "
            "an epoch that was given by mistake",
        )
    if current is None:
        return
    if offer.epoch == current.epoch > 0 and offer.sequence <= current.sequence:
        raise Refused(
            "stale_sequence",
            "sequence",
            f"{offer.sequence} is not above {current.sequence} of the same epoch",
            "messages were repeated or came out of order; send the next sequence",
        )
    punished = current.kind is Kind.PUNISHMENT and not current.expired(now)
    if punished and offer.kind is not Kind.PUNISHMENT:
        raise Refused(
            "punished",
            "kind",
            f"a punishment holds for another {current.remaining(now):.0f} s",
            "end it with a punishment lease of your own, or deactivate the router",
        )

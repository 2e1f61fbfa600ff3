"""Leases: a setpoint with epoch, sequence and time to live; stale epochs are never accepted."""

import math
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from common.setpoint import Setpoint, Unit, one_of
from common.units import MAX_BIT_RATE, MAX_RATE, MIN_BIT_RATE, Seconds
from xtc.errors import Refused

Rate = Annotated[float, msgspec.Meta(gt=0, le=MAX_RATE)]
BitRate = Annotated[float, msgspec.Meta(ge=MIN_BIT_RATE, le=MAX_BIT_RATE)]
Burst = Annotated[float, msgspec.Meta(ge=1, le=MAX_BIT_RATE)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62) - 1)]


class Kind(Enum):
    """Why the setpoint was given."""

    NORMAL = "normal"
    PUNISHMENT = "punishment"
    """Stays until it ends: a blind meter or a new ordinary lease does not lift it."""


FIRST_EPOCH: Final = 1_780_000_000
"""Seconds since 1970 in June 2026: an earlier clock is wrong."""
YEARS_AHEAD: Final = 10 * 365 * 86_400
"""How far an epoch may be ahead of the clock."""


class Lease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A setpoint with its origin (epoch and sequence) and expiry.

    Only the unit in force is written to the journal, so that a daemon that supports packets only
    can read the leases in packets.
    """

    setpoint_pps: Rate | msgspec.UnsetType = msgspec.UNSET
    setpoint_bps: BitRate | msgspec.UnsetType = msgspec.UNSET
    """Replaces the setpoint in packets/s."""
    epoch: Count = 0
    sequence: Count = 0
    expires_at: float | None = None
    """Instant of the monotonic clock; None means no expiry."""
    kind: Kind = Kind.NORMAL
    configured: bool = False
    """Whether the setpoint comes from the configuration, and changes with it."""
    burst: Burst | msgspec.UnsetType = msgspec.UNSET
    """What the setpoint allows beyond its rate, in packets or bits; unset means the default."""

    def __post_init__(self) -> None:
        one_of(_given(self.setpoint_pps), _given(self.setpoint_bps))

    @staticmethod
    def of(setpoint: Setpoint, **terms: Any) -> "Lease":
        """Return a lease of a setpoint in either unit; the terms are the other fields."""
        if setpoint.burst is not None:
            terms["burst"] = setpoint.burst
        if setpoint.bps is not None:
            return Lease(setpoint_bps=setpoint.bps, **terms)
        return Lease(setpoint_pps=setpoint.rate, **terms)

    @property
    def setpoint(self) -> Setpoint:
        """The throughput to hold."""
        return _setpoint(self.setpoint_pps, self.setpoint_bps, self.burst)

    @property
    def unit(self) -> Unit:
        """The unit of the setpoint."""
        return Unit.PACKETS if self.setpoint_bps is msgspec.UNSET else Unit.BITS

    @property
    def target(self) -> float:
        """The setpoint in the loop's unit: packets/s or kilobits/s."""
        return self.setpoint.target

    def configured_as(self, setpoint: Setpoint) -> "Lease":
        """Return the configuration's lease after this one; earlier orders stay stale."""
        return Lease.of(setpoint, epoch=self.epoch, sequence=self.sequence, configured=True)

    def ended(self) -> "Lease":
        """Return this lease, expired."""
        return msgspec.structs.replace(self, expires_at=0.0)

    def expired(self, now: Seconds) -> bool:
        """Whether the lease has expired."""
        return self.expires_at is not None and now >= self.expires_at

    def remaining(self, now: Seconds) -> float:
        """Return the seconds left; infinity for a lease without end."""
        return math.inf if self.expires_at is None else max(0.0, self.expires_at - now)


@lru_cache(maxsize=4096)
def _setpoint(
    pps: float | msgspec.UnsetType, bps: float | msgspec.UnsetType, burst: float | msgspec.UnsetType
) -> Setpoint:
    """Return the setpoint of a lease's fields; laws, shields and reports call this every period."""
    return one_of(_given(pps), _given(bps), _given(burst))


def _given(rate: float | msgspec.UnsetType) -> float | None:
    return None if isinstance(rate, msgspec.UnsetType) else rate


def check_epoch(epoch: int, wall: float) -> None:
    """Refuse an impossible epoch: it would lock out all policers permanently.

    Args:
        epoch: the highest epoch from now on.
        wall: seconds since 1970 by this host's clock, which may be wrong after a boot.

    Raises:
        Refused: it is years ahead of the clock.
    """
    most = highest_possible(wall)
    if epoch > most:
        raise Refused(
            "epoch_ahead",
            "epoch",
            f"{epoch} is years ahead of the clock (epochs are seconds since 1970)",
            f"give {most} or less, or check it for a typing error",
        )


def highest_possible(wall: float) -> int:
    """Return the highest plausible epoch at a time of day, in seconds since 1970."""
    return int(max(wall, FIRST_EPOCH)) + YEARS_AHEAD


def check_successor(
    current: Lease | None, offer: Lease, now: Seconds, *, highest_epoch: int
) -> None:
    """Refuse a lease that must not replace the current one.

    Raises:
        Refused: the epoch is lower than the highest ever seen, the sequence is not higher within
            the same epoch, or a punishment is in force and this is none.
    """
    if offer.epoch < highest_epoch:
        raise Refused(
            "stale_epoch",
            "epoch",
            f"{offer.epoch} is lower than {highest_epoch}, which this host has already accepted",
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

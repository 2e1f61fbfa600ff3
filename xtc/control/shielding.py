"""The rate of a controlled router's shield: exactly what the router should forward.

The shield holds the rate. Not all arriving packets are forwarded (a firewall drops some, others are
for the router itself), so the law learns how many packets must arrive for each forwarded one. It
learns where the cap does not bind, since a binding cap may cause the loss. It also learns at the
cap's ceiling: a polling router (VPP), or one without CPU counters, seems bound at any load, and its
cap rises in vain.

A router that makes the shield open and then forwards everything exceeds its promise until a period
has shown this. Then the shield closes, and passes less until the surplus is paid back: over time,
the router gains only a burst.
"""

from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit
from common.units import MAX_BIT_RATE, MAX_RATE, PacketsPerSecond, Seconds

KEPT: Final = 0.98
"""Share of its setpoint from which a router's promise counts as kept."""
MOST: Final = 16.0
"""Maximum packets passed for each one to forward; the minimum is its reciprocal, for routers that
send more than they receive (fragmenting tunnels, multicast)."""
RISE: Final = 2.0
"""Maximum factor by which that ratio rises in one step."""
PERIODS: Final = 3
"""Periods to average before deciding that too little is forwarded, or that opening has helped."""
QUEUES: Final = 2
"""Bursts that may wait in a router's queues: anything missing beyond that is lost, ..."""
MOST_QUEUED_S: Final = 1.0
"""... and so is more than this, in seconds of the setpoint."""
LONGEST_S: Final = 30.0
"""Seconds after which a small deficit is forgotten."""
HELPED: Final = 0.5
"""Minimum share of the expected gain that opening must achieve."""
REST: Final = 60
"""Periods until the next opening after one that did not help."""
GAIN: Final = 0.2
"""Share of a small difference that is followed in a period."""
TRUST: Final = 1.02
"""Factor by which a shield may open beyond what a trial has proven."""
PAYBACK: Final = 2.0
"""Periods in which a surplus is paid back, ..."""
LEAST_SHARE: Final = 0.5
"""... while the router gets at least this share of its setpoint."""
UNCOUNTED: Final = 2
"""Packets that a period may count although they belong to the next."""
_LARGEST_BITS: Final = 8 * 1518
_BOUNDS: Final = {Unit.PACKETS: (1.0, MAX_RATE), Unit.BITS: (1e3, MAX_BIT_RATE)}


@dataclass(frozen=True, slots=True)
class Seen:
    """Measurements of a shielded router in a period; rates in the loop's unit."""

    throughput: float
    arrived: float
    """Rate that reached the router: what the shield passed, and other traffic."""
    dropped: float
    """Rate that the shield dropped."""
    binding: bool
    """Whether its cap limited the router, and may still rise."""
    elapsed: float = 1.0
    """The period's length in seconds."""


class Trial(msgspec.Struct, frozen=True, gc=False):
    """The state before the shield was opened."""

    arriving: float
    throughput: float


class Shielding(msgspec.Struct, frozen=True, gc=False):
    """Knowledge about a router."""

    arriving: float = 1.0
    """Packets that must arrive for each one that it forwards."""
    proven: float = 1.0
    """The same, as far as it was proven to help."""
    ahead: float = 0.0
    """What it forwarded beyond its setpoint, in seconds of it; more than a burst is a surplus."""
    share: float = 1.0
    """Share of its setpoint that it gets while it pays back."""
    periods: int = 0
    """Consecutive periods with too little throughput; the next two are totals over them."""
    throughput: float = 0.0
    arrived: float = 0.0
    missing: float = 0.0
    """What arrived in them without being forwarded, in seconds of the setpoint."""
    seconds: float = 0.0
    """Their total length."""
    trial: Trial | None = None
    rest: int = 0
    """Periods until it may be opened again."""

    def rate(self, setpoint: Setpoint) -> Setpoint:
        """Return the rate that the shield passes, at least 1 packet/s or 1 kb/s."""
        least, most = _BOUNDS[setpoint.unit]
        times = self.arriving * self.share
        rate = min(max(least, times * setpoint.rate), most)
        return Setpoint(rate, setpoint.unit, times * setpoint.allowance)


def learned(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return the knowledge after one more period.

    A router short of CPU forwards as little as one that drops packets by policy, but it does not
    forward more when more arrives: then the shield closes again, and rests.
    """
    paying = shielding.share < 1
    shielding, excess = _with_debt(shielding, setpoint, seen)
    if seen.dropped <= 0:
        return _anew(shielding)
    if excess > 0 and seen.throughput > setpoint.target:
        return _closed(shielding, setpoint, seen)
    if paying:
        return _anew(shielding)
    kept = seen.throughput >= KEPT * setpoint.target
    if seen.binding:
        return _anew(shielding) if kept else shielding
    if kept or shielding.arriving < 1:
        return _followed(shielding, seen)
    return _missed(shielding, setpoint, seen)


def _missed(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Return the knowledge after one more period with too little throughput."""
    shielding = _with_loss(shielding, setpoint, seen)
    if shielding.periods < PERIODS:
        return shielding
    if shielding.missing > min(QUEUES * setpoint.allowance / setpoint.rate, MOST_QUEUED_S):
        return _judged(shielding)
    return _anew(shielding) if shielding.seconds > LONGEST_S else shielding


def _with_loss(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Count what a router with too little throughput retains: permanently, or in its queue."""
    lost = (seen.arrived - seen.throughput) / setpoint.target * seen.elapsed
    return replace(
        shielding,
        periods=shielding.periods + 1,
        throughput=shielding.throughput + seen.throughput,
        arrived=shielding.arrived + seen.arrived,
        missing=shielding.missing + lost,
        seconds=shielding.seconds + seen.elapsed,
    )


def _with_debt(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> tuple[Shielding, float]:
    """Count what was forwarded beyond the promise; also return it in seconds of the setpoint."""
    gained = (seen.throughput / setpoint.target - 1) * seen.elapsed
    uncounted = UNCOUNTED * (1 if setpoint.unit is Unit.PACKETS else _LARGEST_BITS)
    allowed = (setpoint.allowance + uncounted) / setpoint.rate
    # A period cannot have passed more; one wrong counter value must not cost minutes.
    ahead = min(max(0.0, shielding.ahead + gained), allowed + MOST * seen.elapsed)
    excess = max(0.0, ahead - allowed)
    share = max(LEAST_SHARE, 1 - excess / (PAYBACK * seen.elapsed))
    rest = max(0, shielding.rest - 1)
    return replace(shielding, ahead=ahead, share=share, rest=rest), excess


def _closed(shielding: Shielding, setpoint: Setpoint, seen: Seen) -> Shielding:
    """Reduce the shield of a router that forwards more than promised to its need.

    Where its cap bound, it may need even less. Sending more than arrives may only be a draining
    queue.
    """
    before = shielding.arriving
    needed = min(_ratio(seen.arrived, seen.throughput), before)
    if seen.binding:
        needed = min(needed, max(1.0, before / RISE))
    gently = seen.throughput < TRUST * setpoint.target
    if gently or needed < 1:
        least = before if gently else min(before, 1.0)
        needed = least + GAIN * (needed - least)
    needed = max(1 / MOST, needed)
    proven = min(shielding.proven, needed)
    return _anew(replace(shielding, arriving=needed, proven=proven, trial=None))


def _followed(shielding: Shielding, seen: Seen) -> Shielding:
    """Follow the need of a router that gets its promise, as far as it was proven."""
    arriving = shielding.arriving
    proven = arriving if shielding.trial is not None else min(shielding.proven, arriving)
    ratio = _ratio(seen.arrived, seen.throughput)
    most = max(1.0, TRUST * proven) if proven > 1.0 else 1.0
    gain = 1.0 if arriving < min(ratio, 1.0) else GAIN  # the excess was a queue
    needed = min(arriving + gain * (ratio - arriving), most)
    needed = max(needed, min(arriving, 1.0))
    return _anew(replace(shielding, arriving=needed, proven=proven, trial=None))


def _judged(shielding: Shielding) -> Shielding:
    """Return the decision after some periods with too little throughput."""
    before, trial = shielding.arriving, shielding.trial
    throughput = shielding.throughput / shielding.periods
    if trial is not None and not _has_helped(trial, before, throughput):
        failed = replace(shielding, arriving=trial.arriving, trial=None, rest=REST)
        return _anew(failed)
    reached = min(_ratio(shielding.arrived, shielding.throughput), RISE * before, MOST)
    if shielding.rest or reached <= before:
        return _anew(replace(shielding, trial=None))
    opened = replace(shielding, arriving=reached, proven=before, trial=Trial(before, throughput))
    return _anew(opened)


def _has_helped(trial: Trial, arriving: float, throughput: float) -> bool:
    """Whether throughput rose with arrivals."""
    return _ratio(throughput, trial.throughput) - 1 >= HELPED * (arriving / trial.arriving - 1)


def _ratio(part: float, whole: float) -> float:
    if whole > 0:
        return part / whole
    return MOST if part > 0 else 1.0


def _anew(shielding: Shielding) -> Shielding:
    """Restart counting periods with too little throughput."""
    return replace(shielding, periods=0, throughput=0.0, arrived=0.0, missing=0.0, seconds=0.0)


@dataclass
class Shielded:
    """State of one router's shield."""

    law: Shielding = Shielding()
    setpoint: Setpoint | None = None
    """The setpoint for which it was set."""
    rate: Setpoint | None = None
    """Its rate, in the setpoint's unit; None where there is no shield."""
    claimed: tuple[str, ...] = ()
    """The interfaces in the journal that may have it."""
    asked: tuple[str, ...] = ()
    """The interfaces that needed it at the last check."""
    problem: str = ""
    """Why some interfaces lack it."""
    overruled: str = ""
    """Which filters of other owners decide before it."""
    dropped: PacketsPerSecond | None = PacketsPerSecond(0.0)
    """What it dropped in the last period, in packets/s; None while unknown."""
    counted: int | None = None
    """Its drop count at the last check."""
    looked_at: Seconds = Seconds(0.0)
    elapsed: Seconds = Seconds(1.0)
    """The time covered by the last check."""
    before: Setpoint | None = None
    """The largest earlier setpoint in this period."""
    fresh: bool = False
    """Whether it was set in the middle of this period."""
    whole: bool = False
    """Whether it was in force during the whole last period: only then does that period count."""
    periods: int = 0
    """Periods since the interfaces were last checked."""
    disturbed: bool = False
    """Whether the interfaces could not be counted in the last period: one may have been
    replaced."""

    @property
    def stands(self) -> bool:
        """Whether it is on every interface, and effective there."""
        return self.rate is not None and not (self.problem or self.overruled)

"""One running loop for one router: turns a sample into a command, without carrying it out.

The ladder of modes is a function of how long the loop has been blind, in periods T:

    CLOSED_LOOP  < 2T    the law decides; for one missing sample the cap stays
    HOLD         ≥ 2T    the cap stays
    DEGRADED     ≥ 5T    the cap goes to the safe cap, where one is configured
    RELEASED     ≥ 30T   the original is restored; the loop restarts when samples return

A punished router keeps its cap until its lease ends, even if the meter is blind.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from common.setpoint import Setpoint, Unit
from common.units import CapFraction, Seconds
from xtc.control.adaptive import AdaptiveLaw, is_binding
from xtc.control.dither import Dithered, dither, slots_for
from xtc.control.headroom import (
    IN_A_ROW,
    TOO_LITTLE,
    Headroom,
    is_held,
    is_short,
    stepped,
    wanted,
)
from xtc.control.law import Bounds, Law, Reason, Sample
from xtc.control.prior import Prior
from xtc.lease import Kind, Lease
from xtc.modes import Finding, Mode

HOLD_AFTER = 2
DEGRADE_AFTER = 5
RELEASE_AFTER = 30
"""Blind periods; the timing inequality in docs/reference/timing.md depends on these three."""

LEAST_STEP = Seconds(0.2)
"""The shortest step of the ladder: a faster loop climbs it as slowly as one of this period, since
the causes of blindness take time, and a release lets a flood pass."""

UNRESPONSIVE_AFTER = 3
"""Samples at the floor without effect before the router is called unresponsive."""
RETRY_UNRESPONSIVE = 60
"""Periods until an unresponsive router is tried again."""
NO_EFFECT = 0.8
"""A throughput that keeps this share of its former value has not responded to the cap."""
TOO_MUCH = 1.1
"""At this multiple of the setpoint, a router at its floor is clearly not held."""
MOST_PER_CPU = 50e6
"""More packets than any software forwards in a second of one CPU; a router above it uses other
CPUs."""
WAITED = 0.1
"""Minimum share of time that a router has waited for a CPU if it lacks CPU."""


def ladder_step(period: Seconds) -> Seconds:
    """Return the length of a step of the ladder, in seconds."""
    return max(period, LEAST_STEP)


class Act(Enum):
    """The operation on a router's cap."""

    KEEP = "keep"
    SET = "set"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Command:
    """The work of the shell for one router in this period."""

    act: Act
    period: Dithered | None = None
    """The cap, or the two neighbouring caps, of a SET."""


KEEP = Command(Act.KEEP)
RELEASE = Command(Act.RELEASE)


@dataclass(frozen=True, slots=True)
class Profile:
    """The constants of a running loop."""

    law: Law[Any]
    bounds: Bounds
    quantum: float = 0.0
    period: Seconds = Seconds(1.0)
    default_setpoint: Setpoint | None = None
    """The setpoint after the lease ends; None releases the router."""
    safe_cap: CapFraction | None = None
    slow: bool = False
    """Whether the actuator is too slow to change a cap within a period."""
    law_in_bits: Law[Any] = AdaptiveLaw()
    """The law while the setpoint is in bits/s."""

    def law_of(self, unit: Unit) -> Law[Any]:
        """Return the law for setpoints in a unit."""
        return self.law if unit is Unit.PACKETS else self.law_in_bits


class Watch(msgspec.Struct, frozen=True, gc=False):
    """State for detecting that a router does not respond to its cap."""

    reference: float | None = None
    """Packets/s when the cap was last well above the floor: they respond to it in any unit."""
    samples_at_floor: int = 0
    retry_in: int = 0


class Instance(msgspec.Struct, frozen=True):
    """The state of one loop."""

    lease: Lease
    seen_at: Seconds
    """Instant of the last sample."""
    mode: Mode = Mode.CLOSED_LOOP
    finding: Finding = Finding.SETTLING
    law_state: Any = None
    """None until the law has started, and again after a release."""
    owed: float = 0.0
    """Remainder of the cap that whole-percent dithering owes to the next period."""
    paused: bool = False
    capped: bool = False
    watch: Watch = Watch()
    headroom: Headroom = Headroom()
    prior: Prior | None = None
    """Knowledge from an earlier run, in this lease's unit."""

    @property
    def setpoint(self) -> Setpoint:
        """The throughput to hold."""
        return self.lease.setpoint

    def given(self, lease: Lease) -> "Instance":
        """Return the loop under another lease; knowledge in another unit is dropped.

        The cap stays, and the law starts again from it.
        """
        if lease.unit is self.lease.unit:
            return replace(self, lease=lease)
        return replace(
            self, lease=lease, law_state=None, watch=Watch(), headroom=Headroom(), prior=None
        )


def step(
    instance: Instance, profile: Profile, now: Seconds, sample: Sample | None
) -> tuple[Instance, Command]:
    """Return the loop's next state and the command of this period; `None` is a blind period."""
    instance, lease_command = _with_valid_lease(instance, profile, now)
    if lease_command is not None:
        return instance, lease_command
    if instance.paused:
        return replace(instance, mode=Mode.MANUAL, seen_at=now), KEEP
    sample = None if sample is None else sample.counted_in(instance.lease.unit)
    if sample is None or not math.isfinite(sample.throughput):
        return _blind(instance, profile, now)
    instance = replace(instance, seen_at=now)
    if instance.watch.retry_in > 0:
        waiting = replace(instance.watch, retry_in=instance.watch.retry_in - 1)
        return replace(instance, watch=waiting), KEEP
    return _seeing(instance, profile, sample)


def _with_valid_lease(
    instance: Instance, profile: Profile, now: Seconds
) -> tuple[Instance, Command | None]:
    """Fall back to the configured setpoint when a lease ends; without one, release."""
    if not instance.lease.expired(now):
        return instance, None
    if profile.default_setpoint is not None:
        return instance.given(instance.lease.configured_as(profile.default_setpoint)), None
    return released(instance, Finding.LEASE_ENDED), RELEASE if instance.capped else KEEP


def released(instance: Instance, finding: Finding) -> Instance:
    """Return the loop after the release of its router."""
    return replace(
        instance,
        mode=Mode.RELEASED,
        finding=finding,
        law_state=None,
        owed=0.0,
        capped=False,
        headroom=Headroom(),
    )


def _blind(instance: Instance, profile: Profile, now: Seconds) -> tuple[Instance, Command]:
    periods = (now - instance.seen_at) / ladder_step(profile.period) + 1e-6
    # Only the shield holds an unresponsive router, and it ends here like a cap.
    if instance.finding is Finding.UNRESPONSIVE and periods >= RELEASE_AFTER:
        return replace(instance, finding=Finding.BLIND, watch=Watch()), KEEP
    if instance.mode is Mode.RELEASED or periods < HOLD_AFTER:
        return instance, KEEP
    held = replace(instance, finding=Finding.BLIND)
    if periods < DEGRADE_AFTER or instance.lease.kind is Kind.PUNISHMENT:
        return replace(held, mode=Mode.HOLD), KEEP
    if periods < RELEASE_AFTER:
        return _degraded(held, profile)
    return released(instance, Finding.BLIND), RELEASE if instance.capped else KEEP


def _degraded(instance: Instance, profile: Profile) -> tuple[Instance, Command]:
    """Go to the safe cap, from which the law restarts after blindness."""
    instance = replace(instance, mode=Mode.DEGRADED)
    if profile.safe_cap is None or not instance.capped:
        return instance, KEEP
    period, _ = spent(profile.safe_cap, profile)
    return replace(instance, law_state=None), Command(Act.SET, period)


def _seeing(instance: Instance, profile: Profile, sample: Sample) -> tuple[Instance, Command]:
    watch = _watched(instance.watch, profile.bounds, sample, instance.lease)
    instance = replace(instance, mode=Mode.CLOSED_LOOP, watch=watch)
    if watch.samples_at_floor >= UNRESPONSIVE_AFTER:
        given_up = released(instance, Finding.UNRESPONSIVE)
        return replace(given_up, watch=Watch(retry_in=RETRY_UNRESPONSIVE)), RELEASE
    law, target = profile.law_of(instance.lease.unit), instance.lease.target
    state = instance.law_state
    if state is None:
        state = _started(law, sample.cap, instance.prior)
    memory, decision = stepped(law, (state, instance.headroom), target, sample, profile.bounds)
    state, headroom = memory
    instance = replace(instance, headroom=headroom)
    if decision.reason is Reason.NOT_BINDING and sample.cap is None:
        return replace(instance, law_state=state, finding=_unbound(sample, target)), KEEP
    period, owed = spent(decision.cap, profile, instance.owed)
    instance = replace(
        instance,
        law_state=state,
        owed=owed,
        capped=True,
        finding=_finding(decision.reason, sample, target, headroom),
    )
    return instance, Command(Act.SET, period)


def _started(law: Law[Any], cap: CapFraction | None, prior: Prior | None) -> Any:
    """Return the initial state of a law, with prior knowledge of the router."""
    return law.start(cap, prior) if isinstance(law, AdaptiveLaw) else law.start(cap)


def spent(cap: CapFraction, profile: Profile, owed: float = 0.0) -> tuple[Dithered, float]:
    """Return the parts of a period at a cap, all clamped to the bounds."""
    bounds = profile.bounds
    wanted = bounds.clamp(cap)
    slots = slots_for(wanted, profile.quantum, slow=profile.slow)
    period, owed = dither(wanted, profile.quantum, owed, slots)
    high, low = bounds.clamp(period.high), bounds.clamp(period.low)
    return Dithered(high, low, period.high_slots), owed


def _watched(watch: Watch, bounds: Bounds, sample: Sample, lease: Lease) -> Watch:
    """Count samples at the floor with the same throughput as far above it.

    This never lifts a punishment: a punished router must not end it by its traffic.
    """
    if lease.kind is Kind.PUNISHMENT:
        return Watch()
    if sample.cap is None or sample.cap > 4 * bounds.floor:
        return Watch(reference=sample.forwarded)
    no_effect = (
        sample.cap <= bounds.floor * 1.01
        and _is_too_much(sample, lease.target)
        and _has_not_fallen(watch, sample)
        and _forwards_elsewhere(sample)
    )
    return replace(watch, samples_at_floor=watch.samples_at_floor + 1 if no_effect else 0)


def _has_not_fallen(watch: Watch, sample: Sample) -> bool:
    """Whether throughput is as high as at a higher cap, or is all that a shield passes."""
    if sample.shielded:
        return sample.used is not None
    return watch.reference is not None and sample.forwarded > NO_EFFECT * watch.reference


def _is_too_much(sample: Sample, setpoint: float) -> bool:
    """Whether throughput is impossible for a router held by such a small cap.

    Behind a shield, throughput is never that high; the CPU is checked instead
    (`_forwards_elsewhere`).
    """
    if sample.shielded:
        return not is_short(sample, setpoint, TOO_LITTLE)
    return sample.throughput > TOO_MUCH * setpoint


def _forwards_elsewhere(sample: Sample) -> bool:
    """Whether the capped CPU cannot be the one that forwards.

    A quiet router with a sufficient floor uses what its packets cost, and a router throttled at its
    floor uses its cap.
    """
    if sample.used is None:
        return not sample.binding
    return sample.forwarded > MOST_PER_CPU * sample.used


def _finding(reason: Reason, sample: Sample, setpoint: float, headroom: Headroom) -> Finding:
    if sample.shielded and (reason is Reason.NOT_BINDING or not is_short(sample, setpoint)):
        return _behind_shield(sample, setpoint, headroom)
    if reason is Reason.NOT_BINDING:
        return _unbound(sample, setpoint)
    if _lacks_cpu(sample, setpoint, headroom) and not is_binding(sample):
        return Finding.STARVED
    if reason is Reason.AT_FLOOR and sample.throughput > TOO_MUCH * setpoint:
        return Finding.AT_FLOOR
    if reason is Reason.AT_CEILING:
        return Finding.AT_CEILING
    settled = abs(sample.throughput - setpoint) <= 0.1 * setpoint
    return Finding.NONE if settled else Finding.SETTLING


def _behind_shield(sample: Sample, setpoint: float, headroom: Headroom) -> Finding:
    """Return the finding for a router with a dropping shield and a cap that does not bind.

    With bursts, a shield drops even below the setpoint, and what it passes may wait in the router's
    queue until the next period.
    """
    if _lacks_cpu(sample, setpoint, headroom):
        return Finding.STARVED
    if sample.throughput > TOO_MUCH * setpoint:
        return Finding.SETTLING
    enough = sample.throughput >= TOO_LITTLE * setpoint
    return Finding.NONE if enough else Finding.NOT_BINDING


def _lacks_cpu(sample: Sample, setpoint: float, headroom: Headroom) -> bool:
    """Whether a router has forwarded less than its shield passes, for more than a moment."""
    short = sample.shielded and not is_held(sample, setpoint)
    return short and headroom.shorts >= IN_A_ROW


def _unbound(sample: Sample, setpoint: float) -> Finding:
    """Return why a router below its setpoint is not limited by its cap."""
    if sample.offered is None:
        return Finding.NOT_BINDING
    short = sample.throughput < TOO_LITTLE * wanted(sample, setpoint)
    return Finding.STARVED if short else Finding.NOT_BINDING


def proven(instance: Instance, waited: float | None) -> Instance:
    """Return the loop without the finding `starved` if the router did not wait for a CPU.

    Args:
        instance: the loop after its step.
        waited: the share of time in which the router waited; None where unknown.
    """
    lossy = instance.finding is Finding.STARVED and waited is not None and waited < WAITED
    return replace(instance, finding=Finding.NOT_BINDING) if lossy else instance

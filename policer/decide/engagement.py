"""When a host's routers are held: engaged before a guarantee suffers, let go when calm; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policer.decide.allocation import Claim, allocate, promised, use


@dataclass(frozen=True, slots=True)
class Habits:
    """How eager the policer is; shares are of the host's capacity."""

    engage: float = 0.85
    """Engage when the routers could use more than this."""
    calm: float = 0.7
    """Calm is when they could use less than this."""
    calm_rounds: int = 30
    """So many calm rounds in a row let the routers go."""
    suffering: float = 0.95
    """A router with less than this share of a guarantee that it could use lacks something."""
    lack: float = 0.4
    """One that lacks so much of a second's guarantee, summed over rounds, suffers."""
    same: float = 0.03
    """A setpoint that would change by no more than this share stays."""
    target: float = 0.95
    """What is shared out; the rest answers to those that wake."""
    squeeze: float = 0.85
    """While a guarantee suffers, so much of what was lent is left after each round: the host is
    slower than its model, or pays for packets that are dropped."""
    relax: float = 1.02
    """While none suffers, what is lent grows by this factor again ..."""
    margin: float = 0.97
    """... up to this share of where a guarantee suffered last ..."""
    forget: float = 1.0005
    """... which is forgotten by this factor in each round."""
    least: float = 0.3
    """Below this share of what could be lent, lending less mends nothing."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the last round decided."""

    engaged: bool = False
    calm: int = 0
    """Rounds in a row that were calm."""
    shared: float = 1.0
    """What is lent, as a share of what could be: less where guarantees suffered."""
    harmful: float = math.inf
    """What was lent when a guarantee began to suffer last; it is forgotten slowly."""
    lacks: Mapping[str, float] = field(default_factory=dict)
    """What each router lacked lately, in seconds of its guarantee."""
    yields: Mapping[str, float] = field(default_factory=dict)
    """Of routers that lending less did not help: what part of their load they forward at best.
    They drop the rest themselves (a firewall does), or their own CPU is too slow."""
    harmed: tuple[str, ...] = ()
    """Routers that have less than a guarantee which they could use."""
    setpoints: Mapping[str, float] = field(default_factory=dict)
    """In packets/s; a router that is not here is let go."""


def decide(
    claims: Sequence[Claim],
    forwarded: Mapping[str, float],
    capacity: float,
    last: Standing,
    habits: Habits,
    *,
    wasted: float = 0.0,
    carried: float = math.inf,
) -> Standing:
    """Return whom to hold at what from now on.

    Args:
        claims: of all routers of the host.
        forwarded: the throughput in packets/s of those that the host alone may hold back; a
            router that is not there (nobody knows, or its own cap holds it) lacks nothing now.
        capacity: of the host, in the unit of the claims' costs.
        last: what the round before decided.
        habits: the thresholds.
        wasted: what of the capacity goes into packets that routers drop.
        carried: what the host carried when it was found full, where that is less than its
            capacity: other work takes its CPUs, or they are slower than when it was measured.
    """
    load = sum(claim.cost * claim.useful for claim in claims)
    lacks = {c.vr: _lack(c, forwarded.get(c.vr), last, habits) for c in claims}
    suffering = {vr for vr, lack in lacks.items() if lack > habits.lack}
    harmed = tuple(
        vr for vr, lack in lacks.items() if vr in suffering or (vr in last.harmed and lack > 0)
    )
    calm = last.calm + 1 if load < habits.calm * capacity and not harmed else 0
    pressed = bool(suffering) or (len(claims) > 1 and load > habits.engage * capacity)
    engaged = pressed or (last.engaged and calm < habits.calm_rounds)
    kept = promised(claims)
    lent = max(0.0, habits.target * capacity - wasted - kept)
    left = habits.target * min(carried, capacity) - wasted - kept
    fits = max(habits.least, min(1.0, left / lent)) if lent > 0 else 1.0
    shared, harmful = _shared(last, habits, fits, suffering=bool(suffering))
    return Standing(
        engaged=engaged,
        calm=calm,
        shared=shared,
        harmful=harmful,
        lacks={vr: lack for vr, lack in lacks.items() if lack > 0},
        yields=_yields(claims, forwarded, last, suffering, habits),
        harmed=harmed,
        setpoints=(
            _held(claims, min(capacity, kept + shared * lent), capacity, last, habits)
            if engaged
            else {c.vr: c.ceiling for c in claims if _over_ceiling(c, last, habits)}
        ),
    )


def _lack(claim: Claim, forwarded: float | None, last: Standing, habits: Habits) -> float:
    """Return what a router lacks by now: much at once, or a little for long; noise cancels out."""
    before = last.lacks.get(claim.vr, 0.0)
    sent = last.yields.get(claim.vr, 1.0) * claim.certain
    due = min(claim.guarantee, claim.ceiling, sent)
    leeway = 1 - habits.suffering
    missed = 0.0 if forwarded is None or due <= 0 else 1 - forwarded / due
    return min(habits.lack + leeway, max(0.0, before + missed - leeway))


def _shared(last: Standing, habits: Habits, fits: float, *, suffering: bool) -> tuple[float, float]:
    """Return what share is lent now, and what was when a guarantee last began to suffer.

    Routers that were not held before get a round to answer, at what the host can carry (`fits`).
    """
    if suffering:
        harmful = last.harmful if last.harmed else last.shared
        squeezed = max(habits.least, habits.squeeze * last.shared) if last.engaged else last.shared
        return min(squeezed, fits), min(harmful, fits) if fits < 1 else harmful
    harmful = habits.forget * last.harmful
    margin = min(1.0, habits.margin * harmful)
    return min(habits.relax * last.shared, margin), harmful


def _yields(
    claims: Sequence[Claim],
    forwarded: Mapping[str, float],
    last: Standing,
    suffering: set[str],
    habits: Habits,
) -> dict[str, float]:
    """Return what routers forward at best, of those that did not recover at the least."""
    in_vain = last.engaged and last.shared <= habits.least
    after = {}
    for claim in claims:
        known, sent = last.yields.get(claim.vr), claim.certain
        if claim.vr not in forwarded or sent <= 0:
            reached = known
        elif in_vain and claim.vr in suffering:
            reached = forwarded[claim.vr] / sent
        else:
            reached = None if known is None else max(known, forwarded[claim.vr] / sent)
        if reached is not None and reached < habits.suffering:
            after[claim.vr] = reached
    return after


def _held(
    claims: Sequence[Claim], spent: float, capacity: float, last: Standing, habits: Habits
) -> dict[str, float]:
    """Return what all are held at: what is lent may be cut down, a guarantee never is."""
    wanted = allocate(claims, spent)
    settled = {c.vr: _settled(c, wanted[c.vr], last, habits.same) for c in claims}
    return settled if use(claims, settled) <= capacity else wanted


def _over_ceiling(claim: Claim, last: Standing, habits: Habits) -> bool:
    """Whether a router would pass its ceiling if let go; one that is held stays for a margin."""
    margin = habits.calm if claim.vr in last.setpoints else 1.0
    return claim.wanted > margin * claim.ceiling


def _settled(claim: Claim, wanted: float, last: Standing, same: float) -> float:
    """Keep a setpoint that would hardly change, if it keeps guarantee and ceiling."""
    before = last.setpoints.get(claim.vr)
    if before is None or abs(wanted - before) > same * before or before > claim.ceiling:
        return wanted
    return wanted if before < min(claim.guarantee, wanted) else before

"""When a host's routers are held: from before a guarantee suffers until the host is calm; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policer.decide.allocation import Claim, allocate, promised, use


@dataclass(frozen=True, slots=True)
class EngagementRules:
    """Thresholds of the engagement; shares are of the host's capacity."""

    engage: float = 0.85
    """Engage when the routers could use more than this."""
    calm: float = 0.7
    """The host is calm when the routers could use less than this."""
    calm_rounds: int = 30
    """Calm rounds in a row after which the routers are released."""
    suffering: float = 0.95
    """A router lacks throughput if it gets less than this share of a guarantee that it could
    use."""
    lack: float = 0.4
    """A router suffers once its lack, summed over rounds, is this share of a second's guarantee."""
    same: float = 0.03
    """A setpoint that would change by no more than this share stays."""
    target: float = 0.95
    """Share of the capacity that is shared out; the rest is a reserve for routers that wake up."""
    squeeze: float = 0.85
    """While a guarantee suffers, each round lends this factor of what it lent before: the host is
    slower than its model, or spends CPU on packets that are dropped."""
    relax: float = 1.02
    """While none suffers, each round raises what is lent by this factor ..."""
    margin: float = 0.97
    """... up to this share of the level at which a guarantee suffered last ..."""
    forget: float = 1.0005
    """... which each round raises by this factor, so that it is slowly forgotten."""
    least: float = 0.3
    """Below this share of what could be lent, lending less does not help."""


@dataclass(frozen=True, slots=True)
class EngagementState:
    """Result of the last round."""

    engaged: bool = False
    calm: int = 0
    """Calm rounds in a row."""
    shared: float = 1.0
    """What is lent, as a share of what could be: less after guarantees suffered."""
    harmful: float = math.inf
    """What was lent when a guarantee last began to suffer; slowly forgotten."""
    lacks: Mapping[str, float] = field(default_factory=dict)
    """What each router lacked recently, in seconds of its guarantee."""
    yields: Mapping[str, float] = field(default_factory=dict)
    """For routers that lending less did not help: the largest share of their load that they
    forward. They drop the rest themselves (a firewall does), or their own CPU is too slow."""
    harmed: tuple[str, ...] = ()
    """Routers that get less than a guarantee which they could use."""
    setpoints: Mapping[str, float] = field(default_factory=dict)
    """In packets/s; routers without an entry are released."""


def decide(
    claims: Sequence[Claim],
    forwarded: Mapping[str, float],
    capacity: float,
    last: EngagementState,
    engagement: EngagementRules,
    *,
    wasted: float = 0.0,
    carried: float = math.inf,
) -> EngagementState:
    """Return which routers to hold, and at which setpoints.

    Args:
        claims: one for each router of the host.
        forwarded: the throughput in packets/s of those that the host alone may hold back; a router
            without an entry (unknown, or limited by its own cap) lacks nothing now.
        capacity: of the host, in the unit of the claims' costs.
        last: result of the previous round.
        engagement: the thresholds.
        wasted: capacity spent on packets that routers drop.
        carried: what the host carried when it was found full, where that is less than its
            capacity: other work takes its CPUs, or they are slower than when it was measured.
    """
    load = sum(claim.cost * claim.useful for claim in claims)
    lacks = {c.vr: _lack(c, forwarded.get(c.vr), last, engagement) for c in claims}
    suffering = {vr for vr, lack in lacks.items() if lack > engagement.lack}
    harmed = tuple(
        vr for vr, lack in lacks.items() if vr in suffering or (vr in last.harmed and lack > 0)
    )
    calm = last.calm + 1 if load < engagement.calm * capacity and not harmed else 0
    pressed = bool(suffering) or (len(claims) > 1 and load > engagement.engage * capacity)
    engaged = pressed or (last.engaged and calm < engagement.calm_rounds)
    kept = promised(claims)
    lent = max(0.0, engagement.target * capacity - wasted - kept)
    left = engagement.target * min(carried, capacity) - wasted - kept
    fits = max(engagement.least, min(1.0, left / lent)) if lent > 0 else 1.0
    shared, harmful = _shared(last, engagement, fits, suffering=bool(suffering))
    return EngagementState(
        engaged=engaged,
        calm=calm,
        shared=shared,
        harmful=harmful,
        lacks={vr: lack for vr, lack in lacks.items() if lack > 0},
        yields=_yields(claims, forwarded, last, suffering, engagement),
        harmed=harmed,
        setpoints=(
            _held(claims, min(capacity, kept + shared * lent), capacity, last, engagement)
            if engaged
            else {c.vr: c.ceiling for c in claims if _over_ceiling(c, last, engagement)}
        ),
    )


def _lack(
    claim: Claim, forwarded: float | None, last: EngagementState, engagement: EngagementRules
) -> float:
    """Return what a router lacks by now: much in one round or little in many; noise cancels out."""
    before = last.lacks.get(claim.vr, 0.0)
    sent = last.yields.get(claim.vr, 1.0) * claim.certain
    due = min(claim.guarantee, claim.ceiling, sent)
    leeway = 1 - engagement.suffering
    missed = 0.0 if forwarded is None or due <= 0 else 1 - forwarded / due
    return min(engagement.lack + leeway, max(0.0, before + missed - leeway))


def _shared(
    last: EngagementState, engagement: EngagementRules, fits: float, *, suffering: bool
) -> tuple[float, float]:
    """Return the share lent now, and the share lent when a guarantee last began to suffer.

    Routers that were not held before get one round to react, at what the host can carry (`fits`).
    """
    if suffering:
        harmful = last.harmful if last.harmed else last.shared
        squeezed = (
            max(engagement.least, engagement.squeeze * last.shared) if last.engaged else last.shared
        )
        return min(squeezed, fits), min(harmful, fits) if fits < 1 else harmful
    harmful = engagement.forget * last.harmful
    margin = min(1.0, engagement.margin * harmful)
    return min(engagement.relax * last.shared, margin), harmful


def _yields(
    claims: Sequence[Claim],
    forwarded: Mapping[str, float],
    last: EngagementState,
    suffering: set[str],
    engagement: EngagementRules,
) -> dict[str, float]:
    """Return the best forwarding share of routers that did not recover at the least lending."""
    in_vain = last.engaged and last.shared <= engagement.least
    after = {}
    for claim in claims:
        known, sent = last.yields.get(claim.vr), claim.certain
        if claim.vr not in forwarded or sent <= 0:
            reached = known
        elif in_vain and claim.vr in suffering:
            reached = forwarded[claim.vr] / sent
        else:
            reached = None if known is None else max(known, forwarded[claim.vr] / sent)
        if reached is not None and reached < engagement.suffering:
            after[claim.vr] = reached
    return after


def _held(
    claims: Sequence[Claim],
    spent: float,
    capacity: float,
    last: EngagementState,
    engagement: EngagementRules,
) -> dict[str, float]:
    """Return the setpoints of all routers: lent shares may be cut, guarantees never are."""
    wanted = allocate(claims, spent)
    settled = {c.vr: _settled(c, wanted[c.vr], last, engagement.same) for c in claims}
    return settled if use(claims, settled) <= capacity else wanted


def _over_ceiling(claim: Claim, last: EngagementState, engagement: EngagementRules) -> bool:
    """Whether a router would pass its ceiling if released; a held router keeps a margin."""
    margin = engagement.calm if claim.vr in last.setpoints else 1.0
    return claim.wanted > margin * claim.ceiling


def _settled(claim: Claim, wanted: float, last: EngagementState, same: float) -> float:
    """Keep a setpoint that would hardly change, if it satisfies guarantee and ceiling."""
    before = last.setpoints.get(claim.vr)
    if before is None or abs(wanted - before) > same * before or before > claim.ceiling:
        return wanted
    return wanted if before < min(claim.guarantee, wanted) else before

"""Engagement, for any history: no flapping, no guarantee touched, nothing above capacity."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part

from policer.decide.allocation import Claim, promised, use
from policer.decide.engagement import EngagementRules, EngagementState, decide

ENGAGEMENT = EngagementRules(calm_rounds=5)
CAPACITY = 100e3
CONTRACTS = (("a", 30e3, 1e9), ("b", 20e3, 40e3), ("c", 0.0, 1e9))
loads = st.tuples(*(st.floats(0, 120e3) for _ in CONTRACTS))
losses = st.tuples(*(st.floats(0, 1) for _ in CONTRACTS))
histories = st.lists(st.tuples(loads, losses), max_size=60)


def claims_of(wanted: tuple[float, ...]) -> list[Claim]:
    return [
        Claim(vr, load, guarantee=guarantee, ceiling=ceiling)
        for (vr, guarantee, ceiling), load in zip(CONTRACTS, wanted, strict=True)
    ]


def forwarded(claims: list[Claim], lost: tuple[float, ...]) -> Mapping[str, float]:
    return {c.vr: (1 - part) * c.useful for c, part in zip(claims, lost, strict=True)}


@given(histories)
def test_it_is_let_go_only_after_a_calm_period(
    history: list[tuple[tuple[float, ...], tuple[float, ...]]],
) -> None:
    standing, changed_at = EngagementState(), -ENGAGEMENT.calm_rounds
    for at, (wanted, lost) in enumerate(history):
        claims = claims_of(wanted)
        after = decide(claims, forwarded(claims, lost), CAPACITY, standing, ENGAGEMENT)
        if standing.engaged and not after.engaged:
            assert at - changed_at >= ENGAGEMENT.calm_rounds
        if after.engaged is not standing.engaged:
            changed_at = at
        standing = after


@given(histories)
def test_whatever_happened_guarantees_stand_and_the_capacity_is_kept(
    history: list[tuple[tuple[float, ...], tuple[float, ...]]],
) -> None:
    standing = EngagementState()
    for wanted, lost in history:
        claims = claims_of(wanted)
        standing = decide(claims, forwarded(claims, lost), CAPACITY, standing, ENGAGEMENT)
        assert 0.0 < standing.shared <= 1.0
        for claim in claims:
            held = standing.setpoints.get(claim.vr, float("inf"))
            assert held >= claim.guarantee
            assert claim.vr not in standing.setpoints or held <= claim.ceiling
        if standing.engaged:
            assert use(claims, standing.setpoints) <= CAPACITY * (1 + 1e-9)


@given(histories)
def test_a_full_host_is_held_and_nobody_is_held_in_vain(
    history: list[tuple[tuple[float, ...], tuple[float, ...]]],
) -> None:
    standing = EngagementState()
    for wanted, lost in history:
        claims = claims_of(wanted)
        standing = decide(claims, forwarded(claims, lost), CAPACITY, standing, ENGAGEMENT)
        load = sum(c.useful for c in claims)
        assert standing.engaged or load <= ENGAGEMENT.engage * CAPACITY
        if standing.engaged and standing.shared == 1.0:
            spent = use(claims, standing.setpoints)
            most = max(ENGAGEMENT.target * CAPACITY, promised(claims))
            assert spent >= min(load, most) * (1 - ENGAGEMENT.same) - 1e-6


@settings(max_examples=part(20))
@given(histories, st.floats(0.0, 0.9))
def test_what_cannot_be_mended_is_not_tried_for_ever(
    history: list[tuple[tuple[float, ...], tuple[float, ...]]], passes: float
) -> None:
    """After any past, a router that drops by itself leaves the host calm in the end."""
    standing = EngagementState()
    for wanted, lost in history:
        claims = claims_of(wanted)
        standing = decide(claims, forwarded(claims, lost), CAPACITY, standing, ENGAGEMENT)
    claims = claims_of((20e3, 5e3, 20e3))
    for _ in range(400):
        reached = {"a": passes * 20e3, "b": 5e3, "c": 20e3}
        standing = decide(claims, reached, CAPACITY, standing, ENGAGEMENT)
    assert not standing.engaged
    assert standing.harmed == ()

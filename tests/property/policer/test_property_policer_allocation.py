"""Allocation, for any routers: nothing above capacity, no guarantee below, nothing left lying."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from policer.decide.allocation import LEAP, Claim, allocate, promised, use

EXACT = 1e-6
rates = st.one_of(st.just(0.0), st.floats(0.001, 1e9))


@st.composite
def any_claims(draw: st.DrawFn, *, alike: bool = False, most: int = 5) -> list[Claim]:
    weights = st.just(1.0) if alike else st.floats(0.001, 1000)
    costs = st.just(1.0) if alike else st.floats(0.01, 100)
    return [
        Claim(
            vr=str(index),
            wanted=draw(rates),
            guarantee=min(
                draw(rates), ceiling := draw(st.one_of(st.floats(1, 1e9), st.just(1e300)))
            ),
            ceiling=ceiling,
            weight=draw(weights),
            cost=draw(costs),
        )
        for index in range(draw(st.integers(1, most)))
    ]


capacities = st.floats(1, 1e9)


def admitted(claims: list[Claim], capacity: float) -> bool:
    return sum(c.cost * c.guarantee for c in claims) <= capacity


@given(any_claims(), capacities)
def test_what_is_used_is_never_above_the_capacity(claims: list[Claim], capacity: float) -> None:
    assert use(claims, allocate(claims, capacity)) <= capacity * (1 + EXACT)


@given(any_claims(), capacities)
def test_no_capacity_is_left_while_a_router_could_use_it(
    claims: list[Claim], capacity: float
) -> None:
    wanted = sum(c.cost * c.useful for c in claims)
    assert use(claims, allocate(claims, capacity)) >= min(capacity, wanted) * (1 - EXACT)


@given(any_claims(), capacities, st.floats(0, 1))
def test_an_admitted_guarantee_is_kept_whatever_the_others_want(
    claims: list[Claim], capacity: float, part: float
) -> None:
    total = sum(c.cost * c.guarantee for c in claims)
    if total > capacity:
        claims = [replace(c, guarantee=c.guarantee * part * capacity / total) for c in claims]
    assume(admitted(claims, capacity))
    got = allocate(claims, capacity)
    assert all(got[c.vr] >= c.guarantee * (1 - EXACT) for c in claims)


@given(any_claims(), capacities)
def test_nobody_passes_its_ceiling_and_nobody_owes(claims: list[Claim], capacity: float) -> None:
    got = allocate(claims, capacity)
    assert all(0 <= got[c.vr] <= c.ceiling for c in claims)


@given(any_claims(), capacities)
def test_a_share_can_rise_only_at_the_cost_of_one_with_no_more_by_weight(
    claims: list[Claim], capacity: float
) -> None:
    """Weighted max-min: of what is beyond guarantees, whoever wants more has least by weight."""
    assume(admitted(claims, capacity))
    got = allocate(claims, capacity)
    level = {
        c.vr: (min(got[c.vr], c.useful) - min(c.guarantee, c.useful)) / c.weight for c in claims
    }
    hungry = [c for c in claims if got[c.vr] < c.useful * (1 - EXACT)]
    for poor in hungry:
        assert got[poor.vr] >= poor.guarantee * (1 - EXACT)
        for other in claims:
            assert (
                level[other.vr]
                <= level[poor.vr] * (1 + 1e-4) + 1e-4 * capacity / other.weight / other.cost
            )


@given(any_claims(), capacities)
def test_guarantees_that_exceed_the_capacity_are_met_to_the_same_share(
    claims: list[Claim], capacity: float
) -> None:
    assume(promised(claims) > capacity * (1 + EXACT))
    got = allocate(claims, capacity)
    hungry = [c for c in claims if got[c.vr] < c.due * (1 - EXACT)]
    assert hungry
    least = min(got[c.vr] / c.guarantee for c in hungry)
    for c in claims:
        rounded = 1e-4 * least * c.guarantee + EXACT * capacity / c.cost
        assert got[c.vr] >= least * c.guarantee - rounded
        assert c not in hungry or got[c.vr] <= least * c.guarantee + rounded


@given(any_claims(), capacities, st.floats(1, 10))
def test_more_capacity_takes_from_nobody(
    claims: list[Claim], capacity: float, times: float
) -> None:
    before, after = allocate(claims, capacity), allocate(claims, times * capacity)
    for c in claims:
        assert (
            min(after[c.vr], c.useful)
            >= min(before[c.vr], c.useful) * (1 - EXACT) - EXACT * capacity
        )


@given(any_claims(), capacities)
def test_who_has_enough_is_not_clipped_at_what_it_uses(
    claims: list[Claim], capacity: float
) -> None:
    """While others are held, it may go to LEAP times that, or to as much as they have."""
    got = allocate(claims, capacity)
    hungry = [c for c in claims if got[c.vr] < c.useful * (1 - EXACT)]
    if not hungry or not admitted(claims, capacity):
        return  # the other properties tell of those
    level = min((got[c.vr] - c.guarantee) / c.weight for c in hungry)
    for c in claims:
        as_they = c.guarantee + c.weight * level
        assert got[c.vr] >= min(c.ceiling, LEAP * c.useful, as_they) * (1 - 1e-4)


@given(any_claims(alike=True), capacities, st.data())
def test_a_small_change_moves_no_setpoint_by_more_than_twice_as_much(
    claims: list[Claim], capacity: float, data: st.DataObject
) -> None:
    """For routers of the same weight and cost whose guarantees were admitted."""
    assume(admitted(claims, capacity))
    change = data.draw(st.floats(0, capacity / 10))
    before = allocate(claims, capacity)
    index = data.draw(st.integers(-1, len(claims) - 1))
    if index < 0:
        after = allocate(claims, capacity + change)
    else:
        wanting = replace(claims[index], wanted=claims[index].wanted + change)
        after = allocate([*claims[:index], wanting, *claims[index + 1 :]], capacity)
    bound = LEAP * change + EXACT * capacity
    assert all(abs(after[vr] - before[vr]) <= bound for vr in before)


@given(any_claims(), capacities, st.randoms(use_true_random=False))
def test_the_order_of_routers_does_not_matter(
    claims: list[Claim], capacity: float, shuffler: object
) -> None:
    shuffled = list(claims)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert allocate(shuffled, capacity) == pytest.approx(
        allocate(claims, capacity), rel=1e-6, abs=1e-9 * capacity
    )

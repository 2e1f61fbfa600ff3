"""Allocation: guarantees first, what is left by weight, what is not used lent."""

import math

import pytest

from policer.decide.allocation import Claim, allocate, promised, use, water_level

IDLE = 0.0
FLOOD = 1e6


def shares(*claims: Claim, capacity: float = 100.0) -> dict[str, float]:
    return allocate(claims, capacity)


def test_nobody_gets_nothing() -> None:
    assert shares() == {}


def test_guarantees_come_first_and_the_rest_is_shared_by_weight() -> None:
    got = shares(
        Claim("a", FLOOD, guarantee=40),
        Claim("b", FLOOD, weight=3),
        Claim("c", FLOOD, guarantee=20),
    )
    assert got == pytest.approx({"a": 48, "b": 24, "c": 28})


def test_a_flood_takes_nothing_of_a_guarantee() -> None:
    got = shares(Claim("honest", 50, guarantee=50), Claim("flood", FLOOD))
    assert got["flood"] == pytest.approx(50)
    assert got["honest"] >= 50


def test_what_a_router_does_not_use_is_lent() -> None:
    got = shares(Claim("a", 10, guarantee=40), Claim("b", FLOOD, guarantee=20))
    assert got["b"] == pytest.approx(90)
    assert got["a"] >= 40  # it may wake at once


def test_an_idle_router_keeps_its_guarantee_as_setpoint() -> None:
    assert shares(Claim("a", IDLE, guarantee=40), Claim("b", FLOOD))["a"] >= 40


def test_a_router_that_has_enough_is_not_held_at_what_it_used_a_second_ago() -> None:
    got = shares(Claim("a", 10), Claim("b", 30), Claim("c", FLOOD))
    assert got["a"] >= 1.5 * 10
    assert got["c"] == pytest.approx(60)


def test_but_it_may_not_leap_to_all_that_is_lent() -> None:
    got = shares(Claim("a", 10), *(Claim(f"idle{i}", IDLE) for i in range(98)), Claim("c", FLOOD))
    assert got["a"] == pytest.approx(20)
    assert got["idle0"] == pytest.approx(1)


def test_with_enough_for_all_nobody_is_clipped() -> None:
    got = shares(Claim("a", 50), Claim("b", 20))
    assert got["a"] > 60
    assert got["b"] > 30


@pytest.mark.parametrize("wanted", [30.0, 45.0, FLOOD])
def test_nobody_passes_its_ceiling(wanted: float) -> None:
    got = shares(Claim("a", wanted, ceiling=30), Claim("b", FLOOD))
    assert got["a"] == 30
    assert got["b"] == pytest.approx(70)


def test_guarantees_that_exceed_the_capacity_are_met_to_the_same_share() -> None:
    got = shares(
        Claim("a", FLOOD, guarantee=150), Claim("b", FLOOD, guarantee=50), Claim("c", FLOOD)
    )
    assert got == pytest.approx({"a": 75, "b": 25, "c": 0})


def test_a_guarantee_that_is_not_used_relieves_those_that_exceed_the_capacity() -> None:
    claims = [Claim("a", FLOOD, guarantee=150), Claim("b", 10, guarantee=50)]
    got = allocate(claims, 100)
    assert got == pytest.approx({"a": 90, "b": 30})  # three fifths of each guarantee
    assert use(claims, got) == pytest.approx(100)


def test_guarantees_are_whole_while_what_is_used_of_them_fits() -> None:
    got = shares(Claim("a", FLOOD, guarantee=60), Claim("b", IDLE, guarantee=80))
    assert got == pytest.approx({"a": 100, "b": 100})
    got = shares(Claim("a", 1, guarantee=10), Claim("b", 11, guarantee=20), capacity=12)
    assert got == pytest.approx({"a": 10, "b": 20})


@pytest.mark.parametrize(
    ("wanted", "needed", "due"),
    [(10, 0, 10), (FLOOD, 0, 40), (IDLE, 30, 30), (10, 30, 30), (20, 10, 20), (10, 50, 40)],
)
def test_a_guarantee_takes_what_is_used_or_needed_of_it(
    wanted: float, needed: float, due: float
) -> None:
    claims = [Claim("a", wanted, guarantee=40, needed=needed, cost=2), Claim("b", FLOOD)]
    assert promised(claims) == 2 * due


def test_costs_count_against_the_capacity() -> None:
    claims = [Claim("dear", FLOOD, cost=4), Claim("plain", FLOOD)]
    got = allocate(claims, 100)
    assert got == pytest.approx({"dear": 20, "plain": 20})
    assert use(claims, got) == pytest.approx(100)


def test_costs_count_where_nothing_is_used_too() -> None:
    got = shares(Claim("idle", IDLE, cost=4), Claim("flood", FLOOD))
    assert got == pytest.approx({"idle": 20, "flood": 100})


@pytest.mark.parametrize(("capacity", "high"), [(90, 30), (100, 32), (140, 40)])
def test_what_no_router_uses_raises_all_setpoints(capacity: float, high: float) -> None:
    """By a fifth of it each, as one packet for both costs five; to twice what is used at most."""
    got = shares(Claim("dear", 15, cost=4), Claim("plain", 30), capacity=capacity)
    assert got == pytest.approx({"dear": 30, "plain": high})


def test_a_capacity_of_one_packet_is_shared_too() -> None:
    got = shares(*(Claim(str(i), FLOOD) for i in range(4)), capacity=1)
    assert sum(got.values()) == pytest.approx(1)


def test_a_thousandfold_of_weights_loses_no_packet_to_rounding() -> None:
    claims = [
        Claim(str(i), FLOOD if i == 0 else 1.0, weight=0.001 if i == 0 else 1000, cost=100)
        for i in range(4096)
    ]
    got = allocate(claims, 1e9)
    assert use(claims, got) == pytest.approx(100 * (FLOOD + 4095), rel=1e-9)
    got = allocate(claims, 1e6)
    assert use(claims, got) == pytest.approx(1e6, rel=1e-9)


def test_the_water_rises_until_all_are_full() -> None:
    assert water_level([1, 1], [1, 1], [10, 20], 30) == math.inf
    assert water_level([1, 1], [1, 1], [10, 20], 29.99) == pytest.approx(19.99)
    assert water_level([1, 2], [1, 1], [10, 20], 15) == pytest.approx(5)
    assert water_level([1], [1], [0], 5) == math.inf

"""What a port's bytes and marks leave to coordinated senders."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.laws.budget import DEFAULT, Budget, PortPeriod, observed, shared_bps

LINK = 1e9
PERIOD_S = 5e-3
BITS = LINK * PERIOD_S
PACKET = 12_000.0
FRESH = Budget(LINK)


def period(
    used: float, coordinated: float, *, marked: float = 0.0, drops: float = 0.0
) -> PortPeriod:
    """Return a period in which a share of the link was used, and a share of that by ours."""
    packets = used * BITS / PACKET
    return PortPeriod(
        PERIOD_S, used * BITS, coordinated * BITS, packets, marked * packets, drops=drops
    )


def after(budget: Budget, seen: PortPeriod, periods: int) -> Budget:
    for _ in range(periods):
        budget = observed(budget, seen, LINK, DEFAULT)
    return budget


def share(budget: Budget) -> float:
    return shared_bps(budget, LINK, DEFAULT) / LINK


def test_a_quiet_port_gives_out_its_capacity_but_for_what_empties_the_queue() -> None:
    assert share(after(FRESH, period(0.5, 0.5), 100)) == pytest.approx(DEFAULT.aim)


def test_marks_of_bursts_take_nothing() -> None:
    """A burst of 64 KB that meets an empty port is marked in half of its packets."""
    assert share(after(FRESH, period(0.3, 0.3, marked=0.5), 100)) == pytest.approx(DEFAULT.aim)


def test_a_queue_that_stands_for_a_moment_takes_nothing() -> None:
    standing = after(FRESH, period(0.5, 0.5, marked=1.0), DEFAULT.persistence - 1)
    assert share(observed(standing, period(0.5, 0.5), LINK, DEFAULT)) == pytest.approx(
        DEFAULT.aim, rel=0.001
    )


def test_a_port_that_is_slower_than_stated_is_believed_by_what_leaves_it() -> None:
    found = after(FRESH, period(0.8, 0.8, marked=1.0), DEFAULT.persistence)
    assert share(found) == pytest.approx(0.8 * DEFAULT.aim)


def test_a_reduced_capacity_is_tried_again() -> None:
    found = after(FRESH, period(0.8, 0.8, marked=1.0), DEFAULT.persistence)
    later = after(found, period(0.79, 0.79), round(5 * DEFAULT.recovery_s / PERIOD_S))
    assert share(later) == pytest.approx(DEFAULT.aim, rel=0.01)


def test_foreign_traffic_is_left_out_of_the_shares() -> None:
    found = after(FRESH, period(0.9, 0.6), 100)
    assert share(found) == pytest.approx(DEFAULT.aim - 0.3, rel=0.01)


def test_little_foreign_traffic_may_be_an_error_of_counters_unless_the_queue_stands() -> None:
    assert share(after(FRESH, period(0.5, 0.49), 100)) == pytest.approx(DEFAULT.aim)
    standing = after(FRESH, period(1.0, 0.99, marked=1.0), 100)
    assert share(standing) == pytest.approx(DEFAULT.aim - 0.01, rel=0.001)


def test_a_port_that_does_not_mark_is_congested_when_it_drops() -> None:
    found = after(FRESH, period(0.8, 0.8, drops=1.0), DEFAULT.persistence)
    assert share(found) == pytest.approx(0.8 * DEFAULT.aim)


def test_shares_never_fall_below_the_least_whatever_a_port_reports() -> None:
    broken = period(1e-6, 0.0, marked=1.0)
    assert share(after(FRESH, broken, 1000)) == pytest.approx(DEFAULT.least)


amounts = st.floats(0.0, 5.0)


@given(st.lists(st.tuples(amounts, amounts, st.floats(0, 1), st.floats(0, 1e6)), max_size=40))
def test_a_budget_stays_between_the_least_and_the_aim(
    seen: list[tuple[float, float, float, float]],
) -> None:
    budget = FRESH
    for used, coordinated, marked, drops in seen:
        reported = period(used, coordinated, marked=marked, drops=drops)
        budget = observed(budget, reported, LINK, DEFAULT)
        assert DEFAULT.least <= share(budget) <= DEFAULT.aim * (1 + 1e-9)


def test_a_settings_aim_is_what_is_given_out() -> None:
    assert shared_bps(FRESH, LINK, replace(DEFAULT, aim=0.9)) == pytest.approx(0.9 * LINK)

"""The shield lets by what a router needs for its setpoint, and little more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.setpoint import Setpoint, Unit
from common.units import MAX_BIT_RATE, MAX_RATE
from xtc.control.shielding import LEAST_SHARE, MOST, PERIODS, REST, RISE, Seen, Shielding, learned
from xtc.shield.bucket import holding, in_bits, in_packets

RATE = 5e3
SETPOINT = Setpoint(RATE)
rates = st.floats(min_value=0, max_value=1e7)
seen = st.builds(Seen, rates, rates, rates, st.booleans())


def router(shielding: Shielding, offered: float, forwards: float, capacity: float) -> Seen:
    """Return a period of a router that forwards a share of what arrives, as far as its cap goes."""
    arrived = min(offered, shielding.rate(SETPOINT).rate)
    throughput = min(arrived * forwards, capacity)
    return Seen(throughput, arrived, offered - arrived, throughput == capacity)


def after(periods: int, shielding: Shielding, **period: float) -> Shielding:
    for _ in range(periods):
        shielding = learned(shielding, SETPOINT, router(shielding, **period))
    return shielding


@given(
    st.lists(seen),
    st.floats(min_value=1e-3, max_value=MAX_RATE).map(Setpoint)
    | st.floats(min_value=1e3, max_value=MAX_BIT_RATE).map(lambda bps: Setpoint(bps, Unit.BITS)),
)
def test_whatever_is_seen_it_lets_by_so_much_at_least_and_at_most(
    periods: list[Seen], setpoint: Setpoint
) -> None:
    shielding = Shielding()
    for period in periods:
        shielding = learned(shielding, setpoint, period)
    rate = shielding.rate(setpoint)
    bits = rate.unit is Unit.BITS
    smallest, largest = (1e3, MAX_BIT_RATE) if bits else (1, MAX_RATE)
    least, most = (max(smallest, setpoint.rate * times) for times in (LEAST_SHARE / MOST, MOST))
    assert min(least, largest) <= rate.rate <= min(most * (1 + 1e-12), largest)
    assert holding((in_bits if bits else in_packets)(rate.rate), rate.allowance).depth > 0


@pytest.mark.parametrize("capacity", [RATE, 1e6])
def test_one_that_forwards_all_gets_its_setpoint_and_its_burst(capacity: float) -> None:
    held = after(100, Shielding(), offered=40e3, forwards=1.0, capacity=capacity)
    assert held.rate(SETPOINT) == Setpoint(RATE, burst=SETPOINT.allowance)


def test_the_burst_is_opened_with_the_rate() -> None:
    assert Shielding(3.0).rate(Setpoint(RATE, burst=7.0)) == Setpoint(3 * RATE, burst=21.0)


@pytest.mark.parametrize("forwards", [0.8, 0.5, 0.1])
def test_one_that_drops_what_it_likes_reaches_its_setpoint(forwards: float) -> None:
    learnt = after(5 * PERIODS, Shielding(), offered=400e3, forwards=forwards, capacity=1e6)
    period = router(learnt, offered=400e3, forwards=forwards, capacity=1e6)
    assert period.throughput == pytest.approx(RATE, rel=0.01)


def test_what_a_cap_holds_back_teaches_nothing() -> None:
    for known in (Shielding(), Shielding(3.0)):
        assert after(9, known, offered=400e3, forwards=0.5, capacity=1e3) == known


def test_who_makes_it_open_and_then_forwards_all_pays_it_back() -> None:
    shielding, forwarded, periods = Shielding(), 0.0, 400
    forwards, toggles = 0.05, 0
    for _ in range(periods):
        period = router(shielding, offered=400e3, forwards=forwards, capacity=1e6)
        forwarded += period.throughput
        shielding = learned(shielding, SETPOINT, period)
        toggles += forwards < 1 and shielding.arriving >= 8
        forwards = 1.0 if shielding.arriving >= 8 or shielding.share < 1 else 0.05
    assert toggles > 2
    assert forwarded <= periods * RATE + toggles * SETPOINT.allowance


def test_one_that_sends_more_than_it_receives_gets_less() -> None:
    shielding = after(60, Shielding(), offered=400e3, forwards=2.0, capacity=1e6)
    assert shielding.rate(SETPOINT).rate == pytest.approx(RATE / 2, rel=0.01)
    assert after(60, shielding, offered=400e3, forwards=1.0, capacity=1e6).arriving == (
        pytest.approx(1.0, rel=0.01)
    )


def test_a_long_burst_hides_no_debt() -> None:
    setpoint = Setpoint(100.0, burst=2000.0)
    shielding = Shielding()
    for _ in range(5):
        shielding = learned(shielding, setpoint, Seen(1000.0, 1000.0, 1.0, binding=False))
    assert shielding.share == LEAST_SHARE


def test_a_counter_that_was_wrong_once_costs_no_minutes() -> None:
    shielding = learned(Shielding(), SETPOINT, Seen(1e3 * RATE, 1e3 * RATE, 1.0, binding=False))
    for _ in range(round(MOST / LEAST_SHARE) + 2):
        rate = shielding.rate(SETPOINT).rate
        shielding = learned(shielding, SETPOINT, Seen(rate, rate, 1.0, binding=False))
    assert shielding.share >= 0.95


def test_a_burst_is_nothing_to_be_paid_back() -> None:
    burst = Seen(throughput=1.19 * RATE, arrived=1.19 * RATE, dropped=10.0, binding=False)
    shielding = learned(Shielding(), SETPOINT, burst)
    assert (shielding.arriving, shielding.share) == (1.0, 1.0)


def test_what_waits_in_a_queue_is_not_taken_for_lost() -> None:
    filling = Seen(throughput=0.7 * RATE, arrived=0.9 * RATE, dropped=10.0, binding=False)
    after_it = Seen(throughput=0.9 * RATE, arrived=0.9 * RATE, dropped=10.0, binding=False)
    shielding = learned(Shielding(), SETPOINT, filling)
    for _ in range(100):
        shielding = learned(shielding, SETPOINT, after_it)
        assert shielding.arriving == 1.0


def test_where_nothing_is_dropped_nothing_changes() -> None:
    quiet = Seen(throughput=100.0, arrived=200.0, dropped=0.0, binding=False)
    assert learned(Shielding(3.0), SETPOINT, quiet) == Shielding(3.0)


def test_bursts_that_overrun_it_are_no_reason_to_let_more_by() -> None:
    shielding = Shielding()
    for _ in range(10 * PERIODS):
        burst = Seen(throughput=1e3, arrived=1e3, dropped=500.0, binding=False)
        shielding = learned(shielding, SETPOINT, burst)
    assert shielding.arriving == 1.0


def test_what_is_not_needed_any_longer_is_forgotten() -> None:
    known = Shielding(10.0, proven=10.0)
    learnt = after(60, known, offered=400e3, forwards=1.0, capacity=1.1 * RATE)
    assert learnt.rate(SETPOINT).rate == pytest.approx(RATE, rel=0.01)


def test_it_doubles_at_most_and_only_after_some_periods() -> None:
    short = Seen(throughput=1.0, arrived=5e3, dropped=9e3, binding=False)
    shielding = Shielding()
    for _ in range(PERIODS - 1):
        shielding = learned(shielding, SETPOINT, short)
        assert shielding.arriving == 1.0
    assert learned(shielding, SETPOINT, short).arriving == RISE


def test_for_a_router_that_is_short_of_cpu_it_goes_back_and_rests() -> None:
    shielding, opened = Shielding(), 0
    for _ in range(10 * (REST + 2 * PERIODS)):
        arrived = shielding.rate(SETPOINT).rate
        starved = Seen(min(0.8 * RATE, arrived), arrived, 400e3 - arrived, binding=False)
        shielding = learned(shielding, SETPOINT, starved)
        opened += shielding.arriving > 1.0
    assert 0 < opened <= 10 * (PERIODS + 1)
    assert shielding.arriving <= RISE


def test_a_period_in_which_it_gets_what_it_was_promised_begins_the_count_anew() -> None:
    short = Seen(throughput=4e3, arrived=5e3, dropped=9e3, binding=False)
    kept = Seen(throughput=5e3, arrived=5e3, dropped=9e3, binding=False)
    shielding = Shielding()
    for _ in range(10):
        for seen_now in (short, short, kept):
            shielding = learned(shielding, SETPOINT, seen_now)
    assert shielding == Shielding()

"""The shield lets by what a router needs for its setpoint, and little more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtc.setpoint import Setpoint, Unit
from xtc.shield.bucket import in_bits, in_packets
from xtc.shielding import BURST_S, HEADROOM, MOST, PERIODS, REST, RISE, Seen, Shielding, learned
from xtc.units import MAX_BIT_RATE, MAX_RATE

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
def test_whatever_is_seen_it_lets_by_the_setpoint_and_headroom_and_at_most_so_much(
    periods: list[Seen], setpoint: Setpoint
) -> None:
    shielding = Shielding()
    for period in periods:
        shielding = learned(shielding, setpoint, period)
    rate = shielding.rate(setpoint)
    bits = rate.unit is Unit.BITS
    smallest, largest = (1e3, MAX_BIT_RATE) if bits else (1, MAX_RATE)
    least, most = (max(smallest, HEADROOM * setpoint.rate * times) for times in (1, MOST))
    assert min(least, largest) <= rate.rate <= min(most * (1 + 1e-12), largest)
    assert (in_bits if bits else in_packets)(rate.rate, burst_s=BURST_S).depth > 0


def test_one_that_forwards_all_gets_no_more_than_the_headroom() -> None:
    held = after(100, Shielding(), offered=40e3, forwards=1.0, capacity=RATE)
    assert held.rate(SETPOINT) == Setpoint(HEADROOM * RATE)


@pytest.mark.parametrize("forwards", [0.8, 0.5, 0.1])
def test_one_that_drops_what_it_likes_reaches_its_setpoint(forwards: float) -> None:
    learnt = after(5 * PERIODS, Shielding(), offered=400e3, forwards=forwards, capacity=1e6)
    period = router(learnt, offered=400e3, forwards=forwards, capacity=1e6)
    assert RATE * 0.98 <= period.throughput <= RATE * HEADROOM * 1.001


def test_what_a_cap_holds_back_teaches_nothing() -> None:
    for known in (Shielding(), Shielding(3.0)):
        assert after(9, known, offered=400e3, forwards=0.5, capacity=1e3) == known


def test_who_makes_it_open_and_then_forwards_all_gains_no_more_than_a_period() -> None:
    shielding, forwarded, periods = Shielding(), 0.0, 200
    forwards = 0.05
    for _ in range(periods):
        period = router(shielding, offered=400e3, forwards=forwards, capacity=1e6)
        forwarded += period.throughput
        shielding = learned(shielding, SETPOINT, period)
        forwards = 1.0 if shielding.arriving >= MOST else 0.05
    assert forwarded <= 3 * periods * RATE


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
    learnt = after(300, Shielding(10.0), offered=400e3, forwards=1.0, capacity=RATE)
    assert learnt.rate(SETPOINT).rate == pytest.approx(HEADROOM * RATE, rel=0.05)


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

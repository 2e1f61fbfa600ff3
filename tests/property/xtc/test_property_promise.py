"""The account against all windows: it overflows exactly where one of them breaks the promise."""

import math
from fractions import Fraction
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from common.setpoint import Setpoint, Unit
from common.units import Seconds
from xtc.control.promise import Account, Accounting, judged

RATE, BURST = 100.0, 40.0
SETPOINT = Setpoint(RATE, burst=BURST)
# Eighths and whole packets: sums of them are exact, so that the last packet tells.
times = st.integers(1, 16).map(lambda eighths: Seconds(eighths / 8))
amounts = st.integers(0, 250).map(float)
periods = st.lists(st.tuples(times, amounts, amounts), max_size=12)
Period = tuple[Seconds, float, float]
setpoints = st.tuples(st.integers(1, 200), st.integers(1, 200)).map(
    lambda terms: Setpoint(float(terms[0]), burst=float(terms[1]))
)


def after(seen: list[Period], setpoint: Setpoint = SETPOINT) -> Account:
    """Return the account after periods of (length, offered, delivered)."""
    account = Account()
    for dt, offered, delivered in seen:
        account = judged(account, setpoint, dt, delivered=delivered, offered=offered)
    return account


def most_of_any_window(changes: list[float]) -> float:
    """Return the largest sum of successive changes, of no change at least; by looking at all."""
    sums = [0.0, *accumulate(changes)]
    return max(b - a for i, a in enumerate(sums) for b in sums[i:])


@given(periods)
def test_too_much_is_counted_exactly_where_a_window_has_more_than_its_burst(
    seen: list[Period],
) -> None:
    surplus = most_of_any_window([delivered - RATE * dt for dt, _, delivered in seen])
    assert (after(seen).over > 0) is (surplus > BURST)


@given(periods)
def test_too_little_is_counted_exactly_where_a_window_lacks_more_than_its_burst(
    seen: list[Period],
) -> None:
    deficit = most_of_any_window(
        [min(offered, RATE * dt) - delivered for dt, offered, delivered in seen]
    )
    assert (after(seen).under > 0) is (deficit > BURST)


@given(periods)
def test_no_packet_counts_twice(seen: list[Period]) -> None:
    account = after(seen)
    assert account.over <= sum(delivered for *_, delivered in seen)
    assert account.under <= sum(min(offered, RATE * dt) for dt, offered, _ in seen)


@given(periods)
def test_without_what_was_counted_the_promise_is_kept(seen: list[Period]) -> None:
    """What is counted is no more than has to go, and no less."""
    account, kept = Account(), []
    for dt, offered, delivered in seen:
        later = judged(account, SETPOINT, dt, delivered=delivered, offered=offered)
        kept.append((dt, offered, delivered - (later.over - account.over)))
        account = later
    assert after(kept).over == 0


@given(periods)
def test_the_time_in_breach_is_that_of_the_periods_in_which_something_was_counted(
    seen: list[Period],
) -> None:
    account, breach = Account(), Fraction(0)
    for dt, offered, delivered in seen:
        later = judged(account, SETPOINT, dt, delivered=delivered, offered=offered)
        if (later.over, later.under) != (account.over, account.under):
            breach += Fraction(dt)
        account = later
    assert account.breach_s == breach


@given(periods, st.floats(1e-3, 1e6))
def test_only_ratios_count(seen: list[Period], scale: float) -> None:
    """What holds of packets holds of bits, at any rate."""
    scaled = [(dt, offered * scale, delivered * scale) for dt, offered, delivered in seen]
    large = after(scaled, Setpoint(RATE * scale, Unit.BITS, BURST * scale))
    small = after(seen)
    assert math.isclose(large.over, small.over * scale, rel_tol=1e-6)
    assert math.isclose(large.under, small.under * scale, rel_tol=1e-6)
    assert large.breach_s == small.breach_s


@given(st.lists(st.tuples(setpoints, times, amounts, amounts), max_size=8))
def test_each_instant_has_the_promise_that_was_made_for_it(
    seen: list[tuple[Setpoint, Seconds, float, float]],
) -> None:
    """By all windows: what one brings along is at most each burst that it has passed since."""
    account, over = Account(), 0.0
    brought: list[float] = []
    for setpoint, dt, offered, delivered in seen:
        brought = [min(each, setpoint.allowance) for each in [*brought, 0.0]]
        brought = [each + delivered - setpoint.rate * dt for each in brought]
        over += max(0.0, max(brought) - setpoint.allowance)
        brought = [min(each, setpoint.allowance) for each in brought]
        account = judged(account, setpoint, dt, delivered=delivered, offered=offered)
        assert account.surplus == max(0.0, *brought)
    assert account.over == over


@given(periods, periods)
def test_no_window_goes_on_over_a_blind_period(before: list[Period], later: list[Period]) -> None:
    account = after(before)
    blind = judged(account, SETPOINT, Seconds(1.0), delivered=None, offered=900.0)
    assert (blind.over, blind.under, blind.breach_s) == (
        *(account.over, account.under),
        account.breach_s,
    )
    for dt, offered, delivered in later:
        blind = judged(blind, SETPOINT, dt, delivered=delivered, offered=offered)
    alone = after(later)
    assert blind.over == account.over + alone.over
    assert blind.under == account.under + alone.under


@given(periods)
def test_where_the_load_is_not_known_nothing_is_called_missing(seen: list[Period]) -> None:
    account = Account()
    for dt, _, delivered in seen:
        account = judged(account, SETPOINT, dt, delivered=delivered, offered=None)
    assert (account.over, account.under) == (after(seen).over, 0.0)


numbers = st.floats() | st.sampled_from([0.0, -1.0, math.nan, math.inf])


@given(periods, st.sampled_from([0.0, -0.0, -1.0, math.nan, math.inf, -math.inf]), numbers, numbers)
def test_a_clock_that_stands_or_goes_back_does_nothing(
    seen: list[Period], dt: float, offered: float, delivered: float
) -> None:
    account = after(seen)
    assert judged(account, SETPOINT, Seconds(dt), delivered=delivered, offered=offered) == account


@given(st.lists(st.tuples(st.floats(), numbers | st.none(), numbers | st.none()), max_size=9))
def test_whatever_is_shown_counts_are_numbers_that_never_fall(
    seen: list[tuple[float, float | None, float | None]],
) -> None:
    accounting = Accounting()
    accounting.begin(SETPOINT, Seconds(0.0))
    before = (0.0, 0.0, 0.0)
    for now, throughput, reached in seen:
        accounting.end(throughput, reached, Seconds(now))
        accounting.begin(SETPOINT, Seconds(now))
        account = accounting.accounts[Unit.PACKETS]
        counts = (account.over, account.under, account.breach_s)
        assert all(map(math.isfinite, counts))
        assert all(b >= a for a, b in zip(before, counts, strict=True))
        assert account.surplus <= BURST
        assert account.deficit <= BURST
        before = counts

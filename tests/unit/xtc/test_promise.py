"""The promise by hand, and the accounts of a router as setpoints come and go."""

import pytest

from common.setpoint import Setpoint, Unit
from common.units import Seconds
from xtc.control.promise import Account, Accounting, judged

SETPOINT = Setpoint(20e3)  # and 4,000 packets at once
SECOND = Seconds(1.0)


def seconds(*seen: tuple[float, float]) -> Account:
    account = Account()
    for offered, delivered in seen:
        account = judged(account, SETPOINT, SECOND, delivered=delivered, offered=offered)
    return account


@pytest.mark.parametrize(
    ("seen", "over", "under", "breach"),
    [
        ([(90e3, 24e3)], 0, 0, 0),
        ([(90e3, 24e3), (90e3, 20e3), (90e3, 21e3)], 1e3, 0, 1),
        ([(90e3, 24e3), (90e3, 16e3), (90e3, 24e3)], 0, 0, 0),
        ([(90e3, 90e3)], 66e3, 0, 1),
        ([(90e3, 16e3), (90e3, 15e3)], 0, 5e3, 1),
        ([(90e3, 16e3), (90e3, 24e3), (90e3, 16e3)], 0, 0, 0),
        ([(10e3, 10e3)] * 60, 0, 0, 0),
        ([(10e3, 8e3)] * 3, 0, 2e3, 1),
        ([(0, 0)] * 60 + [(90e3, 24e3)], 0, 0, 0),
        ([(0, 0)] * 60 + [(90e3, 25e3)], 1e3, 0, 1),
    ],
)
def test_what_exceeds_the_burst_is_counted_once(
    seen: list[tuple[float, float]], over: float, under: float, breach: float
) -> None:
    account = seconds(*seen)
    assert (account.over, account.under, account.breach_s) == (over, under, breach)


def test_a_load_that_comes_and_goes_within_a_period_is_missed_by_its_mean() -> None:
    """What the shield let by is what was wanted: half a second on, half a second off."""
    let_by = 14e3
    account = judged(Account(), SETPOINT, SECOND, delivered=let_by, offered=let_by)
    assert account.deficit == 0
    account = judged(Account(), SETPOINT, SECOND, delivered=let_by, offered=30e3)
    assert account.deficit == 6e3 - 2e3  # of what was offered, 2,000 are beyond the burst
    assert account.under == 2e3


def test_a_smaller_burst_does_not_judge_what_passed_under_the_larger_one() -> None:
    account = judged(Account(), SETPOINT, SECOND, delivered=24e3, offered=90e3)
    small = Setpoint(20e3, burst=100.0)
    assert judged(account, small, SECOND, delivered=20e3, offered=90e3).over == 0
    assert judged(account, small, SECOND, delivered=20.5e3, offered=90e3).over == 500


def kept(accounting: Accounting, setpoint: Setpoint | None, rate: float, at: float) -> None:
    accounting.end(rate, rate, Seconds(at))
    accounting.begin(setpoint, Seconds(at))


def test_before_anything_is_promised_there_are_no_counts() -> None:
    accounting = Accounting()
    kept(accounting, None, 90e3, 1.0)
    assert (accounting.over(Unit.PACKETS), accounting.breach_s) == (None, None)
    kept(accounting, SETPOINT, 90e3, 2.0)
    assert (accounting.over(Unit.PACKETS), accounting.under(Unit.PACKETS)) == (0, 0)
    assert (accounting.over(Unit.BITS), accounting.breach_s) == (None, 0)


def test_a_setpoint_counts_from_the_tick_that_carries_it_out() -> None:
    accounting = Accounting()
    kept(accounting, SETPOINT, 90e3, 1.0)
    kept(accounting, Setpoint(50e3), 20e3, 2.0)
    kept(accounting, Setpoint(50e3), 50e3, 3.0)
    assert (accounting.over(Unit.PACKETS), accounting.breach_s) == (0, 0)
    kept(accounting, SETPOINT, 70e3, 5.0)
    assert (accounting.over(Unit.PACKETS), accounting.breach_s) == (40e3 - 10e3, 2)


def test_counts_survive_what_ends_a_promise_and_windows_do_not() -> None:
    accounting = Accounting()
    kept(accounting, SETPOINT, 0.0, 0.0)
    kept(accounting, SETPOINT, 30e3, 1.0)
    kept(accounting, None, 24e3, 2.0)
    assert accounting.over(Unit.PACKETS) == 6e3 + 4e3
    kept(accounting, SETPOINT, 90e3, 3.0)
    kept(accounting, SETPOINT, 24e3, 4.0)
    assert accounting.over(Unit.PACKETS) == 10e3


def test_packets_and_bits_have_counts_of_their_own_and_one_time() -> None:
    accounting, bits = Accounting(), Setpoint(1e6, Unit.BITS)
    kept(accounting, SETPOINT, 0.0, 0.0)
    kept(accounting, bits, 30e3, 1.0)
    kept(accounting, SETPOINT, 2.2e6, 2.0)
    kept(accounting, SETPOINT, 24e3, 3.0)
    assert (accounting.over(Unit.PACKETS), accounting.over(Unit.BITS)) == (6e3, 1e6)
    assert accounting.breach_s == 2


@pytest.mark.parametrize("dt", [0.0, -1.0])
def test_without_time_nothing_happens(dt: float) -> None:
    account = judged(Account(), SETPOINT, SECOND, delivered=22e3, offered=90e3)
    assert account.surplus == 2e3
    assert judged(account, SETPOINT, Seconds(dt), delivered=9e3, offered=9e3) == account


def test_less_than_a_packet_is_known_too() -> None:
    slow = Setpoint(0.5)  # and one packet at once
    account = Account()
    for _ in range(3):
        account = judged(account, slow, SECOND, delivered=0.25, offered=0.75)
    assert account.deficit == 0.75
    account = judged(account, slow, SECOND, delivered=0.0, offered=0.75)
    assert account.under == 0.25

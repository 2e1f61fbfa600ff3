"""Who is slow, who is in quarantine, and how each comes back."""

import pytest

from common.units import Seconds
from xtc.libvirt.quarantine import BACKOFF_S, OVERDUE_S, Quarantine

GOLD, NOW = "u-gold", Seconds(100.0)
QUICK, SLOW = OVERDUE_S, Seconds(OVERDUE_S + 0.01)


def given_up(times: int) -> Quarantine:
    """Return what is remembered of a domain that failed after each of so many hanging calls."""
    quarantine = Quarantine()
    for _ in range(times):
        quarantine.give_up(GOLD)
        quarantine.came_back(GOLD, NOW, well=False)
    return quarantine


@pytest.mark.parametrize(("took", "slow"), [(QUICK, False), (SLOW, True)])
def test_a_visit_that_takes_long_makes_a_domain_slow(took: Seconds, *, slow: bool) -> None:
    quarantine = Quarantine()
    assert not quarantine.is_slow(GOLD)
    quarantine.answered(GOLD, took, NOW)
    assert quarantine.is_slow(GOLD) is slow
    assert not quarantine.bars(GOLD, NOW), "slow is not hung"


def test_the_rest_grows_with_each_call_that_was_given_up_and_is_bounded() -> None:
    for times, rest in [*enumerate(BACKOFF_S, 1), (50, BACKOFF_S[-1])]:
        quarantine = given_up(times)
        assert quarantine.bars(GOLD, Seconds(NOW + rest - 0.1))
        assert not quarantine.bars(GOLD, Seconds(NOW + rest))


def test_a_call_that_comes_back_well_may_be_followed_by_the_next() -> None:
    quarantine = Quarantine()
    quarantine.give_up(GOLD)
    quarantine.came_back(GOLD, NOW, well=True)
    assert not quarantine.bars(GOLD, NOW)
    assert quarantine.is_slow(GOLD), "until it answers quickly"


def test_a_call_that_was_not_given_up_bars_nothing() -> None:
    quarantine = Quarantine()
    quarantine.came_back(GOLD, NOW, well=False)
    assert not quarantine.bars(GOLD, NOW)


def test_a_quick_answer_ends_it_and_the_backoff_begins_anew() -> None:
    quarantine = given_up(4)
    quarantine.answered(GOLD, QUICK, NOW)
    assert not quarantine.bars(GOLD, NOW)
    assert not quarantine.is_slow(GOLD)
    quarantine.give_up(GOLD)
    quarantine.came_back(GOLD, NOW, well=False)
    assert not quarantine.bars(GOLD, Seconds(NOW + BACKOFF_S[0]))


def test_a_slow_answer_does_not_end_it() -> None:
    quarantine = given_up(4)
    quarantine.answered(GOLD, SLOW, NOW)
    quarantine.give_up(GOLD)
    quarantine.came_back(GOLD, NOW, well=False)
    assert quarantine.bars(GOLD, Seconds(NOW + BACKOFF_S[4] - 0.1))


def test_who_has_answered_since_is_known() -> None:
    quarantine = Quarantine()
    assert not quarantine.has_answered(GOLD, Seconds(0.0))
    quarantine.answered(GOLD, QUICK, NOW)
    assert quarantine.has_answered(GOLD, NOW)
    assert not quarantine.has_answered(GOLD, Seconds(NOW + 0.1))


def test_what_is_gone_is_forgotten_and_the_rest_is_not() -> None:
    quarantine = given_up(1)
    quarantine.answered(GOLD, SLOW, NOW)
    quarantine.keep({GOLD})
    assert quarantine.is_slow(GOLD)
    assert quarantine.bars(GOLD, NOW)
    assert quarantine.has_answered(GOLD, NOW)
    quarantine.keep({"u-silver"})
    assert not quarantine.is_slow(GOLD)
    assert not quarantine.bars(GOLD, NOW)
    assert not quarantine.has_answered(GOLD, NOW)
    quarantine.give_up(GOLD)
    quarantine.came_back(GOLD, NOW, well=False)
    assert not quarantine.bars(GOLD, Seconds(NOW + BACKOFF_S[0])), "the first of a new sequence"

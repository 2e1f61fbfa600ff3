"""Evidence: k of n rounds that may count; nothing blind, saturated or doubted counts."""

import pytest
from msgspec.structs import replace

from policer.decide.evidence import Evidence, Observation, Rules, mark, proven, weigh

RULES = Rules()
SEEN = Observation(offered_pps=5e4, due_pps=1e4, healthy=True)


def after(*ratios: float | None, evidence: Evidence | None = None, begin: float = 0.0) -> Evidence:
    """Weigh a round a second, by offered load over what is due; None is a blind one."""
    evidence = evidence or Evidence()
    for at, ratio in enumerate(ratios):
        offered = None if ratio is None else 1e4 * ratio
        evidence = weigh(evidence, replace(SEEN, offered_pps=offered, at=begin + at), RULES)
    return evidence


def test_four_of_five_excessive_rounds_make_guilty() -> None:
    assert not after(5, 5, 5).guilty
    assert after(5, 5, 5, 5).guilty
    assert after(5, 1, 5, 5, 5).guilty
    assert not after(5, 1, 5, 1, 5, 5).guilty


def test_four_of_five_decent_rounds_end_it() -> None:
    guilty = after(5, 5, 5, 5)
    assert after(1, 1, 1, evidence=guilty, begin=4).guilty
    assert not after(1, 1, 1, 1, evidence=guilty, begin=4).guilty


def test_what_lies_between_says_neither() -> None:
    assert after(*[1.7] * 20).rounds == (None,) * 5
    guilty = after(5, 5, 5, 5)
    assert after(*[1.7] * 20, evidence=guilty, begin=4).guilty


@pytest.mark.parametrize(
    "bad",
    [
        replace(SEEN, healthy=False),
        replace(SEEN, saturated=True),
        replace(SEEN, offered_pps=None),
        replace(SEEN, held=False),
    ],
)
def test_a_round_that_may_not_count_changes_nothing(bad: Observation) -> None:
    evidence = after(5, 5, 5)
    for _ in range(100):
        assert weigh(evidence, bad, RULES) is evidence


def test_of_a_router_that_is_not_held_only_good_counts() -> None:
    """It was never told what it is due."""
    free = replace(SEEN, held=False, at=4.0)
    guilty = after(5, 5, 5, 5)
    assert weigh(guilty, free, RULES) is guilty
    assert weigh(guilty, replace(free, offered_pps=1e4), RULES).rounds[-1] is False


def test_rounds_of_long_ago_do_not_count_together() -> None:
    """A clock that jumps, a host that was gone for an hour: one more round proves nothing."""
    evidence = after(5, 5, 5)
    assert after(5, evidence=evidence, begin=3600).rounds == (True,)
    assert not after(5, evidence=evidence, begin=3600).guilty


def test_a_verdict_outlives_the_gap_but_is_not_proven_by_it() -> None:
    guilty = after(5, 5, 5, 5)
    assert proven(guilty, 3.0, RULES)
    assert not proven(guilty, 4.0, RULES)
    later = after(5, evidence=guilty, begin=3600)
    assert later.guilty
    assert not proven(later, 3600, RULES)


def test_a_limit_that_is_used_up_may_hide_a_flood() -> None:
    """Where the host's drops are not counted, a limited flood offers just what it is let."""
    limited = replace(SEEN, offered_pps=1.1e4, limited_pps=1.1e4)
    assert mark(limited, RULES) is None
    assert mark(replace(limited, offered_pps=0.9e4), RULES) is False
    assert mark(replace(limited, offered_pps=9e4), RULES) is True


def test_a_due_of_nothing_is_taken_as_one_packet() -> None:
    assert mark(replace(SEEN, due_pps=0.0, offered_pps=1.4), RULES) is False
    assert mark(replace(SEEN, due_pps=0.0, offered_pps=2.1), RULES) is True


def test_a_router_that_is_due_anything_is_decent() -> None:
    assert mark(replace(SEEN, due_pps=float("inf"), offered_pps=1e9), RULES) is False

"""Evidence, number by number: every rule from both sides."""

import pytest
from msgspec.structs import replace

from policer.decide.evidence import Evidence, Observation, Rules, mark, proven, weigh

RULES = Rules()
SEEN = Observation(offered_pps=5e4, due_pps=1e4, healthy=True, at=100.0)


def test_the_rules_are_these() -> None:
    assert Rules() == Rules(excess=2.0, acceptable=1.5, rounds=5, needed=4, gap_s=10.0)


@pytest.mark.parametrize(
    ("offered", "limited", "said"),
    [
        (2.001e4, None, True),
        (2e4, None, None),
        (1.5e4, None, None),
        (1.499e4, None, False),
        (0.95e4, 1e4, None),  # it fills the limit
        (0.949e4, 1e4, False),
        (2.001e4, 2e4, True),
    ],
)
def test_a_round_speaks_above_twice_and_below_one_and_a_half_times_what_is_due(
    offered: float, limited: float | None, said: bool | None
) -> None:
    assert mark(replace(SEEN, offered_pps=offered, limited_pps=limited), RULES) is said
    saturated = replace(SEEN, offered_pps=offered, limited_pps=limited, saturated=True)
    assert mark(saturated, RULES) is None


@pytest.mark.parametrize(("gap", "counted"), [(10.0, 4), (10.1, 1)])
def test_rounds_further_apart_than_ten_seconds_do_not_count_together(
    gap: float, counted: int
) -> None:
    before = Evidence((True, True, True), at=100.0 - gap, excess_at=100.0 - gap)
    found = weigh(before, SEEN, RULES)
    assert len(found.rounds) == counted
    assert found.guilty is (counted == 4)


def test_five_rounds_are_remembered_the_latest_last() -> None:
    before = Evidence((True, False, None, True, False), at=99.0)
    assert weigh(before, SEEN, RULES).rounds == (False, None, True, False, True)


@pytest.mark.parametrize(
    ("rounds", "guilty", "after"),
    [
        ((True, True), False, False),
        ((True, True, True), False, True),
        ((None, True, True, True), False, True),
        ((None, None, True, True), False, False),
    ],
)
def test_four_rounds_against_it_convict(
    rounds: tuple[bool | None, ...], guilty: bool, after: bool
) -> None:
    assert weigh(Evidence(rounds, guilty, at=99.0), SEEN, RULES).guilty is after


@pytest.mark.parametrize(
    ("rounds", "after"), [((False, False), True), ((False, False, False), False)]
)
def test_four_rounds_for_it_acquit(rounds: tuple[bool | None, ...], after: bool) -> None:
    calm = replace(SEEN, offered_pps=1e4)
    found = weigh(Evidence(rounds, True, at=99.0, excess_at=90.0), calm, RULES)
    assert found.guilty is after
    assert (found.at, found.excess_at) == (100.0, 90.0)


def test_other_rules_weigh_otherwise() -> None:
    strict = Rules(excess=6.0, acceptable=5.5, rounds=2, needed=1, gap_s=1.0)
    assert weigh(Evidence(), SEEN, strict).rounds == (False,)
    assert weigh(Evidence(), replace(SEEN, offered_pps=7e4), strict).guilty
    assert len(weigh(Evidence((None, None), at=99.0), SEEN, strict).rounds) == 2


def test_a_round_that_says_neither_counts_only_of_a_router_that_is_held() -> None:
    between = replace(SEEN, offered_pps=1.7e4)
    before = Evidence((True,), at=99.0, excess_at=99.0)
    found = weigh(before, between, RULES)
    assert (found.rounds, found.excess_at) == ((True, None), 99.0)
    assert weigh(before, replace(between, held=False), RULES) is before


def test_only_an_excessive_round_proves_and_only_with_three_others() -> None:
    convicted = Evidence((True,) * 4, True, at=100.0, excess_at=100.0)
    assert proven(convicted, 100.0, RULES)
    assert not proven(convicted, 101.0, RULES)
    assert not proven(replace(convicted, rounds=(True,) * 3), 100.0, RULES)
    assert proven(replace(convicted, rounds=(True,) * 3), 100.0, Rules(needed=3))

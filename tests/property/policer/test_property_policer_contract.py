"""Bursts of contracts, for any terms: what is admitted can be kept at any setpoint."""

import math

from hypothesis import assume, given
from hypothesis import strategies as st

from common.setpoint import Setpoint
from policer.contracts.contract import BURST_MOST_S, MAX_PPS, Contract, contradictions
from xtc.lease import Lease

rates = st.floats(1, MAX_PPS)
terms = st.one_of(
    st.tuples(rates, st.none()),
    st.tuples(st.just(0.0), rates),
    st.tuples(rates, rates).map(sorted).map(tuple),
)
bursts = st.floats() | st.floats(0.5, 1e6)


@given(terms, bursts)
def test_a_burst_is_admitted_within_its_bounds_and_no_other(
    terms: tuple[float, float | None], burst: float
) -> None:
    contract = Contract(terms[0], ceiling_pps=terms[1], burst=burst)
    most = BURST_MOST_S * (terms[0] or terms[1] or 0.0)
    assume(not math.isclose(burst, most))
    problems = list(contradictions(contract))
    assert (problems == []) is (1 <= burst <= most)
    assert all(problem.field == "burst" for problem in problems)


@given(terms, st.floats(1, 1e12))
def test_who_follows_the_advice_is_not_refused(
    terms: tuple[float, float | None], burst: float
) -> None:
    for problem in contradictions(Contract(terms[0], ceiling_pps=terms[1], burst=burst)):
        advised = float(problem.fix.removeprefix("give at most "))
        assert not list(contradictions(Contract(terms[0], ceiling_pps=terms[1], burst=advised)))


@given(terms, st.floats(0, 1), rates, rates)
def test_a_lower_setpoint_has_no_larger_burst_and_none_is_beyond_what_a_daemon_takes(
    terms: tuple[float, float | None], share: float, one: float, other: float
) -> None:
    most = BURST_MOST_S * (terms[0] or terms[1] or 0.0)
    contract = Contract(terms[0], ceiling_pps=terms[1], burst=1 + share * (most - 1))
    low, high = contract.burst_at(min(one, other)), contract.burst_at(max(one, other))
    assert low is not None
    assert high is not None
    assert contract.burst is not None
    assert 1 <= low <= high <= contract.burst
    assert low <= BURST_MOST_S * min(one, other) * (1 + 1e-9)
    Lease.of(Setpoint(one, burst=high))

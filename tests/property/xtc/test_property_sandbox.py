"""How a simulated host gives out its CPU: nobody gets more than he needs, and none is wasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtc.simulation.shared_cpu import fair_shares

NEEDS = st.dictionaries(
    st.text(max_size=3), st.floats(min_value=0.0, max_value=64.0), min_size=1, max_size=8
)
CPUS = st.floats(min_value=-1.0, max_value=64.0)


@given(NEEDS, CPUS)
def test_nobody_gets_more_than_he_needs_and_all_no_more_than_there_is(
    needs: dict[str, float], cpus: float
) -> None:
    given_out = fair_shares(needs, cpus)
    assert given_out.keys() == needs.keys()
    assert all(0.0 <= given_out[name] <= needs[name] for name in needs)
    assert sum(given_out.values()) <= max(0.0, cpus) + 1e-9


@given(NEEDS, CPUS)
def test_nothing_is_left_while_a_router_needs_more(needs: dict[str, float], cpus: float) -> None:
    given_out = fair_shares(needs, cpus)
    wanted = min(sum(needs.values()), max(0.0, cpus))
    assert sum(given_out.values()) == pytest.approx(wanted, abs=1e-9)


@given(NEEDS, CPUS)
def test_who_gets_less_than_he_needs_gets_as_much_as_any_other(
    needs: dict[str, float], cpus: float
) -> None:
    given_out = fair_shares(needs, cpus)
    most = max(given_out.values())
    short = [given_out[name] for name in needs if given_out[name] < needs[name] - 1e-9]
    assert all(each == pytest.approx(most, abs=1e-9) for each in short)

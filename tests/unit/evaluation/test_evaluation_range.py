"""The operating range of a law: the smallest setpoint that it holds, with all larger ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.result import Result
from benchmarks.evaluation.xtc import hold
from benchmarks.evaluation.xtc.operating_range import SMALLEST, WITHIN, smallest_held
from benchmarks.evaluation.xtc.stage import DEAD_BEAT, OURS, PI


def error(way: str, setpoint: float, value: float) -> Result:
    point = hold.Point(hold.UDP, setpoint).words
    return Result("XTC", f"xtc-hold: {point}", way, hold.ERROR, value, None, None, None)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([], None),
        ([(6, 1.0), (10, 1.0)], 6),
        ([(6, 50.0), (10, 9.9)], 10),
        ([(6, 1.0), (10, 50.0), (20, 2.0)], 20),
        ([(20, 11.0)], None),
    ],
)
def test_a_setpoint_counts_only_if_all_larger_ones_are_held(
    errors: list[tuple[float, float]], expected: float | None
) -> None:
    assert smallest_held(errors) == expected


@given(st.lists(st.tuples(st.integers(1, 99), st.floats(0, 100)), unique_by=lambda one: one[0]))
def test_every_setpoint_from_the_range_on_is_held(errors: list[tuple[int, float]]) -> None:
    found = smallest_held(errors)
    if found is not None:
        assert all(value <= WITHIN for setpoint, value in errors if setpoint >= found)


def test_ranges_are_next_to_the_papers() -> None:
    results = [error(PI, 10, 80.0), error(PI, 20, 3.0), error(OURS, 6, 1.0), error(OURS, 60, 1.0)]
    found = {one.way: one for one in hold.derived([*results, error(DEAD_BEAT, 20, 1.0)])}
    assert (found[PI].value, found[PI].paper_value) == (20, 20.0)
    assert (found[OURS].value, found[OURS].paper_value) == (6, 10.0)
    assert found[OURS].metric == SMALLEST
    assert found[OURS].experiment == "xtc-hold: UDP"
    assert DEAD_BEAT not in found, "one setpoint has no range"

"""Sums of what daemons count, for any counting and restarting: exact, and never falling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policer_plant import report_of

from policer.fleet.compliance import Counted, Kept, kept_after

steps = st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=50)


@given(st.integers(0, 1000), steps)
def test_a_sum_is_all_that_was_counted_since_the_first_sight(
    first: int, history: list[tuple[bool, int]]
) -> None:
    counter, added, kept = float(first), 0.0, dict[str, Kept]()
    last = -1.0
    for restarted, more in [(False, 0), *history]:
        counter = more if restarted else counter + more
        added += more
        report = report_of(
            over_promise_packets=counter, under_promise_packets=0.0, breach_seconds=counter / 8
        )
        kept = kept_after(1.0, kept, {"a": report}, (), restarted=restarted)
        assert kept["a"].total.over_packets >= last
        last = kept["a"].total.over_packets
    assert kept["a"].total == Counted(added, 0.0, pytest.approx(added / 8))

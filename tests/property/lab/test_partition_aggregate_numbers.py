"""Laws of the workload's numbers: percentiles, flow sizes, and losses between two counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.zovn.partition_network import Losses
from lab.traffic.completion import completion
from lab.traffic.flow_sizes import size_at

shares = st.floats(0, 1)
durations = st.lists(st.integers(1, 10**12), min_size=1)
losses = st.builds(Losses, *[st.integers(0, 10**9)] * 5)


@given(durations)
def test_percentiles_are_measured_values_in_order(query_ns: list[int]) -> None:
    found = completion(query_ns)
    assert found is not None
    times = sorted(took / 1e6 for took in query_ns)
    assert {found.p50_ms, found.p99_ms, found.longest_ms} <= set(times)
    assert times[0] <= found.p50_ms <= found.p99_ms <= found.longest_ms
    assert sum(time <= found.p99_ms for time in times) >= 0.99 * len(times)
    assert found.mean_ms == pytest.approx(sum(times) / len(times))


@given(shares, shares)
def test_larger_shares_have_larger_flows(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 1_460 <= size_at(low) <= size_at(high) <= 20_000 * 1_460


@given(losses, losses)
def test_what_is_added_can_be_taken_away(one: Losses, other: Losses) -> None:
    assert one + other - other == one

"""What holds for every cost of packets: its ratios, its mixes, and the curves that follow."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cost_rig import sized, straight
from hypothesis import given, settings
from hypothesis import strategies as st

from models import HostModel, PacketCost, ThroughputCurve
from models.cost import SUMS, limited_by_load, mean_bytes
from training.fit.cost import cost_of
from training.fit.fit import fit

SIZES = st.floats(14.0, 65_549.0)
COSTS = st.builds(PacketCost, st.floats(1e-8, 1e-4), st.floats(0.0, 1e-7), SIZES)
SETTINGS = settings(max_examples=40, deadline=None)


@st.composite
def mixes(draw: st.DrawFn) -> list[tuple[float, float]]:
    parts = draw(st.lists(st.tuples(SIZES, st.floats(0.01, 1.0)), min_size=1, max_size=5))
    whole = sum(share for _, share in parts)
    return [(size, share / whole) for size, share in parts]


@st.composite
def curves(draw: st.DrawFn) -> ThroughputCurve:
    steps = draw(st.lists(st.floats(0.01, 0.5), min_size=2, max_size=6))
    falls = draw(st.lists(st.floats(0.1, 1.0), min_size=6, max_size=6))
    points, cap, rate, slope = [], 0.0, 0.0, 1e5
    for step, fall in zip(steps, falls, strict=False):
        cap, rate, slope = cap + step, rate + slope * step, slope * fall
        points.append((cap, rate))
    offered = draw(st.none() | st.floats(1.0, 3.0).map(lambda times: times * points[-1][1]))
    return ThroughputCurve(tuple(points), offered)


def host_of(curve: ThroughputCurve, cost: PacketCost) -> HostModel:
    ceiling = max(1.0, curve.points[-1][0])
    return HostModel(name="h", measured_curve=curve, cost=cost, cap_ceiling=ceiling)


@SETTINGS
@given(COSTS, SIZES)
def test_a_ratio_is_that_of_the_costs_and_1_at_the_reference(cost: PacketCost, size: float) -> None:
    assert cost.ratio(cost.reference_bytes) == 1.0
    assert cost.ratio(size) * cost.of(size) == pytest.approx(cost.of(cost.reference_bytes))


@SETTINGS
@given(COSTS, mixes())
def test_a_mix_costs_what_packets_of_its_mean_size_do(
    cost: PacketCost, mix: list[tuple[float, float]]
) -> None:
    each = sum(share * cost.of(size) for size, share in mix)
    assert cost.of(cost.mean_of(mix)) == pytest.approx(each)


@SETTINGS
@given(mixes(), st.floats(1 - 0.99 * SUMS, 1 + 0.99 * SUMS))
def test_rounded_shares_give_the_same_mean(mix: list[tuple[float, float]], by: float) -> None:
    rounded = [(size, share * by) for size, share in mix]
    assert mean_bytes(rounded) == pytest.approx(mean_bytes(mix))


@SETTINGS
@given(curves(), COSTS, SIZES)
def test_a_curve_of_another_size_is_the_ratio_of_the_cpus_and_never_above_the_load(
    curve: ThroughputCurve, cost: PacketCost, size: float
) -> None:
    ratio = cost.ratio(size)
    model = host_of(curve, cost).for_packet_size(size)
    loaded = limited_by_load(curve)
    for cap, rate in curve.points:
        after = model.curve.throughput(cap)
        if not loaded or rate < 0.95 * (curve.offered or math.inf):
            expected = min(rate * ratio, curve.top) if loaded else rate * ratio
            assert after == pytest.approx(expected, rel=1e-6)
        else:
            assert after <= curve.top * (1 + 1e-12)
            # What the load held back is slower by the ratio at most.
            assert after >= min(1.0, ratio) * rate * (1 - 1e-9)
    if loaded and ratio >= 1:
        assert model.curve.top == curve.top
    assert model.curve.points[-1][0] <= max(1.0, curve.points[-1][0])


@SETTINGS
@given(curves(), COSTS, SIZES)
def test_there_and_back_is_where_it_was_below_the_load(
    curve: ThroughputCurve, cost: PacketCost, size: float
) -> None:
    free = ThroughputCurve(curve.points)
    back = host_of(free, cost).for_packet_size(size).for_packet_size(cost.reference_bytes)
    for cap, rate in free.points:
        assert back.curve.throughput(cap) == pytest.approx(rate, rel=1e-9)


@settings(max_examples=6, deadline=None)
@given(st.floats(1e-6, 8e-6), st.floats(0.0, 5e-9), st.integers(0, 10_000))
def test_what_a_simulated_router_costs_is_found(packet: float, byte: float, seed: int) -> None:
    with TemporaryDirectory() as folder:
        truth = straight(packet, byte)
        file = Path(folder) / "sweep.csv"
        found = fit(sized(truth, (64, 512, 1400), file, noise=0.01, seed=seed)).cost
    assert found is not None
    assert found.cost.of(64) == pytest.approx(truth(64), rel=0.05)
    assert found.cost.of(1000) == pytest.approx(truth(1000), rel=0.08)
    assert not found.bends or found.straight is None or found.straight > 1e-4


@pytest.mark.parametrize("sizes", [(64, 512, 1400), (1400, 64)])
def test_intervals_hold_the_truth_about_19_times_in_20(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    truth, seeds, held = straight(4e-6, 2e-9), range(20), 0
    for seed in seeds:
        recording = sized(truth, sizes, tmp_path / f"{seed}.csv", noise=0.02, seed=seed)
        found = cost_of(recording, threshold=0.45)
        assert found is not None
        held += found.per_packet_us.low <= 4 <= found.per_packet_us.high
        held += found.per_byte_ns.low <= 2 <= found.per_byte_ns.high
        width = found.per_byte_ns.high - found.per_byte_ns.low
        assert 0 < width < 0.6  # at 15 % either way they would hold anything
    assert held >= 2 * len(seeds) - 5

"""What packets of other sizes do to a host's model."""

from dataclasses import replace

import pytest

from models import (
    HostModel,
    InvalidModelError,
    OutOfRange,
    PacketCost,
    ThroughputCurve,
    Uncertainty,
    paper_host,
)
from models.cost import mean_bytes
from models.errors import ModelFileError
from models.hostfile import parse_host

COST = PacketCost(4e-6, 1e-9, 64.0)
HALF = 4e-6 / 1e-9 + 2 * 64.0
"""The size at which a packet costs twice as much."""


def host(top: float, offered: float | None, ceiling: float = 2.0) -> HostModel:
    """Return a hinge of 100 kp/s per CPU."""
    points = ((0.1, 10e3), (top / 100e3, top), (1.5, top))
    curve = ThroughputCurve(points, offered)
    return HostModel(name="h", measured_curve=curve, cost=COST, cap_ceiling=ceiling)


def test_what_the_cpu_limits_is_scaled_as_a_whole() -> None:
    after = host(80e3, 200e3).for_packet_size(HALF).curve
    rates = [(0.1, 5e3), (0.8, 40e3), (1.5, 40e3)]
    assert after.points == tuple((cap, pytest.approx(rate)) for cap, rate in rates)
    assert after.offered == 200e3


def test_what_the_load_limits_stays_and_takes_more_cpu() -> None:
    after = host(50e3, 50e3).for_packet_size(HALF).curve
    assert after.top == 50e3
    assert after.cap_threshold == pytest.approx(1.0)
    assert after.throughput(0.3) == pytest.approx(15e3)


def test_a_host_without_cpu_for_the_load_ends_at_its_ceiling() -> None:
    model = replace(host(80e3, 80e3), cap_ceiling=1.5).for_packet_size(HALF)
    assert model.curve.points[-1] == (1.5, pytest.approx(75e3))
    assert model.cap_ceiling == 1.5


def test_cheaper_packets_reach_the_load_at_a_smaller_cap() -> None:
    dear = replace(host(50e3, 50e3), cost=replace(COST, reference_bytes=HALF))
    after = dear.for_packet_size(64.0).curve
    assert after.top == 50e3
    assert after.cap_threshold == pytest.approx(0.25)
    assert after.throughput(0.05) == pytest.approx(10e3)
    free = replace(dear, measured_curve=ThroughputCurve(((0.1, 10e3), (0.8, 80e3)), 100e3))
    assert free.for_packet_size(64.0).curve.top == pytest.approx(160e3)
    assert free.for_packet_size(64.0).curve.offered is None


def test_eq1_and_its_gains_go_with_it() -> None:
    paper = replace(paper_host(), cost=COST)
    after = paper.for_packet_size(HALF)
    assert after.log_model is not None
    assert paper.log_model is not None
    assert after.log_model.b == pytest.approx(paper.log_model.b / 2)
    assert after.log_model.steady_throughput(0.2) == pytest.approx(
        paper.log_model.steady_throughput(0.2) / 2
    )
    assert after.pi is not None
    assert paper.pi is not None
    assert after.pi.ki == pytest.approx(2 * paper.pi.ki)
    assert after.cost == replace(COST, reference_bytes=HALF)


def test_what_is_known_of_its_errors_goes_with_the_size() -> None:
    known = Uncertainty(0.02, 0.01, 0.0, ((0.1, 19e3, 21e3), (0.5, 98e3, 102e3)), (98e3, 102e3))
    plain = HostModel(
        name="a",
        measured_curve=ThroughputCurve(((0.1, 20e3), (0.5, 100e3), (1.0, 100e3)), 300e3),
        uncertainty=replace(known, limited_by="host"),
        cost=PacketCost(4e-6, 1e-8, 64),
    )
    large = plain.for_packet_size(1400)
    assert large.uncertainty is not None
    ratio = large.curve.top / plain.curve.top
    assert ratio == pytest.approx(4.64 / 18, rel=1e-6)
    assert large.promise == pytest.approx(ratio * plain.promise, rel=1e-3)
    assert large.uncertainty.limited_by == "host"
    assert large.uncertainty.intervals[0] == pytest.approx((0.1, ratio * 19e3, ratio * 21e3))


@pytest.mark.parametrize("shares", [(0.33, 0.33, 0.33), (0.6, 0.41)])
def test_shares_that_sum_to_one_within_a_percent_are_a_mix(shares: tuple[float, ...]) -> None:
    assert mean_bytes([(100.0, share) for share in shares]) == pytest.approx(100.0)


def test_without_a_cost_no_other_size_is_known() -> None:
    with pytest.raises(InvalidModelError, match="--packet-size"):
        paper_host().for_packet_size(1400)


@pytest.mark.parametrize("size", [13.9, 65_550.0, float("nan")])
def test_a_size_that_no_frame_has_is_refused(size: float) -> None:
    with pytest.raises(OutOfRange, match="packet size in bytes"):
        COST.ratio(size)


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (((64, 0.5), (1400, 0.4)), "its shares sum to 0.9"),
        (((64, 0.5), (1400, 0.52)), "its shares sum to 1.02"),
        (((13, 0.5), (1400, 0.5)), "a size of 13 bytes"),
        (((64, -0.5), (1400, 1.5)), "a share of -0.5"),
        ((), "its shares sum to 0"),
    ],
)
def test_what_is_no_mix_is_refused(mix: tuple[tuple[float, float], ...], words: str) -> None:
    with pytest.raises(InvalidModelError, match=words):
        mean_bytes(mix)


@pytest.mark.parametrize(
    ("cost", "field"),
    [
        ("per_packet_us = 4.0\nper_byte_ns = 1.0", "cost.reference_bytes"),
        ("per_packet_us = -4.0\nper_byte_ns = 1.0\nreference_bytes = 64", "cost.per_packet_us"),
        ("per_packet_us = 0\nper_byte_ns = 0\nreference_bytes = 64", "cost.per_packet_us"),
        ("per_packet_us = 4\nper_byte_ns = inf\nreference_bytes = 64", "cost.per_byte_ns"),
        ("per_packet_us = 4\nper_byte_ns = 1\nreference_bytes = 4", "cost.reference_bytes"),
    ],
)
def test_a_file_with_another_cost_is_refused_with_its_field(cost: str, field: str) -> None:
    text = f"schema = 1\n[curve]\npoints = [[5, 16000], [20, 65000]]\n[cost]\n{cost}\n"
    with pytest.raises(ModelFileError) as caught:
        parse_host(text.encode(), "m.toml")
    assert caught.value.field == field

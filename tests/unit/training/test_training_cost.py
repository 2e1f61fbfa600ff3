"""Packet sizes: measured in a sweep, what they cost, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cost_rig import OFFERED, Cost, sized, straight
from training_rig import METADATA

from models import PacketCost, ThroughputCurve, dump_host, parse_host
from training.design.gains import design
from training.design.host_model import host_model
from training.errors import RecordingError, UnfitError
from training.fit.cost import bend, cost_of, in_words
from training.fit.fit import Fit, fit
from training.fit.loads import load_effects, named
from training.recording.recording import Recording, Sample, read_csv
from training.report.report import report

SIZES = (64, 512, 1400)
COST = straight(4e-6, 2e-9)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return sized(COST, SIZES, tmp_path_factory.mktemp("s") / "s.csv", noise=0.01)


@pytest.fixture(scope="module")
def fitted(recording: Recording) -> Fit:
    return fit(recording)


def loaded(recording: Recording) -> list[Sample]:
    return [s for s in recording.samples if s.phase == "load"]


def test_each_further_size_is_measured_at_caps_of_the_curve(recording: Recording) -> None:
    steady = {s.cap for s in recording.samples if s.phase == "steady"}
    for size in SIZES[1:]:
        caps = {s.cap for s in loaded(recording) if s.packet_bytes == size}
        assert len(caps) == 3
        assert caps <= steady
    assert {s.offered_pps for s in loaded(recording)} == {OFFERED}
    assert {s.packet_bytes for s in recording.samples if s.phase != "load"} == {64}


def test_rates_and_sizes_are_loads_of_their_own(tmp_path: Path) -> None:
    rates = (0.5e6, OFFERED)
    found = load_effects(sized(COST, SIZES[:2], tmp_path / "s.csv", rates=rates))
    assert [named(one.traffic) for one in found] == [
        "500 kp/s of 64 bytes",
        "1 Mp/s of 64 bytes",
        "1 Mp/s of 512 bytes",
    ]
    assert [one.ratio for one in found] == [
        pytest.approx(1.0),
        pytest.approx(1.0),
        pytest.approx(COST(64) / COST(512), rel=1e-6),
    ]


def test_an_interrupted_sweep_goes_on_among_its_sizes(tmp_path: Path) -> None:
    whole, path = sized(COST, SIZES, tmp_path / "whole.csv"), tmp_path / "s.csv"
    with pytest.raises(InterruptedError):
        sized(COST, SIZES, path, breaks_after=int(whole.samples[-1].at) - 10)
    kept = read_csv(path).samples
    assert any(s.phase == "load" for s in kept)
    again = sized(COST, SIZES, path).samples
    assert again[: len(kept)] == kept
    assert {(s.packet_bytes, s.cap) for s in again if s.phase == "load"} == {
        (s.packet_bytes, s.cap) for s in loaded(whole)
    }


def test_a_curve_of_another_size_is_not_gone_on_with(tmp_path: Path) -> None:
    sized(COST, SIZES[:1], tmp_path / "s.csv", samples=60)
    with pytest.raises(RecordingError, match="packet_bytes: the file is of 64, this sweep is"):
        sized(COST, SIZES[1:], tmp_path / "s.csv", samples=60)


def test_without_noise_the_cost_is_exact(tmp_path: Path) -> None:
    found = fit(sized(COST, SIZES, tmp_path / "s.csv")).cost
    assert found is not None
    assert found.per_packet_us.value == pytest.approx(4.0, rel=1e-6)
    assert found.per_byte_ns.value == pytest.approx(2.0, rel=1e-6)
    assert found.packet_us.value == pytest.approx(4.128, rel=1e-6)
    assert [one.packet_bytes for one in found.sizes] == [512, 1400]
    assert [one.ratio.value for one in found.sizes] == [
        pytest.approx(COST(512) / COST(64), rel=1e-6),
        pytest.approx(COST(1400) / COST(64), rel=1e-6),
    ]
    assert (found.reference_bytes, found.scale, found.bends) == (64, "used", False)


def test_a_curve_that_bends_gives_the_same_cost_of_a_byte(tmp_path: Path) -> None:
    def bent(cost: Cost, size: float) -> ThroughputCurve:
        points = [(cap, cap**0.8 / cost(size)) for cap in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)]
        return ThroughputCurve((*points, (2.0, points[-1][1])), OFFERED)

    found = fit(sized(COST, SIZES, tmp_path / "s.csv", shape=bent)).cost
    assert found is not None
    share = found.per_byte_ns.value / found.packet_us.value * 1e-3
    assert share == pytest.approx(2e-9 / COST(64), rel=1e-3)
    assert found.packet_us.low < found.packet_us.value < found.packet_us.high


def test_where_nobody_counts_cpu_time_the_cap_stands_for_it(recording: Recording) -> None:
    blind = tuple(replace(s, used=None) for s in recording.samples)
    found = fit(Recording(recording.metadata, blind)).cost
    assert found is not None
    assert found.scale == "cap"
    assert found.packet_us.value == pytest.approx(4.128, rel=0.03)
    assert "by the cap" in in_words(found)


def test_the_cpu_time_counted_is_the_scale(recording: Recording) -> None:
    half = tuple(replace(s, used=s.used and s.used / 2) for s in recording.samples)
    whole, found = fit(recording).cost, fit(Recording(recording.metadata, half)).cost
    assert whole is not None
    assert found is not None
    assert found.packet_us.value == pytest.approx(whole.packet_us.value / 2)


def test_caps_above_the_threshold_say_nothing_of_the_scale(fitted: Fit) -> None:
    assert fitted.cost is not None
    assert fitted.cost.packet_us.value == pytest.approx(4.128, rel=0.02)
    assert {one.caps for one in fitted.cost.sizes} == {2}


def test_a_size_off_the_line_is_named(tmp_path: Path) -> None:
    def segmented(size: float) -> float:
        return COST(size) * (1.25 if size > 1000 else 1.0)

    sizes = (64, 256, 512, 768, 1400)
    found = fit(sized(segmented, sizes, tmp_path / "s.csv", noise=0.005, samples=400)).cost
    assert found is not None
    assert found.bends
    assert found.straight is not None
    assert found.straight < 0.01
    assert " than a straight line says" in bend(found)
    assert bend(found) in in_words(found)


def test_two_sizes_tell_nothing_of_a_line(tmp_path: Path) -> None:
    found = fit(sized(COST, SIZES[::2], tmp_path / "s.csv", noise=0.01)).cost
    assert found is not None
    assert (found.straight, found.bends) == (None, False)


def test_one_size_has_no_cost(tmp_path: Path) -> None:
    found = fit(sized(COST, SIZES[:1], tmp_path / "s.csv"))
    assert (found.cost, found.cost_unknown) == (None, "")
    rates = fit(sized(COST, SIZES[:1], tmp_path / "r.csv", rates=(2e6,)))
    assert (rates.cost, rates.cost_unknown) == (None, "")


def test_a_cost_below_nothing_is_0_in_the_model(fitted: Fit) -> None:
    assert fitted.cost is not None
    minus = msgspec.structs.replace(fitted.cost.per_byte_ns, value=-0.1, low=-0.3)
    cheap = msgspec.structs.replace(fitted.cost, per_byte_ns=minus).cost
    assert cheap.per_byte_s == 0.0
    assert cheap.per_packet_s == pytest.approx(fitted.cost.packet_us.value * 1e-6)
    plus = msgspec.structs.replace(fitted.cost.per_byte_ns, value=1e3)
    dear = msgspec.structs.replace(fitted.cost, per_byte_ns=plus).cost
    assert dear.per_packet_s == 0.0
    assert dear.of(64) == pytest.approx(fitted.cost.packet_us.value * 1e-6)


def refusal(recording: Recording, threshold: float = 0.45) -> str:
    with pytest.raises(UnfitError) as caught:
        cost_of(recording, threshold)
    return str(caught.value)


def test_what_gives_no_cost_is_refused_with_what_to_measure(recording: Recording) -> None:
    unsized = msgspec.structs.replace(recording.metadata, packet_bytes=None)
    assert "write `# packet_bytes = N`" in refusal(Recording(unsized, recording.samples))
    free = tuple(replace(s, binding=False) for s in recording.samples)
    problem = refusal(Recording(recording.metadata, free))
    assert "no cap that binds at two packet sizes" in problem
    assert "offer more load" in problem
    assert "no cap that binds" in refusal(recording, threshold=1e-3)


def test_where_larger_packets_cost_less_something_is_wrong(tmp_path: Path) -> None:
    problem = refusal(sized(straight(8e-6, -3e-9), SIZES, tmp_path / "s.csv", noise=0.001))
    assert "a byte costs less than nothing" in problem


def test_where_a_packet_costs_less_than_nothing_more_sizes_are_asked_for(tmp_path: Path) -> None:
    def steep(size: float) -> float:
        return 1e-9 * size**1.6

    problem = refusal(sized(steep, (256, 1400), tmp_path / "s.csv", noise=0.001))
    assert "a packet costs less than nothing" in problem
    assert "measure more sizes" in problem


def test_a_cost_that_is_too_vague_is_refused(tmp_path: Path) -> None:
    sizes, path = (64, 1400), tmp_path / "s.csv"
    problem = refusal(sized(COST, sizes, path, noise=0.4, samples=64))
    assert "give a longer --budget" in problem


def test_a_refused_cost_leaves_the_curve_good(recording: Recording) -> None:
    unsized = msgspec.structs.replace(recording.metadata, packet_bytes=None)
    found = fit(Recording(unsized, recording.samples))
    assert found.cost is None
    assert "packet size of the curve" in found.cost_unknown
    assert found.top_pps == pytest.approx(0.5 / COST(64), rel=0.02)


def test_report_model_and_json_have_the_cost(recording: Recording, fitted: Fit) -> None:
    gains = design(0.1, fitted.eq1.b.value, period_s=1.0)
    assert "What packets cost" in report(recording, fitted, gains)
    model = host_model(fitted, gains, recording.metadata)
    assert fitted.cost is not None
    assert model.cost == fitted.cost.cost
    again = parse_host(dump_host(model).encode(), "m.toml")
    assert again.cost is not None
    assert again.cost.ratio(1400) == pytest.approx(COST(64) / COST(1400), rel=0.02)
    document = json.loads(msgspec.json.encode(fitted))
    assert document["cost"]["per_packet_us"]["value"] == pytest.approx(4.0, rel=0.03)


def test_samples_of_no_size_leave_everything_as_it_was() -> None:
    steady = tuple(Sample(at=n, cap=0.1 * n, throughput_pps=1e3, visit=n) for n in range(1, 4))
    assert cost_of(Recording(METADATA, steady)) is None


def test_the_cost_of_the_reference_is_kept_by_the_model() -> None:
    cost = PacketCost(4e-6, 2e-9, 64.0)
    assert cost.ratio(1400) == pytest.approx(COST(64) / COST(1400))

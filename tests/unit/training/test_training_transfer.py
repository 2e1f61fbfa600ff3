"""A known curve scaled by a few caps of a new host: right within 5 %, or refused with a reason."""

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training_rig import CONFIG, METADATA, Router, router
from typer.testing import CliRunner

from benchmarks.training.coverage import swept
from benchmarks.training.coverage_host import Case, SimulatedHost, offered, throughput
from common.clock import FakeClock
from models import HostModel, ThroughputCurve, bundled_host, dump_host, load_host
from models.cost import PacketCost
from training.cli.main import app, main
from training.compare.known_curve import Known, known_from_model, known_from_sweep
from training.compare.scaled import scaled_curve, scaled_host
from training.compare.transfer import Transfer, transfer_of
from training.errors import OptionError, TransferError, UnfitError
from training.fit.fit import fit
from training.recording.recording import Metadata, Recording, read_csv, write_csv
from training.recording.sweep_model import aims_for_caps, least_for_caps
from training.sweep.sweep import Capped, Sweep, resumed

USUAL = Case()
FAST = replace(USUAL, speed=1.2)
CAPS = (0.2, 0.4, 0.6)
NEW = Metadata(host="new", cpu="2x new", kernel="Linux 9", hypervisor="none")


def recorded(host: Capped, metadata: Metadata, caps: tuple[float, ...], samples: int) -> Recording:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "few.csv"
        begun = resumed(metadata, path)
        return Sweep(host, begun, path, aims_for_caps(samples, caps), lambda _: None).run()


@cache
def few(
    case: Case, seed: int = 1000, caps: tuple[float, ...] = CAPS, samples: int = 60
) -> Recording:
    metadata = Metadata(
        host="new", cpu="2x new", kernel="Linux 9", hypervisor="none", offered_pps=offered(case)
    )
    return recorded(SimulatedHost(case, seed), metadata, caps, samples)


@cache
def known(case: Case = USUAL, seed: int = 0) -> Known:
    return known_from_sweep(swept(SimulatedHost(case, seed)))


def error_of(found: Transfer, truth: Case) -> float:
    """Return the largest error of the transferred curve from 3 % up, as a share of the truth."""
    curve = scaled_curve(known().host, found)
    caps = [0.03 * 1.09**n for n in range(40)]
    return max(abs(curve.throughput(cap) / throughput(truth, cap) - 1) for cap in caps)


def refused(case: Case, **options: object) -> TransferError:
    with pytest.raises(TransferError) as caught:
        transfer_of(known(), few(case, **options))  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("source", ["sweep", "model"])
def test_a_transferred_curve_is_within_five_percent(source: str) -> None:
    from_where = known() if source == "sweep" else known_from_model(known().host)
    found = transfer_of(from_where, few(FAST))
    assert found.factor.low <= 1.2 <= found.factor.high
    assert error_of(found, FAST) < 0.05
    assert [one.cap for one in found.caps] == list(CAPS)


def test_two_caps_in_the_shortest_budget_will_do() -> None:
    recording = few(FAST, caps=(0.2, 0.6), samples=40)
    assert recording.samples[-1].at <= 40
    assert error_of(transfer_of(known(), recording), FAST) < 0.05


def test_a_lag_is_taken_off_as_the_known_host_has_it() -> None:
    slow = replace(USUAL, lag=0.6, noise=0.01)
    found = transfer_of(known(slow), few(replace(slow, speed=1.2)))
    assert found.factor.low <= 1.2 <= found.factor.high
    assert scaled_host(known(slow).host, found, NEW).lag == known(slow).host.lag


def test_another_curve_is_refused_and_the_cap_is_named() -> None:
    error = refused(replace(USUAL, curve="logarithm"))
    assert error.lacks == "shape"
    assert error.cap in CAPS
    assert f"at {error.cap * 100:g}%" in str(error)
    assert "sweep it in full" in str(error)


def test_a_host_that_changes_from_visit_to_visit_is_refused_as_imprecise() -> None:
    error = refused(Case(speed=1.2, visit_sd=0.15), seed=5)
    assert error.lacks == "precision"


@pytest.mark.parametrize(
    ("caps", "lacks"),
    [((0.2,), "caps"), ((0.2, 0.85), "caps"), ((0.5, 0.6), "spread"), ((0.005, 0.4), "range")],
)
def test_caps_that_say_too_little_are_refused(caps: tuple[float, ...], lacks: str) -> None:
    assert refused(FAST, caps=caps).lacks == lacks


def test_a_top_that_is_not_reached_is_refused() -> None:
    short = replace(FAST, loaded=0.7)
    unsaid = replace_offered(few(short, caps=(0.15, 0.4)))
    with pytest.raises(TransferError) as caught:
        transfer_of(known(), unsaid)
    assert caught.value.lacks == "top"


def replace_offered(recording: Recording) -> Recording:
    """Return the recording of a load that nobody counted."""
    samples = tuple(replace(sample, offered_pps=None) for sample in recording.samples)
    return Recording(NEW, samples)


def test_the_offered_load_limits_the_new_top() -> None:
    short = replace(FAST, loaded=0.7)
    found = transfer_of(known(), few(short, caps=(0.15, 0.4)))
    curve = scaled_curve(known().host, found)
    assert curve.top == offered(short)
    assert curve.throughput(curve.cap_threshold) == pytest.approx(curve.top)
    assert error_of(found, short) < 0.05


def test_a_sweep_that_is_not_precise_is_not_scaled() -> None:
    rough = swept(SimulatedHost(Case(visit_sd=0.1), 0))
    with pytest.raises(UnfitError, match="not precise enough"):
        known_from_sweep(rough)


def test_promises_and_costs_are_those_of_the_new_host() -> None:
    cost = PacketCost(8e-6, 2e-9, 64)
    source = replace(known(), host=replace(known().host, cost=cost))
    slow = replace(USUAL, speed=0.6)
    new = scaled_host(source.host, transfer_of(source, few(slow)), NEW)
    truth = throughput(slow, 1.0)
    assert new.uncertainty is not None
    assert source.host.uncertainty is not None
    low, high = new.uncertainty.top
    assert low < truth < high
    assert high - low > source.host.uncertainty.top[1] * 0.6 - source.host.uncertainty.top[0] * 0.6
    assert new.promise < truth
    for cap, least, most in new.uncertainty.intervals:
        assert least <= new.curve.throughput(cap) <= most
    assert new.cost is not None
    assert new.cost.of(64) == pytest.approx(cost.of(64) / 0.6, rel=0.05)


def test_packets_of_another_size_are_no_other_speed() -> None:
    recording = few(FAST)
    metadata = msgspec.structs.replace(recording.metadata, packet_bytes=1400)
    with pytest.raises(TransferError, match="of packets of 64 bytes, the recording of 1400"):
        transfer_of(replace(known(), packet_bytes=64), Recording(metadata, recording.samples))


@pytest.mark.parametrize("phases", [set(), {"uncapped"}, {"held_out"}])
def test_a_sweep_that_was_interrupted_early_is_refused(phases: set[str]) -> None:
    recording = few(FAST)
    samples = tuple(s for s in recording.samples if s.phase in phases)
    with pytest.raises(TransferError, match="the same command continues"):
        transfer_of(known(), Recording(recording.metadata, samples))


@pytest.mark.parametrize("answer", [{"lag": 0.9}, {"delay_samples": 5}])
def test_a_sweep_that_ended_before_its_first_cap_showed_is_refused(
    answer: dict[str, Any],
) -> None:
    recording = few(FAST)
    first = next(n for n, s in enumerate(recording.samples) if s.phase == "steady")
    stopped = Recording(recording.metadata, recording.samples[: first + 1])
    slow = replace(known(), host=replace(known().host, **answer))
    with pytest.raises(TransferError, match="the same command continues"):
        transfer_of(slow, stopped)


def test_samples_that_were_all_taken_at_once_are_refused() -> None:
    recording = few(FAST)
    samples = tuple(replace(sample, at=1.0) for sample in recording.samples)
    with pytest.raises(TransferError, match="look at at_s") as caught:
        transfer_of(known(), Recording(recording.metadata, samples))
    assert caught.value.lacks == "samples"


def test_a_transfer_writes_over_nothing_that_it_reads(tmp_path: Path) -> None:
    model, csv = tmp_path / "known.toml", tmp_path / "few.csv"
    model.write_text(dump_host(known().host))
    write_csv(few(FAST), csv)
    for target in (model, csv):
        before = target.read_bytes()
        done = CliRunner().invoke(app, ["transfer", str(model), str(csv), "-o", str(target)])
        assert isinstance(done.exception, OptionError)
        assert target.read_bytes() == before


def test_the_model_says_where_it_comes_from_and_scales_what_throughput_scales() -> None:
    host, found = known().host, transfer_of(known(), few(FAST))
    new, factor = scaled_host(host, found, NEW), found.factor.value
    assert (new.name, new.cpu, new.kernel) == ("new", "2x new", "Linux 9")
    assert "Transferred" in new.description
    assert f"{factor:.3f} (95 %: {found.factor.low:.3f}" in new.description
    assert "20%, 40%, 60%" in new.description
    assert host.name in new.description
    assert host.log_model is not None
    assert new.log_model is not None
    assert new.log_model.b == pytest.approx(factor * host.log_model.b)
    assert new.log_model.a == host.log_model.a
    assert host.dead_beat is not None
    assert new.dead_beat is not None
    # Dead-beat: Kp = a/b and Ki = (1 - a)/b, whatever the host's speed is.
    b = new.log_model.b
    assert new.dead_beat.kp == pytest.approx(new.log_model.a / b, rel=0.01)
    assert new.dead_beat.ki == pytest.approx((1 - new.log_model.a) / b, rel=0.01)


@settings(max_examples=30, deadline=None)
@given(
    factor=st.floats(0.2, 5.0),
    load=st.none() | st.floats(5e3, 5e5),
    name=st.sampled_from(["paper", "hinge", "log"]),
)
def test_any_scaled_host_is_a_model_that_reads_back(
    factor: float, load: float | None, name: str
) -> None:
    host = bundled_host(name)
    found = transfer_of(known(), few(FAST))
    interval = type(found.factor)(factor, factor * 0.99, factor * 1.01)
    changed = type(found)(interval, found.caps, (), 1.0, load, None)
    new = scaled_host(host, changed, NEW)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "new.toml"
        path.write_text(dump_host(new))
        read = load_host(path)
    assert read.curve.top == pytest.approx(min(factor * host.curve.top, load or 1e9))
    below = 0.5 * read.curve.cap_threshold
    assert read.curve.throughput(below) == pytest.approx(
        min(factor * host.curve.throughput(below), load or 1e9), rel=1e-6
    )


def simulated(name: str = "hinge", **options: float) -> Router:
    return router(name, **options)


@settings(max_examples=15, deadline=None)
@given(
    caps=st.lists(st.integers(5, 95).map(lambda n: n / 100), min_size=1, max_size=6, unique=True),
    spare=st.integers(0, 80),
)
def test_given_caps_are_visited_up_and_down_within_the_budget(
    caps: list[float], spare: int
) -> None:
    samples = max(least_for_caps(len(caps)), 40) + spare
    recording = recorded(simulated(noise=0.01), METADATA, tuple(caps), samples)
    assert recording.samples[-1].at <= samples
    assert {s.phase for s in recording.samples} <= {"uncapped", "steady", "settling"}
    visits = {s.visit: s.cap for s in recording.samples if s.phase == "steady"}
    up = sorted(caps)
    assert list(visits.values())[: 2 * len(caps)] == pytest.approx([*up, *reversed(up)])


def test_a_longer_budget_visits_the_caps_more_often() -> None:
    recording = recorded(simulated(), METADATA, (0.2, 0.6), 120)
    assert len({s.visit for s in recording.samples if s.phase == "steady"}) >= 8


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated router, on a clock that jumps."""
    monkeypatch.setattr("training.sweep.targets.MonotonicClock", lambda: FakeClock(100.0))
    path = tmp_path / "xtc.toml"
    path.write_text(CONFIG.format(tmp_path))
    return path


def failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int | str | None, str]:
    monkeypatch.setattr(sys, "argv", ["xtc-train", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code, capsys.readouterr().err


def test_a_few_caps_take_a_minute_and_transfer_reads_them(config: Path, tmp_path: Path) -> None:
    output, model = tmp_path / "few.csv", tmp_path / "new.toml"
    caps = ("--cap", "10%", "--cap", "0.4")
    run = CliRunner().invoke(
        app, ["sweep", "--config", str(config), *caps, "-o", str(output), "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["seconds"] <= 60
    assert {s.cap for s in read_csv(output).samples} == {None, 0.1, 0.4}
    source = tmp_path / "known.toml"
    source.write_text(dump_host(_slower(_simulated_host())))
    run = CliRunner().invoke(
        app, ["transfer", str(source), str(output), "-o", str(model), "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["factor"]["value"] == pytest.approx(2.0, rel=0.02)
    assert load_host(model).name == read_csv(output).metadata.host


def _simulated_host() -> HostModel:
    """Return the host that the simulated actuator is."""
    return bundled_host("paper")


def _slower(host: HostModel) -> HostModel:
    curve = ThroughputCurve(tuple((cap, rate / 2) for cap, rate in host.curve.points))
    return replace(host, measured_curve=curve)


def test_the_shortest_budget_is_accepted_and_less_is_not(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    common = ("--config", config, "-o", tmp_path / "few.csv")
    caps = ("--cap", "20%", "--cap", "60%")
    code, words = failure(monkeypatch, capsys, "sweep", *common, *caps, "--budget", "39s")
    assert code == 2
    assert "at least 40 s" in words
    code, words = failure(monkeypatch, capsys, "sweep", *common, "--cap", "900000%")
    assert code == 2
    assert "--cap" in words
    rates = ("--offered", "10kpps", "--offered", "20kpps")
    code, words = failure(monkeypatch, capsys, "sweep", *common, *caps, *rates)
    assert code == 2
    assert "measures no further --offered" in words
    run = CliRunner().invoke(app, ["sweep", *map(str, common), *caps, "--budget", "40s"])
    assert run.exit_code == 0, run.output
    assert "xtc-train transfer" in run.stdout


def test_a_refusal_writes_no_file_and_is_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, recording = tmp_path / "known.csv", tmp_path / "few.csv"
    write_csv(swept(SimulatedHost(USUAL, 0)), source)
    write_csv(few(replace(USUAL, curve="logarithm")), recording)
    output = tmp_path / "new.toml"
    code, words = failure(monkeypatch, capsys, "transfer", source, recording, "-o", output)
    assert code == 1
    assert "sweep it in full" in words
    assert not output.exists()
    assert fit(read_csv(source)).top_pps > 0

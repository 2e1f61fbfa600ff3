"""What xtc-train fit, design and validate are asked for: kept, judged and named as typed."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from test_training_cli import CONFIG, document, failure, shown
from training_rig import router, swept

from common.clock import FakeClock
from models import dump_host, paper_host
from training.recording.recording import Recording, read_csv, write_csv


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated router, on a clock that jumps."""
    monkeypatch.setattr("training.sweep.targets.MonotonicClock", lambda: FakeClock(100.0))
    path = tmp_path / "xtc.toml"
    path.write_text(CONFIG.format(tmp_path))
    return path


@pytest.fixture
def refusal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the installed command; it has to exit with 2, and its words are returned."""

    def refused(*arguments: object) -> str:
        code, error = failure(monkeypatch, capsys, *arguments)
        assert code == 2, error
        return " ".join(error.split())

    return refused


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of the measured hinge."""
    path = tmp_path_factory.mktemp("sweep") / "sweep.csv"
    swept(router("hinge", noise=0.01), path)
    return path


@pytest.fixture(scope="module")
def fast_recording(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sweep, as if sampled every 0.2 s."""
    path, slow = tmp_path_factory.mktemp("fast") / "sweep.csv", read_csv(recording)
    metadata = msgspec.structs.replace(slow.metadata, period_s=0.2)
    samples = [dataclasses.replace(one, at=one.at * 0.2) for one in slow.samples]
    write_csv(Recording(metadata, tuple(samples)), path)
    return path


def test_a_model_file_gives_the_gains_of_its_sweep(fast_recording: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    shown("fit", fast_recording, "--output", model)
    of_sweep, of_model = (
        document("design", *source) for source in ((fast_recording,), ("--model", model))
    )
    assert of_model["period_s"] == of_sweep["period_s"] == 0.2
    for law in ("pi", "dead_beat"):
        for gain in ("kp", "ki"):
            assert of_model[law][gain] == pytest.approx(of_sweep[law][gain], rel=1e-9)


def test_gains_of_two_periods_say_nothing_of_eq_1(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    paper, model = paper_host(), tmp_path / "model.toml"
    assert paper.pi is not None
    fast = dataclasses.replace(paper.pi, period=0.2)
    model.write_text(dump_host(dataclasses.replace(paper, pi=fast)))
    words = refusal("design", "--model", model)
    assert "--model: period_s of the two gains of paper differs" in words


@pytest.mark.parametrize("command", ["fit", "design", "report"])
@pytest.mark.parametrize(
    ("option", "typed"),
    [
        ("--overshoot", "100%"),
        ("--overshoot", "1.5"),
        ("--settling", "0s"),
        ("--settling", "100ms"),
        ("--settling", "9h"),
    ],
)
def test_a_specification_that_cannot_be_met_is_named_as_typed(
    recording: Path, refusal: Callable[..., str], command: str, option: str, typed: str
) -> None:
    assert f"{option}: {typed} " in refusal(command, recording, option, typed)


def test_what_is_refused_is_not_written(
    recording: Path, refusal: Callable[..., str], tmp_path: Path
) -> None:
    output = tmp_path / "model.toml"
    refusal("fit", recording, "--output", output, "--settling", "0s")
    assert not output.exists()


def test_a_fit_at_a_long_period_needs_no_specification(recording: Path, tmp_path: Path) -> None:
    """Five seconds, the usual time to settle in, are too short for samples 10 s apart."""
    path, slow = tmp_path / "slow.csv", read_csv(recording)
    metadata = msgspec.structs.replace(slow.metadata, period_s=10.0)
    write_csv(Recording(metadata, slow.samples), path)
    assert "cap threshold" in shown("fit", path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--setpoint", "900Mpps"), "--setpoint: 900 Mp/s is above the top of paper, 98 kp/s"),
        (("--hold", "0s"), "--hold: 0s is less than 15 periods of 1 s (give 15s or more)"),
        (("--hold", "1s"), "--hold: 1s is less than 15 periods of 1 s (give 15s or more)"),
    ],
)
def test_a_validation_that_could_judge_nothing_is_refused(
    config: Path, refusal: Callable[..., str], options: tuple[str, str], words: str
) -> None:
    assert words in refusal("validate", "--config", config, "--model", "paper", *options)

"""xtc-train as an operator meets it: options, JSON, files, and exit codes."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from training_rig import CONFIG, router, swept
from typer.testing import CliRunner

from common.clock import FakeClock
from common.dirlock import hold
from common.errors import Busy, ConfigError
from lab.system import requirements
from models import ThroughputCurve, bundled_host, dump_host, load_host, paper_host
from training.cli.main import app, main
from training.cli.place import check_period
from training.cli.progress import clock_time, describe
from training.errors import UnfitError
from training.recording.recording import read_csv
from training.sweep.load import FIRST_RATE, Command
from training.sweep.sweep import Progress
from training.sweep.watch import MeasureError
from xtc.config.schema import DaemonSection
from xtc.state.journal import Journal

NOBODY = 65534
"""The user id of nobody in particular."""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A simulated router, on a clock that jumps."""
    monkeypatch.setattr("training.sweep.targets.MonotonicClock", lambda: FakeClock(100.0))
    path = tmp_path / "xtc.toml"
    path.write_text(CONFIG.format(tmp_path))
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of the measured hinge."""
    path = tmp_path_factory.mktemp("sweep") / "sweep.csv"
    swept(router("hinge", noise=0.01), path)
    return path


def shown(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*arguments: object) -> Any:
    return json.loads(shown(*arguments, "--json"))


def failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int | str | None, str]:
    """Return what the installed command would exit with, and its one line."""
    monkeypatch.setattr(sys, "argv", ["xtc-train", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code, capsys.readouterr().err


def test_a_configured_router_is_swept_into_a_file(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep.csv"
    summary = document("sweep", "--config", config, "--output", output, "--budget", "5min")
    found = read_csv(output)
    assert summary["output"] == str(output)
    assert summary["samples"] == len(found.samples)
    assert summary["caps"] >= 7
    assert summary["offered_pps"] is None
    assert summary["seconds"] <= 300
    assert found.metadata.router == "gold"
    assert found.metadata.actuator == "simulated"


def test_the_same_command_goes_on_with_its_file(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep.csv"
    first = document("sweep", "-c", config, "-o", output, "--budget", "1min")
    second = document("sweep", "-c", config, "-o", output, "--budget", "5min")
    assert second["samples"] > first["samples"]


def test_without_json_a_line_says_what_comes_next(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep.csv"
    words = shown("sweep", "--config", config, "--output", output, "--budget", "1min")
    assert f"next: xtc-train fit {output}" in words
    assert "the operator's load" in words


def test_further_rates_are_measured_and_compared(config: Path, tmp_path: Path) -> None:
    """The simulated router is offered 100 kp/s whatever the source is told."""
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}")
    first, second = ("--offered", "100kpps"), ("--offered", "40kpps")
    found = document(*place, *first, *second, "--budget", "5min")
    assert found["offered_pps"] == 100e3
    (effect,) = found["loads"]
    assert effect["offered_pps"] == 40e3
    assert effect["ratio"] == pytest.approx(1, abs=0.05)
    assert {s.offered_pps for s in read_csv(output).samples if s.phase == "load"} == {40e3}
    words = shown(*place, *first, *second, "--budget", "5min")
    assert "40 kp/s offered: " in words
    assert "of the curve, at 2 caps" in words


def test_a_further_size_is_sent_measured_and_recorded(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated router forwards as many packets of any size."""
    output, sent = tmp_path / "sweep.csv", set[tuple[float, int | None]]()
    set_rate = Command.set_rate

    def seen(self: Command, rate: float, packet_bytes: int | None = None) -> None:
        set_rate(self, rate, packet_bytes)
        sent.add((rate, self._size))

    monkeypatch.setattr(Command, "set_rate", seen)
    source = "sh -c 'exec sleep 60 # {rate} {size}'"
    place = ("sweep", "-c", config, "-o", output, "--source", source, "--offered", "100kpps")
    sizes = ("--packet-size", 64, "--packet-size", 1400)
    found = document(*place, *sizes, "--budget", "5min")
    (effect,) = found["loads"]
    assert (effect["offered_pps"], effect["packet_bytes"]) == (100e3, 1400)
    recording = read_csv(output)
    assert recording.metadata.packet_bytes == 64
    assert {s.packet_bytes for s in recording.samples if s.phase == "load"} == {1400}
    words = shown(*place, *sizes, "--budget", "5min")
    assert "100 kp/s of 1400 bytes offered: " in words
    assert sent == {(100e3, 64), (100e3, 1400)}
    cost = document("fit", output)["cost"]
    assert cost["reference_bytes"] == 64
    assert cost["per_byte_ns"]["low"] < 0 < cost["per_byte_ns"]["high"]
    assert "ns a byte" in shown("fit", output)


def test_a_file_without_sizes_is_gone_on_with_in_its_own_format(
    config: Path, tmp_path: Path
) -> None:
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}")
    first = ("--offered", "100kpps")
    document(*place, *first, "--budget", "1min")
    before = read_csv(output)
    document(*place, *first, "--offered", "40kpps", "--budget", "2min")
    after = read_csv(output)
    assert after.samples[: len(before.samples)] == before.samples
    assert len(after.samples) > len(before.samples)
    assert "packet_bytes" not in output.read_text()


def test_a_rate_that_the_budget_does_not_hold_is_named(config: Path, tmp_path: Path) -> None:
    """The file has used up the budget of the second run before it begins."""
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}")
    document(*place, "--offered", "100kpps", "--budget", "5min")
    rates = ("--offered", "100kpps", "--offered", "40kpps")
    words = shown(*place, *rates, "--budget", "70s")
    assert "40 kp/s offered: not measured; give a longer --budget" in words


def test_a_rate_that_does_not_arrive_is_refused_and_not_recorded(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}")
    found, error = failure(monkeypatch, capsys, *place, "--offered", "200kpps")
    assert found == 1
    assert "--offered: 100 kp/s arrive where 200 kp/s were asked for" in error
    assert not output.exists()


def test_a_search_for_the_rate_ends_with_what_arrives(config: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}")
    found = document(*place, "--budget", "1min")
    assert found["offered_pps"] == pytest.approx(100e3, rel=0.01)
    assert found["seconds"] <= 60
    assert read_csv(output).metadata.offered_pps == found["offered_pps"]


def test_a_budget_of_which_the_search_for_a_rate_leaves_too_little_is_refused(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "sweep.csv"
    place = ("sweep", "-c", config, "-o", output, "--source", "sleep 60{rate}", "--budget", "40s")
    found, error = failure(monkeypatch, capsys, *place)
    assert found == 2
    assert "--budget: the search for a rate took " in error
    assert "give --offered " in error
    assert not output.exists()
    assert document(*place, "--offered", "100kpps")["seconds"] <= 40


def test_a_fit_becomes_a_model_file_that_the_daemon_reads(recording: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    found = document("fit", recording, "--output", model)
    host, truth = load_host(model), bundled_host("hinge")
    assert found["eq1"]["a"]["value"] == pytest.approx(0.0, abs=0.05)
    for cap in (0.05, 0.2, 0.5):
        assert host.curve.throughput(cap) == pytest.approx(truth.curve.throughput(cap), rel=0.04)
    assert host.pi is not None
    words = shown("fit", recording, "--output", model)
    assert f'model = "{model}"' in words
    assert "held-out caps" in words


def test_the_papers_gains_are_designed_from_its_model() -> None:
    found = document("design", "--model", "paper")
    assert round(found["pi"]["kp"] * 1e3, 3) == -1.747
    assert round(found["pi"]["ki"] * 1e3, 3) == 11.311
    assert round(found["dead_beat"]["kp"] * 1e3, 3) == 1.452
    assert round(found["dead_beat"]["ki"] * 1e3, 3) == 14.419
    assert "dead-beat" in shown("design", "--model", "paper")


def test_a_design_takes_its_specification(recording: Path) -> None:
    slow = document("design", recording, "--settling", "20s", "--overshoot", "1%")
    assert (slow["wanted_settling_s"], slow["wanted_overshoot"]) == (20, 0.01)
    assert slow["pi"]["ki"] < document("design", recording)["pi"]["ki"]


def test_a_validation_compares_what_was_predicted_with_fact(config: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    model.write_text(dump_host(paper_host()))
    options = ("--config", config, "--model", model, "--setpoint", "20kpps", "--hold", "15s")
    found = document("validate", *options)
    assert [one["setpoint_pps"] for one in found] == [20e3]
    assert found[0]["fact"]["cap"] == pytest.approx(found[0]["predicted"]["cap"], rel=0.05)
    words = shown("validate", *options)
    assert "predicted" in words
    assert "fact" in words
    assert "pass" in words


def test_a_model_of_another_host_fails(config: Path, tmp_path: Path) -> None:
    model, paper = tmp_path / "model.toml", paper_host()
    twice = tuple((cap, 2 * rate) for cap, rate in paper.curve.points)
    model.write_text(dump_host(replace(paper, measured_curve=ThroughputCurve(twice))))
    options = ("--config", config, "--model", model, "--setpoint", "20kpps", "--hold", "15s")
    result = CliRunner().invoke(app, ["validate", *map(str, options)])
    assert isinstance(result.exception, UnfitError)
    assert "1 of 1 setpoints failed (20 kp/s)" in str(result.exception)
    assert "the model is of another host" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("fit", "nowhere.csv"), 2, "give the path of a recording that exists"),
        (("design", "--model", "hinge"), 2, "has no [log_model]"),
        (("design",), 2, "give the CSV of a sweep, or --model"),
        (("sweep", "--lab", "user-space", "--router", "x"), 2, "brings its own router"),
        (("sweep", "--lab", "other"), 2, "--lab: 'other' is not one of: user-space, kernel"),
        (("sweep", "--config", "/nowhere.toml"), 2, "/nowhere.toml"),
        (("sweep", "--source", "flood"), 2, "{rate}"),
        (("sweep", "--source", "'{rate}"), 2, "--source: cannot be taken apart: no closing quot"),
        (("sweep", "--source", "{rate}\\"), 2, "--source: cannot be taken apart: no escaped"),
        (("sweep", "--packet-size", "64"), 2, "--packet-size: nothing sends that size"),
        (
            ("sweep", "--packet-size", "64", "--source", "flood {rate}"),
            2,
            "give --lab, or a --source with {size}",
        ),
        (("sweep", "--source", "flood {rate} {size}"), 2, "--source: has {size}, but no size"),
        (
            ("sweep", "--packet-size", "13", "--source", "flood {rate} {size}"),
            2,
            "--packet-size: 13 bytes are out of bounds (give 14 to 65549 bytes of a frame)",
        ),
        (("sweep", "--lab", "kernel", "--packet-size", "1515"), 2, "give 43 to 1514 bytes"),
        (
            ("sweep", "--lab", "kernel", "--packet-size", "64", "--packet-size", "42"),
            2,
            "--packet-size: 42 bytes are out of bounds",
        ),
        (("mix", "paper", "--mix", "imix"), 1, "paper has no [cost]: sweep with two or more"),
        (("mix", "paper", "--mix", "64:0.5"), 2, "--mix: its shares sum to 0.5"),
        (("sweep", "--period", "soon"), 2, "--period: 'soon' is not a duration"),
        (("sweep", "--budget", "soon"), 2, "a duration such as"),
        (("sweep", "--offered", "1kpps", "--offered", "many"), 2, "--offered: 'many' is not"),
        (("validate", "--model", "nowhere.toml"), 2, "nowhere.toml"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    found, error = failure(monkeypatch, capsys, *arguments)
    assert found == code
    assert words in " ".join(error.split())
    assert "Traceback" not in error


def test_a_budget_has_room_for_each_further_size(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", "-c", config, "--source", "x {rate} {size}", "--budget", "60s"]
    for size in (64, 512, 1400):
        words += ["--packet-size", size]
    found, error = failure(monkeypatch, capsys, *words)
    assert found == 2
    assert "at least 88 s at a period of 1 s and 2 further --packet-size" in error


@pytest.mark.parametrize("asked", [None, 1400])
def test_a_lab_is_flooded_with_packets_of_the_size(
    asked: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the flood; no lab is made."""
    floods = []

    class Flooded(Exception):  # noqa: N818  it ends the sweep where the lab would begin
        pass

    class Made:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def add_router(self, *_: object) -> "Made":
            return self

        def flood(self, rate_pps: float, payload: int) -> None:
            floods.append((rate_pps, payload))
            raise Flooded

    monkeypatch.setattr("training.sweep.targets.Lab", Made)
    monkeypatch.setattr("training.sweep.targets.LAB_LOCK", tmp_path / "lab")
    monkeypatch.setattr("training.sweep.targets.requirements.check", lambda: None)
    size = [] if asked is None else ["--packet-size", asked]
    words = ["sweep", "--lab", "user-space", "-o", tmp_path / "s.csv", *size]
    with pytest.raises(Flooded):
        shown(*words, "--lab-state-dir", tmp_path / "state")
    assert floods == [(FIRST_RATE, (asked or 64) - 42)]


def test_a_budget_that_holds_no_sweep_is_refused(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, error = failure(monkeypatch, capsys, "sweep", "-c", config, "--budget", "10s")
    assert found == 2
    assert "at least 40 s at a period of 1 s" in error
    assert error.count("\n") == 1


def test_each_further_rate_needs_its_share_of_the_budget(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = ("--offered", "60kpps", "--offered", "70kpps", "--offered", "80kpps")
    found, error = failure(monkeypatch, capsys, "sweep", "-c", config, "--budget", "80s", *rates)
    assert found == 2
    assert "at least 88 s at a period of 1 s and 2 further --offered" in error


def test_a_rate_that_nothing_sends_is_refused(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found, error = failure(monkeypatch, capsys, "sweep", "-c", config, "--offered", "60kpps")
    assert found == 2
    assert "give --source or --lab" in error


def test_a_running_daemon_is_named(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Journal(tmp_path / "state"):
        found, error = failure(monkeypatch, capsys, "sweep", "-c", config)
    assert found == 2
    assert f"{tmp_path / 'state'}: a daemon or another xtc-train holds it" in error
    assert "give another daemon.state_dir" in error


@pytest.mark.parametrize("first", ["another's lab", "another's state directory"])
def test_whoever_runs_a_lab_or_holds_its_state_is_named(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first still holds what it has when the second is refused."""
    if missing := requirements.missing():
        pytest.skip("; ".join(missing))
    monkeypatch.setattr("training.sweep.targets.LAB_LOCK", tmp_path / "lab")
    held, state = tmp_path / "lab", tmp_path / "state"
    taken = held if first == "another's lab" else state
    taken.mkdir()
    lock = hold(taken, "")
    lab = ("sweep", "--lab", "user-space", "--lab-state-dir", state, "-o", tmp_path / "s.csv")
    try:
        found, error = failure(monkeypatch, capsys, *lab)
        with pytest.raises(Busy):
            hold(taken, "")
    finally:
        os.close(lock)
    words = {
        held: (1, "--lab: another xtc-train runs its lab (wait for it, or stop it)"),
        state: (2, "a daemon or another xtc-train holds it; stop that, or give another --lab-st"),
    }
    assert found == words[taken][0]
    assert words[taken][1] in error
    assert error.count("\n") == 1
    os.close(hold(held, ""))  # neither refusal kept the lab


def test_without_root_a_lab_says_that_root_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Root's directory of an earlier sweep is there, and shut."""
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        lab = ("sweep", "--lab", "user-space", "--lab-state-dir", state)
        found, error = failure(monkeypatch, capsys, *lab)
    finally:
        os.seteuid(user)
    assert found == 1
    assert "Root privileges are missing" in error
    assert str(state) not in error


@pytest.mark.parametrize("command", [("sweep",), ("validate", "--model", "paper")])
@pytest.mark.parametrize("period", ["0s", "99ms", "61s"])
def test_a_period_that_no_daemon_takes_is_refused(
    command: tuple[str, ...],
    period: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab = (*command, "--lab", "user-space", "--period", period)
    found, error = failure(monkeypatch, capsys, *lab)
    assert found == 2
    assert f"--period: {period} is out of bounds (give 0.1s to 60s" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("period", [0.1, 60.0])
def test_a_lab_takes_the_periods_that_the_daemon_takes(period: float) -> None:
    assert check_period(f"{period}s") == period
    msgspec.convert({"period_s": period}, DaemonSection)
    for beyond in (period * 0.99, period * 1.01):
        try:
            msgspec.convert({"period_s": beyond}, DaemonSection)
        except msgspec.ValidationError:
            with pytest.raises(ConfigError, match="--period"):
                check_period(f"{beyond:g}s")
        else:
            assert check_period(f"{beyond:g}s") == pytest.approx(beyond)


def test_too_little_data_is_a_failure_that_says_what_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.csv"
    simulated = router("hinge")
    simulated.breaks_after = 20
    with pytest.raises(InterruptedError):
        swept(simulated, path)
    found, error = failure(monkeypatch, capsys, "fit", path)
    assert found == 1
    assert "measure 5 caps or more" in error


def test_a_given_source_is_started_with_each_rate_and_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    source = Command(f"sh -c 'echo {{rate}} >> {log}; exec sleep 60'")
    for rate in (20e3, 35000.4):
        source.set_rate(rate)
        while not log.exists() or f"{rate:.0f}" not in log.read_text():
            assert source.alive
    source.stop()
    assert log.read_text().split() == ["20000", "35000"]
    assert not source.alive


def test_a_source_that_cannot_be_started_is_named() -> None:
    with pytest.raises(MeasureError, match="no-such-program: No such file"):
        Command("no-such-program {rate}").set_rate(1.0)


def test_progress_is_told_in_words() -> None:
    progress = Progress("held_out", 0.125, 34_500.0, 9, 200.0, 65.0)
    assert describe(progress) == "held out 12.5%: 34.5 kp/s, 9 caps, 1:05 left at most"
    assert clock_time(0) == "0:00"

"""xtc-train fleet on real processes: a fake ssh, and a fake xtc-train on each simulated host."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from training_fleet_rig import metadata, swept_host
from typer.testing import CliRunner

from benchmarks.training.coverage_host import Case
from training.cli.main import app
from training.cli.progress import seconds_left, shown_hosts
from training.errors import FleetPathError
from training.fleet.file import FleetHost
from training.fleet.results import names_in
from training.fleet.run import HostFailure, sweep_fleet
from training.recording.recording import Recording, read_csv, write_csv

ROOT = Path(__file__).parents[3]
RIGS = ROOT / "tests" / "rigs"
PATIENCE_S = 60.0
SSH = """#!/bin/sh
# Like ssh: joins its arguments for a shell in the other machine's folder, and its own end does not
# end what runs there.
dir={folder}/$1; shift
test -d "$dir" || {{ echo "ssh: connect to host: No route to host" >&2; exit 255; }}
cd "$dir" && exec setsid --wait sh -c "$*"
"""


class Fleet:
    """A folder for each host, and one for the results."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        self.results.mkdir()
        self.ssh = self._program("ssh", SSH.format(folder=folder))
        fake = RIGS / "fake_xtc_train.py"
        self.command = self._program("xtc train", f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
        self.shown: list[tuple[str, str]] = []

    def _program(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def host(self, name: str, *sweep: str) -> FleetHost:
        (self.folder / name).mkdir(exist_ok=True)
        return FleetHost(name=name, sweep=sweep, run=(self.ssh, name), command=self.command)

    def sweep(self, *hosts: FleetHost, again: bool = False) -> list[HostFailure]:
        return sweep_fleet(
            hosts, self.results, jobs=4, again=again, tell=lambda *words: self.shown.append(words)
        )

    def samples(self, name: str) -> int:
        return len(read_csv(self.results / f"{name}.csv").samples)

    def remote(self, name: str) -> Path:
        return self.folder / name / f"xtc-train-{name}.csv"

    def file(self, *hosts: FleetHost) -> Path:
        path = self.folder / "fleet.toml"
        path.write_text("".join(map(_table, hosts)))
        return path


def _table(host: FleetHost) -> str:
    keys = {"name": host.name, "sweep": host.sweep, "run": host.run, "command": host.command}
    return "[[host]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("PYTHONPATH", f"{RIGS}:{ROOT}")
    return Fleet(tmp_path)


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come to hold"
        time.sleep(0.02)


def test_recordings_are_brought_here_and_arguments_arrive_whole(fleet: Fleet) -> None:
    label = 'gold\'s "first"  $HOME; `id` \\ *\n{rate}'
    hosts = [fleet.host("a", "--label", label), fleet.host("b", "--seed", "2")]
    assert fleet.sweep(*hosts) == []
    argv = json.loads((fleet.folder / "a" / "argv.json").read_text())
    assert argv == ["sweep", "--label", label, "--output", "xtc-train-a.csv"]
    for name in "ab":
        assert (fleet.results / f"{name}.csv").read_bytes() == fleet.remote(name).read_bytes()
        assert (name, "begins at 0 samples, 0:59 left at most") in fleet.shown
        assert (name, "swept") in fleet.shown


def test_this_machine_needs_no_prefix(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fleet.folder)
    host = FleetHost(name="here", sweep=("--label", "a 'b'"), command=fleet.command)
    assert fleet.sweep(host) == []
    assert json.loads((fleet.folder / "argv.json").read_text())[2] == "a 'b'"
    assert fleet.samples("here") >= 50


def test_a_host_that_fails_stops_no_other_and_is_named(fleet: Fleet) -> None:
    away = FleetHost(name="away", sweep=(), run=(fleet.ssh, "away"))
    none = FleetHost(name="none", sweep=(), run=(str(fleet.folder / "nothing"),))
    missing = FleetHost(name="miss", sweep=(), command=str(fleet.folder / "nothing"))
    hosts = [fleet.host("fire", "--fail", "1"), away, fleet.host("good"), none, missing]
    fire, gone, unstarted, unknown = fleet.sweep(*hosts)
    assert (fire.name, fire.problem) == ("fire", "exit code 1")
    assert fire.lines == ("the lab: it is on fire (put it out)",)
    assert (gone.name, gone.problem) == ("away", "exit code 255")
    assert gone.lines == ("ssh: connect to host: No route to host",)
    assert f"`{fleet.ssh} away true`" in gone.fix
    assert unstarted.name == "none"
    assert "No such file" in unstarted.problem
    assert (unknown.problem, "give command" in unknown.fix) == ("exit code 127", True)
    assert fleet.samples("good") >= 50
    assert [path.name for path in fleet.results.glob("*.csv")] == ["good.csv"]


def test_a_sweep_that_was_killed_goes_on_with_its_file(fleet: Fleet) -> None:
    host = fleet.host("a", "--die-at", "30")
    (failure,) = fleet.sweep(host)
    assert failure.problem == "killed by SIGKILL"
    kept = len(read_csv(fleet.remote("a")).samples)
    assert 20 <= kept < 30
    assert not (fleet.results / "a.csv").exists()
    assert fleet.sweep(fleet.host("a", "--die-at", "0")) == []
    assert ("a", f"begins at {kept} samples, 0:59 left at most") in fleet.shown
    assert fleet.samples("a") > kept


def test_what_is_complete_is_not_swept_again_unless_that_is_asked_for(fleet: Fleet) -> None:
    host, argv = fleet.host("a"), fleet.folder / "a" / "argv.json"
    fleet.sweep(host)
    argv.unlink()
    assert fleet.sweep(host) == []
    assert not argv.exists()
    before = (fleet.results / "a.csv").read_bytes()
    assert fleet.sweep(host, again=True) == []
    assert argv.exists()
    assert fleet.shown[-2:] == [("a", "begins at 0 samples, 0:59 left at most"), ("a", "swept")]
    assert (fleet.results / "a.csv.before").read_bytes() == before


def test_a_sweep_that_is_asked_for_longer_goes_on(fleet: Fleet) -> None:
    fleet.sweep(fleet.host("a", "--samples", "60"))
    short = fleet.samples("a")
    assert fleet.sweep(fleet.host("a", "--samples", "120")) == []
    assert fleet.samples("a") > short


def test_a_recording_that_was_put_here_by_hand_counts(fleet: Fleet) -> None:
    host = fleet.host("a")
    swept_host(fleet.results, "a")
    assert fleet.sweep(host) == []
    assert not (fleet.folder / "a" / "argv.json").exists()


def test_what_is_no_recording_replaces_none(fleet: Fleet) -> None:
    chatty = fleet._program("ssh2", '#!/bin/sh\necho welcome\nshift\nexec sh -c "$*"\n')
    host = FleetHost(name="a", sweep=(), run=(chatty, "a"), command="true")
    (failure,) = fleet.sweep(host)
    assert "standard output" in failure.fix or "cannot be read" in failure.problem
    assert not (fleet.results / "a.csv").exists()


def test_as_many_hosts_are_swept_at_a_time_as_there_are_jobs(fleet: Fleet) -> None:
    hosts = [fleet.host("a"), fleet.host("b")]
    seen: list[str] = []
    failures = sweep_fleet(
        hosts, fleet.results, jobs=1, again=False, tell=lambda name, _: seen.append(name)
    )
    assert failures == []
    assert seen == ["a", "a", "b", "b"]


def test_lines_of_hosts_neither_style_nor_move_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to rich
    monkeypatch.setenv("COLUMNS", "200")
    with shown_hosts(["a", "b"], quiet=False) as tell:
        tell("a", "steady 20%: 30.1 kp/s, 8 caps, 4:05 left at most")
        tell("b", "[red]\x1b]0;title\x07 is no markup")
    shown = capsys.readouterr().err
    assert "4:05 left at most" in shown
    assert r"[red]\u001b]0;title\u0007 is no markup" in shown
    assert "\x1b]0;" not in shown


def started(fleet: Fleet, *hosts: FleetHost) -> subprocess.Popen[bytes]:
    words = ["fleet", str(fleet.file(*hosts)), "--output", str(fleet.results)]
    return subprocess.Popen(
        [sys.executable, "-m", "training.cli.main", *words],
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


def read_until(process: subprocess.Popen[bytes], words: bytes) -> bytes:
    assert process.stderr is not None
    seen = b""
    while words not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    return seen


def test_ctrl_c_ends_the_sweeps_on_their_hosts_and_another_run_goes_on(fleet: Fleet) -> None:
    process = started(fleet, fleet.host("a", "--wait-at", "30"), fleet.host("b"))
    seen = read_until(process, b"a: here it waits")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"run the same command again" in seen + rest
    assert b"Traceback" not in seen + rest
    assert (fleet.folder / "a" / "ended").exists()
    kept = len(read_csv(fleet.remote("a")).samples)
    assert fleet.sweep(fleet.host("a")) == []
    assert ("a", f"begins at {kept} samples, 0:59 left at most") in fleet.shown


def test_the_sweeps_end_also_when_the_fleet_is_killed(fleet: Fleet) -> None:
    process = started(fleet, fleet.host("a", "--wait-at", "30"))
    read_until(process, b"a: here it waits")
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    until((fleet.folder / "a" / "ended").exists)


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, ["fleet", *map(str, words)], catch_exceptions=False)


def test_the_command_sweeps_fits_and_writes_all_files(fleet: Fleet) -> None:
    sweeps: Sequence[tuple[str, ...]] = (("--seed", "1"), ("--speed", "0.8"), ("--fail", "2"))
    sweeps = [("--samples", "240", *words) for words in sweeps]
    hosts = [fleet.host(name, *words) for name, words in zip("abc", sweeps, strict=True)]
    result = invoke(fleet.file(*hosts), "--output", fleet.results, "--json")
    assert result.exit_code == 1
    summary = json.loads(result.stdout)
    assert [row["name"] for row in summary["hosts"]] == ["a", "b"]
    assert [one["name"] for one in summary["failed"]] == ["c"]
    (finding,) = summary["findings"]
    assert finding.startswith("b is 20 % slower than a,") or "b is 19 %" in finding
    assert "c | the lab: it is on fire" in result.stderr
    assert "c: to do: correct its sweep" in result.stderr
    files = {path.name for path in fleet.results.iterdir()}
    assert {"index.html", "a.csv", "a.html", "b.html"} <= files
    assert {f"{row['name']}.toml" in files for row in summary["hosts"] if row["usable"]} <= {True}


def test_recordings_that_are_there_make_the_page_without_any_sweep(tmp_path: Path) -> None:
    swept_host(tmp_path, "a")
    write_csv(swept_host(tmp_path, "b", speed=0.8, seed=2), tmp_path / "b.csv")
    result = invoke("--summary-only", tmp_path)
    assert result.exit_code == 0, result.output
    assert "b is 20 % slower than a" in result.stdout
    assert (tmp_path / "a.toml").exists()
    assert "a.html" in (tmp_path / "index.html").read_text()


def test_an_earlier_model_is_not_left_beside_a_recording_that_gives_none(tmp_path: Path) -> None:
    write_csv(Recording(metadata("refused"), ()), tmp_path / "refused.csv")
    swept_host(tmp_path, "rough", case=Case(visit_sd=0.05))
    for name in ("refused.html", "refused.toml", "rough.html", "rough.toml"):
        (tmp_path / name).write_text("earlier")
    assert invoke("--summary-only", tmp_path).exit_code == 1
    for name in ("refused.html", "refused.toml", "rough.toml"):
        assert not (tmp_path / name).exists()
        assert (tmp_path / f"{name}.before").read_text() == "earlier"
    assert (tmp_path / "rough.html").read_text() != "earlier"
    assert not (tmp_path / "rough.html.before").exists()


def test_a_folder_without_recordings_and_a_taken_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetPathError, match="no recording is there"):
        names_in(tmp_path)
    (tmp_path / "index.csv").touch()
    with pytest.raises(FleetPathError, match="rename it"):
        names_in(tmp_path)


@pytest.mark.parametrize(
    "words", [(), ("fleet.toml", "--summary-only", "x"), ("--summary-only", "x", "--again")]
)
def test_options_that_contradict_each_other_are_wrong_usage(words: tuple[str, ...]) -> None:
    assert invoke(*words).exit_code == 2


def test_the_time_left_is_read_from_a_line_of_progress() -> None:
    assert seconds_left("steady 20%: 30.1 kp/s, 8 caps, 4:05 left at most") == 245.0
    assert seconds_left("Warning: 4:05") is None

"""The command line with a daemon on a simulated host: words, JSON and exit codes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from running_daemon import RunningDaemon

from common import __version__
from xtc.cli.main import main


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Leave no logger behind that writes to what this test's standard error was."""
    yield
    structlog.reset_defaults()


class Shell:
    """Runs xtc in this process, as the shell would."""

    def __init__(
        self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str], directory: Path
    ) -> None:
        self._patch, self._capture = patch, capture
        patch.setenv("XTC_RUNTIME_DIR", str(directory / "run"))
        patch.setenv("XTC_STATE_DIR", str(directory / "state"))

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this exit code; return what it said."""
        self._patch.setattr(sys, "argv", ["xtc", *words])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capture.readouterr()
        assert (ended.value.code or 0) == code, said
        return said.out if code == 0 else said.err

    def json(self, *words: str) -> object:
        """Run a command and read its JSON."""
        return json.loads(self(*words, "--json"))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path_factory.mktemp("d")) as daemon:
        daemon.start()
        daemon.hang_up()
        yield daemon
        daemon.signal(signal.SIGTERM)
        assert daemon.ended() == 0


@pytest.fixture
def xtc(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(monkeypatch, capsys, daemon.run.parent)


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A shell on a host where no daemon runs."""
    return Shell(monkeypatch, capsys, tmp_path)


def report(shell: Shell, *words: str) -> dict[str, object]:
    reports = shell.json(*words)
    assert isinstance(reports, list)
    (only,) = reports
    assert isinstance(only, dict)
    return only


def test_the_life_of_a_router_from_the_command_line(xtc: Shell) -> None:
    assert (
        report(xtc, "activate", "a", "--setpoint", "20kpps", "--ttl", "1h")["setpoint_pps"] == 2e4
    )
    assert report(xtc, "retune", "a", "--setpoint", "30 kp/s")["lease_remaining_s"] is None
    assert report(xtc, "pause", "a")["mode"] == "manual"
    assert report(xtc, "resume", "a")["mode"] == "closed_loop"
    assert report(xtc, "status", "a")["active"] is True
    assert report(xtc, "release", "a")["active"] is False


@pytest.mark.parametrize("order", ["activate", "retune"])
def test_a_burst_is_given_with_a_setpoint(
    xtc: Shell, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setenv("COLUMNS", "150")  # 80 have no room for it beside a long finding
    assert report(xtc, "activate", "a", "--setpoint", "20kpps")["burst"] == 4e3
    words = ("--setpoint", "20kpps", "--burst", "500ms")
    assert report(xtc, order, "a", *words)["burst"] == 10e3
    heading, row, *_ = xtc("status", "a").splitlines()
    assert "burst" in heading
    assert "10k" in row


def test_status_is_a_table_for_people(xtc: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    heading, row, *_ = xtc("status").splitlines()
    assert heading.split()[:3] == ["router", "throughput", "setpoint"]
    assert row.startswith("a ")


def test_top_streams_a_line_of_json_a_tick(xtc: Shell) -> None:
    lines = xtc("top", "--json", "--ticks", "3").splitlines()
    ticks = [json.loads(line)["tick"] for line in lines]
    assert ticks == list(range(ticks[0], ticks[0] + 3))


@pytest.mark.parametrize(
    "words",
    [
        ("top", "--ticks"),
        ("activate", "a", "--setpoint", "20kpps", "--epoch"),
        ("retune", "a", "--setpoint", "20kpps", "--sequence"),
    ],
)
def test_a_negative_number_is_a_usage_error_that_names_its_option(
    alone: Shell, words: tuple[str, ...]
) -> None:
    said = alone(*words, "-1", code=2)
    assert f"Invalid value for '{words[-1]}'" in said


def test_release_all_asks_a_daemon_that_runs(xtc: Shell) -> None:
    xtc("activate", "a", "--setpoint", "20kpps")
    assert report(xtc, "release", "--all")["active"] is False


@pytest.mark.parametrize(
    "words",
    [
        ("status", "nobody"),
        ("retune", "a", "--setpoint", "1kpps"),
        ("activate", "a", "--setpoint", "1kpps", "--ttl", "100ms"),
        ("pause", "a b"),
    ],
)
def test_what_the_manager_refuses_is_exit_code_1(xtc: Shell, words: tuple[str, ...]) -> None:
    assert xtc(*words, code=1).startswith("xtc: ")


@pytest.mark.parametrize(
    "words",
    [
        ("activate", "a"),
        ("activate", "a", "--setpoint", "fast"),
        ("activate", "a", "--setpoint=-5"),
        ("activate", "a", "--setpoint", "1kpps", "--ttl", "soon"),
        ("activate", "a", "--setpoint", "1kpps", "--burst", "0"),
        ("retune", "a", "--setpoint", "1kpps", "--burst", "2Mb"),
        ("limit", "a", "--rate", "nan"),
        ("release",),
        ("release", "a", "--all"),
        ("run", "--config", "/nowhere/xtc.toml"),
        ("config", "check", "--config", "/nowhere/xtc.toml"),
        ("explode",),
    ],
)
def test_what_was_typed_wrong_is_exit_code_2(alone: Shell, words: tuple[str, ...]) -> None:
    assert alone(*words, code=2)


def test_no_daemon_is_exit_code_3(
    alone: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("xtc.daemon.client.Client.__init__.__kwdefaults__", {"timeout": 0.05})
    assert str(tmp_path / "run") in alone("status", code=3)


def test_nothing_to_release_is_no_failure(alone: Shell) -> None:
    assert alone("release", "--all") == "nothing was capped\n"
    assert alone.json("release", "--all") == {}


def test_a_journal_that_cannot_be_trusted_is_a_failure(alone: Shell, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "journal").write_text("nonsense")
    assert "xtc journal show" in alone("release", "--all", code=1)


def test_a_second_daemon_needs_another_state_directory(daemon: RunningDaemon, xtc: Shell) -> None:
    assert "running xtc daemon" in xtc("run", "--config", str(daemon.path), code=2)


def test_the_version_is_the_package_s(alone: Shell) -> None:
    assert alone("--version") == f"xtc {__version__}\n"


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "xtc", "run", "--config", str(tmp_path / "no")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("xtc: ")
    assert "Traceback" not in done.stderr


def test_a_configuration_is_checked_and_shown(daemon: RunningDaemon, alone: Shell) -> None:
    config = ("--config", str(daemon.path))
    assert alone("config", "check", *config) == f"{config[1]}: 1 router, no mistake\n"
    assert alone.json("config", "check", *config) == {
        "files": [config[1]],
        "routers": ["a"],
        "mistakes": [],
        "warnings": [],
        "limits": [],
        "floors": [],
    }
    shown = alone.json("config", "show", *config)
    assert isinstance(shown, dict)
    assert shown["daemon"]["period_s"] == 0.2


DOUBTFUL = """
[router.a]
actuator = { kind = "simulated", plant = "a" }
interfaces = ["a.0", "b.0"]
[router.b]
actuator = { kind = "simulated", plant = "b" }
interfaces = ["b.*", "c.*"]
"""


def test_a_check_tells_all_mistakes_with_their_lines(alone: Shell, tmp_path: Path) -> None:
    path = tmp_path / "xtc.toml"
    path.write_text(DOUBTFUL + "setpoint = 'fast'\nfloor = 'high'\n")
    lines = alone("config", "check", "--config", str(path), code=2).splitlines()
    assert [line.partition(': "')[0] for line in lines[:2]] == [
        f"xtc: {path}:8: router.b.setpoint",
        f"xtc: {path}:9: router.b.floor",
    ]
    assert lines[2:] == [f"{path}: 2 mistakes"]


def test_a_check_tells_what_the_host_shows(alone: Shell, tmp_path: Path) -> None:
    path = tmp_path / "xtc.toml"
    path.write_text(DOUBTFUL)
    told = alone("config", "check", "--config", str(path))
    assert told == f"{path}: 2 routers, no mistake, 2 warnings\n"
    claim, match, count = alone(
        "config", "check", "--strict", "--config", str(path), code=2
    ).splitlines()
    where = f"xtc: warning: {path}:7: router.b.interfaces: "
    assert claim.startswith(f"{where}router.a claims b.0 too")
    assert match.startswith(f"{where}no interface matches c.*")
    assert count == told.rstrip("\n")


ENDS = {"public": "", "secret": "_secret"}


def test_keys_are_made_and_the_secret_one_is_kept(alone: Shell, tmp_path: Path) -> None:
    alone("config", "keys", str(tmp_path / "keys"), "policer")
    secret = tmp_path / "keys" / "policer.key_secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys" / "policer.key").exists()
    told = alone.json("config", "keys", str(tmp_path / "keys"), "other")
    assert told == {kind: str(tmp_path / "keys" / f"other.key{end}") for kind, end in ENDS.items()}

"""xco's command line: words, JSON, exit codes, what it says when something is wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.main import get_command
from xco_statistics_rig import (
    controller_names,
    coordinator_names,
    write_statistics,
)

from common.command import exit_code
from xco import __version__
from xco.cli.command import CODES, NoAnswerError
from xco.cli.main import app, main
from xco.cli.status import StatusReader
from xco.errors import (
    ConfigError,
    ControllerError,
    CoreError,
    Denied,
    Forged,
    TreeError,
    UnitError,
    XcoError,
)
from xco.protocol.checks import AGENT
from xco.protocol.keys import derive, host_file, read_host_keys, read_master

TOPOLOGY = """
[switch.s]
[host.a]
addresses = ["10.0.0.1"]
[host.b]
addresses = ["10.0.0.2"]
[[link]]
between = ["a", "s"]
capacity = "1Gbps"
buffer = "32KB"
[[link]]
between = ["b", "s"]
capacity = "500Mbps"
"""
LOOP = """
[[link]]
between = ["s", "t"]
capacity = "1Gbps"
[[link]]
between = ["t", "s"]
capacity = "1Gbps"
[switch.t]
"""
SETTINGS = """
[controller]
topology = "topology.toml"
key = "key"
run_dir = "{folder}"
lease = "{folder}"

[coordinator]
host = "a"
interface = "eth0"
topology = "{folder}/topology.toml"
key_file = "{folder}/host.key"
controllers = ["127.0.0.1:7400"]
runtime_dir = "{folder}"
state_dir = "{folder}"
"""


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Leave no logger behind that writes to what this test's standard error was."""
    yield
    structlog.reset_defaults()


MASTER = bytes(range(32))


class Shell:
    """Runs xco in this process, as the shell would, in a folder of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self.folder, self._patch, self._capture = folder, patch, capture
        (folder / "topology.toml").write_text(TOPOLOGY)
        (folder / "xco.toml").write_text(SETTINGS.format(folder=folder))
        (folder / "key").write_bytes(MASTER)
        (folder / "host.key").write_bytes(host_file(derive(MASTER, 0)))

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this exit code; return what it said."""
        self._patch.setattr(sys, "argv", ["xco", *words])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capture.readouterr()
        assert (ended.value.code or 0) == code, said
        assert code == 0 or not said.out
        return str(said.out if code == 0 else said.err)

    def json(self, *words: str) -> Any:
        """Run a command and read its JSON."""
        return json.loads(self(*words, "--json"))

    def settings(self, table: str, line: str) -> None:
        """Add a line to a table of the settings."""
        file = self.folder / "xco.toml"
        file.write_text(file.read_text().replace(f"[{table}]\n", f"[{table}]\n{line}\n"))

    def controller_runs(self, role: str = "leader", **values: int) -> None:
        """Leave what a controller of this process would have published."""
        state = {"role": role, "pid": os.getpid(), "epoch": 7, "loop_pid": 1, "starts": 1}
        (self.folder / "controller.json").write_text(json.dumps(state | {"problem": ""}))
        row = {"joined": 1, "coordinated": 1, "mode": 1, "backlog_bytes": 64_000, "slices": 3}
        write_statistics(
            self.folder / "controller.stats",
            controller_names(),
            {"epoch": 7, "hosts_joined": 1} | values,
            [row | {"granted_bps": 980_000_000}, {}],
            fresh_s=FRESH_S,
        )

    def coordinator_runs(self, **values: int) -> None:
        """Leave what a coordinator would have published just now."""
        flow = {"source_low": 0xFFFF0A000001, "destination_low": 0xFFFF0A000002, "host": 1}
        write_statistics(
            self.folder / "coordinator-eth0.statistics",
            coordinator_names(),
            {"mode": 2, "joined": 1, "epoch": 7, "given_up": 4} | values,
            [flow | {"open_bps": 490_000_000, "backlog_bytes": 32_000}],
            fresh_s=FRESH_S,
        )


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XCO_CONFIG", str(tmp_path / "xco.toml"))
    return Shell(tmp_path, monkeypatch, capsys)


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, (*words, name))
    if not children:
        yield words, command


FRESH_S = 60.0
"""Longer than any test's commands take on a busy machine."""
EVERY = [words for words, _ in leaves(get_command(app))]


# --- the command line itself


def importing(*modules: str) -> tuple[float, set[str]]:
    """Return the CPU seconds that a new Python uses to import, and what it has loaded then."""
    code = (
        f"import sys, time, {', '.join(modules)}; print(time.process_time(), *sys.modules, sep=' ')"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, *loaded = done.stdout.split()
    return float(seconds), set(loaded)


def test_the_command_line_starts_quickly_and_without_numpy() -> None:
    libraries, _ = importing("typer", "msgspec", "structlog", "rich.console")
    seconds, loaded = importing("xco.cli.main")
    assert not loaded & {"numpy", "pyroute2", "sqlalchemy"}
    assert seconds < 4 * libraries, "most of a start is what its libraries take"


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_explains_itself(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words, "--help")
    assert f" {' '.join(words)} " in said.splitlines()[0]
    assert "--json" in said or words[-1] == "run"


def test_the_version_is_shown(shell: Shell) -> None:
    assert shell("--version") == f"xco {__version__}\n"


def test_the_shell_completes_commands() -> None:
    asked = {"_XCO_COMPLETE": "complete_bash", "COMP_WORDS": "xco co", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['xco']; from xco.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["controller", "coordinator"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (XcoError(), 2),
        (UnitError("rate", "x", "a rate"), 2),
        (ConfigError("file", "key", "wrong"), 2),
        (CoreError("core", "not built"), 1),
        (Forged("authenticator", "another key"), 1),
        (Denied("eth0", "not permitted"), 1),
        (ControllerError("lease", "cannot be had"), 1),
        (TreeError("file", "switch.s", "cannot be read"), 1),
        (NoAnswerError("controller", "none"), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_error_has_its_exit_code(error: XcoError, code: int) -> None:
    assert exit_code(error, CODES) == code


def test_simulate_is_there_with_all_its_options(shell: Shell) -> None:
    found = shell.json("simulate", "--hosts", "200", "--strategy", "rate", "--seconds", "0.002")
    assert found["hosts"] == 200
    assert "'x'" in shell("simulate", "--slot", "x", code=2)


def test_without_numpy_simulate_says_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("xco.simulate", "numpy"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    for options in ((), ("--rows", "24"), ("--json", "more")):
        assert "pip install 'xtc[simulation]'" in shell("simulate", *options, code=2)


# --- checks


def test_a_topology_is_checked_and_shown(shell: Shell) -> None:
    file = str(shell.folder / "topology.toml")
    assert "no mistake found; 2 hosts, 1 switch, 2 links" in shell("topology", "check", file)
    links = shell.json("topology", "discover", file)["links"]
    assert [(link["between"], link["capacity_bps"], link["tree"]) for link in links] == [
        (["a", "s"], 10**9, True),
        (["b", "s"], 5 * 10**8, True),
    ]
    assert "32KB" in shell("topology", "discover", file)


def test_a_topology_whose_tree_its_switches_tell_is_no_mistake(shell: Shell) -> None:
    file = shell.folder / "loop.toml"
    file.write_text(TOPOLOGY + LOOP)
    assert "loop" in shell("topology", "check", str(file), code=2)
    file.write_text(file.read_text().replace("[switch.s]", '[switch.s]\nbridge = "br0"'))
    assert shell.json("topology", "check", str(file))["read_from"] == ["s"]


def test_settings_are_checked_with_topology_key_and_core(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XCO_CORE", str(shell.folder))
    said = shell("controller", "check", code=1)
    assert "there is no xco-controller" in said
    assert "make -C xco/core" in said
    program = shell.folder / "xco-controller"
    program.touch(mode=0o755)
    assert shell.json("controller", "check") == {
        "file": str(shell.folder / "xco.toml"),
        "hosts": 2,
        "listen": "0.0.0.0:7400",
        "strategy": "timeslice",
        "program": str(program),
    }
    (shell.folder / "key").write_bytes(b"short")
    assert "5 bytes, not 32" in shell("controller", "check", code=2)


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        ("controller", 'lead = "3ms"', "controller.slice: 2ms is too short"),
        ("controller", 'silence = "20ms"', "controller.silence: 20ms is too short"),
        ("controller", 'silence = "1s"', "controller.drop: 200ms is too short"),
        ("coordinator", 'hysteresis = "10us"', "coordinator.poll_open: does not fit"),
        ("coordinator", 'guard = "700us"', "coordinator.guard: does not fit"),
        ("coordinator", 'heartbeat = "30ms"', "coordinator.silence: does not fit"),
    ],
)
def test_times_that_do_not_fit_together_are_refused(
    shell: Shell, table: str, line: str, said: str
) -> None:
    shell.settings(table, line)
    assert said in shell(table, "status", code=2)


@pytest.mark.parametrize("words", [("controller", "check"), ("coordinator", "run"), ("top",)])
def test_settings_that_cannot_be_read_are_a_mistake(shell: Shell, words: tuple[str, ...]) -> None:
    assert "No such file" in shell(*words, "--config", str(shell.folder / "none.toml"), code=2)


def test_a_part_that_is_not_configured_is_a_mistake(shell: Shell) -> None:
    (shell.folder / "xco.toml").write_text("[weight]\n")
    assert "add a table [controller] or [coordinator]" in shell("status", code=2)
    assert "add a table [controller]" in shell("controller", "status", code=2)


# --- the key


def test_a_key_is_made_once_for_its_owner_alone(shell: Shell) -> None:
    file = shell.folder / "new.key"
    assert shell.json("key", "make", str(file)) == {"key": str(file)}
    assert file.stat().st_mode & 0o777 == 0o600
    key = read_master(file)
    assert "already exists" in shell("key", "make", str(file), code=2)
    assert read_master(file) == key
    assert shell("key", "make", str(shell.folder / "other.key"))
    assert read_master(shell.folder / "other.key") != key
    assert "No such file" in shell("key", "make", str(shell.folder / "none" / "key"), code=2)


def test_a_host_gets_a_key_of_its_own(shell: Shell) -> None:
    master, topology = shell.folder / "key", str(shell.folder / "topology.toml")
    words = ("key", "host", str(master), "b", "--topology", topology, "--out")
    out = shell.folder / "b.key"
    assert shell.json(*words, str(out)) == {"key": str(out), "host": "b", "number": 1}
    assert out.stat().st_mode & 0o777 == 0o600
    assert read_host_keys(out, 1, "b") == derive(MASTER, 1, hosts=2)
    assert MASTER not in out.read_bytes()
    assert "already exists" in shell(*words, str(out), code=2)
    assert "move it to b" in shell(*words, str(shell.folder / "again.key"))
    nobody = ("key", "host", str(master), "x", "--topology", topology, "--out", "y")
    assert "host.x: no such host" in shell(*nobody, code=2)
    from_host = ("key", "host", str(out), "b", "--topology", topology, "--out", "y")
    assert "is the key of a host, not the master key" in shell(*from_host, code=2)


def test_port_agents_get_a_key_that_is_no_hosts(shell: Shell) -> None:
    words, out = ("key", "agent", str(shell.folder / "key"), "--out"), shell.folder / "agent.key"
    assert shell.json(*words, str(out)) == {"key": str(out)}
    assert out.stat().st_mode & 0o777 == 0o600
    assert read_host_keys(out, AGENT, "the port agent") == derive(MASTER, AGENT)
    assert MASTER not in out.read_bytes()
    assert "already exists" in shell(*words, str(out), code=2)
    assert "move it to the machines" in shell(*words, str(shell.folder / "again.key"))
    from_agent = ("key", "agent", str(out), "--out", str(shell.folder / "none.key"))
    assert "is the key of a host, not the master key" in shell(*from_agent, code=2)


# --- status and top


def test_nobody_answers_where_nothing_runs(shell: Shell) -> None:
    said = shell("status", code=3)
    assert "no controller runs here (xco controller run)" in said
    assert "no coordinator runs on eth0: its traffic is unshaped" in said
    for words in (("controller", "status"), ("controller", "strategy", "rate"), ("top",)):
        shell(*words, "--json", code=3)
    shell("coordinator", "status", code=3)


@pytest.mark.parametrize("text", ["[[", None])
@pytest.mark.parametrize("name", ["topology.toml", "other.toml"])
def test_a_wrong_topology_hides_no_controller(shell: Shell, text: str | None, name: str) -> None:
    shell.controller_runs()
    (shell.folder / "controller.hosts").write_text('["kept", "too"]\n')
    settings = shell.folder / "xco.toml"
    settings.write_text(settings.read_text().replace('"topology.toml"', f'"{name}"'))
    (shell.folder / "topology.toml").write_text("[[")
    if text is None:
        (shell.folder / "topology.toml").unlink()
    said = shell("status")
    assert "leads in epoch 7" in said
    assert "kept" in said
    assert f"problem: {shell.folder / name}: " in said
    assert shell.json("controller", "status")["hosts"][1]["host"] == "too"
    frames = shell("top", "--ticks", "1", "--every", "0.2", "--json")
    assert json.loads(frames)["hosts"][0]["host"] == "kept"
    assert "no answer" in shell("controller", "strategy", "rate", code=1), "it has asked the loop"


def test_hosts_whose_names_nobody_knows_go_by_their_numbers(shell: Shell) -> None:
    shell.controller_runs()
    (shell.folder / "topology.toml").unlink()
    assert shell.json("controller", "status")["hosts"][0]["host"] == "number 0"


def test_wrong_settings_hide_no_controller(shell: Shell) -> None:
    shell.controller_runs()
    shell.settings("controller", 'lead = "3ms"')
    said = shell("status")
    assert "leads in epoch 7" in said
    assert "controller.slice: 2ms is too short" in said


def test_a_wrong_topology_where_nothing_runs_is_a_mistake(shell: Shell) -> None:
    (shell.folder / "topology.toml").write_text("[[")
    assert "topology.toml" in shell("status", code=2)


def test_a_file_is_asked_again_while_top_goes_on(shell: Shell) -> None:
    shell.controller_runs()
    looker = StatusReader(shell.folder / "xco.toml", ("controller",))
    first = looker.look().controller
    (shell.folder / "topology.toml").write_text("[[")
    second = looker.look().controller
    assert first is not None
    assert second is not None
    assert first["controller"]["problem"] == ""
    assert "topology.toml" in second["controller"]["problem"]
    assert second["hosts"][0]["host"] == "a"


@pytest.mark.parametrize("words", [("controller", "check"), ("controller", "run")])
def test_a_key_is_needed_before_it_is_used(shell: Shell, words: tuple[str, ...]) -> None:
    (shell.folder / "key").unlink()
    said = shell(*words, code=2)
    assert f"{shell.folder / 'xco.toml'}: controller.key: {shell.folder / 'key'}: No such" in said


def test_an_address_of_another_machine_is_named_as_in_the_settings(shell: Shell) -> None:
    shell.settings("controller", 'listen = "192.0.2.1:7400"')
    said = shell("controller", "run", code=1)
    assert f"{shell.folder / 'xco.toml'}: controller.listen: 192.0.2.1:7400: Cannot assign" in said


def test_what_switches_say_is_tried_again_by_systemd(shell: Shell) -> None:
    file = shell.folder / "topology.toml"
    file.write_text(file.read_text().replace("[switch.s]", '[switch.s]\nbridge = "xco-none"'))
    assert "switch.s: cannot be read" in shell("controller", "run", code=1)
    assert "switch.s: cannot be read" in shell("topology", "discover", str(file), code=1)


def test_a_controller_that_died_does_not_answer(shell: Shell) -> None:
    shell.controller_runs()
    state = json.loads((shell.folder / "controller.json").read_text())
    (shell.folder / "controller.json").write_text(json.dumps(state | {"pid": 2**22 + 1}))
    shell("controller", "status", code=3)


def test_both_parts_are_shown_if_both_run(shell: Shell) -> None:
    shell.controller_runs()
    shell.coordinator_runs()
    said = shell("status")
    assert "leads in epoch 7, timeslice; 1 of 2 hosts joined" in said
    assert "coordinator: eth0 slice, obeys epoch 7; 0 slices, 4 given up" in said
    assert "10.0.0.1  10.0.0.2     b" in said
    found = shell.json("status")
    assert found["controller"]["hosts"][0]["granted_bps"] == 980_000_000
    assert found["coordinator"]["flows"][0]["destination"] == "10.0.0.2"
    assert found["silent"] == []
    assert shell.json("controller", "status") == found["controller"]
    shell.coordinator_runs()  # it is as young as it was
    assert shell.json("coordinator", "status")["mode"] == "slice"


def test_what_does_not_run_is_said_beside_what_does(shell: Shell) -> None:
    shell.controller_runs()
    assert "no coordinator runs on eth0" in shell("status")


def test_a_standby_says_so_and_takes_no_orders(shell: Shell) -> None:
    shell.controller_runs("standby")
    assert "controller: standby" in shell("controller", "status")
    assert "ask the leader" in shell("controller", "strategy", "rate", code=1)


def test_an_unknown_strategy_is_named_with_those_there_are(shell: Shell) -> None:
    assert "one of timeslice, rate, hybrid" in shell("controller", "strategy", "foo", code=2)


def test_top_shows_a_line_a_tick(shell: Shell) -> None:
    shell.controller_runs()
    shell.coordinator_runs()
    said = shell("top", "--ticks", "2", "--every", "0.2", "--json")
    frames = [json.loads(line) for line in said.splitlines()]
    assert len(frames) == 2
    assert frames[0]["hosts"][0]["mode"] == "slice"
    assert frames[0]["flows"][0]["granted_bps"] == 490_000_000
    assert frames[1]["coordinator"]["given_up_per_s"] == 0
    shell.coordinator_runs()
    assert "64 kB" in shell("top", "--ticks", "1", "--every", "0.2")

"""xco coordinator's command: what it says of keys, interfaces and refusals, with its fix."""

import fcntl
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import typer
from test_xco_cli import MASTER, Shell
from xco_statistics_rig import coordinator_names, write_statistics

from xco.cli import coordinator as command
from xco.coordinator import gate
from xco.coordinator import shell as coordinator
from xco.coordinator.config import load_config
from xco.coordinator.status import STALE_NS
from xco.errors import GateError
from xco.protocol.keys import derive, host_file


@pytest.fixture
def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Shell]:
    """A host whose settings are right, with nothing that runs."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("XCO_CONFIG", str(tmp_path / "xco.toml"))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield Shell(tmp_path, monkeypatch, capsys)
    structlog.reset_defaults()  # its logger writes to this test's standard error
    for number, handler in handlers.items():  # `run` has its own
        signal.signal(number, handler)


@pytest.mark.parametrize("word", ["run", "check"])
@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (None, "No such file or directory"),
        (b"short", "5 bytes, no key of a host"),
        (MASTER, "is a master key, which only controllers may hold"),
        (
            host_file(derive(MASTER, 1)),
            "is the key of host number 1; a is number 0 of the topology",
        ),
    ],
)
def test_a_key_of_this_host_is_needed(
    host: Shell, monkeypatch: pytest.MonkeyPatch, word: str, key: bytes | None, problem: str
) -> None:
    monkeypatch.setenv("XCO_CORE", str(host.folder))
    (host.folder / "xco-coordinator").touch(mode=0o755)
    file = host.folder / "host.key"
    file.unlink()
    if key is not None:
        file.write_bytes(key)
    fix = "make it on a controller: xco key host MASTER a --topology FILE --out host.key"
    said = host("coordinator", word, code=2)
    where = f"{host.folder}/xco.toml: coordinator.key_file: {file}"
    assert f"{where}: {problem} ({fix})" in said
    assert "urandom" not in said


def test_a_release_of_an_interface_that_is_not_there_is_an_error(host: Shell) -> None:
    said = host("coordinator", "release", "nothere9", code=1)
    assert "nothere9: there is no such interface (name another, or none" in said
    assert host("coordinator", "release", "lo") == "nothing was gated\n"


def test_a_release_of_all_leaves_out_where_a_coordinator_runs_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "LOCKS", tmp_path)
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "e0"), (2, "e1"), (3, "e2")])
    monkeypatch.setattr(gate, "release", lambda name: name != "e2")
    with (tmp_path / f"e0-{Path('/proc/self/ns/net').stat().st_ino}").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(typer.Exit) as ended:
            command.release()
    assert ended.value.exit_code == 1
    said = capsys.readouterr()
    assert said.out == "e1: released\n"
    assert said.err == (
        "xco: e0: a coordinator runs there (stop it: that releases the interface)\n"
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "no controller heard;"),
        ({"refusals": 5}, "refused by the controller: the log says why;"),
        ({"refusals": 5, "directives": 9}, "no controller accepted, 5 refusals: the log says why;"),
        ({"refusals": 5, "directives": 9, "joined": 1}, "obeys epoch 7;"),
    ],
)
def test_a_host_that_was_refused_is_not_said_to_have_heard_nobody(
    host: Shell, values: dict[str, int], said: str
) -> None:
    host.coordinator_runs(**{"mode": 0, "joined": 0} | values)
    assert f"coordinator: eth0 fallback, {said}" in host("status")
    host.coordinator_runs(**{"mode": 0, "joined": 0} | values)  # it is as young as it was
    assert f"coordinator: eth0 fallback, {said}" in host("coordinator", "status")


def test_a_host_without_a_controller_says_how_many_offer_it_rates(host: Shell) -> None:
    host.coordinator_runs(mode=6, joined=0, offers=2)
    said = "coordinator: eth0 hygenicc, no controller heard, 2 hosts offer a rate;"
    assert said in host("status")


def test_a_host_that_refuses_connections_says_to_how_many(host: Shell) -> None:
    host.coordinator_runs(mode=6, joined=0, offers=2, destinations_refused=1)
    assert ", 2 hosts offer a rate, connections to 1 host are refused;" in host("status")
    host.coordinator_runs(mode=6, joined=0, destinations_refused=3)
    assert "connections to 3 hosts are refused;" in host("status")


def ended(host: Shell, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    """Run a program in the core's place, and return how its end is told."""
    program = host.folder / "xco-coordinator"
    program.write_text(f"#!/bin/sh\necho 'xco-coordinator: last words' >&2\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("XCO_CORE", str(host.folder))
    monkeypatch.setattr(gate, "check", lambda *_: None)
    with pytest.raises(GateError) as raised:
        coordinator.run(load_config(host.folder / "xco.toml"))
    return str(raised.value)


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (11, "SIGSEGV"), (40, "no name")])
def test_a_signal_that_ended_the_guard_is_named(
    host: Shell, monkeypatch: pytest.MonkeyPatch, number: int, name: str
) -> None:
    file = host.folder / "xco.toml"
    file.write_text(file.read_text().replace("eth0", "nothere9"))
    problem = f"the guard was ended by signal {number} ({name}): nothere9 is unshaped"
    assert problem in ended(host, monkeypatch, f"kill -{number} $$")


def test_a_refusal_names_the_process_that_runs_if_one_publishes(
    host: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(host, monkeypatch, "exit 7") == ("eth0: a coordinator is running (stop it first)")
    old = host.folder / "coordinator-eth0.statistics"
    host.coordinator_runs()
    pid = coordinator.running_pid(load_config(host.folder / "xco.toml"))
    assert pid is not None
    assert f"(stop it first: kill {pid})" in ended(host, monkeypatch, "exit 7")
    now = time.monotonic_ns()
    with monkeypatch.context() as past:
        past.setattr(time, "monotonic_ns", lambda: now - 2 * STALE_NS)
        write_statistics(old, coordinator_names(), {})
    assert ended(host, monkeypatch, "exit 7").endswith("(stop it first)")

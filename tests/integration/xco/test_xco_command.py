"""xco's command against real loops: a controller with hosts, a coordinator on a real interface."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import PATIENCE_S, eventually, free_port
from xco_loop_hosts import UdpHost, now_ns

from benchmarks.xco.gates.rig import (
    CONTROLLER_ADDRESS,
    KEYS,
    LINE_BPS,
    MASTER,
    TOPOLOGY,
    Rig,
    rig,
)
from lab.system import namespaces
from xco.coordinator import gate
from xco.core_files import program
from xco.errors import ControllerError, CoreError
from xco.protocol.keys import host_file
from xco.protocol.messages import Mode, Status, Strategy
from xco.protocol.stats import read_statistics
from xco.topology.file import load_topology

pytestmark = pytest.mark.timeout(180)
SETTINGS = """
[controller]
topology = "topology.toml"
key = "key"
listen = "127.0.0.1:0"
lease = "{folder}"
run_dir = "{folder}"
realtime = 0
drop = "1min"
metrics = "127.0.0.1:{port}"

[coordinator]
host = "a"
interface = "e0"
topology = "{folder}/topology.toml"
key_file = "{folder}/host.key"
controllers = ["{controller}:7400"]
priority = 0
state_dir = "{folder}"
runtime_dir = "{folder}"
"""


def prepared(folder: Path) -> Path:
    values = {"folder": folder, "port": free_port(), "controller": CONTROLLER_ADDRESS}
    (folder / "topology.toml").write_text(TOPOLOGY)
    (folder / "key").write_bytes(MASTER)
    (folder / "host.key").write_bytes(host_file(KEYS))
    (folder / "xco.toml").write_text(SETTINGS.format(**values))
    return folder / "xco.toml"


def xco(file: Path, *words: str, namespace: str | None = None) -> Any:
    """Run a command to its end."""
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    return subprocess.run(
        [*inside, sys.executable, "-m", "xco", *words],
        env=os.environ | {"XCO_CONFIG": str(file)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )


def said(file: Path, *words: str, namespace: str | None = None) -> Any:
    """Run a command that must do well, and read its JSON."""
    done = xco(file, *words, "--json", namespace=namespace)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def published(folder: Path) -> bool:
    try:
        return read_statistics(folder / "controller.stats").values["port"] > 0
    except ControllerError:
        return False


@pytest.fixture(autouse=True)
def core() -> None:
    """Have the compiled core, as `make test` builds it."""
    try:
        program("xco-controller")
        program("xco-coordinator")
    except CoreError as error:
        pytest.skip(str(error))


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Path]:
    """A controller that the command runs; its settings' file."""
    file = prepared(tmp_path)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "xco", "controller", "run", "--config", file], stderr=log
        )
    try:
        eventually(lambda: published(tmp_path))
        yield file
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()


def test_a_controller_is_run_watched_and_told_another_strategy(controller: Path) -> None:
    folder = controller.parent
    host = UdpHost(
        0,
        load_topology(folder / "topology.toml").hosts_digest(),
        read_statistics(folder / "controller.stats").values["port"],
    )
    try:
        host.join()
        host.send(host.report(now_ns(), 1, rate_kbps=500_000))
        host.next_directive(lambda directive: directive.mode is Mode.SLICE)
        stats = folder / "controller.stats"
        eventually(lambda: read_statistics(stats).values["slices_started"] >= 1)
        found = said(controller, "controller", "status")
        rows = {row["host"]: row for row in found["hosts"]}
        assert (rows["a"]["joined"], rows["a"]["backlog_bytes"]) == (1, 100_000)
        assert rows["b"]["joined"] == 0
        assert found["loop"]["slices_started"] >= 1
        said(controller, "controller", "strategy", "rate")
        values = read_statistics(folder / "controller.stats").values
        assert Strategy(values["strategy"]) is Strategy.RATE
        shown = said(controller, "top", "--ticks", "1", "--every", "0.2")
        assert shown["controller"]["strategy"] == "rate"
    finally:
        host.close()


def test_links_that_change_are_taken_over_and_hosts_need_nothing_new(controller: Path) -> None:
    folder = controller.parent
    topology, stats = folder / "topology.toml", folder / "controller.stats"
    before = load_topology(topology)
    host = UdpHost(0, before.hosts_digest(), read_statistics(stats).values["port"])
    try:
        host.join()
        topology.write_text(topology.read_text().replace(str(LINE_BPS), "400Mbps"))
        assert load_topology(topology) != before
        eventually(lambda: read_statistics(stats).values["reloads"] == 1)
        host.send(host.report(now_ns(), 1))
        while host.welcomes[-1].status is not Status.HELLO_FIRST:
            host.receive()
        assert host.join().status is Status.JOINED
        topology.write_text("a mistake")
        eventually(lambda: "not TOML" in problem(folder))
        assert read_statistics(stats).values["hosts_joined"] == 1, "it goes on as before"
    finally:
        host.close()


def problem(folder: Path) -> str:
    return str(json.loads((folder / "controller.json").read_text())["problem"])


def test_the_metrics_that_are_configured_are_served(controller: Path) -> None:
    port = int(controller.read_text().partition('metrics = "127.0.0.1:')[2].partition('"')[0])
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        assert "xco_up 1.0" in answer.read().decode()


# --- a coordinator


@pytest.fixture
def bench() -> Iterator[Rig]:
    with rig("xcocmd") as made:
        yield made


def near(bench: Rig, folder: Path, *words: str) -> Any:
    return xco(folder / "xco.toml", *words, namespace=bench.near)


def gated(bench: Rig) -> bool:
    return namespaces.inside(bench.near, lambda: gate.gated("e0"))


def interrupted(process: "subprocess.Popen[bytes]") -> list[int]:
    """Kill a shell and all its descendants at once; returns their numbers."""
    family, known = [process.pid], [process.pid]
    while known:
        children = Path(f"/proc/{known[0]}/task/{known.pop(0)}/children").read_text().split()
        known += map(int, children)
        family += map(int, children)
    for pid in family:
        os.kill(pid, signal.SIGSTOP)  # so that none sees another's end
    for pid in family:
        os.kill(pid, signal.SIGKILL)
    process.wait(PATIENCE_S)
    return family


@pytest.mark.root
def test_a_coordinator_is_checked_run_and_watched(bench: Rig, tmp_path: Path) -> None:
    file = prepared(tmp_path)
    found = said(file, "coordinator", "check", namespace=bench.near)
    assert (found["host"], found["interface"], found["rate"]) == ("a", "e0", "500Mbps")
    assert not gated(bench)
    stand_in = bench.stand_in()
    process = run_coordinator(bench, file)
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.CLOSED, 0, 0)
    bench.send(rate=5000)
    stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
    stand_in.keep(0.2, Mode.CLOSED)
    answer = near(bench, tmp_path, "coordinator", "status", "--json")
    assert answer.returncode == 0, answer.stderr
    status = json.loads(answer.stdout)
    assert (status["interface"], status["running"]) == ("e0", True)
    assert [flow["host"] for flow in status["flows"]] == ["b"]
    refused = near(bench, tmp_path, "coordinator", "release")
    assert refused.returncode == 1
    assert "a coordinator runs there" in refused.stderr
    process.terminate()
    assert process.wait(PATIENCE_S) == 0, bench.log.read_text()
    assert not gated(bench)
    eventually(lambda: near(bench, tmp_path, "coordinator", "status").returncode == 3)


def run_coordinator(bench: Rig, file: Path) -> "subprocess.Popen[bytes]":
    return bench.run(sys.executable, "-m", "xco", "coordinator", "run", "--config", str(file))


@pytest.mark.root
def test_a_host_and_its_controller_find_each_other_and_lose_each_other(
    bench: Rig, tmp_path: Path
) -> None:
    file = prepared(tmp_path)
    settings = re.sub("metrics = .*", "", file.read_text())  # the namespace has no loopback
    file.write_text(settings.replace("127.0.0.1:0", f"{CONTROLLER_ADDRESS}:7400"))
    command = [sys.executable, "-m", "xco", "controller", "run", "--config", str(file)]
    with (tmp_path / "log").open("wb") as log:
        controller = subprocess.Popen(["ip", "netns", "exec", bench.far, *command], stderr=log)
    try:
        eventually(lambda: published(tmp_path))
        coordinator = run_coordinator(bench, file)
        bench.send(rate=5000)
        eventually(lambda: slices(file) > 10)
        eventually(lambda: both_ends(said(file, "status", namespace=bench.near)) == (True, 1))
        (shown,) = xco(file, "top", "--ticks", "1", "--json").stdout.splitlines()
        (flow,) = json.loads(shown)["flows"]
        assert (flow["source"], flow["host"]) == ("any", "b")
    finally:
        controller.terminate()
        controller.wait(PATIENCE_S)
    eventually(lambda: mode(file) == "fallback")
    coordinator.terminate()
    assert coordinator.wait(PATIENCE_S) == 0


def both_ends(machine: dict[str, Any]) -> tuple[bool, int]:
    """Return whether the coordinator has joined, and whether the controller has it so."""
    return machine["coordinator"]["joined"], machine["controller"]["hosts"][0]["coordinated"]


def slices(file: Path) -> int:
    found = json.loads(xco(file, "coordinator", "status", "--json").stdout or "null")
    return int(found["counters"]["slices"]) if found else 0


def mode(file: Path) -> str:
    return str(said(file, "coordinator", "status")["mode"])


@pytest.mark.root
def test_a_release_needs_no_settings_and_frees_what_was_left(bench: Rig, tmp_path: Path) -> None:
    file = prepared(tmp_path)
    process = run_coordinator(bench, file)
    eventually(lambda: gated(bench))
    interrupted(process)
    assert gated(bench)  # nobody was left to remove it
    file.write_text("a mistake")
    done = near(bench, tmp_path, "coordinator", "release")
    assert (done.returncode, done.stdout) == (0, "e0: released\n")
    assert not gated(bench)
    assert near(bench, tmp_path, "coordinator", "release", "e0").stdout == "nothing was gated\n"


@pytest.mark.root
def test_an_interface_that_is_not_there_is_an_error_with_its_fix(
    bench: Rig, tmp_path: Path
) -> None:
    file = prepared(tmp_path)
    file.write_text(file.read_text().replace('interface = "e0"', 'interface = "e9"'))
    for words in (("check",), ("run",)):
        done = near(bench, tmp_path, "coordinator", *words)
        assert done.returncode == 1, done.stderr
        assert "e9: there is no such interface" in done.stderr

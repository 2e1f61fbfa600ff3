"""`xco port-agent` with the real controller: what it hears, and what it answers."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openflow_switch import port_stats, reply, switch
from port_agent_rig import TOPOLOGY, RunningAgent, agent, environment
from support.waiting import PATIENCE_S, eventually, free_port
from xco_controller_rig import MASTER
from xco_controller_scenes import EPOCH, settings_text
from xco_loop_hosts import RunningLoop

from xco.errors import ControllerError
from xco.ports.openflow_codec import Message, Part
from xco.protocol.stats import read_statistics
from xco.topology.file import parse_topology
from xco.topology.shapes import star_topology

pytest_plugins = ["xco_loop_rig"]
pytestmark = pytest.mark.timeout(180)
StartLoop = Callable[..., RunningLoop]


def counted(message: Message) -> bytes:
    """Answer with counters that stand still."""
    port = int.from_bytes(message.body[8:12], "big")
    return reply(message.xid, Part.PORT_STATS, port_stats(port, 7, 700, 0))


def port(number: int, ends: tuple[str, str], path: Path) -> str:
    return (
        f'[[port-agent.port]]\nlink = ["{ends[0]}", "{ends[1]}"]\nreader = "openflow"\n'
        f'switch = "unix:{path}"\nnumber = {number}\n'
    )


def both_ports(folder: Path) -> str:
    path = folder / "sw"
    return port(1, ("tor", "store"), path) + port(2, ("tor", "h1"), path)


def shown(ours: RunningAgent) -> Any:
    answer = ours.ask("status", "--json")
    return json.loads(answer.stdout) if answer.returncode == 0 else {"heard": False}


def test_the_controller_knows_the_ports_of_an_agent(start_loop: StartLoop, tmp_path: Path) -> None:
    loop = start_loop(parse_topology(TOPOLOGY))
    where = f"127.0.0.1:{loop.port}"
    with switch(tmp_path / "sw", counted), agent(tmp_path, where, both_ports(tmp_path)) as ours:
        eventually(lambda: loop.counter("ports_known") == 2)
        before = loop.counter("received_ports")
        eventually(lambda: loop.counter("received_ports") > before + 10)
        status = eventually(lambda: found if (found := shown(ours))["heard"] else None)
    assert (status["epoch"], status["problem"]) == (EPOCH, "")
    assert loop.counter("ports_begun") >= 2
    refused = ("ports_unknown", "dropped_topology", "dropped_forged", "dropped_malformed")
    assert {name: loop.counter(name) for name in refused} == dict.fromkeys(refused, 0)


def test_a_controller_of_another_topology_hears_no_port(
    start_loop: StartLoop, tmp_path: Path
) -> None:
    loop = start_loop(star_topology(4, "1Gbps"))
    where = f"127.0.0.1:{loop.port}"
    with switch(tmp_path / "sw", counted), agent(tmp_path, where, both_ports(tmp_path)) as ours:
        eventually(lambda: loop.counter("dropped_topology") > 10)
        eventually(lambda: "other hosts or switches" in shown(ours).get("problem", ""))
    assert (loop.counter("received_ports"), loop.counter("ports_known")) == (0, 0)


def test_two_agents_report_ports_of_their_own(start_loop: StartLoop, tmp_path: Path) -> None:
    loop = start_loop(parse_topology(TOPOLOGY))
    where = f"127.0.0.1:{loop.port}"
    rows = [port(1, ("tor", "store"), tmp_path / "sw1"), port(2, ("tor", "h1"), tmp_path / "sw2")]
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    with (
        switch(tmp_path / "sw1", counted),
        switch(tmp_path / "sw2", counted),
        agent(folders[0], where, rows[0]) as first,
        agent(folders[1], where, rows[1]) as second,
    ):
        eventually(lambda: loop.counter("ports_known") == 2)
        eventually(lambda: shown(first)["heard"] and shown(second)["heard"])


@contextlib.contextmanager
def controller(file: Path) -> Iterator[None]:
    """Run the whole controller until the end of a `with` block."""
    command = [sys.executable, "-m", "xco", "controller", "run", "--config", str(file)]
    log = file.parent / "controller.log"
    with log.open("ab") as out:
        process = subprocess.Popen(command, stderr=out, env=environment())
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0, log.read_text()


def leading(folder: Path) -> tuple[int, int]:
    """Return the epoch in which a controller leads, and how many ports it knows."""
    try:
        values = read_statistics(folder / "controller.stats").values
    except ControllerError:
        return 0, 0
    return values["epoch"], values["ports_known"]


@pytest.mark.usefixtures("controller_program")
def test_an_agent_finds_a_controller_that_starts_later_and_one_that_starts_again(
    tmp_path: Path,
) -> None:
    """Both have their settings in one file."""
    (tmp_path / "key").write_bytes(MASTER)
    where = f"127.0.0.1:{free_port()}"
    settings = settings_text(tmp_path, tmp_path).replace("127.0.0.1:0", where)
    rows = both_ports(tmp_path) + settings
    with switch(tmp_path / "sw", counted), agent(tmp_path, where, rows) as ours:
        eventually(lambda: "no controller answers" in shown(ours).get("problem", ""))
        with controller(ours.file):
            epoch, _ = eventually(lambda: found if (found := leading(tmp_path))[1] == 2 else None)
            eventually(lambda: shown(ours)["heard"])
        with controller(ours.file):
            eventually(lambda: (found := leading(tmp_path))[0] > epoch and found[1] == 2)
            eventually(lambda: shown(ours)["epoch"] > epoch)

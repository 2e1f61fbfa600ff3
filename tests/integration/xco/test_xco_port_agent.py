"""`xco port-agent` as a process: what a controller hears, and what the agent says of faults."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from openflow_switch import port_stats, reply, switch
from port_agent_rig import TO_H1, TO_STORE, RunningAgent, agent, ask, controller, until, write_files

from xco.ports.openflow_codec import Message, Part


def openflow(path: Path, number: int, to: str) -> str:
    return (
        f'[[port-agent.port]]\nlink = ["tor", "{to}"]\nreader = "openflow"\n'
        f'switch = "unix:{path}"\nnumber = {number}\n'
    )


class Counting:
    """A switch whose counters rise with every look; `garbage` replaces its answers."""

    def __init__(self) -> None:
        self.count = 0
        self.garbage = b""

    def __call__(self, message: Message) -> bytes:
        if self.garbage:
            return self.garbage
        self.count += 1
        port = int.from_bytes(message.body[8:12], "big")
        counts = port_stats(port, self.count, 100 * self.count, 2)
        return reply(message.xid, Part.PORT_STATS, counts)


def test_a_controller_hears_the_counters_in_its_epoch(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "sw", 1, "store") + openflow(tmp_path / "sw", 2, "h1")
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "sw", Counting()),
        agent(tmp_path, there.address, ports) as ours,
    ):
        heard = until(lambda: len(there.ports(TO_STORE)) > 10 and there.ports(TO_STORE), "PORT")
        assert there.ports(TO_H1)
        assert all(one.bytes == 100 * one.packets and one.drops == 2 for one in heard)
        assert [one.packets for one in heard] == sorted({one.packets for one in heard})
        assert [one.read_ns for one in heard] == sorted({one.read_ns for one in heard})
        status = until(lambda: shown(ours) if shown(ours).get("heard") else None, "status")
        assert status["epoch"] == 5
        assert {port["problem"] for port in status["ports"]} == {""}
        assert not ours.events("port_unreadable")
    assert not there.refused


def shown(ours: RunningAgent) -> Any:
    answer = ours.ask("status", "--json")
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def test_a_new_controller_is_followed_into_its_higher_epoch(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "sw", 1, "store")
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "sw", Counting()),
        agent(tmp_path, there.address, ports),
    ):
        until(lambda: there.heard, "PORT")
        there.epoch = 6
        until(lambda: there.heard[-1].header.epoch == 6, "the new epoch")


def test_a_switch_that_goes_is_logged_once_and_so_is_its_return(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "a", 1, "store") + openflow(tmp_path / "b", 1, "h1")
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "b", Counting()),
        agent(tmp_path, there.address, ports) as ours,
    ):
        with switch(tmp_path / "a", Counting()):
            until(lambda: there.ports(TO_STORE), "the first port")
        until(lambda: ours.events("port_unreadable"), "the loss")
        others = len(there.ports(TO_H1))
        until(lambda: len(there.ports(TO_H1)) > others + 100, "the other port goes on")
        count = len(there.ports(TO_STORE))
        with switch(tmp_path / "a", Counting()):
            until(lambda: len(there.ports(TO_STORE)) > count, "the return")
            assert [one["port"] for one in ours.events("port_unreadable")][:1] == ["tor -> store"]
            until(lambda: ours.events("port_readable"), "the return in the log")
            losses = [one for one in ours.events("port_unreadable") if "store" in one["port"]]
            assert len(losses) == len(ours.events("port_readable"))
            assert len(losses) <= 2  # the agent may have started before the switch


def test_garbage_from_a_switch_is_a_typed_problem_of_its_port(tmp_path: Path) -> None:
    counting = Counting()
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "sw", counting),
        agent(tmp_path, there.address, openflow(tmp_path / "sw", 1, "store")) as ours,
    ):
        until(lambda: there.heard, "PORT")
        counting.garbage = b"\xff" * 100
        (event,) = until(lambda: ours.events("port_unreadable"), "the garbage")
        assert "no message" in event["problem"]
        counting.garbage = b""
        until(lambda: ours.events("port_readable"), "the end of the garbage")
        assert len(ours.events("port_unreadable")) == 1
        assert not ours.events("unexpected_error")


def test_a_hanging_switch_delays_no_other(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "a", 1, "store") + openflow(tmp_path / "b", 1, "h1")
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "a", lambda _: b""),
        switch(tmp_path / "b", Counting()),
        agent(tmp_path, there.address, ports) as ours,
    ):
        until(lambda: ours.events("port_unreadable"), "the timeout")
        heard = there.ports(TO_H1)
        assert len(heard) > 10
        gaps = [b.read_ns - a.read_ns for a, b in pairwise(heard)]
        assert sorted(gaps)[len(gaps) // 2] < 200_000_000


def test_an_agent_that_is_not_heard_says_why_once(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "sw", 1, "store")
    with (
        controller(tmp_path) as there,
        switch(tmp_path / "sw", Counting()),
    ):
        there.digest = bytes(32)
        with agent(tmp_path, there.address, ports) as ours:
            (event,) = until(lambda: ours.events("unheard"), "the reason")
            assert "other hosts or switches" in event["problem"]
            answer = ours.ask("status")
            assert answer.returncode == 0
            assert "other hosts or switches" in answer.stdout
            assert not there.heard


def test_status_without_an_agent_has_its_own_exit_code(tmp_path: Path) -> None:
    with agent(tmp_path, "127.0.0.1:9", openflow(tmp_path / "sw", 1, "store")) as ours:
        until(lambda: ours.ask("status").returncode == 0, "status")
    answer = ours.ask("status", "--json")
    assert answer.returncode == 3
    assert "no port agent runs here" in answer.stderr


def test_check_reads_every_port_once(tmp_path: Path) -> None:
    ports = openflow(tmp_path / "sw", 1, "store") + openflow(tmp_path / "none", 2, "h1")
    write_files(tmp_path, "127.0.0.1:9", ports)
    with switch(tmp_path / "sw", Counting()):
        answer = ask(tmp_path / "xco.toml", "check", "--json")
        said = ask(tmp_path / "xco.toml", "check").stderr
    assert answer.returncode == 1
    read, gone = json.loads(answer.stdout)["ports"]
    assert (read["problem"], read["counts_marks"]) == ("", False)
    assert "No such file" in gone["problem"]
    assert "tor -> store: counts no marks" in said
    assert "1 of 2 ports cannot be read" in said


@pytest.mark.parametrize("content", [None, bytes(32), b"XCOH\x01\x00\x03\x00" + bytes(64)])
@pytest.mark.parametrize("word", ["check", "run"])
def test_a_wrong_key_is_reported_with_its_fix(
    tmp_path: Path, word: str, content: bytes | None
) -> None:
    write_files(tmp_path, "127.0.0.1:9", openflow(tmp_path / "sw", 1, "store"))
    key = tmp_path / "agent.key"
    key.unlink()
    if content is not None:
        key.write_bytes(content)
    answer = ask(tmp_path / "xco.toml", word)
    assert answer.returncode == 2
    assert "port-agent.key_file" in answer.stderr
    assert "xco key agent MASTER" in answer.stderr

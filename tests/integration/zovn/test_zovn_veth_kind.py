"""Ports to containers of the program: lossless, and following interfaces that come and go."""

import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest
from rigs.zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole
from rigs.zovn_veth_rig import (
    ENOUGH,
    HOST,
    PORT,
    SO_RCVBUFFORCE,
    address,
    all_sleep,
    connect,
    container,
    floods,
    greet,
    host,
    inside,
    neighbours,
    port,
    prepare,
    require_lossless_veth,
    run,
    sink,
    state_of_host,
)
from support.waiting import eventually

from lab.system import namespaces
from zovn.errors import SwitchError
from zovn.switch import control

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
STOP_S = 1.0
EXPERIMENTS, MAGIC = 0x88B5, 0x7A6F766E
GUEST, FRAMES = 5, 20_000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()


@contextmanager
def switch(*numbers: int, rates: dict[int, str] | None = None) -> Iterator[RunningSwitch]:
    """The program, with a port to each of these containers."""
    each: list[dict[str, Any]] = [{"kind": "veth", "interface": port(number)} for number in numbers]
    for number, rate in (rates or {}).items():
        each[numbers.index(number)]["rate"] = rate
    names = [port(number) for number in numbers]
    with running_switch(names=names, each=each, netns=HOST) as running:
        yield running


def states(running: RunningSwitch) -> list[str]:
    return [one.state for one in running.report().ports]


def attached(running: RunningSwitch) -> list[bool]:
    return [one.attached for one in running.report().ports]


def dropped(running: RunningSwitch) -> int:
    """Return what was lost in the switch and before it."""
    return sum(sum(one.drops.values()) + (one.lost or 0) for one in running.report().ports)


def test_ping_between_two_containers_and_settings_restored_at_the_end() -> None:
    with host(1, 2):
        before = state_of_host(1)
        with switch(1, 2) as running:
            assert attached(running) == [True, True]
            assert state_of_host(1) != before
            for name in (container(1), container(2)):
                run("ip", "-n", name, "neighbour", "flush", "dev", "e0")
            run("ip", "netns", "exec", container(1), "ping", "-c", "3", "-i", "0.1", address(2))
            assert states(running) == ["runs", "runs"]
            assert dropped(running) == 0
            assert running.end() == 0
        assert state_of_host(1) == before


def test_a_flood_sleeps_while_the_program_stands_still() -> None:
    with host(1, 2), switch(1, 2) as running, sink(2) as into:
        greet(1, 2)
        with floods([(1, 2)] * 4) as flooding:
            eventually(lambda: into.received > 1000)
            running.process.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            before = all_sleep(flooding)
            time.sleep(max(0.0, begun + STOP_S - time.monotonic()))
            assert sum(flood.sent for flood in flooding) == before
            running.process.send_signal(signal.SIGCONT)
            eventually(lambda: sum(flood.sent for flood in flooding) > 2 * before)
        sent = sum(flood.sent for flood in flooding)
        assert (into.settled(sent), into.gaps, into.reordered) == (sent, 0, 0)
        assert dropped(running) == 0


def test_an_interface_that_is_removed_and_made_again_is_attached_again() -> None:
    with host(1, 2, 3), switch(1, 2, 3) as running, sink(2) as into:
        greet(1, 2, 3)
        with floods([(1, 2)]) as flooding:
            eventually(lambda: into.received > 1000)
            namespaces.remove(container(3))
            eventually(lambda: states(running)[2] == "gone")
            connect(3)
            prepare(3)
            neighbours(2, 3)
            eventually(lambda: running.report().ports[2].attachments == 2)
        run("ip", "netns", "exec", container(3), "ping", "-c", "3", "-i", "0.1", address(2))
        sent = flooding[0].sent
        assert (into.settled(sent), into.gaps) == (sent, 0)
        again = running.report().ports[2]
        assert (again.state, again.attachments, again.fault) == ("runs", 2, "none")


def test_an_interface_that_does_not_exist_yet_is_waited_for() -> None:
    with host(1), switch(1, 2) as running:
        assert (attached(running), states(running)[1]) == ([True, False], "missing")
        assert control.ports(running.config.control)[1].interface == port(2)
        try:
            connect(2)
            prepare(2)
            eventually(lambda: attached(running)[1])
            run("ip", "netns", "exec", container(1), "ping", "-c", "3", "-i", "0.1", address(2))
        finally:
            namespaces.remove(container(2))


def test_frames_to_a_container_whose_end_is_down_are_lost_and_counted() -> None:
    with host(1, 2), switch(1, 2) as running, inside(1) as sender:
        run("ip", "netns", "exec", container(1), "ping", "-c", "1", address(2))
        assert dropped(running) == 0
        run("ip", "-n", container(2), "link", "set", "e0", "down")
        for _ in range(200):
            sender.sendto(b"x", (address(2), PORT))
        eventually(lambda: running.port(port(2)).counters["out"] >= 201)
        eventually(lambda: running.port(port(2)).lost == 200, state=running.report)
        assert dropped(running) == 200


def test_an_interface_that_is_no_veth_is_refused_and_so_is_a_second_port_of_one() -> None:
    with host(1), switch(1) as running:
        with pytest.raises(SwitchError, match=r"^x: lo: not a veth; name the host's end of one$"):
            control.add(running.config.control, "name=x kind=veth interface=lo")
        with pytest.raises(SwitchError, match="x: another port has p1"):
            control.add(running.config.control, "name=x kind=veth interface=p1")


def zovn(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `zovn switch` on the host."""
    enter = ["nsenter", f"--net={namespaces.path(HOST)}"]
    command = [*enter, sys.executable, "-m", "zovn", "switch", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def bridge(*numbers: int) -> None:
    """Connect the host's ends by a bridge, as if there had never been a switch."""
    run("ip", "-n", HOST, "link", "add", "br0", "up", "type", "bridge")
    for number in numbers:
        run("ip", "-n", HOST, "link", "set", port(number), "master", "br0")


def test_what_a_killed_switch_left_is_released() -> None:
    with host(1, 2):
        before = state_of_host(1)
        with switch(1, 2) as running, floods([(1, 2)] * 4):
            eventually(lambda: running.report().ports[1].counters["out"] > 1000)
            refused = zovn("release", port(1))
            assert (refused.returncode, refused.stdout) == (
                1,
                "p1: another program uses it (XDP); stop that first\n",
            )
            running.end(signal.SIGKILL)
            assert state_of_host(1) != before
            settings = str(running.folder / "zovn.toml")
            done = zovn("release", "--config", settings, "--json")
            assert (done.returncode, [one["result"] for one in json.loads(done.stdout)]) == (
                0,
                ["released", "released"],
            )
            assert zovn("release", port(1)).stdout == "p1: clean\n"
        assert state_of_host(1) == before
        assert zovn("release", "none").returncode == 1
        bridge(1, 2)
        run("ip", "netns", "exec", container(1), "ping", "-c", "3", "-i", "0.1", address(2))


def raw(number: int) -> socket.socket:
    """Return a socket in a container for the frames of its interface, with room for all."""

    def opened() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EXPERIMENTS))
        made.bind(("e0", EXPERIMENTS))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ENOUGH)
        made.settimeout(30)
        return made

    return namespaces.inside(container(number), opened)


def numbered(number: int) -> bytes:
    """Return a frame of the container to the guest, as zovn/core/tools/guest_frames.c has them."""
    head = bytes((2, 0, 0, 0, 0, GUEST)) + bytes((2, 0, 0, 0, 0, 1)) + b"\x88\xb5"
    return (head + struct.pack("=IHHQ", MAGIC, 1, GUEST, number)).ljust(60, b"\0")


def test_a_guest_and_a_container_send_to_each_other() -> None:
    each: list[dict[str, Any]] = [{}, {"kind": "veth", "interface": port(1)}]
    with (
        host(1),
        running_switch(names="gc", each=each, netns=HOST, stall="1min") as running,
        raw(1) as link,
        Guest(running, f"g={GUEST}:1:{FRAMES}") as guest,
    ):
        assert guest.ready()
        link.send(numbered(0))
        eventually(lambda: running.report().ports[1].state == "runs")
        guest.go()
        for number in range(1, FRAMES):
            link.send(numbered(number))
        frames = (link.recv(2048) for _ in iter(int, 1))
        numbers = (struct.unpack_from("=IHHQ", one, 14) for one in frames if len(one) >= 30)
        got = list(islice((one[3] for one in numbers if one[:3] == (MAGIC, GUEST, 1)), FRAMES))
        assert got == list(range(FRAMES))
        eventually(lambda: running.port("g").counters["out"] >= FRAMES)
        assert whole(guest.result()[str(GUEST)]["from"]["1"], FRAMES)
        assert dropped(running) == 0


def test_a_rate_holds_and_loses_nothing() -> None:
    with host(1, 2), switch(1, 2, rates={2: "1Mbit/s"}) as running, sink(2) as into:
        greet(1, 2)
        with floods([(1, 2)]) as flooding:
            eventually(lambda: into.received > 10)
            begun = time.monotonic()
            before = running.report().ports[1].counters["out_bytes"]
            eventually(lambda: into.received > 500)
            bits = 8 * (running.report().ports[1].counters["out_bytes"] - before)
            # The tolerance is 100 µs and a frame; a report may be late.
            assert bits <= 1e6 * (time.monotonic() - begun) + 8 * 2000
            running.end()
        assert flooding[0].sent >= into.received
        assert (into.gaps, into.reordered) == (0, 0)

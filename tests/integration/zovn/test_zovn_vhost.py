"""The switch between guests by vhost-user: nothing is lost, whatever happens to the others."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from support.waiting import eventually
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole

from zovn.errors import SwitchError
from zovn.switch import control

pytestmark = pytest.mark.timeout(120)
FRAMES = 20_000
SLOW = 50
"""Frames that a slow sink takes in a millisecond; senders alone are far faster."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def switch(threads: int) -> Iterator[RunningSwitch]:
    """Return one on which no destination is stalled, however little CPU its guest gets."""
    with running_switch(names="abcd", stall="1min", threads=threads) as made:
        yield made


@pytest.fixture
def strict(threads: int) -> Iterator[RunningSwitch]:
    with running_switch(stall="5s", threads=threads) as made:
        yield made


@pytest.mark.parametrize("size", [64, 1500])
def test_two_senders_lose_nothing_to_a_slow_receiver(switch: RunningSwitch, size: int) -> None:
    with Guest(switch, f"a=1:3:{FRAMES}", f"b=2:3:{FRAMES}", f"c=3:1:0:{SLOW}", size=size) as guest:
        assert guest.ready()
        guest.go()
        switch.wait_for({"a": FRAMES + 1, "b": FRAMES + 1})
        report = switch.report()
        found = guest.result()["3"]["from"]
    assert whole(found["1"], FRAMES)
    assert whole(found["2"], FRAMES)
    assert switch.port("c").counters["blocked_ns"] > 0
    assert not any(sum(port.drops.values()) for port in report.ports)


def test_a_switch_that_sleeps_is_woken(switch: RunningSwitch) -> None:
    """Its clients would wake it, too: here are none while it forwards."""
    before = switch.report()
    ports = (f"a=1:3:{FRAMES}", f"b=2:3:{FRAMES}", f"c=3:1:0:{SLOW}")
    with Guest(switch, *ports, until=2 * FRAMES) as guest:
        assert guest.ready()
        guest.go()
        found = guest.result()["3"]["from"]
    report = switch.report()
    assert found["1"]["received"] + found["2"]["received"] == 2 * FRAMES
    assert report.naps - before.naps > 10
    assert report.missed <= 1  # a guest that is preempted before it notifies looks like a loss


def test_the_same_senders_lose_frames_in_a_lossy_class() -> None:
    known = [
        {},
        {},
        {"addresses": ["02:00:00:00:00:03"]},
    ]  # each copy of a flood is a drop of its own
    with (
        running_switch(stall="1min", classes={"0": {"limit_bytes": 16_000}}, each=known) as switch,
        # A faster sink would take most frames where a busy machine sends them slowly.
        Guest(switch, f"a=1:3:{FRAMES}", f"b=2:3:{FRAMES}", "c=3:1:0:1") as guest,
    ):
        assert guest.ready()
        guest.go()
        switch.wait_for({"a": FRAMES + 1, "b": FRAMES + 1})
        found = guest.result()["3"]["from"]
        dropped = [switch.port(name).drops["congestion"] for name in "ab"]
    received = [found[station]["received"] for station in "12"]
    assert [FRAMES - one for one in received] == dropped
    assert sum(dropped) > FRAMES
    assert all(found[station]["overtaken"] == 0 for station in "12")


def test_addresses_are_listed_with_their_ports() -> None:
    each = [{}, {"vlan": 1}, {"addresses": ["02:00:00:00:00:03", "02:00:00:00:00:09"]}]
    with (
        running_switch(each=each) as switch,
        Guest(switch, "a=1:3:10", "c=3:1:0") as guest,
    ):
        assert guest.ready()
        guest.go()
        switch.wait_for({"a": 11})
        found = control.stations(switch.config.control)
        said = control.ask(switch.config.control, "stations 4294967295")
        with pytest.raises(SwitchError, match="stations: write the number after next="):
            control.ask(switch.config.control, "stations first")
        command = [sys.executable, "-m", "zovn", "switch", "stations"]
        command += ["--control", str(switch.config.control)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        printed = subprocess.run([*command, "--json"], capture_output=True, check=True).stdout
    assert [(one.port, one.vlan, one.ethernet[-2:], one.static) for one in found] == [
        ("a", 1, "01", False),
        ("c", 1, "03", True),
        ("c", 1, "09", True),
    ]
    assert said == ["stations next=0"]
    assert shown.splitlines()[1].split() == ["a", "1", "02:00:00:00:00:01", "learnt"]
    assert [one["ethernet"] for one in json.loads(printed)] == [one.ethernet for one in found]


def test_a_guest_that_is_killed_and_comes_again_costs_others_nothing(switch: RunningSwitch) -> None:
    with Guest(switch, f"a=1:3:{FRAMES}", f"c=3:1:0:{SLOW}") as others:
        assert others.ready()
        with Guest(switch, "b=2:3:100000000") as victim:
            assert victim.ready()
            others.go()
            victim.go()
            eventually(lambda: switch.port("b").counters["delivered"] > 1000)
            victim.process.kill()
            eventually(lambda: not switch.port("b").attached)
        before = switch.port("b")
        with Guest(switch, "b=4:3:1000") as second:
            assert second.ready()
            second.go()
            switch.wait_for({"a": FRAMES + 1, "b": before.counters["in"] + 1001})
            assert second.result()["4"]["sent"] == 1000
        found = others.result()["3"]["from"]
    assert whole(found["1"], FRAMES)
    assert whole(found["4"], 1000)
    received = found["2"].pop("received")
    assert not any(found["2"].values())
    assert received == before.counters["in"] - 1 - before.drops["removed"]
    assert switch.port("b").attachments == 2


def test_a_switch_that_was_stopped_goes_on_without_a_loss(strict: RunningSwitch) -> None:
    with Guest(strict, f"a=1:3:{FRAMES}", f"b=2:3:{FRAMES}", f"c=3:1:0:{SLOW}") as guest:
        assert guest.ready()
        guest.go()
        eventually(lambda: strict.port("c").counters["blocked_ns"] > 0)
        strict.process.send_signal(signal.SIGSTOP)
        time.sleep(6)  # longer than a destination may take nothing
        strict.process.send_signal(signal.SIGCONT)
        strict.wait_for({"a": FRAMES + 1, "b": FRAMES + 1})
        found = guest.result()["3"]["from"]
    assert whole(found["1"], FRAMES)
    assert whole(found["2"], FRAMES)
    assert strict.port("c").counters["stalls"] == 0


def test_a_receiver_that_stops_does_not_hold_its_senders_up(strict: RunningSwitch) -> None:
    with Guest(strict, "c=3") as stopped:
        assert stopped.ready()
        with Guest(strict, f"a=1:3:{FRAMES}", f"b=2:1:{FRAMES}") as others:
            assert others.ready()
            stopped.process.send_signal(signal.SIGSTOP)
            others.go()
            strict.wait_for({"a": FRAMES + 1, "b": FRAMES + 1})
            assert whole(others.result()["1"]["from"]["2"], FRAMES)
    port = strict.port("a")
    assert strict.port("c").counters["stalls"] == 1
    assert port.drops["stalled"] > 0


def test_ports_come_and_go_while_others_forward(switch: RunningSwitch) -> None:
    with Guest(switch, f"a=1:3:{FRAMES}", f"c=3:1:{FRAMES}:{SLOW}") as others:
        assert others.ready()
        with Guest(switch, "d=4:3:100000000") as leaving:
            assert leaving.ready()
            others.go()
            leaving.go()
            eventually(lambda: switch.port("d").counters["delivered"] > 1000)
            control.remove(switch.config.control, "d")
        for _ in range(20):
            control.add(switch.config.control, f"name=d kind=vhost path={switch.socket('d')}")
            control.remove(switch.config.control, "d")
        switch.wait_for({"a": FRAMES + 1, "c": FRAMES + 1})
        found = others.result()
    assert whole(found["3"]["from"]["1"], FRAMES)
    assert whole(found["1"]["from"]["3"], FRAMES)
    assert found["3"]["from"]["4"]["gaps"] == 0


def test_a_second_front_end_is_refused(switch: RunningSwitch) -> None:
    with Guest(switch, "a=1:2:1000", "b=2") as first:
        assert first.ready()
        with Guest(switch, "a=3") as second:
            assert not second.ready()
        first.go()
        switch.wait_for({"a": 1001})
        assert whole(first.result()["2"]["from"]["1"], 1000)


def test_bad_commands_are_answered_and_change_nothing(switch: RunningSwitch) -> None:
    path = switch.socket("e")
    for line, said in {
        "": "an empty line: no such command",
        "ad name=e": "ad: no such command; there are add, remove, list, status, stations, quit",
        "add": "a port needs name and kind",
        f"add name=a kind=vhost path={path}": "a: there is a port of this name",
        f"add name=e kind=vhost path={switch.socket('a')}": "e: another port has",
        f"add name=e kind=x path={path}": "kind: write vhost",
        f"add name=e kind=vhost path={path} vlan=4095": "vlan: write a VLAN from 1 to 4094",
        f"add name=e kind=vhost path={path} vlan=0": "a port that is no trunk needs one",
        f"add name=e kind=vhost path={path} tagged=7-3": "tagged: write VLANs such as",
        f"add name=e kind=vhost path={path} address=01:00:00:00:00:00": "address: write at most 16",
        f"add name=e kind=vhost path={path} speed=9": "speed: no such key of a port",
        f"add name=e kind=vhost path={switch.log}": "a file is there that is no socket",
        "add name=e kind=vhost path=/nowhere/e": "does its folder exist",
        "remove": "remove: write the name of a port",
        "remove e": "e: there is no such port",
    }.items():
        with pytest.raises(SwitchError, match=said.replace("[", r"\[")):
            control.ask(switch.config.control, line)
    assert [port.name for port in control.ports(switch.config.control)] == list("abcd")


def test_clients_that_misbehave_keep_no_other_waiting(switch: RunningSwitch) -> None:
    path = str(switch.config.control)
    idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for client in idle:
        client.connect(path)
    idle[0].sendall(b"x" * 5000)
    idle[1].sendall(b"status\n" * 100)
    for client in idle:
        client.close()
    eventually(lambda: len(control.ports(switch.config.control)) == 4)


def forwards_and_ends(switch: RunningSwitch) -> None:
    with Guest(switch, "a=1:2:1000", "b=2") as guest:
        assert guest.ready()
        guest.go()
        switch.wait_for({"a": 1001})
        assert whole(guest.result()["2"]["from"]["1"], 1000)
    assert switch.end() == 0


def test_a_switch_ends_cleanly_and_starts_again_after_a_kill(switch: RunningSwitch) -> None:
    switch.end(signal.SIGKILL)
    assert list(switch.folder.glob("*.sock"))
    switch.start()
    forwards_and_ends(switch)
    assert not list(switch.folder.glob("*.sock"))


def test_a_hangup_changes_nothing(switch: RunningSwitch) -> None:
    switch.process.send_signal(signal.SIGHUP)
    forwards_and_ends(switch)

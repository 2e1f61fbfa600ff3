"""Wires of the program: between hosts with the kernel's device, as maps and interfaces change."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rigs.zovn_rig import address
from rigs.zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole
from rigs.zovn_wire_rig import bare, connect, hosts, ip, map_of, name, run, vxlan
from support.inconclusive import inconclusive
from support.stalls import Stalls
from support.waiting import eventually

from zovn.errors import SwitchError
from zovn.switch import control

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
STATIONS = {"one": address(1), "two": address(2)}


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


def wire(number: int, maps: Path) -> dict[str, Any]:
    """Return a port to the host of this number."""
    own = {"local": f"10.9.{number}.1", "vni": 42, "line_rate": "1Gbit/s"}
    return {
        "kind": "wire",
        "interface": f"w{number}",
        "wire": own | {"locations": str(maps / f"map{number}")},
    }


def write_map(maps: Path, number: int, station: bytes) -> None:
    new = maps / "new"
    new.write_text(map_of({station: f"10.9.{number}.2"}))
    new.rename(maps / f"map{number}")


def connect_host(number: int, host: str) -> None:
    """Connect the switch's host to another one, which has the kernel's device."""
    connect("middle", f"w{number}", host, "w0")
    vxlan(host, f"10.9.{number}.2", f"10.9.{number}.1", STATIONS[host], f"10.8.0.{number}")


def give_address(number: int) -> None:
    ip("middle", "address", "add", f"10.9.{number}.1/24", "dev", f"w{number}")


@contextmanager
def switch_between_hosts(maps: Path) -> Iterator[RunningSwitch]:
    """The program with a wire to each of two hosts."""
    for number, station in enumerate(STATIONS.values(), 1):
        write_map(maps, number, station)
    each = [wire(number, maps) for number in (1, 2)]
    with running_switch(names=["to-one", "to-two"], each=each, netns=name("middle")) as switch:
        yield switch


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningSwitch]:
    """The program between two hosts with the kernel's device."""
    with hosts("middle", *STATIONS):
        for number, host in enumerate(STATIONS, 1):
            connect_host(number, host)
            give_address(number)
        with switch_between_hosts(tmp_path) as switch:
            yield switch


def ping(count: int = 3) -> str:
    """Ping from one host to the other.

    Not each 0.1 s: the switch naps for that long, and what comes just as a nap ends counts as
    missed.
    """
    words = ("ping", "-c", str(count), "-i", "0.25", "-W", "10", "10.8.0.2")
    return run("ip", "netns", "exec", name("one"), *words)


def test_hosts_with_the_kernels_device_ping_each_other(running: RunningSwitch) -> None:
    assert "3 packets transmitted, 3 received" in ping()
    for port in running.report().ports:
        assert (port.kind, port.state, port.lost) == ("wire", "runs", 0)
        assert port.counters["unsound"] == port.counters["beyond"] == 0
    assert running.end() == 0


def test_an_idle_wire_sleeps(running: RunningSwitch) -> None:
    ping()
    before = running.report().naps
    eventually(lambda: running.report().naps > before + 3)
    assert running.report().missed == 0


def test_a_map_that_changes_is_read_again(running: RunningSwitch, tmp_path: Path) -> None:
    ping()
    write_map(tmp_path, 2, address(77))
    eventually(lambda: unreachable(running))
    (tmp_path / "map2").write_text("nonsense\n")
    eventually(lambda: "line 1: write `host ADDRESS`" in running.log.read_text())
    write_map(tmp_path, 2, STATIONS["two"])
    eventually(reachable)


def reachable() -> bool:
    words = ("ip", "netns", "exec", name("one"), "ping", "-c", "1", "-W", "1", "10.8.0.2")
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def unreachable(running: RunningSwitch) -> bool:
    return not reachable() and running.port("to-one").drops["no_location"] > 0


def test_an_interface_that_goes_comes_back(running: RunningSwitch) -> None:
    ping()
    ip("middle", "link", "delete", "w2")
    eventually(lambda: running.port("to-two").state == "gone")
    assert not running.port("to-two").attached
    ip("two", "link", "delete", "tunnel")
    connect_host(2, "two")
    give_address(2)
    eventually(lambda: running.port("to-two").attached)
    eventually(reachable)


def test_an_interface_with_another_address_is_attached_again(running: RunningSwitch) -> None:
    """What came for the new address was lost, and no counter said so."""
    ping()
    ip("middle", "link", "set", "w2", "address", "02:00:00:00:09:09")
    eventually(reachable)
    assert running.port("to-two").state == "runs"


def test_an_interface_that_comes_after_the_start_is_waited_for(tmp_path: Path) -> None:
    with hosts("middle", *STATIONS):
        connect_host(1, "one")
        give_address(1)
        with switch_between_hosts(tmp_path) as running:
            assert waits_for(running, "does not exist")
            peer = ("peer", "name", "w0", "netns", name("two"))
            ip("middle", "link", "add", "w2", "type", "veth", *peer)
            eventually(lambda: waits_for(running, "is down"))
            for host, interface in (("middle", "w2"), ("two", "w0")):
                bare(host, interface)
                ip(host, "link", "set", interface, "up")
            eventually(lambda: waits_for(running, "does not have the address `local` yet"))
            give_address(2)
            eventually(lambda: running.port("to-two").state == "runs")
            vxlan("two", "10.9.2.2", "10.9.2.1", STATIONS["two"], "10.8.0.2")
            eventually(reachable)
            assert running.end() == 0


def waits_for(running: RunningSwitch, what: str) -> bool:
    port = running.port("to-two")
    assert (port.state, port.attached, port.attachments) == ("missing", False, 0)
    said = f"to-two: interface w2 {what}: waiting for it"
    assert running.log.read_text().count(said) <= 1, "once, not each second"
    return said in running.log.read_text()


def test_what_cannot_be_opened_is_refused(running: RunningSwitch) -> None:
    ip("middle", "link", "add", "w3", "type", "veth", "peer", "name", "v3")
    for interface in ("w3", "v3"):
        ip("middle", "link", "set", interface, "up")
    give_address(3)
    words = (
        "name=third kind=wire interface=w3 local=10.9.3.1 vni=1 locations=/no/map "
        "line_rate=1000000000 buffer=344064 pfc=255"
    )
    with pytest.raises(SwitchError, match=r"^third: w3: locations: /no/map: No such file"):
        control.add(running.config.control, words)
    with pytest.raises(SwitchError, match="a port of kind wire needs locations"):
        control.add(running.config.control, "name=third kind=wire interface=w9")
    with pytest.raises(SwitchError, match="a port of kind vhost has no locations"):
        control.add(running.config.control, "name=third kind=vhost path=/x locations=/y")


# --- two programs


FRAMES = 5000
CLASS = 3
RESPONSE_S = 0.2
ENDS = {"here": ("10.9.0.1", "02:00:00:00:00:01"), "there": ("10.9.0.2", "02:00:00:00:00:03")}


def end(host: str, maps: Path) -> dict[str, Any]:
    """Return what is to run at a host: a guest's port, and the wire to the other host."""
    (other,) = set(ENDS) - {host}
    (local, _), (remote, station) = ENDS[host], ENDS[other]
    (maps / host).write_text(f"station {station} {remote}\n")
    own = {"local": local, "vni": 42, "locations": str(maps / host), "line_rate": "10Mbit/s"}
    port = {
        "kind": "wire",
        "interface": "w0",
        "addresses": [station],
        "wire": own | {"response": f"{RESPONSE_S * 1e3:g}ms"},
    }
    each = [{"class": CLASS}, port]
    return {"names": ["guest", "wire"], "each": each, "netns": name(host), "stall": "1min"}


def knows(host: str) -> bool:
    """Return whether a host has been asked for its address by the other one."""
    (other,) = set(ENDS) - {host}
    return "lladdr" in run("ip", "-n", name(host), "neighbour", "show", ENDS[other][0])


def arrived(there: RunningSwitch) -> int:
    """Return how many frames a host has had from the line."""
    return there.port("guest").counters["out"] + there.port("wire").counters["beyond"]


def test_a_slow_guest_at_one_host_slows_its_sender_at_another_and_loses_nothing(
    tmp_path: Path, stalls: Stalls
) -> None:
    """A frame takes 114 us of the line, and the receiver takes one in 1 ms."""
    with hosts(*ENDS):
        connect("here", "w0", "there", "w0")
        for host, (local, _) in ENDS.items():
            ip(host, "address", "add", f"{local}/24", "dev", "w0")
        with (
            running_switch(**end("here", tmp_path)) as here,
            running_switch(**end("there", tmp_path)) as there,
            Guest(there, "guest=3:1:0:1") as receiver,
            Guest(here, f"guest=1:3:{FRAMES}") as sender,
        ):
            assert receiver.ready()
            assert sender.ready()
            eventually(lambda: knows("here") and knows("there"))
            receiver.go()
            sender.go()
            eventually(lambda: arrived(there) >= FRAMES)
            beyond = there.port("wire").counters["beyond"]
            if beyond and stalls.longest() > RESPONSE_S / 2:
                inconclusive(f"{beyond} beyond; a CPU stood still for {stalls.longest():.3g} s")
            found = receiver.result()["3"]["from"]
            assert whole(found["1"], FRAMES)
            report = {"here": here.port("wire"), "there": there.port("wire")}
            assert beyond == 0
            assert report["there"].counters["pauses_sent"] > 0
            assert report["here"].counters["pauses"] == report["there"].counters["pauses_sent"]
            assert report["here"].counters["paused_ns"] > 0

"""Guests with a kernel on the switch, emulated: what their sockets sent comes, whatever happens."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import eventually
from system.guests.domain import domain
from system.guests.machine import PATIENCE_S, READY, Console, System, qemu
from system.xen.cache import Cache
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole

from lab.libvirt import requirements
from lab.libvirt.server import PrivateLibvirtd
from lab.system import namespaces

pytestmark = [pytest.mark.zovn, pytest.mark.timeout(600)]

CACHE = Path(__file__).parents[2] / "build/kernels"
FRAMES = 20_000
AMPLE, SMALL = 32 << 20, 16 << 10
"""Bytes of a receive buffer: for all frames of a flood, and for few."""
STATIONS = {"a": 1, "b": 2}
LIBVIRTS, NETNS = "10.0.0.9", "zovn-guests"
MACS = {name: f"52:54:00:00:01:0{number}" for name, number in STATIONS.items()}
ADDRESSES = {name: f"10.0.0.{number}" for name, number in STATIONS.items()}
OTHERS = 2_000_000
BATCH = 64
"""Frames of a port that the switch moves in a step, at most."""


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> System:
    build_guest()
    terminal = request.config.pluginmanager.getplugin("terminalreporter")

    def say(words: str) -> None:
        terminal.write_line(f"{time.strftime('%H:%M:%S')} guests: {words}")

    return System(Cache(CACHE, say), tmp_path_factory.mktemp("system"))


@pytest.fixture(scope="module")
def switch() -> Iterator[RunningSwitch]:
    each = [{"addresses": [MACS[name]]} if name in MACS else {} for name in "abcd"]
    with running_switch(names="abcd", stall="10min", each=each) as made:
        yield made


def started(system: System, switch: RunningSwitch, name: str) -> Console:
    command = qemu(system, switch.socket(name), MACS[name], ADDRESSES[name])
    return Console(switch.folder / f"console-{name}", command)


@pytest.fixture(scope="module")
def guests(system: System, switch: RunningSwitch) -> Iterator[tuple[Console, Console]]:
    with started(system, switch, "a") as a, started(system, switch, "b") as b:
        a.wait_until_ready()
        b.wait_until_ready()
        yield a, b


def ping(guest: Console, to: str) -> None:
    """Ask for an answer until one comes; then everything sent before has come, too."""
    guest.run(f"until ping -c 1 -W 1 {ADDRESSES.get(to, to)} > /dev/null; do :; done")


def listen(guest: Console, pause_us: int, room: int) -> None:
    """Start to read, and forget what was counted."""
    guest.run("cat /proc/net/snmp > /tmp/before")
    guest.run(f"{{ datagrams sink {pause_us} {room} > /tmp/sink & }}; sleep 1")


def counted(guest: Console) -> dict[str, int]:
    """End the reader; return what it got, and what its socket had no room for."""
    said = guest.run("kill %1; wait %1; cat /tmp/sink /tmp/before /proc/net/snmp")
    found = {name: int(value) for name, value in re.findall(r"(?m)^(\w+) (\d+)\r?$", said)}
    names, before, _, after = (line.split()[1:] for line in re.findall(r"(?m)^Udp:.*", said))
    at = names.index("RcvbufErrors")
    return found | {"full": int(after[at]) - int(before[at])}


def flood(guest: Console, to: str, frames: int = FRAMES) -> None:
    guest.run(f"datagrams flood {ADDRESSES[to]} {frames}")


def dropped(switch: RunningSwitch) -> dict[str, int]:
    """Return what was dropped of the guests' frames, by port and reason."""
    drops = {name: switch.port(name).drops for name in STATIONS}
    return {f"{name} {why}": count for name in drops for why, count in drops[name].items() if count}


def test_guests_answer_each_other(guests: tuple[Console, Console], switch: RunningSwitch) -> None:
    a, b = guests
    ping(a, "b")
    said = b.run(f"ping -c 20 -i 0.05 {ADDRESSES['a']}")
    assert "20 packets received" in said
    assert not dropped(switch)


def test_a_slow_reader_loses_only_what_its_socket_has_no_room_for(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    a, b = guests
    listen(b, 200, SMALL)
    flood(a, "b")
    ping(a, "b")
    found = counted(b)
    assert found.pop("full") == FRAMES - found.pop("received") > 0
    assert found == {"repeated": 0, "overtaken": 0}
    assert not dropped(switch)


def test_a_guest_that_stands_still_stops_its_sender_and_misses_nothing(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    a, b = guests
    ping(a, "b")
    listen(b, 0, AMPLE)
    b.process.send_signal(signal.SIGSTOP)
    before = len(a.text())
    a.tell(f"datagrams flood {ADDRESSES['b']} {FRAMES}")
    eventually(lambda: switch.port("b").counters["blocked_ns"] > 10**9, PATIENCE_S)
    held = switch.port("a").counters["held"]
    assert held > 0
    assert "end" not in a.text()[before:], "its sender still waits"
    b.process.send_signal(signal.SIGCONT)
    a.answer(before)
    ping(a, "b")
    assert counted(b) == {"received": FRAMES, "repeated": 0, "overtaken": 0, "full": 0}
    assert not dropped(switch)


def test_a_switch_that_stands_still_stops_its_senders_and_loses_nothing(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    a, b = guests
    ping(a, "b")
    listen(b, 0, AMPLE)
    switch.process.send_signal(signal.SIGSTOP)
    before = len(a.text())
    a.tell(f"datagrams flood {ADDRESSES['b']} {FRAMES}")
    time.sleep(3)  # a sender that could go on would have ended by then
    assert "end" not in a.text()[before:]
    switch.process.send_signal(signal.SIGCONT)
    a.answer(before)
    ping(a, "b")
    assert counted(b) == {"received": FRAMES, "repeated": 0, "overtaken": 0, "full": 0}
    assert not dropped(switch)


def test_a_guest_boots_again_under_a_flood_and_costs_others_nothing(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    a, b = guests
    with Guest(switch, f"c=3:4:{OTHERS}", "d=4") as others:
        assert others.ready()
        others.go()
        before = len(a.text())
        a.tell(f"datagrams flood {ADDRESSES['b']} {FRAMES}")
        b.tell("echo b > /proc/sysrq-trigger")  # "reboot" resets devices, where Linux 6.1 may hang
        b.wait_until_ready(2)
        a.answer(before)
        ping(a, "b")
        ping(b, "a")
        switch.wait_for({"c": OTHERS + 1})
        assert whole(others.result()["4"]["from"]["3"], OTHERS)
    assert switch.port("b").attachments > 1
    listen(b, 0, AMPLE)
    flood(a, "b")
    ping(a, "b")
    assert counted(b) == {"received": FRAMES, "repeated": 0, "overtaken": 0, "full": 0}


def test_guests_go_on_when_the_switch_was_killed_and_started_again(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    a, b = guests
    ping(a, "b")
    switch.end(signal.SIGKILL)
    switch.start()
    eventually(lambda: all(switch.port(name).attached for name in STATIONS))
    ping(a, "b")
    ping(b, "a")
    earlier = dropped(switch)  # what one sent while the other was away
    listen(b, 0, AMPLE)
    flood(a, "b")
    ping(a, "b")
    assert counted(b) == {"received": FRAMES, "repeated": 0, "overtaken": 0, "full": 0}
    assert dropped(switch) == earlier


def test_what_a_killed_switch_held_of_a_guest_arrives(
    guests: tuple[Console, Console], switch: RunningSwitch
) -> None:
    """Later datagrams may not: a guest has no link until its QEMU has a switch, and drops them.

    The sender comes back after the receiver, since frames for a guest that is away are dropped.
    """
    a, b = guests
    ping(a, "b")
    listen(b, 0, AMPLE)
    b.process.send_signal(signal.SIGSTOP)
    before, earlier = len(a.text()), switch.port("a").counters["in"]
    a.tell(f"datagrams flood {ADDRESSES['b']} {FRAMES}")
    eventually(lambda: switch.port("a").counters["held"] > 200, PATIENCE_S)
    a.process.send_signal(signal.SIGSTOP)
    taken = switch.port("a").counters["in"] - earlier
    switch.end(signal.SIGKILL)
    switch.start()
    for name, guest in (("b", b), ("a", a)):
        guest.process.send_signal(signal.SIGCONT)
        eventually(lambda name=name: switch.port(name).attached)
    a.answer(before)
    ping(a, "b")
    found = counted(b)
    assert found["received"] - found["repeated"] >= taken - 1, "one may be a question of ARP"
    assert found["overtaken"] <= found["repeated"] <= BATCH
    assert not any(switch.port("a").drops.values())
    listen(b, 0, AMPLE)
    flood(a, "b")
    ping(a, "b")
    assert counted(b) == {"received": FRAMES, "repeated": 0, "overtaken": 0, "full": 0}


@pytest.fixture
def libvirtd(switch: RunningSwitch) -> Iterator[PrivateLibvirtd]:
    if missing := requirements.missing():
        pytest.skip("; ".join(missing))
    namespaces.create(NETNS)
    try:
        with PrivateLibvirtd(switch.folder / "lv", namespaces.path(NETNS)) as made:
            yield made
    finally:
        namespaces.remove(NETNS)


def test_a_domain_of_libvirt_is_a_guest_as_documented(
    system: System,
    guests: tuple[Console, Console],
    switch: RunningSwitch,
    libvirtd: PrivateLibvirtd,
) -> None:
    console, file = switch.folder / "console-libvirt", switch.folder / "guest.xml"
    file.write_text(domain(system, switch.socket("c"), LIBVIRTS, libvirtd.partition, console))
    libvirtd.virsh("qemu", "create", str(file))
    eventually(lambda: READY in console.read_text(errors="replace"), PATIENCE_S)
    ping(guests[0], LIBVIRTS)
    switch.end(signal.SIGKILL)
    switch.start()
    ping(guests[0], LIBVIRTS)
    assert libvirtd.virsh("qemu", "domstate", "guest").strip() == "running"

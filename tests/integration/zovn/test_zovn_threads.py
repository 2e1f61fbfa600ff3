"""Several threads that forward: each has some of the ports, and frames between them are as any."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from support.waiting import eventually
from zovn_front_end import FrontEnd, connections
from zovn_rig import BROADCAST, address, frame, serial
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole

from zovn.switch import control

pytestmark = pytest.mark.timeout(120)
Connect = Callable[..., FrontEnd]
FRAMES = 20_000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture(params=[2, 3])
def switch(request: pytest.FixtureRequest) -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{number}"]} for number in range(5)]
    with running_switch(names="abcde", stall="1min", each=ports, threads=request.param) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with connections(switch) as connected:
        yield connected


def threads_of(switch: RunningSwitch) -> list[int | None]:
    """Return the thread of each port."""
    return [port.thread for port in switch.report().ports]


def test_four_senders_overload_a_fifth_without_a_loss(switch: RunningSwitch) -> None:
    senders = [f"{name}={number}:4:{FRAMES}" for number, name in enumerate("abcd")]
    with Guest(switch, *senders, "e=4:0:0:50") as guest:
        assert guest.ready()
        assert switch.report().threads == switch.config.table.threads
        assert set(threads_of(switch)) == set(range(switch.report().threads))
        guest.go()
        switch.wait_for(dict.fromkeys("abcd", FRAMES + 1))
        report = switch.report()
        found = guest.result()["4"]["from"]
    assert all(whole(found[str(number)], FRAMES) for number in range(4))
    assert len(report.cpu_ns) == report.threads
    assert all(report.cpu_ns)
    assert not any(sum(port.drops.values()) for port in report.ports)
    assert sum(port.counters["blocked_ns"] for port in report.ports) > 0
    delivered = sum(port.counters["delivered"] for port in report.ports)
    assert delivered == sum(port.counters["out"] for port in report.ports)


class Flooded:
    """Guests that send to one or to all, and receive as they like."""

    def __init__(self, connect: Connect) -> None:
        self.fronts = [connect(name) for name in "abcde"]
        self.sent: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.got: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.serial = 0

    def send(self, source: int, destination: int) -> None:
        """Send, if there is room; what is for itself goes to all."""
        front = self.fronts[source]
        front.completed()
        to = BROADCAST if destination == source else address(destination)
        self.serial += 1
        if front.send(frame(address(source), to, self.serial)):
            front.kick()
            others = set(range(5)) - {source} if to == BROADCAST else {destination}
            for other in others:
                self.sent[source, other].append(self.serial)

    def receive(self, number: int) -> None:
        """Take what came, and give room for more."""
        front = self.fronts[number]
        for _, data in front.received():
            self.got[data[11], number].append(serial(data))
        while front.receive.free:
            front.post([2048])
        front.kick()

    def all_here(self) -> bool:
        """Receive; return whether each frame came."""
        for number in range(5):
            self.receive(number)
        return self.got == self.sent


def test_floods_and_frames_between_threads_arrive_once_and_in_order(
    switch: RunningSwitch, connect: Connect
) -> None:
    guests, choose = Flooded(connect), random.Random(7)
    for _ in range(3000):
        guests.send(choose.randrange(5), choose.randrange(5))
        if choose.random() < 0.2:
            guests.receive(choose.randrange(5))
    eventually(guests.all_here, state=lambda: (switch.log.read_text(), switch.report()))
    ports = switch.report().ports
    assert not any(sum(port.drops.values()) for port in ports)
    assert all(port.counters["held"] == port.counters["parked"] == 0 for port in ports)
    counted = sum(port.counters["in"] + port.counters["copies"] for port in ports)
    assert counted == sum(port.counters["out"] for port in ports)


def test_ports_are_shared_among_threads_again_when_they_come_again(
    switch: RunningSwitch, connect: Connect
) -> None:
    fronts = {name: connect(name) for name in "abcde"}
    threads = switch.report().threads
    control.remove(switch.config.control, "a")
    control.add(switch.config.control, f"name=a kind=vhost path={switch.socket('a')}")
    assert switch.port("a").thread is None
    fronts["a"] = connect("a")
    assert sorted(map(threads_of(switch).count, range(threads))) in ([2, 3], [1, 2, 2])


def test_a_guest_that_leaves_takes_only_its_own_frames_with_it(
    switch: RunningSwitch, connect: Connect
) -> None:
    """What waits for it, and what comes from it, is in queues of several threads."""
    guests = Flooded(connect)
    for _ in range(8):
        for source in range(5):
            guests.send(source, 0)
            guests.send(source, (source + 1) % 5)
            guests.send(source, source)
    guests.fronts[0].close()
    eventually(lambda: not switch.port("a").attached)
    for pair in [pair for pair in guests.sent if 0 in pair]:
        del guests.sent[pair]

    def all_here() -> bool:
        for number in range(1, 5):
            guests.receive(number)
        return all(guests.got[pair] == numbers for pair, numbers in guests.sent.items())

    eventually(all_here, state=lambda: (switch.log.read_text(), switch.report()))
    reasons = {reason for port in switch.report().ports for reason, n in port.drops.items() if n}
    assert reasons <= {"removed", "no_destination"}

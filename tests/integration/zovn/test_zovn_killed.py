"""A switch that is killed while its guests go on: nothing is lost, and what repeats is counted."""

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from support.waiting import eventually
from zovn_front_end import FrontEnd
from zovn_rig import address, frame, serial
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

pytestmark = pytest.mark.timeout(120)
BATCH = 64
"""Frames of a port that the switch moves in a step, at most."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def switch(request: pytest.FixtureRequest) -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{number}"]} for number in range(3)]
    with running_switch(names="abc", stall="1min", each=ports, threads=request.param) as made:
        yield made


class Guests:
    """One guest that sends, and two that receive and come back first."""

    def __init__(self, switch: RunningSwitch, stack: ExitStack, *, inflight: bool) -> None:
        self.switch = switch
        self.got: Counter[int] = Counter()
        self.order: dict[str, list[int]] = {"b": [], "c": []}
        self.fronts = {}
        for name in "bca":
            self.fronts[name] = FrontEnd(switch.socket(name), inflight=inflight and name == "a")
            stack.callback(self.fronts[name].close)
            eventually(lambda name=name: switch.port(name).attached)
        self.sender = self.fronts["a"]
        self.sent = 0

    def send(self, to: int) -> bool:
        """Send the next frame, if there is room."""
        self.sender.completed()
        one = frame(address(0), address(to), self.sent)
        if not self.sender.send(one):
            return False
        self.sent += 1
        self.sender.kick()
        return True

    def post(self, name: str, most: int = 16) -> None:
        """Give a receiver room."""
        front = self.fronts[name]
        for _ in range(min(most, len(front.receive.free))):
            front.post([2048])
        front.kick()

    def take(self) -> None:
        """Count what came."""
        for name in "bc":
            numbers = [serial(data) for _, data in self.fronts[name].received()]
            self.order[name] += numbers
            self.got.update(numbers)

    def kill(self) -> None:
        """Kill the switch, start it again, and have all guests connect again."""
        self.switch.end(signal.SIGKILL)
        self.switch.start()
        for name, front in self.fronts.items():
            front.again(self.switch.socket(name))
            eventually(lambda name=name: self.switch.port(name).attached)

    def settle(self) -> None:
        """Take all that waits."""

        def arrived() -> bool:
            for name in "bc":
                self.post(name)
            self.take()
            self.sender.completed()
            return len(self.sender.transmit.free) == self.sender.transmit.size

        eventually(arrived, state=lambda: (self.switch.log.read_text(), self.switch.report()))
        self.take()


@pytest.fixture(params=[True, False], ids=["front end's record", "own record"])
def guests(switch: RunningSwitch, request: pytest.FixtureRequest) -> Iterator[Guests]:
    """Return guests; the front end of the sender keeps the record, or the switch does."""
    with ExitStack() as stack:
        yield Guests(switch, stack, inflight=request.param)


def test_what_a_killed_switch_held_arrives_once_and_in_order(guests: Guests) -> None:
    """Frames for the one with room are given back out of order; the others stay."""
    guests.post("c")
    for _ in range(8):
        guests.send(to=1)
        guests.send(to=2)
    eventually(lambda: guests.switch.port("a").counters["delivered"] == 8)
    guests.take()
    guests.kill()
    for _ in range(8):  # the descriptors that came back are taken again
        assert guests.send(to=1)
    eventually(lambda: guests.switch.port("a").counters["held"] == 16)
    guests.settle()
    assert guests.order["c"] == list(range(1, 16, 2))
    assert guests.order["b"] == [*range(0, 16, 2), *range(16, 24)]
    assert guests.switch.port("a").counters["delivered"] == 16


def test_a_switch_that_is_killed_twice_still_holds_them(guests: Guests) -> None:
    for _ in range(16):
        guests.send(to=1)
    for _ in range(2):
        eventually(lambda: guests.switch.port("a").counters["held"] == 16)
        guests.kill()
    guests.settle()
    assert guests.order["b"] == list(range(16))


def test_a_switch_that_is_killed_under_a_flood_loses_nothing(guests: Guests) -> None:
    """What it had copied, but not given back, may come again: frames of a step, or of a ring."""
    most = guests.sender.transmit.size if guests.switch.config.table.threads > 1 else BATCH
    choose = random.Random(20)
    kills = 4
    for _ in range(kills):
        for _ in range(choose.randrange(500, 2000)):
            guests.send(to=choose.choice((1, 2)))
            if choose.random() < 0.3:
                guests.post(choose.choice("bbbc"), 4)
            guests.take()
        guests.kill()
    guests.settle()
    assert set(guests.got) == set(range(guests.sent))
    repeated = {number: count for number, count in guests.got.items() if count > 1}
    assert len(repeated) <= kills * most
    assert all(count == 2 for count in repeated.values())
    for name, to in (("b", 1), ("c", 2)):
        first = list(dict.fromkeys(guests.order[name]))
        assert first == sorted(first), to


def test_a_guest_that_begins_anew_is_spared_what_another_had_sent(guests: Guests) -> None:
    for _ in range(8):
        guests.send(to=1)
    eventually(lambda: guests.switch.port("a").counters["held"] == 8)
    guests.switch.end(signal.SIGKILL)
    guests.switch.start()
    with closing(FrontEnd(guests.switch.socket("a"))) as another:
        eventually(lambda: guests.switch.port("a").attached)
        assert another.send(frame(address(0), address(0), 1))
        another.kick()
        eventually(lambda: guests.switch.port("a").counters["in"] == 1)


def test_a_record_goes_with_its_port(switch: RunningSwitch) -> None:
    with closing(FrontEnd(switch.socket("a"))):
        eventually(lambda: switch.port("a").attached)
        assert [path.name for path in switch.folder.glob("*.held")] == ["a.sock.held"]
        assert (switch.folder / "a.sock.held").stat().st_mode & 0o777 == 0o600
        assert switch.end() == 0
    assert not list(switch.folder.glob("*.held"))


def test_a_port_works_where_no_record_can_be(switch: RunningSwitch) -> None:
    (switch.folder / "a.sock.held").mkdir()
    with closing(FrontEnd(switch.socket("a"))):
        eventually(lambda: switch.port("a").attached)
    said = (
        f"a: {switch.socket('a')}.held cannot be written: Is a directory: if the switch is killed"
    )
    assert said in switch.log.read_text()

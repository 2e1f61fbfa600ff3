"""Parts of the switch, stepped in any order, as threads may: all frames come once and in order."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from zovn_rig import BROADCAST, address, build, frame, serial

from zovn.native.switch import Class, MemoryPort, Settings, Switch

MOST_PORTS, STALL_S = 5, 0.5
PORT = st.integers(0, MOST_PORTS - 1)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), PORT, PORT),
        st.tuples(st.just("send"), PORT, PORT),
        st.tuples(st.just("receive"), PORT, st.integers(1, 4)),
        st.tuples(st.just("step"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("step"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 2), st.integers(1, 6)),
        st.tuples(st.just("settle"), st.just(0), st.just(0)),
        st.tuples(st.just("replace"), PORT, st.just(0)),
    ),
    max_size=150,
)
SIZES = st.tuples(st.integers(2, 3), st.integers(1, 8), st.integers(1, 3), st.integers(1, 3))
"""Parts, frames that a peer may send and receive, and parked ones."""


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Parts:
    """A switch in parts, with peers that count what they get."""

    def __init__(
        self, sizes: tuple[int, int, int, int], *, stall_s: float = 1e6, limit_bytes: int = 0
    ) -> None:
        self.count, self.heads, self.room, parked = sizes
        self.switch = Switch(
            Settings(
                classes=(Class(limit_bytes=limit_bytes),) * 8,
                threads=self.count,
                parked=parked,
                stall_s=stall_s,
            )
        )
        self.ports: list[MemoryPort] = []
        self.sent: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.got: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.serial = 0
        self.awake = set(range(self.count))
        for number in range(MOST_PORTS):
            self._add(number)

    def _add(self, number: int) -> None:
        self.ports.insert(number, MemoryPort(self.heads, self.room))
        assert self.switch.add(self.ports[number].handle) == number
        self.switch.fix(number, 1, address(number))

    def send(self, source: int, destination: int) -> None:
        """Send to a port; what a port would send to itself goes to all others."""
        self.serial += 1
        to = BROADCAST if destination == source else address(destination)
        if self.ports[source].send(frame(address(source), to, self.serial)):
            others = set(range(MOST_PORTS)) - {source} if to == BROADCAST else {destination}
            for other in others:
                self.sent[source, other].append(self.serial)
            self.awake.add(self.switch.part(source))

    def receive(self, number: int, most: int = 100) -> int:
        """Receive some frames; return how many."""
        for count in range(most):
            if (got := self.ports[number].receive()) is None:
                return count
            self.got[got[11], number].append(serial(got))
            self.awake.add(self.switch.part(number))
        return most

    def step(self, number: int, after_s: float = 0.0) -> None:
        """Step a part; it goes to sleep if nothing moved, and wakes others as threads do."""
        moved, shown = self.switch.step_part(number, after_s)
        self.awake |= {other for other in range(self.count) if shown >> other & 1}
        if not moved:
            self.awake.discard(number)
        if self.switch.wants_alone:
            assert shown & 1
            self.settle()

    def settle(self) -> None:
        """Have a moment in which no part is in a step."""
        self.switch.settle_parts()
        self.awake = set(range(self.count))
        assert self.switch.check() is None
        assert all(self.switch.counters(number).balanced for number in range(MOST_PORTS))

    def replace(self, number: int) -> None:
        """Remove a port; another one comes in its place."""
        self.switch.settle_parts()
        last = self.switch.remove(number)
        assert last.balanced
        assert not last.held
        assert not last.parked
        del self.ports[number]
        self._add(number)
        self.settle()

    def finish(self) -> None:
        """Step parts that are awake, and receive, until all sleep."""
        self.settle()
        while self.awake:
            self.step(min(self.awake))
            for number in range(MOST_PORTS):
                self.receive(number)

    def run(self, events: list[tuple[str, int, int]]) -> None:
        """Do what events say, and then finish."""
        for what, one, other in events:
            if what == "send":
                self.send(one, other)
            elif what == "receive":
                self.receive(one, other)
            elif what == "settle":
                self.settle()
            elif what == "replace":
                self.replace(one)
            else:
                self.step(one % self.count, other / 10)
        self.finish()

    def counted(self, reason: str) -> int:
        """Return how many frames were dropped for a reason."""
        return sum(
            self.switch.counters(number).drops.get(reason, 0) for number in range(MOST_PORTS)
        )

    @property
    def in_order(self) -> bool:
        """Whether each pair's frames came in order, and each once."""
        return all(numbers == sorted(set(numbers)) for numbers in self.got.values())


@settings(max_examples=part(200))
@given(EVENTS, SIZES)
def test_parts_deliver_each_frame_once_and_in_order(
    events: list[tuple[str, int, int]], sizes: tuple[int, int, int, int]
) -> None:
    parts = Parts(sizes)
    parts.run([event for event in events if event[0] != "replace"])
    assert {pair: numbers for pair, numbers in parts.got.items() if numbers} == parts.sent
    assert all(port.free_heads == port.sent for port in parts.ports)


@settings(max_examples=part(200))
@given(EVENTS, SIZES)
def test_parts_stay_lawful_while_ports_come_go_and_stand_still(
    events: list[tuple[str, int, int]], sizes: tuple[int, int, int, int]
) -> None:
    parts = Parts(sizes, stall_s=STALL_S)
    parts.run(events)
    assert parts.in_order
    assert all(port.free_heads == port.sent for port in parts.ports)


@settings(max_examples=part(100))
@given(EVENTS, SIZES, st.integers(64, 400))
def test_parts_of_a_lossy_switch_drop_for_congestion_alone(
    events: list[tuple[str, int, int]], sizes: tuple[int, int, int, int], limit: int
) -> None:
    parts = Parts(sizes, limit_bytes=limit)
    parts.run([event for event in events if event[0] != "replace"])
    assert parts.in_order
    lost = sum(map(len, parts.sent.values())) - sum(map(len, parts.got.values()))
    assert lost == parts.counted("congestion")
    assert all(port.free_heads == port.sent for port in parts.ports)

"""Floods to destinations that take frames as they like: no sender waits for longer than a stall."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import BROADCAST, Rig, address, build, frame, serial

from zovn.native.switch import Settings

PORTS, STALL_S = 4, 0.5
PORT = st.integers(0, PORTS - 1)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), PORT, PORT),
        st.tuples(st.just("receive"), PORT, st.integers(1, 4)),
        st.tuples(st.just("wait"), st.integers(1, 4), st.just(0)),
    ),
    max_size=120,
)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Ports:
    """Ports of a switch, what waits in their rings, and since when none of it was taken."""

    def __init__(self, parked: int, received: int) -> None:
        self.rig = Rig(PORTS, Settings(parked=parked, stall_s=STALL_S), received=received)
        self.sent, self.into, self.since_ns = [0] * PORTS, [0] * PORTS, [0] * PORTS
        self.got: dict[tuple[int, int], list[int]] = {}
        for port in range(PORTS):
            self.rig.switch.fix(port, 1, address(port))

    def send(self, source: int, destination: int) -> None:
        """Send to a port; what a port would send to itself goes to all others."""
        to = BROADCAST if destination == source else address(destination)
        made = frame(address(source), to, self.sent[source])
        self.sent[source] += self.rig.ports[source].send(made)

    def receive(self, port: int, most: int) -> None:
        """Receive some frames; those of each sender come in order."""
        for _ in range(most):
            if got := self.rig.ports[port].receive():
                self.got.setdefault((got[11], port), []).append(serial(got))

    def step(self, after_s: float) -> None:
        """Let time pass; look for senders that wait for too long."""
        self.rig.step(after_s)
        now_ns = self.rig.switch.now_ns
        for port in range(PORTS):
            into = self.rig.counters(port).into
            if into != self.into[port] or into == self.sent[port]:
                self.into[port], self.since_ns[port] = into, now_ns
            assert now_ns - self.since_ns[port] < STALL_S * 1e9
            assert set(self.rig.drops(port)) <= {"stalled"}


@given(EVENTS, st.integers(1, 3), st.integers(1, 3))
def test_no_flood_stops_its_sender_for_longer_than_a_stall(
    events: list[tuple[str, int, int]], parked: int, received: int
) -> None:
    ports = Ports(parked, received)
    for what, one, other in events:
        if what == "send":
            ports.send(one, other)
        elif what == "receive":
            ports.receive(one, other)
        ports.step(one / 20 if what == "wait" else 0.0)
    for port in range(PORTS):
        ports.receive(port, received)
    while ports.rig.step() + sum(map(ports.rig.switch.stalled, range(PORTS))):
        for port in range(PORTS):
            ports.receive(port, received)
    assert all(numbers == sorted(set(numbers)) for numbers in ports.got.values())
    assert all(port.free_heads == port.sent for port in ports.rig.ports.values())


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 3))
def test_a_flood_that_needs_a_place_takes_it_from_floods_alone(
    floods: list[bool], parked: int
) -> None:
    """Each destination takes a frame in time, so that none stalls; some are floods to both."""
    rig = Rig(3, Settings(parked=parked, stall_s=STALL_S), sent=40, received=1)
    rig.switch.fix(1, 1, address(1))
    for number, flood in enumerate(floods):
        rig.ports[0].send(frame(address(0), BROADCAST if flood else address(1), number))
    got: dict[int, list[int]] = {1: [], 2: []}
    moved = 1
    while moved:
        moved = rig.step(0.6 * STALL_S)
        for port, numbers in got.items():
            numbers += [serial(one) for one in [rig.ports[port].receive()] if one]
    assert all(numbers == sorted(set(numbers)) for numbers in got.values())
    unicast = [number for number, flood in enumerate(floods) if not flood]
    assert [number for number in got[1] if not floods[number]] == unicast
    lost = 2 * len(floods) - len(unicast) - sum(map(len, got.values()))
    assert rig.drops(0) == ({"stalled": lost} if lost else {})
    assert rig.counters(1).stalls == rig.counters(2).stalls == 0

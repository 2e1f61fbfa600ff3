"""Runs of frames: guests get what ports get whose frames are classified and moved one by one."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from zovn_guest import Guest
from zovn_rig import BROADCAST, address, build, frame

from zovn.native.switch import Class, MemoryPort, PortSettings, Settings, Switch

PORTS, SIZE, BUFFER = 3, 16, 2000
PORT = st.integers(0, PORTS - 1)
USUAL = PortSettings()
OTHERS = (
    PortSettings(klass=2),
    PortSettings(trust="dscp"),
    PortSettings(vlan=2),
    PortSettings(vlan=1, tagged=(2,), trust="priority", klass=1),
    PortSettings(rate_bps=1_000_000),
)
CHOSEN = st.tuples(*[st.sampled_from([USUAL, USUAL, *OTHERS])] * PORTS)
CLASS = st.sampled_from([Class(), Class(0), Class(3), Class(limit_bytes=700), Class(mark_bytes=99)])
CLASSES = st.one_of(CLASS.map(lambda one: [one] * 8), st.lists(CLASS, min_size=8, max_size=8))
SEND = st.tuples(
    st.just("send"), PORT, st.integers(0, PORTS), st.sampled_from([24, 64, 64, 400, 1500])
)
"""From a port to the address of one, or to all, of a length."""
EVENTS = st.lists(
    st.one_of(
        SEND,
        SEND,
        SEND,
        st.tuples(st.just("make"), PORT, st.integers(0, 7), st.just(0)),
        st.tuples(st.just("receive"), PORT, st.integers(1, SIZE), st.just(0)),
        st.tuples(st.just("step"), st.sampled_from([0, 0, 1, 300, 2000]), st.just(0), st.just(0)),
    ),
    min_size=10,
    max_size=100,
)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Peer:
    """A guest, and a port in memory; both have room for as many frames."""

    def __init__(self) -> None:
        self.guest, self.memory = Guest(SIZE), MemoryPort(SIZE, SIZE)
        self.inbox: deque[bytes] = deque()
        self.kind = 0
        for _ in range(SIZE):
            self.guest.post((BUFFER,))

    def make(self, number: int, to: bytes, serial: int, length: int) -> bytes:
        """Make a frame: from another address, with a tag, or of IP."""
        own = {1: address(number, 1), 2: address((number + 1) % PORTS)}
        source = own.get(self.kind, address(number))
        made = frame(source, to, serial, length, {3: 2, 4: 0xA001}.get(self.kind))
        tos = {5: b"\xb8", 7: b"\x01"}.get(self.kind)
        return made[:12] + b"\x08\0\x45" + tos + made[16:] if tos else made

    def send(self, made: bytes) -> None:
        """Send it, if the guest has room."""
        self.guest.completed()
        if self.guest.send(made, (30,) if self.kind == 6 else ()):
            assert self.memory.send(made)

    def receive(self, most: int) -> None:
        """Receive up to so many frames, which are the same; the guest has as many buffers again."""
        self.inbox.extend(data for _, data in self.guest.received())
        for _ in range(most):
            got = self.memory.receive()
            assert got == (self.inbox.popleft() if self.inbox else None)
            if got is None:
                return
            self.guest.post((BUFFER,))


class Both:
    """Two switches, to which the same happens."""

    def __init__(self, ports: tuple[PortSettings, ...], chosen: Settings) -> None:
        self.peers = [Peer() for _ in ports]
        self.guests, self.memories = Switch(chosen), Switch(chosen)
        self.serial = 0
        for peer, port in zip(self.peers, ports, strict=True):
            self.guests.add(peer.guest.handle or 0, port)
            self.memories.add(peer.memory.handle, port)

    def send(self, source: int, to: int, length: int) -> None:
        """Send a few frames like each other, of which the lengths differ a little."""
        for _ in range(6):
            self.serial += 1
            target = BROADCAST if to == PORTS else address(to)
            made = self.peers[source].make(source, target, self.serial, length + self.serial % 2)
            self.peers[source].send(made)

    def know(self) -> None:
        """Let all say where they are."""
        for number, peer in enumerate(self.peers):
            peer.send(frame(address(number), BROADCAST))
        self.finish()

    def finish(self) -> None:
        """Step and receive, until all have all."""
        for _ in range(300):
            moved = self.step(0.01)
            for peer in self.peers:
                peer.receive(SIZE)
            if not moved and not any(self.guests.counters(n).waiting for n in range(PORTS)):
                return
        raise AssertionError("frames wait without end")

    def step(self, after_s: float) -> int:
        """Step both; they count the same."""
        moved = self.guests.step(after_s)
        assert moved == self.memories.step(after_s)
        assert self.guests.check() is None
        for number in range(PORTS):
            assert self.guests.counters(number) == self.memories.counters(number)
        return moved

    def run(self, events: list[tuple[str, int, int, int]]) -> None:
        """Do what events say."""
        for what, one, other, more in events:
            if what == "send":
                self.send(one, other, more)
            elif what == "make":
                self.peers[one].kind = other
            elif what == "receive":
                self.peers[one].receive(other)
            else:
                self.step(one / 1000)


@settings(max_examples=part(200))
@given(EVENTS, CHOSEN, CLASSES)
def test_a_run_of_frames_does_what_each_does_by_itself(
    events: list[tuple[str, int, int, int]], ports: tuple[PortSettings, ...], classes: list[Class]
) -> None:
    chosen = Settings(
        classes=classes,
        class_of_priority={priority: priority for priority in range(8)},
        class_of_dscp={46: 3},
        age_s=1.5,
        parked=2,
    )
    both = Both(ports, chosen)
    both.know()
    both.run(events)
    both.finish()

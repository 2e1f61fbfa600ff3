"""The compiled switch under any interleaving: as the model expects, and as Algorithm 1 delivers."""

from collections import defaultdict, deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from support.examples import part
from zovn_guest import Guest
from zovn_rig import BROADCAST, Rig, address, build, frame, jain, serial

from zovn.native.switch import Class, Counters, MemoryPort, PortSettings, Settings, Switch
from zovn.oracle.expected import ExpectedSwitch
from zovn.oracle.zvale import LosslessSwitch, Packet

LOSSLESS = Settings(
    classes=(Class(0), Class(0), Class(1), Class(2), Class(5), *[Class(1)] * 3),
    class_of_priority={priority: priority for priority in range(8)},
    class_of_dscp={46: 1, 10: 3},
    stall_s=1e6,
    age_s=5.0,
    parked=2,
)
TRUNK = PortSettings(vlan=0, tagged=(1, 2, 3), trust="priority")
PORTS = st.sampled_from(
    [
        *(PortSettings(klass=klass) for klass in (0, 2, 7)),
        PortSettings(vlan=2, trust="dscp"),
        TRUNK,
        PortSettings(vlan=1, tagged=(2,), trust="priority", klass=4),
    ]
)
TAGS = st.sampled_from([None, None, None, 1, 2, 9, 0x6000, 0xA001, 0x4002, 0xE003])
TARGETS = st.one_of(
    st.just(BROADCAST),
    st.builds(address, st.integers(0, 5), st.integers(0, 1)),
    st.sampled_from([b"\x01\x80\xc2\0\0\x0e", b"\x01\0\x5e\0\0\x01"]),
)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Interleavings(RuleBasedStateMachine):
    """Ports come, send, receive and go in any order; nothing is lost, doubled or reordered."""

    @initialize()
    def begin(self) -> None:
        self.switch = Switch(LOSSLESS)
        self.expected = ExpectedSwitch(LOSSLESS)
        self.ports: dict[int, MemoryPort] = {}
        self.pending: dict[int, deque[bytes]] = {}
        self.into: dict[int, int] = {}
        self.serial = 0

    @precondition(lambda self: len(self.ports) < 6)
    @rule(settings=PORTS, sent=st.integers(1, 8), received=st.integers(1, 8))
    def add(self, settings: PortSettings, sent: int, received: int) -> None:
        port = MemoryPort(sent, received)
        number = self.switch.add(port.handle, settings)
        self.ports[number], self.pending[number], self.into[number] = port, deque(), 0
        self.expected.add(number, settings)

    @precondition(lambda self: self.ports)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = self._pick(data)
        for each in self.ports:
            self._receive(each)
        before = self.switch.counters(number)
        last = self.switch.remove(number)
        self.expected.remove(number)
        assert last.held == last.parked == 0
        assert last.balanced
        self._compare_drops(number, last, peeked=last.into - before.into)
        for books in (self.ports, self.pending, self.into):
            del books[number]
        self.expected.drops = type(self.expected.drops)(
            {key: count for key, count in self.expected.drops.items() if key[0] != number}
        )

    @precondition(lambda self: self.ports)
    @rule(
        data=st.data(),
        destination=TARGETS,
        length=st.integers(24, 2000),
        tag=TAGS,
        which=st.integers(0, 1),
        count=st.integers(1, 5),
    )
    def send(
        self,
        *,
        data: st.DataObject,
        destination: bytes,
        length: int,
        tag: int | None,
        which: int,
        count: int,
    ) -> None:
        number = self._pick(data)
        for _ in range(count):
            self.serial += 1
            made = frame(address(number, which), destination, self.serial, length, tag)
            if self.ports[number].send(made):
                self.pending[number].append(made)

    @precondition(lambda self: self.ports)
    @rule(
        data=st.data(), junk=st.sampled_from([b"", b"\x02" * 13, b"\xff" * 20, b"\x02" + bytes(30)])
    )
    def send_junk(self, data: st.DataObject, junk: bytes) -> None:
        number = self._pick(data)
        if self.ports[number].send(junk):
            self.pending[number].append(junk)

    @rule(after_s=st.sampled_from([0.0, 0.0, 1e-6, 3.0]))
    def step(self, after_s: float) -> None:
        self.switch.step(after_s)
        self._note_taken()

    @precondition(lambda self: self.ports)
    @rule(data=st.data(), most=st.integers(1, 8))
    def receive(self, data: st.DataObject, most: int) -> None:
        number = self._pick(data)
        for _ in range(most):
            if (got := self.ports[number].receive()) is None:
                return
            self.expected.receive(number, got)

    @invariant()
    def laws_hold(self) -> None:
        if not hasattr(self, "switch"):
            return
        assert self.switch.check() is None
        for number, port in self.ports.items():
            counters = self.switch.counters(number)
            assert counters.balanced
            self._compare_drops(number, counters)
            assert "congestion" not in counters.drops
            assert port.free_heads + len(self.pending[number]) + counters.held == port.sent

    def teardown(self) -> None:
        """Whatever waits arrives as soon as all receive."""
        if not hasattr(self, "switch"):
            return
        moved = 1
        while moved:
            moved = self.switch.step()
            self._note_taken()
            for number in self.ports:
                moved += self._receive(number)
        assert self.expected.waiting() == 0
        for number, port in self.ports.items():
            assert port.free_heads == port.sent
            assert not self.pending[number]

    def _pick(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.ports)))

    def _receive(self, number: int) -> int:
        frames = self.ports[number].receive_all()
        for got in frames:
            self.expected.receive(number, got)
        return len(frames)

    def _note_taken(self) -> None:
        """Tell the model which frames were classified: ports in their order, frames in theirs."""
        for number in sorted(self.ports):
            into = self.switch.counters(number).into
            for _ in range(into - self.into[number]):
                taken = self.pending[number].popleft()
                self.expected.take(number, taken, self.switch.now_ns / 1e9)
            self.into[number] = into

    def _compare_drops(self, number: int, counters: Counters, peeked: int = 0) -> None:
        expected = {
            reason: n for (port, reason), n in self.expected.drops.items() if port == number
        }
        if peeked:
            expected["removed"] = expected.get("removed", 0) + peeked
        assert counters.drops == {reason: n for reason, n in expected.items() if n}


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=part(100), stateful_step_count=50)

pairs = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=80
)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(14, 1500)), min_size=1, max_size=100),
    st.integers(64, 4000),
    st.integers(1, 4),
)
def test_a_lossy_class_loses_for_congestion_alone_and_does_not_reorder(
    events: list[tuple[int, int]], limit: int, received: int
) -> None:
    """Three senders to one receiver, which takes a frame where the event names no sender."""
    rig = Rig(4, Settings(classes=(Class(limit_bytes=limit),) * 8), received=received)
    rig.switch.fix(3, 1, address(3))
    sent: dict[int, list[int]] = {0: [], 1: [], 2: []}
    got = []
    for source, length in events:
        if source == 3:
            got += [one for one in [rig.ports[3].receive()] if one]
        elif made := rig.send(source, 3, max(length, 24)):
            sent[source].append(serial(made))
        rig.step()
        assert rig.counters(3).waiting_bytes <= limit
        assert all(rig.ports[port].free_heads + rig.counters(port).held == 16 for port in sent)
    got += rig.drain()[3]
    for source, numbers in sent.items():
        mine = [serial(one) for one in got if one[11] == source]
        assert mine == [number for number in numbers if number in set(mine)]
        lost = {"congestion": len(numbers) - len(mine)}
        assert rig.drops(source) == {key: count for key, count in lost.items() if count}


class Both:
    """Three senders and three receivers, on Algorithm 1 and on the compiled switch."""

    def __init__(self, inputs: int, outputs: int, *, in_order: bool) -> None:
        self.oracle = LosslessSwitch([inputs] * 3, [outputs] * 3, in_order=in_order)
        self.rig = Rig(6, sent=inputs, received=outputs)
        self.from_oracle: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.from_switch: dict[tuple[int, int], list[int]] = defaultdict(list)
        for port in range(6):
            self.rig.switch.fix(port, 1, address(port))

    def send(self, packet: Packet) -> None:
        """Send on both; receivers go on until each has room."""
        made = frame(address(packet.source), address(3 + packet.destination), packet.number)
        while self.oracle.sender(packet) == "sleep":
            self.receive_all()
        while not self.rig.ports[packet.source].send(made):
            self.receive_all()

    def receive(self, k: int) -> bool:
        """Receive on both; return whether there was something."""
        packet = self.oracle.receiver(k)
        if packet != "sleep":
            self.from_oracle[packet.source, k].append(packet.number)
        self.rig.step()
        got = self.rig.ports[3 + k].receive()
        if got is not None:
            self.from_switch[got[11], k].append(serial(got))
        return packet != "sleep" or got is not None

    def receive_all(self) -> int:
        """Let each receiver receive once; return how many did."""
        return sum(self.receive(k) for k in range(3))


@given(pairs, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_algorithm_1_and_the_switch_deliver_the_same_in_the_same_order_within_each_pair(
    events: list[tuple[int, int, int]], inputs: int, outputs: int, in_order: bool
) -> None:
    """Each event is a packet, and which of the receivers, if any, receives after it."""
    both = Both(inputs, outputs, in_order=in_order)
    for number, (source, destination, receiver) in enumerate(events):
        both.send(Packet(source, destination, number))
        if receiver < 3:
            both.receive(receiver)
    while both.receive_all():
        pass
    assert both.from_switch == both.from_oracle
    assert sum(map(len, both.from_switch.values())) == len(events)


@settings(max_examples=part(30))
@given(
    st.lists(st.integers(60, 9000), min_size=2, max_size=8),
    st.integers(1, 20),
    st.integers(1, 3),
)
def test_backlogged_sources_share_in_bytes(
    lengths: list[int], received: int, sinks_per_step: int
) -> None:
    rig = Rig(len(lengths) + 1, sent=64, received=received)
    rig.know()
    taken = [0] * len(lengths)
    while min(taken) < 40 * 9000 and sum(taken) < 80 * 9000 * len(lengths):
        for source, length in enumerate(lengths):
            while rig.send(source, len(lengths), length):
                pass
        rig.switch.step()
        for _ in range(sinks_per_step):
            got = rig.ports[len(lengths)].receive()
            if got is not None:
                taken[got[11]] += len(got)
    assert jain(taken) >= 0.99


@settings(max_examples=part(60))
@given(
    st.lists(
        st.tuples(st.integers(14, 1500), st.lists(st.integers(1, 40), max_size=6), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    st.booleans(),
    st.booleans(),
    st.lists(st.lists(st.integers(128, 700), min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_frames_pass_from_guest_to_guest_however_both_cut_them(
    frames: list[tuple[int, list[int], bool]],
    mergeable: bool,
    event_index: bool,
    buffers: list[list[int]],
) -> None:
    sender = Guest(event_index=event_index)
    receiver = Guest(mergeable=mergeable, event_index=event_index)
    switch = Switch()
    for port, guest in enumerate((sender, receiver)):
        switch.add(guest.handle or 0)
        switch.fix(port, 1, address(port))
    sent, got, posted = [], [], 0
    for number, (length, pieces, indirect) in enumerate(frames):
        made = frame(address(0), address(1), number, length)[:length]
        cuts = pieces if sum(pieces) < length + 12 else []
        while not sender.send(made, cuts, indirect=indirect):
            posted = exchange(switch, (sender, receiver), buffers, posted, got)
        sent.append(made)
    while len(got) < len(sent):
        before = len(got)
        posted = exchange(switch, (sender, receiver), buffers, posted, got)
        drops = switch.counters(0).drops
        if len(got) == before and sum(drops.values()) + len(got) == len(sent):
            break
    drops = switch.counters(0).drops
    assert set(drops) <= {"too_long"}
    assert got == [one for one in sent if one in set(got)]
    assert len(got) + sum(drops.values()) == len(sent)
    assert not mergeable or not drops


def exchange(
    switch: Switch,
    guests: tuple[Guest, Guest],
    buffers: list[list[int]],
    posted: int,
    got: list[bytes],
) -> int:
    """Post all buffers that fit, step, and collect on both sides."""
    sender, receiver = guests
    while len(receiver.receive.free) >= 3:
        receiver.post(buffers[posted % len(buffers)])
        posted += 1
    switch.step()
    assert switch.check() is None
    sender.completed()
    got.extend(data for _, data in receiver.received())
    return posted

"""Guests with several pairs of rings: each flow keeps its queue and its order."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zovn_guest import Guest
from zovn_pairs import SIZE, TCP, UDP, PairedGuest, framed, packet4, packet6
from zovn_rig import address, build, frame, serial

from zovn.native.switch import MemoryPort, PortSettings, Switch

TO_GUEST = address(0) + address(1)
Flow = tuple[int, int, int, int, bool]
"""Version of IP, protocol, hosts, ports, and whether its frames have a tag."""


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Rig:
    """A guest with pairs on port 0, a peer on port 1."""

    def __init__(self, pairs: int, *, recorded: bool = False, room: int = 64) -> None:
        self.guest = PairedGuest(pairs, recorded=recorded)
        self.begin(room)

    def begin(self, room: int) -> None:
        """Make a switch with both ports."""
        self.switch, self.peer = Switch(), MemoryPort(64, room)
        tagged = PortSettings(tagged=[1])
        for port, handle in enumerate((self.guest.handle, self.peer.handle)):
            assert handle
            self.switch.add(handle, tagged)
            self.switch.fix(port, 1, address(port))

    def step(self) -> None:
        self.switch.step()
        assert self.switch.check() is None


def made(flow: Flow, number: int) -> bytes:
    version, protocol, hosts, ports, tagged = flow
    packet = (packet4 if version == 4 else packet6)(protocol, hosts, ports, number)
    return framed(TO_GUEST, packet, tagged=tagged)


FLOWS = st.lists(
    st.tuples(
        st.sampled_from([4, 6]),
        st.sampled_from([TCP, UDP]),
        st.integers(0, 255),
        st.integers(0, 65535),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
    unique=True,
)


class Flows:
    """Frames of flows to the guest: which were sent, which came, and by which queues."""

    def __init__(self, rig: Rig, flows: list[Flow]) -> None:
        self.rig, self.flows = rig, flows
        self.flow_of: dict[int, int] = {}
        self.sent: dict[int, list[int]] = defaultdict(list)
        self.came: dict[int, list[int]] = defaultdict(list)
        self.queues: dict[int, set[int]] = defaultdict(set)

    def send(self, which: int, number: int) -> None:
        """Send a frame of a flow, if there is room."""
        if self.rig.peer.send(made(self.flows[which], number)):
            self.flow_of[number] = which
            self.sent[which].append(number)

    def take(self) -> None:
        """Step, and take what came."""
        self.rig.step()
        for queue, pair in enumerate(self.rig.guest.pairs):
            for _, got in pair.received():
                number = int.from_bytes(got[-4:], "big")
                self.came[self.flow_of[number]].append(number)
                self.queues[self.flow_of[number]].add(queue)

    def take_all(self) -> None:
        """Take all that waits."""
        while self.rig.switch.counters(1).held:
            for pair in self.rig.guest.pairs:
                post(pair)
            self.take()


def post(pair: Guest) -> None:
    if pair.receive.free:
        pair.post([2048])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), FLOWS, st.data())
def test_each_flow_comes_whole_in_order_and_by_one_queue(
    pairs: int, flows: list[Flow], data: st.DataObject
) -> None:
    rig = Rig(pairs)
    seen = Flows(rig, flows)
    for number in range(data.draw(st.integers(1, 60))):
        seen.send(data.draw(st.integers(0, len(flows) - 1)), number)
        if data.draw(st.booleans()):
            post(data.draw(st.sampled_from(rig.guest.pairs)))
        seen.take()
    seen.take_all()
    assert seen.came == seen.sent
    assert all(len(used) == 1 for used in seen.queues.values())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=120))
def test_each_queue_of_a_sender_keeps_its_order_and_gets_its_heads_back(
    pairs: int, actions: Sequence[tuple[int, int]]
) -> None:
    rig = Rig(pairs)
    sent: list[list[int]] = [[] for _ in range(8)]
    came: list[int] = []
    for number, (which, taken) in enumerate(actions):
        if number == 60:
            assert rig.guest.extend()
        queue = which % len(rig.guest.pairs)
        if rig.guest.pairs[queue].send(frame(address(0), address(1), number)):
            sent[queue].append(number)
        if taken:
            rig.step()
        came += [serial(got) for got in rig.peer.receive_all()] if taken > 1 else []
    for _ in range(20):
        rig.step()
        came += [serial(got) for got in rig.peer.receive_all()]
    for queue, pair in enumerate(rig.guest.pairs):
        assert [number for number in came if number in set(sent[queue])] == sent[queue]
        pair.completed()
        assert len(pair.transmit.free) == SIZE
    assert sorted(came) == sorted(chain.from_iterable(sent))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 4), st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 12))
def test_what_was_held_of_each_queue_goes_on_after_a_kill(
    pairs: int, queues: list[int], room: int
) -> None:
    rig = Rig(pairs, recorded=True, room=room)
    sent: list[list[int]] = [[] for _ in range(pairs)]
    for number, queue in enumerate(queues):
        pair = rig.guest.pairs[queue % pairs]
        if pair.send(frame(address(0), address(1), number)):
            sent[queue % pairs].append(number)
    rig.step()
    came = [serial(got) for got in rig.peer.receive_all()]
    killed = rig.switch  # not freed: a killed process gives nothing back
    rig.guest.again()
    rig.begin(64)
    for _ in range(4):
        rig.step()
        came += [serial(got) for got in rig.peer.receive_all()]
    for each in sent:
        assert [number for number in came if number in set(each)] == each
    assert sorted(came) == sorted(chain.from_iterable(sent))
    assert killed


def queue_of(rig: Rig, *packets: bytes) -> set[int]:
    """Return the queues by which packets come."""
    for pair in rig.guest.pairs:
        while pair.receive.free:
            pair.post([2048])
    for packet in packets:
        assert rig.peer.send(framed(TO_GUEST, packet))
        rig.step()
    return {queue for queue, pair in enumerate(rig.guest.pairs) for _ in pair.received()}


@pytest.mark.parametrize("packet", [packet4, packet6])
def test_connections_spread_over_all_queues(packet: Callable[..., bytes]) -> None:
    rig = Rig(8)
    found = set()
    for ports in range(100):
        found |= queue_of(rig, packet(TCP, 1, ports, 0))
    assert found == set(range(8))


def test_fragments_have_the_queue_of_their_datagrams() -> None:
    rig = Rig(8)
    for hosts in range(20):
        whole, first, last = (packet4(UDP, hosts, 9, 0, at) for at in (0, 0x2000, 5))
        other = packet4(UDP, hosts, 10, 0)
        assert len(queue_of(rig, whole, first, last, other)) == 1


def test_a_port_takes_no_more_pairs_than_it_has_room_for() -> None:
    guest = PairedGuest(2, most=3)
    assert guest.extend()
    assert not guest.extend()

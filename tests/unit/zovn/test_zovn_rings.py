"""Split virtqueues of guests: well driven, badly driven, and changed while frames wait."""

import struct
from collections.abc import Callable, Sequence

import pytest
from zovn_guest import BASE, INDIRECT, NEXT, REGION, SECOND, WRITE, Guest
from zovn_rig import address, build, frame

from zovn.native.library import RawOffload
from zovn.native.switch import MemoryPort, Settings, Switch


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


class Pair:
    """A guest on port 0, and a memory port on port 1, which know each other."""

    def __init__(self, guest: Guest, *, sent: int = 16, received: int = 64) -> None:
        self.guest, self.peer = guest, MemoryPort(sent, received)
        self.switch = Switch(Settings())
        assert self.guest.handle
        for handle in (guest.handle, self.peer.handle):
            self.switch.add(handle)
        for port in (0, 1):
            self.switch.fix(port, 1, address(port))

    def step(self, after_s: float = 0.0) -> None:
        self.switch.step(after_s)
        assert self.switch.check() is None

    def to_peer(self, number: int = 1, length: int = 64) -> bytes:
        return frame(address(0), address(1), number, length)

    def to_guest(self, number: int = 1, length: int = 64) -> bytes:
        return frame(address(1), address(0), number, length)

    def drops(self, port: int = 0) -> dict[str, int]:
        return dict(self.switch.counters(port).drops)


# --- well driven


@pytest.mark.parametrize("header", [10, 12])
@pytest.mark.parametrize("indirect", [False, True])
@pytest.mark.parametrize("pieces", [(), (12,), (10,), (1, 2, 3), (30, 1, 1, 30), (13, 5)])
def test_a_frame_arrives_however_it_is_cut(
    header: int, indirect: bool, pieces: tuple[int, ...]
) -> None:
    guest = Guest(mergeable=header == 12, version_1=header == 12)
    pair = Pair(guest)
    for number in range(20):
        sent = pair.to_peer(number, 100)
        assert guest.send(sent, pieces, indirect=indirect)
        pair.step()
        assert pair.peer.receive_all() == [sent]
        assert len(guest.completed()) == 1


def test_an_indirect_table_may_follow_direct_descriptors() -> None:
    """2.7.5.3.2: zero or more normal descriptors, then one with a table."""
    guest = Guest()
    pair = Pair(guest)
    sent = pair.to_peer()
    data = bytes(12) + sent
    guest.write(guest.place(0), data)
    head = guest.in_table([(guest.place(0) + 20, 30), (guest.place(0) + 50, 26)], 3)
    first = guest.transmit.free.popleft()
    guest.transmit.describe(first, guest.place(0), 20, NEXT, head)
    guest.transmit.offer(first)
    pair.step()
    assert pair.peer.receive_all() == [sent]


@pytest.mark.parametrize("header", [10, 12])
@pytest.mark.parametrize("segments", [(2000,), (12, 2000), (10, 2000), (5, 5, 5, 5, 2000)])
def test_a_frame_fills_a_buffer_however_it_is_cut(header: int, segments: tuple[int, ...]) -> None:
    guest = Guest(mergeable=False, version_1=header == 12)
    pair = Pair(guest)
    for number in range(20):
        guest.post(segments)
        sent = pair.to_guest(number, 1500)
        pair.peer.send(sent)
        pair.step()
        head = bytes(10) + b"\x01\x00" if header == 12 else bytes(10)
        assert guest.received() == [(head, sent)]


def test_a_long_frame_is_merged_from_several_buffers() -> None:
    guest = Guest()
    pair = Pair(guest)
    sent = pair.to_guest(7, 3000)
    pair.peer.send(sent)
    for posted in range(4):
        pair.step()
        assert guest.received() == [], "nothing is taken before all fits"
        guest.post((400, 400) if posted % 2 else (800,))
    pair.step()
    (got,) = guest.received()
    assert got == (bytes(10) + b"\x04\x00", sent)
    assert pair.peer.free_heads == 16


def test_the_last_merged_buffer_is_partly_filled() -> None:
    guest = Guest()
    pair = Pair(guest)
    heads = [guest.post((100,)) for _ in range(2)]
    pair.peer.send(pair.to_guest(1, 120))
    pair.step()
    assert guest.receive.returned() == [(heads[0], 100), (heads[1], 32)]


def test_frames_for_a_guest_without_buffers_wait_with_their_sender() -> None:
    guest = Guest()
    pair = Pair(guest)
    for number in range(3):
        pair.peer.send(pair.to_guest(number))
    pair.step()
    assert pair.peer.free_heads == 13
    for _ in range(3):
        guest.post((200,))
    pair.step()
    assert [got for _, got in guest.received()] == [pair.to_guest(n) for n in range(3)]
    assert pair.drops(1) == {}


def test_descriptors_are_completed_out_of_order() -> None:
    slow, fast = Guest(), Guest()
    pair = Pair(slow)
    pair.switch.add(fast.handle)
    pair.switch.fix(2, 1, address(2))
    fast.post((200,))
    slow.send(frame(address(0), address(2), 1))
    slow.send(frame(address(0), address(2), 2))
    slow.send(pair.to_peer(3))
    pair.step()
    assert slow.completed() == [2, 0]
    assert pair.switch.counters(0).held == 1


def test_offloads_pass_from_guest_to_guest() -> None:
    one, other = Guest(offloads=3), Guest(offloads=3)
    pair = Pair(one)
    pair.switch.add(other.handle)
    pair.switch.fix(2, 1, address(2))
    offload = RawOffload(1, 1, 54, 1448, 34, 16)
    for _ in range(3):
        other.post((1500,))
    sent = frame(address(0), address(2), 5, 3000)
    one.send(sent, offload=offload)
    pair.step()
    assert other.received() == [(bytes(offload) + b"\x03\x00", sent)]


def test_indices_wrap_around() -> None:
    guest = Guest(size=8)
    pair = Pair(guest)
    for number in range(66000):
        guest.send(pair.to_peer(number))
        guest.post((100,))
        pair.peer.send(pair.to_guest(number))
        pair.switch.step()
        assert pair.peer.receive() is not None
        assert len(guest.received()) == len(guest.completed()) == 1
    assert pair.switch.counters(0).delivered == 66000


# --- notifications


def test_a_guest_is_notified_once_a_batch_unless_it_does_not_want_to_be() -> None:
    guest = Guest()
    pair = Pair(guest)
    for number in range(3):
        guest.send(pair.to_peer(number))
    pair.step()
    pair.step()
    assert guest.notified == [False]
    struct.pack_into("<H", guest.memory, guest.transmit.avail, 1)
    guest.send(pair.to_peer(9))
    pair.step()
    assert guest.notified == [False]


@pytest.mark.parametrize(("event", "notified"), [(0, 1), (1, 1), (2, 1), (3, 0), (65535, 0)])
def test_a_guest_is_notified_when_its_event_is_passed(event: int, notified: int) -> None:
    """2.7.7.2: the event is the index after which one is wanted; three are used."""
    guest = Guest(event_index=True)
    pair = Pair(guest)
    guest.transmit.used_event(event)
    for number in range(3):
        guest.send(pair.to_peer(number))
    pair.step()
    assert guest.notified == [False] * notified


@pytest.mark.parametrize("event_index", [False, True])
def test_a_guest_is_asked_to_notify_only_before_a_sleep(event_index: bool) -> None:
    """Of new frames, and of receive buffers behind those that are not enough for a frame."""
    guest = Guest(event_index=event_index)
    pair = Pair(guest)
    ask = pair.switch.library.zovn_ring_port_ask

    def wanted() -> list[bool]:
        rings = (guest.transmit, guest.receive)
        if event_index:
            return [ring.avail_event() == ring.avail_index for ring in rings]
        return [not guest.memory[ring.used] for ring in rings]

    assert wanted() == [False, False]
    guest.post((20,))
    pair.peer.send(pair.to_guest())
    pair.step()
    ask(guest.handle, True)
    assert wanted() == [True, True]
    ask(guest.handle, False)
    assert wanted() == [False, False]


# --- badly driven

Broken = Callable[[Guest], int]
"""Describes a frame badly, and returns its head."""


def raw(*descriptors: tuple[int, int, int, int]) -> Broken:
    """Return what writes address, length, flags and next of descriptors from 0 on."""

    def write(guest: Guest) -> int:
        for index, values in enumerate(descriptors):
            guest.transmit.describe(index, *values)
        return 0

    return write


def table(
    *descriptors: tuple[int, int, int, int], length: int | None = None, offset: int = 0
) -> Broken:
    """Return what writes an indirect table."""

    def write(guest: Guest) -> int:
        at = guest.table + offset
        for index, values in enumerate(descriptors):
            struct.pack_into("<QIHH", guest.memory, at + 16 * index, *values)
        size = 16 * len(descriptors) if length is None else length
        guest.transmit.describe(0, BASE + at, size, INDIRECT, 0)
        return 0

    return write


GOOD = BASE + 0x40000
MALFORMED = {
    "loop": raw((GOOD, 50, NEXT, 1), (GOOD, 50, NEXT, 0)),
    "itself": raw((GOOD, 50, NEXT, 0)),
    "next out of range": raw((GOOD, 50, NEXT, 16)),
    "next far out of range": raw((GOOD, 50, NEXT, 65535)),
    "below memory": raw((BASE - 1, 100, 0, 0)),
    "address 0": raw((0, 100, 0, 0)),
    "above memory": raw((SECOND + REGION, 100, 0, 0)),
    "crosses a region's end": raw((BASE + REGION - 50, 100, 0, 0)),
    "in the gap": raw((BASE + REGION, 100, 0, 0)),
    "wraps around": raw((2**64 - 10, 100, 0, 0)),
    "length wraps around": raw((GOOD, 2**32 - 1, 0, 0)),
    "empty": raw((GOOD, 0, 0, 0)),
    "empty in the chain": raw((GOOD, 0, NEXT, 1), (GOOD, 100, 0, 0)),
    "to be written": raw((GOOD, 100, WRITE, 0)),
    "to be written at its end": raw((GOOD, 100, NEXT, 1), (GOOD, 1, WRITE, 0)),
    "header alone": raw((GOOD, 12, 0, 0)),
    "shorter than Ethernet": raw((GOOD, 12 + 13, 0, 0)),
    "shorter than its header": raw((GOOD, 3, 0, 0)),
    "table of no length": table(length=0),
    "table of half a descriptor": table((GOOD, 100, 0, 0), length=24),
    "table outside memory": raw((0, 16, INDIRECT, 0)),
    "table of all memory": raw((BASE, 2**32 - 16, INDIRECT, 0)),
    "table that is odd": table((GOOD, 100, 0, 0), offset=1),
    "table in a table": table((BASE + 0x20000, 16, INDIRECT, 0)),
    "table and next": raw((BASE + 0x20000, 16, INDIRECT | NEXT, 1), (GOOD, 100, 0, 0)),
    "table that loops": table((GOOD, 9, NEXT, 0)),
    "table with next out of it": table((GOOD, 100, NEXT, 1)),
    "table to be written": table((GOOD, 100, WRITE, 0)),
    "65 segments": table(*[(GOOD, 9, NEXT, i + 1) for i in range(64)], (GOOD, 9, 0, 0)),
}


@pytest.mark.parametrize("broken", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_frame_is_dropped_its_descriptor_returned_and_the_next_one_passes(
    broken: Broken,
) -> None:
    guest = Guest()
    pair = Pair(guest)
    guest.write(GOOD, bytes(12) + pair.to_peer())
    guest.transmit.offer(broken(guest))
    pair.step()
    assert pair.drops() == {"malformed": 1}
    assert guest.transmit.returned() == [(0, 0)]
    assert pair.switch.fault(0) == "sound"
    guest.transmit.free.remove(0)
    sent = pair.to_peer(5)
    guest.send(sent)
    pair.step()
    assert pair.peer.receive_all() == [sent]


def test_a_frame_may_end_where_a_region_ends() -> None:
    guest = Guest()
    pair = Pair(guest)
    guest.write(BASE + REGION - 76, bytes(12) + pair.to_peer())
    guest.transmit.offer(raw((BASE + REGION - 76, 76, 0, 0))(guest))
    pair.step()
    assert pair.peer.receive_all() == [pair.to_peer()]


def test_64_segments_pass() -> None:
    guest = Guest()
    pair = Pair(guest)
    guest.write(GOOD, bytes(12) + pair.to_peer(1, 64))
    cuts = [(GOOD + i, 1, NEXT, i + 1) for i in range(63)]
    guest.transmit.offer(table(*cuts, (GOOD + 63, 13, 0, 0))(guest))
    pair.step()
    assert pair.peer.receive_all() == [pair.to_peer(1, 64)]


def test_a_table_that_was_not_negotiated_is_malformed() -> None:
    guest = Guest(indirect=False)
    pair = Pair(guest)
    guest.send(pair.to_peer(), indirect=True)
    pair.step()
    assert pair.drops() == {"malformed": 1}


def test_a_frame_longer_than_any_is_dropped_as_too_long() -> None:
    guest = Guest()
    pair = Pair(guest)
    guest.transmit.offer(raw((SECOND, 12 + 65535 + 19, 0, 0))(guest))
    pair.step()
    assert pair.drops() == {"too_long": 1}


Fault = Callable[[Guest], None]
FAULTS: dict[str, tuple[str, Fault, dict[str, int]]] = {
    "head out of range": ("head_range", lambda guest: guest.transmit.offer(16), {}),
    "head far out of range": ("head_range", lambda guest: guest.transmit.offer(65535), {}),
    "jump": ("avail_jump", lambda guest: guest.transmit.offer(0, jump=17), {}),
    "backwards": ("avail_jump", lambda guest: guest.transmit.offer(0, jump=65535), {}),
    "a receive head out of range": (
        "head_range",
        lambda guest: guest.receive.offer(16),
        {"stopped": 1},
    ),
    "jump of the receive ring": (
        "avail_jump",
        lambda guest: guest.receive.offer(0, jump=17),
        {"stopped": 1},
    ),
}


@pytest.mark.parametrize(("fault", "does", "drops"), FAULTS.values(), ids=FAULTS)
def test_a_ring_that_breaks_the_protocol_stops_its_port_alone(
    fault: str, does: Fault, drops: dict[str, int]
) -> None:
    """What waits for it then is dropped; what comes later is flooded, as to an unknown address."""
    guest = Guest()
    pair = Pair(guest)
    other = MemoryPort()
    pair.switch.add(other.handle)
    pair.switch.fix(2, 1, address(2))
    does(guest)
    pair.peer.send(pair.to_guest())
    pair.step()
    assert pair.switch.fault(0) == fault
    assert pair.drops(1) == drops
    guest.post((200,))
    sent = frame(address(1), address(2))
    pair.peer.send(sent)
    pair.peer.send(pair.to_guest())
    pair.step()
    assert sent in other.receive_all()
    assert guest.receive.returned() == []
    assert pair.peer.free_heads == 16


def test_a_head_that_is_offered_twice_stops_the_port() -> None:
    guest = Guest()
    pair = Pair(guest, received=1)
    for number in range(2):
        guest.send(pair.to_peer(number))
    pair.step()
    guest.transmit.offer(1)
    pair.step()
    assert pair.switch.fault(0) == "head_twice"
    counters = pair.switch.counters(0)
    assert (counters.held, counters.balanced) == (0, True)
    assert counters.drops == {"stopped": 2}


def test_a_head_is_offered_again_after_it_came_back() -> None:
    guest = Guest(size=2)
    pair = Pair(guest)
    for number in range(5):
        guest.send(pair.to_peer(number))
        pair.step()
        guest.completed()
    assert pair.switch.fault(0) == "sound"


# --- badly posted receive buffers


@pytest.mark.parametrize(
    "bad",
    [(0, 100, WRITE, 0), (SECOND, 100, 0, 0), (SECOND, 0, WRITE, 0), (SECOND, 11, WRITE, 0)],
    ids=["outside", "readable", "empty", "shorter than a header"],
)
@pytest.mark.parametrize("before", [0, 1])
def test_a_bad_receive_buffer_goes_back_empty_and_the_next_ones_are_used(
    bad: tuple[int, int, int, int], before: int
) -> None:
    guest = Guest()
    pair = Pair(guest)
    for _ in range(before):
        guest.post((100,))
    head = guest.receive.free.popleft()
    guest.receive.describe(head, *bad)
    guest.receive.offer(head)
    guest.post((3000,))
    pair.peer.send(pair.to_guest(1, 500))
    pair.step()
    returned = guest.receive.returned()
    assert [length for _, length in returned] == [0] * (before + 1) + [512]
    assert pair.switch.library.zovn_ring_port_bad_buffers(guest.handle) == before + 1
    assert pair.drops(1) == {}


def test_a_step_tries_only_some_bad_receive_buffers() -> None:
    """The guest offers each of them again as soon as it has it back."""
    guest = Guest(size=64)
    pair = Pair(guest)

    def offer(head: int) -> None:
        guest.receive.describe(head, SECOND, 100, 0, 0)
        guest.receive.offer(head)

    for _ in range(63):
        offer(guest.receive.free.popleft())
    for number in (1, 2):
        pair.peer.send(pair.to_guest(number))
    for steps in range(1, 21):
        pair.step()
        assert pair.switch.library.zovn_ring_port_bad_buffers(guest.handle) == 8 * steps
        returned = guest.receive.returned()
        assert [length for _, length in returned] == [0] * 8
        for head, _ in returned:
            offer(head)
    guest.post((100,))
    for _ in range(8):
        pair.step()
    assert [length for _, length in guest.receive.returned()] == [0] * 63 + [12 + 64]
    assert pair.switch.fault(0) == "sound"


def test_a_frame_that_fits_no_buffer_is_dropped_as_too_long() -> None:
    guest = Guest(mergeable=False)
    pair = Pair(guest)
    guest.post((100,))
    pair.peer.send(pair.to_guest(1, 500))
    pair.peer.send(pair.to_guest(2, 80))
    pair.step()
    assert pair.drops(1) == {"too_long": 1}
    assert [got for _, got in guest.received()] == [pair.to_guest(2, 80)]


def test_a_frame_that_all_buffers_do_not_hold_is_dropped_as_too_long() -> None:
    guest = Guest(size=4)
    pair = Pair(guest)
    for _ in range(4):
        guest.post((100,))
    pair.peer.send(pair.to_guest(1, 500))
    pair.step()
    assert pair.drops(1) == {"too_long": 1}


# --- what changes while a frame waits


def waiting(guest: Guest, pair: Pair, pieces: Sequence[int] = ()) -> None:
    """Let a frame of the guest wait for room, behind one that is there."""
    for number in (1, 2):
        guest.send(pair.to_peer(number), pieces)
    pair.step()
    assert pair.switch.counters(0).held == 1


def test_a_frame_that_changes_its_length_is_dropped() -> None:
    guest = Guest()
    pair = Pair(guest, received=1)
    waiting(guest, pair, [40])
    guest.transmit.describe(3, guest.place(2) + 40, 20, 0, 0)
    pair.peer.receive_all()
    pair.step()
    assert pair.drops() == {"malformed": 1}


def test_a_chain_that_becomes_malformed_is_dropped() -> None:
    guest = Guest()
    pair = Pair(guest, received=1)
    waiting(guest, pair, [40])
    guest.transmit.describe(3, guest.place(2) + 40, 36, NEXT, 3)
    pair.peer.receive_all()
    pair.step()
    assert pair.drops() == {"malformed": 1}
    assert [head for head, _ in guest.transmit.returned()] == [0, 2]


@pytest.mark.parametrize(("length", "flags"), [(40, 0), (76, NEXT), (0, WRITE)])
def test_a_frame_in_one_piece_is_found_once(length: int, flags: int) -> None:
    guest = Guest()
    pair = Pair(guest, received=1)
    waiting(guest, pair)
    guest.transmit.describe(1, guest.place(1), length, flags, 1)
    pair.peer.receive_all()
    pair.step()
    assert pair.peer.receive_all() == [pair.to_peer(2)]
    assert pair.drops() == {}


def test_the_header_that_was_classified_is_the_one_that_is_delivered() -> None:
    guest = Guest()
    pair = Pair(guest, received=1)
    waiting(guest, pair)
    changed = b"\xee" * 18 + pair.to_peer(2)[18:40] + b"\xdd" * 24
    guest.write(guest.place(1), b"\xff" * 12 + changed)
    pair.peer.receive_all()
    pair.step()
    got = pair.peer.receive_with_offload()
    assert got is not None
    assert got[0] == pair.to_peer(2)[:40] + b"\xdd" * 24
    assert got[1].flags == 0


# --- rings that are refused


@pytest.mark.parametrize(
    ("size", "shift"), [(0, 0), (3, 0), (65536, 0), (16, 1)], ids=["0", "3", "65536", "odd"]
)
def test_a_ring_of_another_size_or_place_is_refused(size: int, shift: int) -> None:
    guest = Guest()
    assert guest.port(), "as it is, it is accepted"
    guest.transmit.size = size
    guest.transmit.avail += shift
    assert not guest.port()

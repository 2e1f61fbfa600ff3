"""What senders leave unfinished arrives as packets that were built from scratch."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import part
from zovn_guest import Guest
from zovn_packets import ACK, CWR, FIN, PSH, TCP, UDP, Packet, total
from zovn_rig import BROADCAST, Rig, address, build, jain

from zovn.native.library import RawOffload
from zovn.native.switch import Class, Offload, PortSettings, Settings, Switch

CHECKSUM, TCP4, TCP6, SEGMENTS, ECN, ALL = 1, 2, 4, 16, 32, 63
BYTES = bytes(range(251)) * 100
PACKETS = st.builds(
    Packet,
    payload=st.one_of(st.binary(max_size=40), st.integers(0, 9000).map(lambda n: BYTES[:n])),
    version=st.sampled_from([4, 6]),
    protocol=st.sampled_from([TCP, UDP]),
    more=st.sampled_from([b"", b"", b"\x01" * 8, b"\x01" * 40]),
    tcp_more=st.sampled_from([b"", b"\x01" * 12, b"\x01" * 40]),
    sequence=st.sampled_from([0, 1, 65530, 2**31, 2**32 - 5]),
    flags=st.sampled_from([ACK, ACK | PSH, ACK | FIN | PSH, ACK | CWR | PSH]),
    identification=st.sampled_from([0, 1, 0xFFFE]),
    header=st.just(address(1) + address(0)),
)
SIZES = st.one_of(st.integers(1, 20), st.integers(500, 10000))


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def pair(takes: int = 0, *, received: int = 64, settings: Settings | None = None) -> Rig:
    """Return a switch with a sender on port 0 that leaves all, and a receiver on port 1."""
    return ready(Rig(2, settings, received=received), takes)


def ready(rig: Rig, takes: int) -> Rig:
    """Let senders leave all, and the last port take these offloads."""
    last = len(rig.ports) - 1
    for number, port in rig.ports.items():
        port.offer(ALL, takes if number == last else 0)
        rig.switch.fix(number, 1, address(number))
    return rig


def finished(packet: Packet, size: int) -> list[bytes]:
    """Return the frames of a packet's segments."""
    return [each.finished() for each in packet.segments(size)]


@given(PACKETS)
def test_a_checksum_is_that_of_the_packet(packet: Packet) -> None:
    rig = pair()
    rig.ports[0].send(packet.unfinished(), packet.offload())
    rig.settle()
    assert rig.ports[1].receive_with_offload() == (packet.finished(), Offload())
    assert rig.drops(0) == {}
    assert rig.counters(1).finished == 1


@given(PACKETS, SIZES, st.sampled_from([0, CHECKSUM, ALL & ~ECN, ALL & ~CHECKSUM]))
def test_segments_are_packets_of_their_own(packet: Packet, size: int, takes: int) -> None:
    rig = pair(takes)
    rig.ports[0].send(packet.unfinished(), packet.offload(size, ecn=packet.protocol == TCP))
    if packet.protocol == UDP and takes & CHECKSUM and takes & SEGMENTS:
        assert rig.drain()[1] == [packet.unfinished()]
        return
    got = rig.drain()[1]
    assert got == finished(packet, size)
    assert (
        b"".join(
            one[-n:] if (n := len(p.payload)) else b""
            for one, p in zip(got, packet.segments(size), strict=True)
        )
        == packet.payload
    )
    assert rig.counters(0).delivered == 1
    assert rig.counters(1).finished == len(got)
    assert (rig.counters(1).out, rig.counters(1).out_bytes) == (len(got), sum(map(len, got)))


@given(PACKETS, SIZES)
def test_what_the_receiver_takes_passes_as_it_is(packet: Packet, size: int) -> None:
    rig = pair(ALL)
    offload = packet.offload(size)
    rig.ports[0].send(packet.unfinished(), offload)
    rig.settle()
    assert rig.ports[1].receive_with_offload() == (packet.unfinished(), offload)
    assert rig.counters(1).finished == 0


@settings(max_examples=part(50))
@given(
    st.lists(st.tuples(PACKETS, st.integers(200, 3000), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 5),
    st.lists(st.integers(0, 3), max_size=30),
)
def test_a_receiver_that_stops_in_the_middle_gets_the_rest_later(
    packets: list[tuple[Packet, int, bool]], received: int, takes: list[int]
) -> None:
    rig = pair(received=received)
    expected, got = [], []
    for packet, size, cut in packets:
        rig.ports[0].send(packet.unfinished(), packet.offload(size if cut else 0))
        expected += finished(packet, size) if cut else [packet.finished()]
    for most in takes:
        rig.step()
        got += [one for one in (rig.ports[1].receive() for _ in range(most)) if one]
        held = rig.counters(0).held
        assert rig.ports[0].free_heads == 16 - held
    got += rig.drain()[1]
    assert got == expected
    assert rig.ports[0].free_heads == 16


@settings(max_examples=part(50))
@given(PACKETS, st.integers(200, 3000), st.integers(1, 3), st.integers(1, 4))
def test_each_receiver_of_a_flood_has_progress_of_its_own(
    packet: Packet, size: int, first: int, second: int
) -> None:
    """Ports 1 and 2 receive at different times; port 3 takes it whole."""
    rig = ready(Rig(4, received=2), ALL)
    flood = replace(packet, header=BROADCAST + address(0))
    rig.ports[0].send(flood.unfinished(), flood.offload(size))
    got: dict[int, list[bytes]] = {1: [], 2: []}
    for _ in range(first * second):
        rig.step()
        for port, most in ((1, first), (2, second)):
            got[port] += [one for one in (rig.ports[port].receive() for _ in range(most)) if one]
    rest = rig.drain()
    assert [got[port] + rest[port] for port in (1, 2)] == [finished(flood, size)] * 2
    assert rest[3] == [flood.unfinished()] or not rest[3]
    assert rig.counters(0).delivered == 3
    assert rig.counters(0).parked == 0


@settings(max_examples=part(50))
@given(
    PACKETS,
    st.integers(200, 4000),
    st.lists(st.integers(1, 900), max_size=6),
    st.lists(st.integers(160, 4000), min_size=1, max_size=3),
)
def test_guests_may_cut_frames_and_buffers_as_they_like(
    packet: Packet, size: int, pieces: Sequence[int], buffers: Sequence[int]
) -> None:
    packet = replace(packet, payload=packet.payload[:7000])
    sender, receiver = Guest(offloads=ALL), Guest(size=32)
    switch = Switch()
    for port, guest in enumerate((sender, receiver)):
        switch.add(guest.handle or 0)
        switch.fix(port, 1, address(port))
    whole = packet.unfinished()
    cuts = pieces if sum(pieces) < len(whole) else []
    sender.send(whole, cuts, offload=RawOffload(*vars(packet.offload(size)).values()))
    got: list[tuple[bytes, bytes]] = []
    while not sender.completed():
        while len(receiver.receive.free) >= len(buffers):
            receiver.post(buffers)
        switch.step()
        assert switch.check() is None
        got += receiver.received()
    assert [data for _, data in got] == finished(packet, size)
    assert all(head[:10] == bytes(10) for head, _ in got)


@settings(max_examples=part(30))
@given(st.integers(2, 60), st.integers(100, 1400), st.integers(60, 1500), st.integers(1, 9))
def test_segments_count_in_the_shares_as_what_they_are(
    number: int, size: int, length: int, received: int
) -> None:
    """Port 0 sends frames of many segments, port 1 frames of one."""
    rig = ready(Rig(3, sent=64, received=received), 0)
    header = address(2) + address(0)
    packet = Packet(BYTES[: min(number * size, 20000)], header=header)
    taken = [0, 0]
    while min(taken) < 200_000 and sum(taken) < 2_000_000:
        while rig.ports[0].send(packet.unfinished(), packet.offload(size)):
            pass
        while rig.send(1, 2, length):
            pass
        rig.switch.step()
        if got := rig.ports[2].receive():
            taken[got[11]] += len(got)
    assert jain(taken) >= 0.99


@given(PACKETS, SIZES, st.sampled_from([0x01, 0x02, 0xB9]))
def test_segments_are_marked_and_tagged_as_other_frames(
    packet: Packet, size: int, traffic: int
) -> None:
    marking = Settings(classes=(Class(mark_bytes=1),) * 8)
    trunk = PortSettings(tagged=(1,), vlan=9, trust="priority")
    rig = ready(Rig([PortSettings(), trunk], marking, received=16384), 0)
    rig.ports[0].send(replace(packet, traffic=traffic).unfinished(), packet.offload(size))
    marked = replace(packet, traffic=traffic | 3, header=packet.header + b"\x81\x00\x00\x01")
    assert rig.drain()[1] == finished(marked, size)


@given(PACKETS, SIZES)
def test_tagged_frames_are_cut_behind_their_tag(packet: Packet, size: int) -> None:
    rig = ready(Rig([PortSettings(tagged=(1,), vlan=9), PortSettings()], received=16384), 0)
    tagged = replace(packet, header=packet.header + b"\x81\x00\x00\x01")
    rig.ports[0].send(tagged.unfinished(), tagged.offload(size))
    assert rig.drain()[1] == finished(packet, size)


HOSTILE = st.builds(
    Offload,
    flags=st.integers(0, 3),
    kind=st.sampled_from([0, 0, 1, 3, 4, 5, 0x81, 0x84, 2, 7, 0xFF]),
    header_bytes=st.integers(0, 65535),
    segment_bytes=st.one_of(st.integers(0, 40), st.integers(0, 65535)),
    checksum_start=st.one_of(st.integers(10, 80), st.integers(0, 65535)),
    checksum_offset=st.one_of(st.sampled_from([6, 16]), st.integers(0, 300), st.just(65535)),
)


@given(PACKETS, HOSTILE, st.lists(st.tuples(st.integers(12, 90), st.integers(0, 255)), max_size=4))
def test_a_hostile_header_is_refused_or_harms_its_own_frame_only(
    packet: Packet, offload: Offload, changes: list[tuple[int, int]]
) -> None:
    rig = pair(received=16384)
    frame = bytearray(packet.unfinished())
    for at, value in changes:
        if at < len(frame):
            frame[at] = value
    rig.ports[0].send(bytes(frame), offload)
    got = rig.drain()[1]
    rig.ports[0].send(packet.unfinished(), packet.offload())
    assert rig.drain()[1] == [packet.finished()]
    assert set(rig.drops(0)) <= {"malformed", "offload", "vlan"}
    assert bool(got) != bool(rig.drops(0))
    if got and offload.flags & 1 and not offload.kind & 0x7F:
        (one,) = got
        at = offload.checksum_start + offload.checksum_offset
        left = int.from_bytes(frame[at : at + 2], "big")
        assert total(one[offload.checksum_start :], left) == 0xFFFF
        assert one[:at] + one[at + 2 :] == bytes(frame[:at] + frame[at + 2 :])


def test_a_frame_that_changes_while_it_is_cut_is_dropped() -> None:
    """A descriptor is short when the switch comes back to it for the second segment."""
    sender, receiver = Guest(offloads=ALL), Guest()
    switch = Switch()
    for port, guest in enumerate((sender, receiver)):
        switch.add(guest.handle or 0)
        switch.fix(port, 1, address(port))
    packet = Packet(BYTES[:3000], header=address(1) + address(0))
    offload = RawOffload(*vars(packet.offload(1000)).values())
    sender.send(packet.unfinished(), [100], offload=offload)
    receiver.post((2000,))
    switch.step()
    sender.transmit.describe(1, sender.place(0) + 100, 100, 0, 0)
    receiver.post((2000,))
    switch.step()
    assert [data for _, data in receiver.received()] == finished(packet, 1000)[:1]
    assert switch.counters(0).drops == {"malformed": 1}
    assert switch.check() is None


def test_a_receiver_that_stalls_in_the_middle_loses_the_frame_once() -> None:
    rig = pair(received=2)
    packet = Packet(BYTES[:5000], header=address(1) + address(0))
    rig.ports[0].send(packet.unfinished(), packet.offload(1000))
    rig.step()
    rig.step(after_s=2.0)
    rig.step(after_s=2.0)
    assert rig.drops(0) == {"stalled": 1}
    assert rig.drain()[1] == finished(packet, 1000)[:2]
    rig.ports[0].send(packet.unfinished(), packet.offload(1000))
    assert rig.drain()[1] == finished(packet, 1000)


def test_a_checksum_of_zero_is_sent_as_all_ones() -> None:
    header = address(1) + address(0)
    odd = Packet(b"\0\0", protocol=UDP, header=header)
    fill = total(odd.transport(0), odd.pseudo()) ^ 0xFFFF
    packet = replace(odd, payload=fill.to_bytes(2, "big"))
    rig = pair()
    for offload in (packet.offload(), packet.offload(500)):
        rig.ports[0].send(packet.unfinished(), offload)
        (got,) = rig.drain()[1]
        assert got == packet.finished()
        assert got[packet.transport_at + 6 :][:2] == b"\xff\xff"


def test_a_frame_that_no_buffer_can_hold_is_cut_though_its_receiver_takes_it_whole() -> None:
    """Sixteen buffers of 1,500 bytes are all that there will ever be."""
    sender, receiver = Guest(offloads=ALL), Guest(offloads=ALL)
    switch = Switch()
    for port, guest in enumerate((sender, receiver)):
        switch.add(guest.handle or 0)
        switch.fix(port, 1, address(port))
    header = address(1) + address(0)
    for packet, fits in (
        (Packet(BYTES[:4000], header=header), True),
        (Packet(BYTES, header=header), False),
    ):
        whole = packet.unfinished()
        for _ in range(len(receiver.receive.free)):
            receiver.post((1500,))
        sender.send(whole, offload=RawOffload(*vars(packet.offload(1000)).values()))
        got = [data for _, data in collected(switch, sender, receiver)]
        assert got == ([whole] if fits else finished(packet, 1000))
    assert switch.counters(0).drops == {}


def collected(switch: Switch, sender: Guest, receiver: Guest) -> list[tuple[bytes, bytes]]:
    """Step until the sender has its frame back; keep all buffers posted."""
    got: list[tuple[bytes, bytes]] = []
    while not sender.completed():
        switch.step()
        assert switch.check() is None
        got += receiver.received()
        for _ in range(len(receiver.receive.free)):
            receiver.post((1500,))
    return got


def test_a_step_moves_so_many_segments_however_small_they_are() -> None:
    """Port 1 is never full, and gets segments of one byte; port 3 has its frames in time."""
    rig = ready(Rig(4, received=4096), 0)
    packet = Packet(BYTES[:20_000], header=address(1) + address(0))
    for _ in range(16):
        assert rig.ports[0].send(packet.unfinished(), packet.offload(1))
    got: list[bytes] = []
    for steps in range(1, 6):
        sent = rig.send(2, 3)
        assert rig.step() > 0, "the switch does not rest before all is moved"
        got += rig.ports[1].receive_all()
        assert len(got) == rig.counters(1).out == 256 * steps
        assert rig.ports[3].receive_all() == [sent]
    assert got == [each.finished() for each in islice(packet.segments(1), len(got))]
    assert rig.counters(1).blocked_ns == 0
    assert rig.drops(0) == {}


def test_ports_of_which_each_frame_is_a_system_call_share_a_bound_by_turns() -> None:
    """Ports 1 to 6 are such, and get segments of one byte; port 8 has its frames in time."""
    rig = ready(Rig(9, received=4096), 0)
    costly = range(1, 7)
    for port in costly:
        rig.ports[port].cost()
        packet = Packet(BYTES[:5000], header=address(port) + address(0))
        assert rig.ports[0].send(packet.unfinished(), packet.offload(1))
    for steps in range(1, 41):
        sent = rig.send(7, 8)
        assert rig.step() > 0, "the switch does not rest before all is moved"
        assert rig.ports[8].receive_all() == [sent]
        came = [rig.counters(port).out for port in costly]
        assert sum(came) == 512 * steps
        assert max(came) - min(came) <= 512
        for port in costly:
            rig.ports[port].receive_all()
    rig.drain()
    assert [rig.counters(port).out for port in costly] == [5000] * 6


def between_guests(receiver: Guest) -> tuple[Switch, Guest]:
    """Return a switch with a sender that leaves all on port 0, and a receiver on port 1."""
    sender, switch = Guest(offloads=ALL), Switch()
    for port, guest in enumerate((sender, receiver)):
        switch.add(guest.handle or 0)
        switch.fix(port, 1, address(port))
    return switch, sender


def leave(sender: Guest, packet: Packet, size: int) -> bool:
    """Send a packet for segments of a size, if there is room."""
    return sender.send(
        packet.unfinished(), offload=RawOffload(*vars(packet.offload(size)).values())
    )


def test_a_frame_of_which_a_segment_finds_no_buffer_is_charged_as_segments() -> None:
    """Two went out, and the third one meets a buffer that is too short. The check knows credits."""
    receiver = Guest(mergeable=False, offloads=ALL)
    switch, sender = between_guests(receiver)
    packet = Packet(BYTES[:7000], header=address(1) + address(0))
    for length in (2500, 2500, 1500):
        receiver.post((length,))
    assert leave(sender, packet, 2000)
    switch.step()
    assert switch.check() is None
    assert [data for _, data in receiver.received()] == finished(packet, 2000)[:2]
    assert switch.counters(0).drops == {"too_long": 1}


@settings(max_examples=part(50))
@given(
    st.lists(st.integers(100, 4000), min_size=1, max_size=6),
    st.lists(st.integers(200, 3000), min_size=1, max_size=4),
    st.booleans(),
)
def test_credits_hold_whatever_buffers_a_receiver_has(
    buffers: Sequence[int], sizes: Sequence[int], mergeable: bool
) -> None:
    receiver = Guest(mergeable=mergeable, offloads=ALL)
    switch, sender = between_guests(receiver)
    packet = Packet(BYTES[:7000], header=address(1) + address(0))
    posted = 0
    for number in range(40):
        leave(sender, packet, sizes[number % len(sizes)])
        for _ in range(min(number % 4, len(receiver.receive.free))):
            receiver.post((buffers[posted % len(buffers)],))
            posted += 1
        switch.step()
        assert switch.check() is None
        receiver.received()
        sender.completed()
    assert set(switch.counters(0).drops) <= {"too_long"}

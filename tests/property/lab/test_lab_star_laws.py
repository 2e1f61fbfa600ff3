"""The star's laws: what comes in goes out in order or is counted, and pauses come in time."""

import ctypes
from collections import Counter, defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_rig import NS, Host, Pfc, Star, address, frame, library, paused, pfc_frame, play

from lab.traffic.star import CLASSES, Buffers, headroom, lossless

RATE = 1_000_000_000
LENGTHS = st.integers(60, 1_518)
CLASS = st.integers(0, CLASSES - 1)
QUANTA = st.lists(st.integers(0, 0xFFFF), min_size=CLASSES, max_size=CLASSES)
FRAMES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), CLASS, LENGTHS), max_size=120)
"""From, to (3 is no port), class, length."""


@given(QUANTA, st.integers(0, 0xFF))
def test_a_pfc_frame_is_written_and_read_as_in_the_standard(quanta: list[int], vector: int) -> None:
    expected = pfc_frame(quanta, vector)
    made = ctypes.create_string_buffer(60)
    library().pfc_write(ctypes.byref(Pfc(vector, tuple(quanta))), address(0xFF), made)
    assert made.raw == expected
    found = Pfc()
    assert library().pfc_read(expected, ctypes.c_size_t(60), ctypes.byref(found))
    assert (found.vector, list(found.quanta)) == (vector, quanta)


@given(st.binary(max_size=80))
def test_other_frames_are_no_pfc_and_have_a_class(data: bytes) -> None:
    found = Pfc()
    length = ctypes.c_size_t(len(data))
    is_pfc = data[12:16] == bytes.fromhex("88080101") and len(data) >= 34
    assert library().pfc_read(data, length, ctypes.byref(found)) == is_pfc
    tagged = len(data) >= 16 and data[12:14] in (b"\x81\x00", b"\x88\xa8")
    assert library().class_of(data, length) == (data[14] >> 5 if tagged else 0)


@given(FRAMES, st.integers(1_600, 20_000), st.sets(CLASS), st.integers(0, 100_000))
def test_each_frame_goes_out_once_and_in_order_or_is_counted(
    frames: list[tuple[int, int, int, int]], room: int, classes: set[int], delay_ns: int
) -> None:
    star = Star([RATE] * 3, Buffers(room, sorted(classes), room // 2, 0), delay_ns=delay_ns)
    for number, (of, to, priority, length) in enumerate(frames):
        star.arrive(of, frame(to, of, number, priority, length), 1 + number)
    held = sum(star.held_bytes(port) for port in range(3))
    assert held == 0, "the delay is not over, or nothing was done"
    delivered = [(port, data) for port, data in play(star, []) if paused(data) is None]
    last: dict[object, int] = defaultdict(lambda: -1)
    for port, data in delivered:
        number = int.from_bytes(data[18:22])
        of, to, priority, length = frames[number]
        assert data == frame(to, of, number, priority, length)
        assert (port, number > last[of, to, priority]) == (to, True)
        last[of, to, priority] = number
    lost = star.total("dropped") + star.total("overflowed") + star.total("unknown")
    assert len(frames) == len(delivered) + lost == star.total("packets_in")
    assert star.total("unknown") == sum(to in (3, of) for of, to, _, _ in frames)
    dropped = [star.counts(port).dropped[each] for port in range(3) for each in classes]
    assert not any(dropped)


@given(st.integers(2, 5), CLASS, st.booleans())
def test_a_frame_to_all_goes_to_all_others(ports: int, priority: int, lossless_class: bool) -> None:
    star = Star([RATE] * ports, Buffers(3_000, [priority] if lossless_class else []))
    data = b"\xff" * 6 + frame(0, 1, 7, priority, 600)[6:]
    star.arrive(1, data, 1)
    others = [port for port in range(ports) if port != 1]
    assert sorted(play(star, [])) == [(port, data) for port in others]
    assert (star.counts(1).floods, star.counts(1).copies) == (1, ports - 1)


@pytest.mark.parametrize("last", [0x00, 0x01, 0x0E])
def test_frames_for_the_neighbour_are_not_forwarded(last: int) -> None:
    star = Star([RATE] * 3, Buffers(3_000))
    star.arrive(1, bytes.fromhex("0180c20000") + bytes([last]) + bytes(60), 1)
    assert not play(star, [])
    assert star.counts(1).unknown == 1


def burst(to: int, of: int, lengths: list[int], priority: int = 0) -> list[bytes]:
    return [frame(to, of, number, priority, length) for number, length in enumerate(lengths)]


@dataclass(frozen=True)
class Incast:
    """What all hosts send to one that takes it slowly."""

    sent: list[list[int]]
    slow_bps: int
    delay_ns: int
    reaction_ns: int
    xoff: int
    quanta: int

    def buffers(self) -> Buffers:
        late = headroom(RATE, self.delay_ns / NS, reaction_s=self.reaction_ns / NS)
        room = lossless(self.xoff + 1 + late, late)
        return Buffers(room.bytes, room.lossless, room.xoff_bytes, self.xoff // 3, self.quanta)


INCASTS = st.builds(
    Incast,
    sent=st.lists(st.lists(LENGTHS, min_size=1, max_size=40), min_size=2, max_size=4),
    slow_bps=st.integers(50_000_000, RATE),
    delay_ns=st.integers(0, 50_000),
    reaction_ns=st.integers(0, 100_000),
    xoff=st.integers(0, 20_000),
    quanta=st.integers(20, 0xFFFF),
)


@given(INCASTS)
def test_hosts_that_obey_lose_nothing(incast: Incast) -> None:
    """Any incast, and any XOFF: the headroom is enough, also where pauses are short."""
    star = Star(
        [incast.slow_bps] + [RATE] * len(incast.sent), incast.buffers(), delay_ns=incast.delay_ns
    )
    hosts = [
        Host(port, RATE, burst(0, port, lengths), reaction_ns=incast.reaction_ns)
        for port, lengths in enumerate(incast.sent, start=1)
    ]
    delivered = play(star, hosts)
    assert len(delivered) == sum(map(len, incast.sent))
    assert star.total("overflowed") == star.total("dropped") == 0
    assert star.total("xoff_sent") >= star.total("xon_sent")


@given(st.integers(2, 4), st.integers(100_000_000, RATE))
def test_hosts_that_do_not_obey_lose(senders: int, slow: int) -> None:
    late = headroom(RATE, 0)
    star = Star([slow] + [RATE] * senders, lossless(2 * late, late))
    hosts = [Host(n, RATE, burst(0, n, [1_000] * 60), obeys=False) for n in range(1, senders + 1)]
    assert len(play(star, hosts)) + star.total("overflowed") == 60 * senders
    assert star.total("overflowed") > 0


@given(st.integers(1, 0xFFFF), st.integers(0, 200), CLASS)
def test_an_output_obeys_pauses_by_class(quanta: int, repeats: int, stopped: int) -> None:
    """A paused class waits until the last pause is over; the others go on."""
    star = Star([RATE] * 2, Buffers(10**6, range(CLASSES), 10**6))
    times = [quanta if each == stopped else 0 for each in range(CLASSES)]
    for number in range(1 + repeats):
        star.arrive(0, pfc_frame(times, 1 << stopped), number)
    for each in range(CLASSES):
        star.arrive(1, frame(0, 1, each, each), 1 + repeats)
    over = repeats + quanta * 512 * NS // RATE
    line = 8 * 1_000 * 8 * NS // RATE
    early = {data[14] >> 5 for _, data in play(star, [], until_ns=max(1 + repeats, over - 1))}
    assert stopped not in early
    late = Counter(data[14] >> 5 for _, data in play(star, [], until_ns=over + 2 * line))
    assert len(early) + late.total() == CLASSES
    assert star.counts(0).paused_ns[stopped] == over
    assert star.counts(0).xoff_received[stopped] == 1 + repeats


@given(CLASS)
def test_a_lossy_class_obeys_no_pause(priority: int) -> None:
    star = Star([RATE] * 2, Buffers(10**6, set(range(CLASSES)) - {priority}, 10**6))
    star.arrive(0, pfc_frame([0xFFFF] * CLASSES, 0xFF), 1)
    star.arrive(1, frame(0, 1, 7, priority), 2)
    assert play(star, [], until_ns=NS // 1000)
    assert star.counts(0).xoff_received[priority] == 1


@pytest.mark.parametrize("first", range(CLASSES))
def test_higher_classes_go_first(first: int) -> None:
    star = Star([RATE] * 2, Buffers(10**6))
    for each in range(CLASSES):
        star.arrive(1, frame(0, 1, each, (first + each) % CLASSES), 1)
    begun, *others = [data[14] >> 5 for _, data in play(star, [])]
    assert begun == first, "its line was free when the first one came"
    assert others == sorted(set(range(CLASSES)) - {first}, reverse=True)

"""The switch's step with ports in memory: addresses, floods, turns, classes, counters."""

from collections import Counter
from collections.abc import Sequence
from itertools import count, pairwise

import pytest
from zovn_rig import BROADCAST, Rig, address, build, frame, jain, serial

from zovn.errors import SettingsError
from zovn.native.switch import Class, Offload, PortSettings, Settings


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def known(ports: int, settings: Settings | None = None, **sizes: int) -> Rig:
    rig = Rig(ports, settings, **sizes)
    rig.know()
    return rig


# --- addresses


def test_an_unknown_destination_is_flooded_and_an_answer_is_not() -> None:
    rig = Rig(3)
    asked = rig.send(0, 1)
    assert rig.drain() == {0: [], 1: [asked], 2: [asked]}
    answered = rig.send(1, 0)
    assert rig.drain() == {0: [answered], 1: [], 2: []}
    assert rig.counters(0).copies == 1
    assert rig.counters(1).copies == 0


def test_a_frame_never_goes_back_to_its_port() -> None:
    rig = known(2)
    rig.ports[0].send(frame(address(0, 1), address(0)))
    assert rig.drain() == {0: [], 1: []}
    assert rig.drops(0)["no_destination"] == 1


def test_an_address_that_moves_is_found_where_it_sends_from() -> None:
    rig = known(3)
    rig.ports[2].send(frame(address(0), address(1)))
    rig.drain()
    sent = rig.send(1, 0)
    assert rig.drain() == {0: [], 1: [], 2: [sent]}
    assert rig.counters(2).moves == 1


def test_an_address_that_is_silent_is_forgotten() -> None:
    rig = known(3, Settings(age_s=10.0))
    rig.step(after_s=9.9)
    assert rig.switch.find(1, address(0)) == 0
    rig.step(after_s=0.2)
    assert rig.switch.find(1, address(0)) is None


def test_a_static_address_neither_ages_nor_moves() -> None:
    rig = Rig(3, Settings(age_s=1.0))
    assert rig.switch.fix(1, 1, address(1))
    rig.step(after_s=100.0)
    rig.ports[2].send(frame(address(1), address(0)))
    rig.drain()
    assert rig.switch.find(1, address(1)) == 1
    assert rig.counters(2).not_learned == 1


def test_a_static_address_takes_the_place_of_a_learned_one() -> None:
    rig = known(3)
    assert rig.switch.fix(2, 1, address(0))
    assert rig.switch.find(1, address(0)) == 2
    assert not rig.switch.fix(7, 1, address(0)), "there is no such port"


def test_a_static_address_is_taken_by_no_other_port_in_its_vlan() -> None:
    rig = Rig(3)
    assert rig.switch.fix(1, 1, address(1))
    assert not rig.switch.fix(2, 1, address(1))
    assert rig.switch.fix(1, 1, address(1)), "it has it already"
    assert rig.switch.fix(2, 9, address(1)), "another VLAN"
    assert rig.switch.known() == {(1, address(1)): (1, True), (9, address(1)): (2, True)}
    rig.remove(1)
    assert rig.switch.fix(2, 1, address(1))
    assert rig.switch.find(1, address(1)) == 2


def test_a_port_has_no_more_static_addresses_than_it_may_have() -> None:
    rig = Rig(2, Settings(addresses=2))
    assert [rig.switch.fix(0, 1, address(0, which)) for which in range(3)] == [True, True, False]
    assert rig.switch.fix(1, 1, address(1))


@pytest.mark.parametrize("room", [1, 2, 64])
def test_known_addresses_are_listed_until_they_age(room: int) -> None:
    rig = known(3, Settings(age_s=10.0, addresses=128))
    rig.switch.fix(2, 7, address(2, 1))
    learnt = {(1, address(number)): (number, False) for number in range(3)}
    static = {(7, address(2, 1)): (2, True)}
    assert rig.switch.known(room) == learnt | static
    rig.step(after_s=10.1)
    assert rig.switch.known(room) == static
    assert rig.switch.known(room) == static, "a list changes nothing"


def test_random_sources_of_one_port_evict_no_address_of_another() -> None:
    rig = known(3, Settings(addresses=4))
    for which in range(1, 200):
        rig.ports[0].send(frame(bytes((6, 0, which, 0, 0, 0)), address(1)))
        rig.drain()
    assert rig.counters(0).not_learned == 199 - 3
    assert [rig.switch.find(1, address(port)) for port in range(3)] == [0, 1, 2]
    rig.ports[1].send(frame(address(1, 1), address(2)))
    rig.drain()
    assert rig.switch.find(1, address(1, 1)) == 1, "others still learn"


def test_a_port_at_its_limit_takes_no_address_of_another() -> None:
    rig = known(3, Settings(addresses=2))
    for source in (address(0, 1), address(1)):
        rig.ports[0].send(frame(source, address(2)))
        rig.drain()
    assert rig.switch.find(1, address(1)) == 1
    assert (rig.counters(0).moves, rig.counters(0).not_learned) == (0, 1)


def test_addresses_that_were_forgotten_make_room() -> None:
    rig = Rig(2, Settings(addresses=2, age_s=1.0))
    for round_ in range(3):
        for which in range(2):
            rig.ports[0].send(frame(address(0, 2 * round_ + which), address(1)))
        rig.drain()
        for _ in range(20):
            rig.step(after_s=0.6)
    assert rig.counters(0).not_learned == 0


# --- what is no frame


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x02" * 13, "malformed"),
        (frame(BROADCAST, address(1)), "malformed"),
        (frame(bytes(6), address(1)), "malformed"),
        (frame(address(0), address(1), length=14)[:12] + b"\x81\x00\x00", "malformed"),
        (frame(address(0), address(1), length=65535 + 19), "too_long"),
        (frame(address(0), bytes.fromhex("0180c2000001")), "reserved"),
        (frame(address(0), address(1), tag=5), "vlan"),
    ],
    ids=["short", "group", "zero", "half a tag", "long", "pause", "tag"],
)
def test_what_is_no_frame_of_this_port_is_dropped_for_its_reason(sent: bytes, reason: str) -> None:
    rig = known(2)
    before = rig.drops(0)
    rig.ports[0].send(sent)
    assert rig.drain() == {0: [], 1: []}
    after = rig.drops(0)
    assert after == before | {reason: before.get(reason, 0) + 1}
    assert rig.ports[0].free_heads == 16, "its sender has it back"


def test_a_priority_tag_is_no_vlan() -> None:
    rig = known(2)
    sent = rig.send(0, 1, tag=0xE000)
    assert sent is not None
    assert rig.drain()[1] == [sent[:12] + sent[16:]]


@pytest.mark.parametrize("tag", [None, 7])
def test_the_longest_frame_passes_and_one_byte_more_does_not(tag: int | None) -> None:
    """The port it goes to has a tag that the other one does not have."""
    trunk, access = PortSettings(tagged=(7,)), PortSettings(vlan=7)
    rig = Rig([trunk, access] if tag else [access, trunk])
    for more in (0, 1):
        rig.send(0, 1, 65535 + (18 if tag else 14) + more, tag=tag)
    assert [len(got) for got in rig.drain()[1]] == [65535 + (14 if tag else 18)]
    assert rig.drops(0) == {"too_long": 1}


# --- floods


def test_a_broadcast_reaches_all_others_once() -> None:
    rig = Rig(72, sent=2, received=2)
    sent = frame(address(5), BROADCAST, 9)
    rig.ports[5].send(sent)
    assert rig.drain() == {port: [] if port == 5 else [sent] for port in range(72)}
    counters = rig.counters(5)
    assert (counters.into, counters.copies, counters.delivered) == (1, 70, 71)


def test_a_flood_to_a_full_port_waits_in_parking_and_its_sender_has_the_frame_back() -> None:
    rig = Rig(3, received=1)
    for number in (1, 2):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    assert rig.ports[0].free_heads == 16
    assert rig.counters(0).parked == 2
    got = rig.drain()
    assert [[serial(one) for one in got[port]] for port in (1, 2)] == [[1, 2], [1, 2]]
    assert rig.counters(0).parked == 0


def test_a_flood_beyond_parking_stays_with_its_sender_and_nothing_is_lost() -> None:
    rig = known(3, Settings(parked=2), received=1)
    for number in range(6):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.ports[0].send(frame(address(0), address(2), 6))
    rig.settle()
    assert rig.counters(0).into - 1 == 3, "one is in both rings, two are parked"
    assert rig.ports[0].free_heads == 16 - 7 + 3
    got = rig.drain()
    assert [serial(one) for one in got[1]] == list(range(6))
    assert [serial(one) for one in got[2]] == list(range(7))
    assert rig.drops(0) == {}


def test_one_ports_floods_leave_others_their_parking() -> None:
    rig = Rig(4, Settings(parked=1), received=1)
    for number in range(4):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    rig.ports[1].send(frame(address(1), BROADCAST, 100))
    rig.settle()
    assert rig.counters(1).into == 1


def test_a_lossy_flood_beyond_parking_is_dropped_and_holds_nothing_up() -> None:
    settings = Settings(classes=(Class(limit_bytes=10_000),) * 8, parked=1)
    rig = known(4, settings, received=1)
    for number in range(4):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.step()
    assert rig.ports[0].free_heads == 16
    assert rig.drops(0) == {"congestion": 3 * 3}, "three copies of each of three"
    assert {len(got) for port, got in rig.drain().items() if port} == {1}


def test_a_destination_that_stands_still_stops_floods_for_no_longer_than_a_stall() -> None:
    rig = known(3, Settings(parked=1), received=1)
    for number in range(6):
        rig.ports[0].send(frame(address(0), BROADCAST, number))
    rig.settle()
    assert rig.ports[0].free_heads < 16
    got = []
    for _ in range(12):
        rig.step(after_s=0.2)
        got += [serial(one) for one in rig.ports[1].receive_all()]
    assert got == list(range(6)), "the other destination gets all"
    assert rig.drops(0)["stalled"] == 5, "the first is in the ring of the one that stands still"
    assert rig.ports[0].free_heads == 16


def test_a_destination_that_is_slow_stops_floods_for_no_longer_than_a_stall() -> None:
    """It takes a frame each 0.9 s, so that it never stalls; the sender floods ten in a second."""
    rig = known(2, Settings(parked=4), sent=64, received=64)
    slow = rig.add(received=1)
    numbers = count()
    came: list[int] = []
    got: dict[int, list[int]] = {1: [], slow: []}
    for step in range(1, 201):
        if rig.ports[0].free_heads >= 2:
            for destination in (BROADCAST, address(1)):
                assert rig.ports[0].send(frame(address(0), destination, next(numbers)))
        rig.step(after_s=0.1)
        if frames := rig.ports[1].receive_all():
            came.append(step)
            got[1] += map(serial, frames)
        if step % 9 == 0:
            got[slow] += map(serial, rig.ports[slow].receive_all())
    assert max(after - before for before, after in pairwise(came)) <= 10
    assert got[1] == list(range(len(got[1])))
    assert len(got[1]) > 100
    assert got[slow] == sorted(set(got[slow]))
    assert len(got[slow]) == 200 // 9
    assert rig.counters(slow).stalls == 0
    assert rig.drops(0)["stalled"] > 40
    assert set(rig.drops(0)) == {"stalled"}
    rig.drain()
    assert rig.ports[0].free_heads == 64


def test_a_flood_that_waits_for_too_long_is_dropped_alone() -> None:
    """Only where it still waits; what was sent before it and after it is delivered in order."""
    trunk = PortSettings(tagged=(7,), trust="priority")
    rig = Rig([trunk] * 3, Settings(parked=1, class_of_priority=PRIORITIES), received=1)
    for port in range(3):
        rig.switch.fix(port, 7, address(port))
    unicast = [(number, address(1)) for number in (3, 3, 3, 0, 0)]
    for number, (klass, to) in enumerate([*unicast, (0, BROADCAST), (0, BROADCAST)]):
        assert rig.ports[0].send(frame(address(0), to, number, tag=klass << 13 | 7))
    rig.step()
    assert [serial(one) for one in rig.ports[2].receive_all()] == [5]
    rig.step(after_s=0.9)
    assert [serial(one) for one in rig.ports[1].receive_all()] == [0]
    rig.step(after_s=0.05)
    assert rig.drops(0) == {}
    assert rig.counters(0).parked == 1
    rig.step(after_s=0.05)
    assert rig.drops(0) == {"stalled": 1}
    assert rig.counters(1).stalls == 0
    got = {port: [serial(one) for one in frames] for port, frames in rig.drain().items()}
    assert [one for one in got[1] if one in {1, 2}] == [1, 2]
    assert [one for one in got[1] if one not in {1, 2}] == [3, 4, 6]
    assert got[2] == [6]


# --- turns


@pytest.mark.parametrize("sources", [8, 32])
@pytest.mark.parametrize("received", [1, 3, 64])
def test_sources_with_frames_of_any_length_share_in_bytes(sources: int, received: int) -> None:
    rig = known(sources + 1, sent=128, received=received)
    sink, taken = sources, dict.fromkeys(range(sources), 0)
    lengths = (64, 1500, 590, 9000)
    drained = 0
    while drained < 60 * 3028 * sources:
        for source in range(sources):
            while rig.send(source, sink, lengths[source % len(lengths)]):
                pass
        rig.switch.step()
        for got in rig.ports[sink].receive_all():
            taken[got[11]] += len(got)
            drained += len(got)
    assert jain(list(taken.values())) >= 0.99
    rig.check()


def test_a_turn_survives_a_full_ring() -> None:
    """With room for one frame at a time, each source still sends a whole quantum in a turn."""
    rig = known(3, received=1)
    order = []
    for _ in range(200):
        for source in (0, 1):
            while rig.send(source, 2, 1000):
                pass
        rig.step()
        order += [got[11] for got in rig.ports[2].receive_all()]
    assert order[:12] == [1, 1, 1, 0, 0, 0] * 2 or order[:12] == [0, 0, 0, 1, 1, 1] * 2


def windows(rig: Rig, sinks: dict[int, int], rounds: int, window: int = 4) -> dict[int, int]:
    """Let sources 0 and 1 send to sinks, each pair with a window; a sink takes every n-th round."""
    open_: dict[tuple[int, int], int] = {}
    taken = dict.fromkeys(sinks, 0)
    for round_ in range(rounds):
        for source in (0, 1):
            for sink in sinks:
                while open_.get((source, sink), 0) < window and rig.send(source, sink):
                    open_[source, sink] = open_.get((source, sink), 0) + 1
        rig.switch.step()
        for sink, every in sinks.items():
            got = [] if round_ % every else rig.ports[sink].receive_all()
            taken[sink] += len(got)
            for one in got:
                open_[one[11], sink] -= 1
    rig.check()
    return taken


def test_a_slow_destination_does_not_hold_a_fast_one_up() -> None:
    taken = windows(known(4, received=2), {2: 1, 3: 100}, 1000)
    alone = windows(known(4, received=2), {2: 1}, 1000)
    assert taken[2] == alone[2]
    assert taken[3] < 30


# --- classes

PRIORITIES = {priority: priority for priority in range(8)}


def overloaded(classes: tuple[Class, ...], seconds: int = 400) -> dict[int, int]:
    """Return the bytes of each class, of two at one destination that is always full."""
    settings = Settings(classes=classes, class_of_priority=PRIORITIES)
    trunk = PortSettings(vlan=1, tagged=(), trust="priority")
    rig = Rig([trunk, trunk, PortSettings()], settings, received=1)
    rig.know()
    taken: dict[int, int] = {}
    for _ in range(seconds):
        for source, priority, length in ((0, 2, 1500), (1, 5, 300)):
            while rig.send(source, 2, length, tag=priority << 13):
                pass
        rig.step()
        for got in rig.ports[2].receive_all():
            taken[got[11]] = taken.get(got[11], 0) + len(got)
    return taken


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 3), (4, 1)])
def test_classes_share_by_weight_in_bytes(low: int, high: int) -> None:
    classes = [Class()] * 8
    classes[2], classes[5] = Class(weight=low), Class(weight=high)
    taken = overloaded(tuple(classes), 3000)
    assert taken[0] / taken[1] == pytest.approx(low / high, rel=0.1)


def test_a_strict_class_goes_before_those_with_weights() -> None:
    classes = [Class(weight=1000)] * 8
    classes[5] = Class(weight=0)
    taken = overloaded(tuple(classes))
    assert taken.get(0, 0) == 0
    assert taken[1] > 0


def test_the_higher_of_two_strict_classes_goes_first() -> None:
    taken = overloaded((Class(weight=0),) * 8)
    assert taken.get(0, 0) == 0


@pytest.mark.parametrize(("kind", "header"), [(0x0800, b"\x45\xb8"), (0x86DD, b"\x6b\x80")])
def test_a_class_by_dscp(kind: int, header: bytes) -> None:
    """Expedited forwarding, 46: to the strict class, which overtakes."""
    classes = (Class(), Class(weight=0), *[Class()] * 6)
    settings = Settings(classes=classes, class_of_dscp={46: 1})
    rig = Rig([PortSettings(trust="dscp"), PortSettings(), PortSettings()], settings, received=1)
    rig.know()
    for _ in range(4):
        rig.send(1, 2)
    rig.settle()
    urgent = address(2) + address(0) + kind.to_bytes(2, "big") + header.ljust(50, b"\0")
    rig.ports[0].send(urgent)
    rig.settle()
    got = rig.drain()[2]
    assert got.index(urgent) == 1, "only what was in the ring already is before it"


def test_the_lossy_mode_loses_where_the_lossless_one_does_not() -> None:
    lost = {}
    for limit in (0, 2000):
        settings = Settings(classes=(Class(limit_bytes=limit),) * 8)
        rig = known(9, settings, received=4)
        before = sum(sum(rig.drops(port).values()) for port in range(8))
        sent = sum(rig.send(source, 8) is not None for _ in range(16) for source in range(8))
        got = rig.drain()[8]
        drops = [rig.drops(port) for port in range(8)]
        lost[limit] = sum(each.get("congestion", 0) for each in drops)
        assert sum(sum(each.values()) for each in drops) - before == lost[limit]
        assert len(got) + lost[limit] == sent == 128
    assert lost[0] == 0
    assert lost[2000] > 64


def test_a_lossy_class_holds_no_more_than_its_limit() -> None:
    rig = known(2, Settings(classes=(Class(limit_bytes=200),) * 8), received=1)
    for _ in range(10):
        rig.send(0, 1)
    rig.step()
    counters = rig.counters(0)
    assert (counters.held, counters.drops["congestion"]) == (2, 7)


@pytest.mark.parametrize("takes", [1, 2, 3])
@pytest.mark.parametrize("senders", [(0, 1), (0, 1, 2), (1, 4)])
def test_a_lossy_class_is_fair_to_ports_that_flood_a_slow_one(
    senders: tuple[int, ...], takes: int
) -> None:
    shares = lossy_shares(senders, 1000, takes=takes)
    assert shares == pytest.approx([1 / len(senders)] * len(senders), rel=0.1)


@pytest.mark.parametrize("senders", [(1, 2), (1, 4), tuple(range(6))])
@pytest.mark.parametrize("every", [1, 2, 3, 4])
def test_a_lossy_class_is_fair_whoever_else_sends_and_whenever_there_is_room(
    senders: tuple[int, ...], every: int
) -> None:
    shares = lossy_shares(senders, 2000 * every, every=every, busy=(0, 3))
    assert shares == pytest.approx([1 / len(senders)] * len(senders), rel=0.2)


def lossy_shares(
    senders: Sequence[int],
    steps: int,
    *,
    takes: int = 1,
    every: int = 1,
    busy: Sequence[int] = (),
) -> list[float]:
    """Return what each sender has of a port that takes some frames in every n-th step.

    Ports that are busy send to another port in each step. A sender has twice as many heads as
    its frames can have places in the queue, so that it always has some to offer.
    """
    other, sink = 6, 7
    settings = Settings(classes=(Class(limit_bytes=4 * 64),) * 8)
    rig = known(8, settings, sent=8, received=4)
    got: Counter[int] = Counter()
    for step in range(steps):
        for source in busy:
            rig.send(source, other)
        for source in senders:
            while rig.send(source, sink):
                pass
        rig.switch.step()
        rig.ports[other].receive_all()
        for _ in range(0 if step % every else takes):
            if one := rig.ports[sink].receive():
                got[one[11]] += 1
    rig.check()
    assert set(rig.drops(senders[0])) == {"congestion"}
    return [got[source] / got.total() for source in senders]


# --- stalls


def test_a_destination_that_takes_nothing_for_a_second_is_lossy_until_it_resumes() -> None:
    rig = known(3, received=2)
    for _ in range(6):
        rig.send(0, 1)
    rig.step()
    rig.step(after_s=0.99)
    assert not rig.switch.stalled(1)
    assert rig.counters(0).held == 4
    rig.step(after_s=0.02)
    assert rig.switch.stalled(1)
    assert rig.drops(0) == {"stalled": 4}
    rig.send(0, 1)
    sent = rig.send(0, 2)
    rig.step(after_s=0.5)
    assert rig.drops(0)["stalled"] == 5
    assert rig.ports[2].receive_all() == [sent], "no other is affected"
    assert len(rig.ports[1].receive_all()) == 2
    rig.step()
    assert not rig.switch.stalled(1)
    again = rig.send(0, 1)
    assert rig.drain()[1] == [again]
    counters = rig.counters(1)
    assert counters.stalls == 1
    assert counters.longest_ns == counters.blocked_ns == 1_510_000_000


def test_a_slow_destination_is_not_stalled() -> None:
    rig = known(2, received=1)
    for _ in range(16):
        rig.send(0, 1)
    rig.step()
    for _ in range(15):
        rig.step(after_s=0.9)
        assert len(rig.ports[1].receive_all()) == 1
        rig.step()
    assert not rig.switch.stalled(1)
    assert rig.counters(1).longest_ns == 900_000_000


def test_time_without_waiting_frames_is_not_blocked() -> None:
    rig = known(2, received=1)
    rig.send(0, 1)
    rig.step()
    rig.step(after_s=100.0)
    assert rig.counters(1).blocked_ns == 0
    assert not rig.switch.stalled(1)


# --- offloads


CHECKSUM = Offload(flags=1, checksum_start=34, checksum_offset=6)
TCP4 = Offload(1, 1, 54, 1448, 34, 16)


@pytest.mark.parametrize(
    ("offload", "sends", "takes", "reason"),
    [
        (CHECKSUM, 1, 1, None),
        (CHECKSUM, 0, 1, "malformed"),
        (TCP4, 3, 3, None),
        (TCP4, 3, 1, "offload"),
        (TCP4, 1, 3, "malformed"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 3, 63, "malformed"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 63, 3, "offload"),
        (Offload(1, 0x81, 54, 1448, 34, 16), 63, 63, None),
        (Offload(1, 0x80, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(1, 2, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(0, 1, 54, 1448, 34, 16), 63, 63, "malformed"),
        (Offload(1, 1, 54, 0, 34, 16), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 13, 6), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 2965), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 65535), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 2964), 63, 0, "offload"),
        (Offload(1, 0, 0, 0, 35, 6), 63, 63, "malformed"),
        (Offload(1, 0, 0, 0, 34, 7), 63, 63, "malformed"),
        (Offload(1, 3, 42, 1448, 34, 6), 63, 55, "offload"),
    ],
)
def test_what_a_sender_leaves_passes_where_both_agreed(
    offload: Offload, sends: int, takes: int, reason: str | None
) -> None:
    rig = known(2)
    before = rig.drops(0)
    rig.ports[0].offer(sends, 0)
    rig.ports[1].offer(0, takes)
    sent = rig.send(0, 1, 3000, offload)
    rig.settle()
    got = rig.ports[1].receive_with_offload()
    assert got == (None if reason else (sent, offload))
    assert rig.drops(0) == (before | {reason: before.get(reason, 0) + 1} if reason else before)


def test_where_a_checksum_begins_moves_with_a_tag() -> None:
    rig = Rig([PortSettings(vlan=7), PortSettings(vlan=1, tagged=(7,))])
    rig.ports[0].offer(3, 0)
    rig.ports[1].offer(0, 3)
    rig.send(0, 1, 3000, TCP4)
    rig.settle()
    got = rig.ports[1].receive_with_offload()
    assert got is not None
    assert got[1] == Offload(1, 1, 58, 1448, 38, 16)


def test_a_report_of_a_valid_checksum_goes_no_further() -> None:
    rig = known(2)
    sent = rig.send(0, 1, offload=Offload(flags=2, header_bytes=7))
    rig.settle()
    assert rig.ports[1].receive_with_offload() == (sent, Offload())


def test_a_flood_that_cannot_be_finished_is_dropped_only_for_those_that_do_not_accept_it() -> None:
    rig = Rig(3)
    rig.ports[0].offer(63, 0)
    rig.ports[1].offer(0, 63)
    sent = frame(address(0), BROADCAST)
    rig.ports[0].send(sent, Offload(1, 3, 42, 1448, 34, 6))
    assert rig.drain() == {0: [], 1: [sent], 2: []}
    assert rig.drops(0) == {"offload": 1}


# --- ports that go


def test_a_port_that_is_removed_gets_its_frames_back_and_frees_what_waits_for_it() -> None:
    rig = known(3, received=1)
    for _ in range(4):
        rig.send(0, 1)
        rig.send(2, 0)
    rig.ports[0].send(frame(address(0), BROADCAST))
    rig.step()
    last = rig.remove(0)
    assert last.held == last.parked == 0
    assert last.drops == {"removed": 3 + 2 - 1}
    assert rig.drops(2)["removed"] == 3
    assert rig.counters(2).held == rig.counters(1).waiting == 0
    assert rig.switch.find(1, address(0)) is None
    assert rig.ports[2].free_heads == 16


def test_a_number_is_used_again_with_counters_from_zero() -> None:
    rig = known(3)
    rig.remove(1)
    assert rig.add() == 1
    assert rig.counters(1).into == 0
    sent = rig.send(0, 1)
    assert rig.drain() == {0: [], 1: [sent], 2: [sent]}


def test_each_batch_notifies_a_peer_once() -> None:
    rig = known(2)
    before = [port.notifications for port in rig.ports.values()]
    for _ in range(10):
        rig.send(0, 1)
    rig.step()
    assert [port.notifications for port in rig.ports.values()] == [n + 1 for n in before]
    rig.step()
    assert [port.notifications for port in rig.ports.values()] == [n + 1 for n in before]


# --- settings


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (Settings(addresses=0), "addresses: 1 to 65536"),
        (Settings(parked=0), "parked: 1 to 4096"),
        (Settings(stall_s=0), "stall, age: must be above 0"),
        (Settings(classes=(Class(weight=1001),)), "weight: at most 1000"),
        (Settings(class_of_priority={3: 8}), "class of a priority"),
        (Settings(class_of_dscp={46: 9}), "class of a DSCP"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings: Settings, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Rig(0, settings)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (PortSettings(vlan=0), "a port that is no trunk needs one"),
        (PortSettings(vlan=4095), "vlan: 1 to 4094"),
        (PortSettings(tagged=(0,)), "vlans: 1 to 4094"),
        (PortSettings(tagged=(4095,)), "vlans: 1 to 4094"),
        (PortSettings(klass=8), "class: there are classes 0 to 7"),
    ],
)
def test_a_port_that_cannot_be_used_is_refused(settings: PortSettings, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Rig([settings])


def test_there_are_72_ports() -> None:
    rig = Rig(72, sent=1, received=1)
    with pytest.raises(SettingsError, match="72 already"):
        rig.add()

"""Classes that a peer closes one by one: one that it takes nothing of holds up no other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import Rig, address, build, serial

from zovn.native.switch import Class, PortSettings, Settings
from zovn.oracle.expected import ExpectedSwitch

SOURCES, SINK = 3, 3
TRUSTING = PortSettings(tagged=(7,), trust="priority")
SETTINGS = Settings(class_of_priority={one: one for one in range(8)})
SHUT = st.sets(st.integers(0, 7))
EVENTS = st.lists(
    st.one_of(st.tuples(st.integers(0, SOURCES - 1), st.integers(0, 7)), SHUT, st.just("receive")),
    max_size=80,
)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def rig_of(settings: Settings = SETTINGS, received: int = 4, sent: int = 32) -> Rig:
    """Return a switch of which the last port opens and closes each class by itself."""
    rig = Rig([TRUSTING] * (SOURCES + 1), settings, sent=sent, received=received)
    rig.switch.fix(SINK, 7, address(SINK))
    rig.ports[SINK].shut()
    return rig


def class_of(frame: bytes) -> int:
    return frame[14] >> 5


class Sink:
    """The last port's peer, and the model of what it may get."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.model = ExpectedSwitch(SETTINGS)
        for port in range(SOURCES + 1):
            self.model.add(port, TRUSTING)
        self.model.addresses[7, address(SINK)] = (SINK, 0.0)
        self.got: list[int] = []

    def send(self, source: int, klass: int) -> None:
        made = self.rig.send(source, SINK, tag=klass << 13 | 7)
        if made:
            self.model.take(source, made, 0.0)

    def receive(self) -> set[int]:
        """Receive all that is there; return of which classes."""
        frames = self.rig.ports[SINK].receive_all()
        for one in frames:
            self.model.receive(SINK, one)
        self.got += [serial(one) for one in frames]
        return set(map(class_of, frames))


@given(EVENTS, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_closed_classes_get_nothing_and_the_others_all_of_theirs_in_order(
    events: list[tuple[int, int] | set[int] | str], weights: list[int]
) -> None:
    classes = [Class(weight=one) for one in weights]
    sink = Sink(rig_of(Settings(classes, {one: one for one in range(8)}), sent=128))
    for event in events:
        if isinstance(event, tuple):
            sink.send(*event)
        elif isinstance(event, set):
            sink.rig.settle()
            sink.receive()
            sink.rig.ports[SINK].shut(event)
            while sink.rig.step():
                assert not sink.receive() & event
            assert not sink.receive() & event
            waits = {queue.klass for queue, frames in sink.model.queues.items() if frames}
            assert waits <= event
        else:
            sink.rig.step()
            sink.receive()
    sink.rig.ports[SINK].shut()
    while sink.rig.step() + len(sink.receive()):
        pass
    assert sink.model.waiting() == 0
    assert not any(sink.rig.drops(source) for source in range(SOURCES))


@given(st.integers(0, 7), st.sets(st.integers(0, 7), min_size=1))
def test_a_class_that_is_closed_for_long_stalls_alone(closed: int, used: set[int]) -> None:
    rig = rig_of(received=256)
    rig.ports[SINK].shut({closed})
    for _ in range(15):
        for klass in used | {closed}:
            rig.send(0, SINK, tag=klass << 13 | 7)
        rig.step(0.1)
    got = Counter(map(class_of, rig.drain()[SINK]))
    assert set(got) == used - {closed}
    assert set(got.values()) <= {15}  # none of them waited
    assert rig.switch.stalled(SINK)
    assert set(rig.drops(0)) == {"stalled"}
    assert rig.counters(SINK).stalls == 1
    rig.ports[SINK].shut()
    rig.step(0.1)
    assert not rig.switch.stalled(SINK)
    rig.send(0, SINK, tag=closed << 13 | 7)
    assert [class_of(one) for one in rig.drain()[SINK]] == [closed]


def test_a_full_port_ends_a_round_without_a_change_of_turns() -> None:
    """Two classes with weights of 1 and 3 share a ring that has room for one frame."""
    classes = [Class(weight=1), Class(weight=3), *[Class()] * 6]
    rig = rig_of(Settings(classes, {0: 0, 1: 1}), received=1)
    got: Counter[int] = Counter()
    for _ in range(4000):
        for source in (0, 1):
            while rig.send(source, SINK, 1000, tag=source << 13 | 7):
                pass
        rig.switch.step()
        got.update(map(class_of, rig.ports[SINK].receive_all()))
    assert got[1] / got[0] == pytest.approx(3, rel=0.05)


def test_a_class_that_opens_again_does_not_make_up_for_its_time() -> None:
    rig = rig_of(received=8)
    got: Counter[int] = Counter()
    for step in range(3000):
        for source in (0, 1):
            while rig.send(source, SINK, 1000, tag=source << 13 | 7):
                pass
        rig.ports[SINK].shut({1} if step < 2000 and step % 10 else ())
        rig.switch.step()
        frames = rig.ports[SINK].receive_all()
        if step >= 2000:
            got.update(map(class_of, frames))
    assert got[1] / got[0] == pytest.approx(1, rel=0.05)


STRICT = Settings([*[Class()] * 7, Class(weight=0)], {one: one for one in range(8)}, stall_s=0.5)
"""Class 7 goes before all others."""


def filled(rig: Rig, steps: int) -> None:
    """Let class 7 fill the last port's ring, which takes four frames in each third step."""
    for step in range(steps):
        while rig.send(0, SINK, tag=7 << 13 | 7):
            pass
        rig.step(0.1)
        for _ in range(0 if step % 3 else 4):
            rig.ports[SINK].receive()


def test_a_class_waits_without_a_stall_while_a_strict_one_fills_the_room() -> None:
    rig = rig_of(STRICT, received=8)
    filled(rig, 3)
    for _ in range(5):
        rig.send(1, SINK, tag=7)
    filled(rig, 60)
    assert not rig.switch.stalled(SINK)
    assert (rig.counters(1).held, rig.drops(1)) == (5, {})
    assert Counter(map(class_of, rig.drain()[SINK]))[0] == 5


def test_a_closed_class_stalls_alone_while_a_strict_one_fills_the_room() -> None:
    rig = rig_of(STRICT, received=8)
    rig.ports[SINK].shut({3})
    filled(rig, 3)
    for source, klass in ((1, 0), (2, 3)):
        rig.send(source, SINK, tag=klass << 13 | 7)
    filled(rig, 9)
    assert rig.switch.stalled(SINK)
    assert (rig.drops(1), rig.drops(2)) == ({}, {"stalled": 1})
    rig.ports[SINK].shut()
    filled(rig, 3)
    assert not rig.switch.stalled(SINK), "it is open, and waits for its turn from now on"
    rig.send(2, SINK, tag=3 << 13 | 7)
    filled(rig, 9)
    assert (rig.drops(1), rig.drops(2)) == ({}, {"stalled": 1})
    came = Counter(map(class_of, rig.drain()[SINK]))
    assert came[0] == came[3] == 1


def test_a_port_that_takes_nothing_stalls_in_all_classes_until_it_does() -> None:
    rig = rig_of(STRICT, received=2)
    for source, klass in ((0, 7), (1, 0), (2, 3)):
        for _ in range(4):
            rig.send(source, SINK, tag=klass << 13 | 7)
    for _ in range(8):
        rig.step(0.1)
    assert [rig.drops(source) for source in range(SOURCES)] == [
        {"stalled": count} for count in (2, 4, 4)
    ]
    for _ in range(8):
        rig.send(1, SINK, tag=7)
        rig.step(0.1)
        assert rig.switch.stalled(SINK)
    assert rig.drops(1) == {"stalled": 12}
    rig.ports[SINK].receive()
    rig.step(0.1)
    assert not rig.switch.stalled(SINK)
    rig.send(1, SINK, tag=7)
    assert [class_of(one) for one in rig.drain()[SINK]] == [7, 0]

"""What a gate's counters say of what waits: packets that were dropped within wait for ever."""

import ctypes
from typing import ClassVar

import pytest
from xco_coordinator_rig import MS, NOW, US, build, long

FRAME = 1514
RATE = 98_000_000


class State(ctypes.Structure):
    """struct xco_gate_state."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint64) for name in ("entered", "left", "lost", "since_left")),
        *((name, ctypes.c_int64) for name in ("since_ns", "looked_ns", "active_ns", "patience_ns")),
    ]


class Counters(ctypes.Structure):
    """struct xco_passage."""

    _fields_: ClassVar = [(name, ctypes.c_uint64) for name in ("entered", "left", "tell")]


class Gate:
    """A gate's counters and what is concluded from them."""

    def __init__(self, shim: ctypes.CDLL) -> None:
        self._shim, self._state, self.counters = shim, State(), Counters()
        self.now = NOW
        shim.xco_passage_begin(ctypes.byref(self._state), long(NOW))

    def take(self, after: int, entered: int = 0, left: int = 0, rate: int = RATE) -> int:
        self.now += after
        self.counters.entered += entered
        self.counters.left += left
        counters = ctypes.byref(self.counters)
        state = ctypes.byref(self._state)
        return int(
            self._shim.xco_passage_take(state, long(self.now), counters, ctypes.c_uint64(rate))
        )

    def doubts(self, rate: int = RATE) -> bool:
        return bool(self._shim.xco_passage_doubts(ctypes.byref(self._state), ctypes.c_uint64(rate)))

    def correct(self, backlog: int) -> None:
        self._shim.xco_passage_correct(ctypes.byref(self._state), ctypes.c_uint64(backlog))


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def gate(shim: ctypes.CDLL) -> Gate:
    shim.xco_passage_take.restype = ctypes.c_uint64
    shim.xco_passage_doubts.restype = ctypes.c_bool
    return Gate(shim)


def test_a_lost_packet_of_a_slow_sender_is_asked_for_within_a_few_slices(gate: Gate) -> None:
    """Something leaves every 1.2 ms, and slices have 1 ms: the gate never stands still for long."""
    gate.take(0, entered=FRAME)  # dropped within
    asked = None
    for turn in range(10):
        for look in range(20):
            assert gate.take(50 * US, entered=FRAME * (look == 3), left=FRAME * (look == 4)) > 0
        asked = turn if asked is None and gate.doubts() else asked
        gate.take(4 * MS, rate=0)
    assert asked is not None
    assert asked <= 3


def test_what_the_kernel_answers_is_believed_from_then_on(gate: Gate) -> None:
    gate.take(0, entered=3 * FRAME)
    gate.take(0)
    assert gate.take(2 * MS, left=FRAME) == 2 * FRAME
    assert gate.doubts()
    gate.correct(FRAME)
    assert not gate.doubts()
    assert gate.take(50 * US, left=FRAME) == 0


def test_a_sender_that_uses_its_gate_is_not_asked_for(gate: Gate) -> None:
    gate.take(0, entered=200 * FRAME)
    gate.take(0)
    for _ in range(100):
        gate.take(124 * US, entered=FRAME, left=FRAME)
        assert not gate.doubts()


def test_the_time_of_a_closed_gate_says_nothing(gate: Gate) -> None:
    gate.take(0, entered=FRAME)
    for _ in range(5):
        assert gate.take(10 * MS, rate=0) == FRAME
        assert not gate.doubts(0)
    gate.take(50 * US)
    assert not gate.doubts()
    gate.take(2 * MS)
    assert gate.doubts()


def test_more_cannot_have_left_than_entered(gate: Gate) -> None:
    gate.take(0, entered=FRAME)
    gate.take(2 * MS)
    gate.correct(0)  # it waited after all
    assert gate.take(50 * US, left=FRAME) == 0
    assert gate.take(50 * US, entered=FRAME) == FRAME


def test_who_really_waits_is_asked_for_ever_more_rarely(gate: Gate) -> None:
    """Other gates share the line, so that this one passes a tenth of its rate on."""
    gate.take(0, entered=1000 * FRAME)
    asked = 0
    for look in range(2000):
        waits = gate.take(50 * US, left=FRAME * (look % 25 == 0))
        if gate.doubts():
            asked += 1
            gate.correct(waits)
    assert 5 <= asked <= 15

"""What waits behind a gate, from counts that can be wrong in both directions."""

import ctypes
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import MS, NOW, US, build

FRAME = 1514
LOST = 3 * FRAME


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = build(tmp_path_factory.mktemp("backlog"))
    library.xco_backlog_read.restype = library.xco_backlog_correct.restype = ctypes.c_uint64
    return library


class Passage(ctypes.Structure):
    """struct xco_passage."""

    _fields_: ClassVar = [(name, ctypes.c_uint64) for name in ("entered", "left", "tell")]


class State(ctypes.Structure):
    """struct xco_gate_state."""

    _fields_: ClassVar = [
        *((name, ctypes.c_uint64) for name in ("entered", "left", "lost", "backlog")),
        *((name, ctypes.c_int64) for name in ("moved_ns", "active_ns")),
        ("doubtful", ctypes.c_bool),
    ]


class Gate:
    """A gate's counts, and what is believed of them."""

    def __init__(self, shim: ctypes.CDLL) -> None:
        self._shim = shim
        self.state = State(moved_ns=NOW, active_ns=NOW)

    def read(self, now: int, entered: int, left: int, opened: int | None = None) -> int:
        """Read the counts of a gate that opened at an instant; None: it is closed."""
        passage, since = Passage(entered, left), now if opened is None else opened
        times = ctypes.c_int64(since), ctypes.c_int64(now)
        read = self._shim.xco_backlog_read
        return int(read(ctypes.byref(self.state), ctypes.byref(passage), *times))

    def correct(self, before: Passage, after: Passage, backlog: int) -> int:
        references = [ctypes.byref(one) for one in (self.state, before, after)]
        return int(self._shim.xco_backlog_correct(*references, ctypes.c_uint64(backlog)))


def test_what_entered_and_did_not_leave_waits(shim: ctypes.CDLL) -> None:
    gate = Gate(shim)
    assert gate.read(NOW, 10 * FRAME, 4 * FRAME) == 6 * FRAME
    assert not gate.state.doubtful


def test_a_gate_that_just_opened_is_not_stuck_however_long_it_was_closed(
    shim: ctypes.CDLL,
) -> None:
    """It was asked for as its packets left: those were counted twice, and it seemed empty."""
    gate = Gate(shim)
    gate.read(NOW, 14 * FRAME, 0)
    opened = NOW + 6 * MS
    gate.read(opened + 50 * US, 14 * FRAME, 0, opened)
    assert not gate.state.doubtful
    gate.read(opened + 5 * MS, 14 * FRAME, 0, opened)
    assert gate.state.doubtful


def test_what_is_dropped_within_is_noticed_and_kept(shim: ctypes.CDLL) -> None:
    gate = Gate(shim)
    passage = Passage(10 * FRAME, 10 * FRAME - LOST)
    gate.read(NOW, passage.entered, passage.left, NOW)
    gate.read(NOW + 5 * MS, passage.entered, passage.left, NOW)
    assert gate.state.doubtful
    assert gate.correct(passage, passage, 0) == 0
    assert gate.read(NOW + 6 * MS, 12 * FRAME, passage.left, NOW) == 2 * FRAME


@given(st.integers(0, 20), st.integers(0, 20))
def test_what_moves_while_the_kernel_answers_changes_nothing(
    shim: ctypes.CDLL, entering: int, leaving: int
) -> None:
    gate = Gate(shim)
    before = Passage(30 * FRAME, 0)
    after = Passage((30 + entering) * FRAME, leaving * FRAME)
    gate.read(NOW, before.entered, before.left, NOW)
    waiting = gate.correct(before, after, (30 + entering - leaving) * FRAME)
    assert waiting == (30 + entering - leaving) * FRAME
    assert gate.state.lost == 0


def test_a_gate_with_a_correction_that_seems_empty_is_asked_for_once(shim: ctypes.CDLL) -> None:
    """If the correction was wrong, its packets would wait until something else enters."""
    gate = Gate(shim)
    gate.state.lost = LOST
    gate.read(NOW, 10 * FRAME, 6 * FRAME)
    assert not gate.state.doubtful
    assert gate.read(NOW + MS, 10 * FRAME, 7 * FRAME) == 0
    assert gate.state.doubtful
    passage = Passage(10 * FRAME, 7 * FRAME)
    assert gate.correct(passage, passage, LOST) == LOST
    gate.read(NOW + 2 * MS, 10 * FRAME, 10 * FRAME)
    assert not gate.state.doubtful


def test_one_that_is_empty_is_not_asked_for_again_and_again(shim: ctypes.CDLL) -> None:
    gate = Gate(shim)
    gate.state.lost = LOST
    passage = Passage(10 * FRAME, 7 * FRAME)
    gate.read(NOW, 10 * FRAME, 6 * FRAME)
    gate.read(NOW + MS, passage.entered, passage.left)
    assert gate.correct(passage, passage, 0) == 0
    gate.read(NOW + 2 * MS, passage.entered, passage.left)
    assert not gate.state.doubtful

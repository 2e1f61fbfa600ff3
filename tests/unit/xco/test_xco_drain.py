"""Slices that end with what waits: who is taken to have little, and what is told of it."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import (
    CLOSED,
    GUARD,
    HYSTERESIS,
    MS,
    NOW,
    OPEN,
    PACED,
    REPORT,
    SILENCE,
    SLICE,
    US,
    Core,
    build,
)

SLICE_NS = 4 * MS
FRAME = 1514
BURST = 2 * FRAME
LOOK = 20 * US
"""After a slice began: the link still carries the burst."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("drain"))


def carried(frames: int) -> int:
    """Return how long a link at the gate's rate carries so many frames, ns."""
    return frames * FRAME * 8 * 10**9 // PACED


class Sender:
    """A host with one destination, whose queue sends at its gate's rate, a burst at first."""

    def __init__(self, shim: ctypes.CDLL, skew: int = 0) -> None:
        self.core = Core(shim, skew)
        self.core.add(NOW, 1)
        self.core.decide(NOW)
        self.sent, self.now = 0, NOW
        self.core.direct(NOW, CLOSED, 0, 0)
        self.core.decide(NOW)

    def begin(self, frames: int) -> int:
        """Begin a slice with so many frames waiting; return the sequence of its directive."""
        self.now += 5 * MS
        self.core.look(self.now, 0, frames * FRAME, self.sent)
        sequence = self.core.direct(self.now, SLICE, self.now, self.now + SLICE_NS)
        self.core.decide(self.now)
        self.left = frames * FRAME
        return sequence

    def look(self, after: int, leaves: int) -> int:
        """See so many bytes gone so long after the slice began; return what is decided."""
        self.left -= leaves
        self.sent += leaves
        self.core.look(self.now + after, 0, self.left, self.sent)
        return self.core.decide(self.now + after)

    def give_up(self, frames: int = 2) -> int:
        """Have little, send it at once, and give the slice up after the hysteresis."""
        sequence = self.begin(frames)
        self.look(50 * US, self.left)
        self.core.decide(self.now + 50 * US + HYSTERESIS)
        assert self.core.gave_up == sequence
        return sequence

    def told_backlog(self) -> int:
        return sum(backlog for _, backlog, _ in self.core.report()[1])


def small(shim: ctypes.CDLL, skew: int = 0) -> Sender:
    """Return one whose last two slices were given up."""
    sender = Sender(shim, skew)
    sender.give_up()
    sender.give_up()
    return sender


@given(st.integers(3, 200), st.integers(-(10**11), 10**11))
def test_the_third_slice_is_given_up_as_it_begins(
    shim: ctypes.CDLL, frames: int, skew: int
) -> None:
    sender = small(shim, skew)
    sequence = sender.begin(frames)
    assert sender.look(LOOK, BURST) & REPORT
    assert sender.core.gave_up == sequence
    done = sender.now + carried(frames) + HYSTERESIS
    assert sender.core.free == pytest.approx(done + GUARD, abs=2)
    assert sender.told_backlog() == 0  # what waits leaves in this slice
    sender.core.decide(done - 10 * US)
    assert sender.core.rates[0] == PACED
    sender.core.decide(done + 10 * US)
    assert sender.core.rates[0] == 0


def test_what_leaves_in_a_burst_is_on_the_link_all_the_same(shim: ctypes.CDLL) -> None:
    sender = Sender(shim)
    sender.give_up(frames=100)  # all of it gone when it is looked at
    assert sender.core.free == pytest.approx(sender.now + carried(100), abs=2)


def test_one_that_has_nothing_left_on_the_link_is_done_at_once(shim: ctypes.CDLL) -> None:
    sender = Sender(shim)
    sender.give_up(frames=1)
    assert sender.core.free == 0


def test_one_slice_given_up_is_no_habit(shim: ctypes.CDLL) -> None:
    sender = Sender(shim)
    given_up = sender.give_up()
    sender.begin(20)
    sender.look(LOOK, BURST)
    assert sender.core.gave_up == given_up


def test_more_than_a_slice_holds_is_given_no_end(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    given_up = sender.core.gave_up
    sender.begin(1 + SLICE_NS // carried(1))
    sender.look(LOOK, BURST)
    assert sender.core.gave_up == given_up


def test_a_slice_that_is_used_whole_ends_the_habit(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    given_up = sender.core.gave_up
    sender.begin(1000)
    sender.look(LOOK, BURST)
    sender.look(SLICE_NS - GUARD, 300 * FRAME)
    sender.begin(20)
    sender.look(LOOK, BURST)
    assert sender.core.gave_up == given_up


def test_what_comes_while_it_leaves_is_reported_when_its_gate_has_closed(
    shim: ctypes.CDLL,
) -> None:
    sender = small(shim)
    sender.begin(20)
    sender.look(LOOK, BURST)
    during, after = carried(10), carried(20) + HYSTERESIS + 10 * US
    sender.core.look(sender.now + during, 0, 15 * FRAME, sender.sent)
    assert not sender.core.decide(sender.now + during) & REPORT
    sender.core.decide(sender.now + after)
    assert sender.core.rates[0] == 0
    assert sender.told_backlog() == 0  # not what was seen before it closed
    sender.core.look(sender.now + after, 0, 5 * FRAME, sender.sent)
    assert sender.core.decide(sender.now + after + 100 * US) & REPORT
    assert sender.told_backlog() == 5 * FRAME


def test_what_was_sent_before_the_slice_is_not_on_the_link_any_more(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    sender.core.direct(sender.now + 5 * MS, OPEN, 0, 0)
    sender.core.decide(sender.now + 5 * MS)
    sender.sent += 10**12  # hours later
    sender.begin(20)  # its gate never closed
    sender.look(LOOK, BURST)
    done = sender.now + carried(20) + HYSTERESIS
    assert sender.core.free == pytest.approx(done + GUARD, abs=2)


def test_who_could_have_sent_on_leaves_no_more(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    given_up = sender.begin(20)
    sender.look(LOOK, BURST)
    assert sender.core.gave_up == given_up
    closed = sender.now + carried(20) + HYSTERESIS + 10 * US
    sender.core.decide(closed)
    sender.core.look(closed, 0, 15 * FRAME, sender.sent + 18 * FRAME)  # as fast as it left
    sender.sent += 18 * FRAME
    sender.begin(20)
    sender.look(LOOK, BURST)
    assert sender.core.gave_up == given_up


def test_who_fell_back_hides_no_backlog(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    sender.begin(20)
    sender.look(LOOK, BURST)
    assert sender.told_backlog() == 0
    later = sender.now + SILENCE + MS
    sender.core.decide(later)
    sender.core.look(later, 0, 100 * FRAME, sender.sent)
    assert sender.told_backlog() == 100 * FRAME


def test_a_queue_that_was_empty_for_a_moment_is_given_the_time_it_takes(
    shim: ctypes.CDLL,
) -> None:
    sender = small(shim)
    sender.begin(1)
    sender.look(LOOK, FRAME)
    after = LOOK + HYSTERESIS - 5 * US
    sender.core.look(sender.now + after, 0, 30 * FRAME, sender.sent)
    sender.core.decide(sender.now + after)
    done = sender.now + after + carried(30) + HYSTERESIS
    assert sender.core.free == pytest.approx(done + GUARD, abs=2)


def test_no_slice_is_given_up_before_it_begins(shim: ctypes.CDLL) -> None:
    sender = small(shim)
    given_up = sender.core.gave_up
    sender.core.advance(20 * US)
    start = sender.now + 5 * MS
    sender.core.direct(start - MS, SLICE, start, start + SLICE_NS)
    sender.core.look(start - 20 * US, 0, FRAME, sender.sent)
    sender.core.decide(start - 20 * US)
    sender.core.look(start - 10 * US, 0, FRAME, sender.sent)
    sender.core.decide(start - 10 * US)
    assert sender.core.gave_up == given_up


def test_gates_are_set_ahead_by_what_setting_takes(shim: ctypes.CDLL) -> None:
    sender = Sender(shim)
    sender.core.advance(20 * US)
    start = NOW + MS
    sender.core.direct(NOW, SLICE, start, start + SLICE_NS)
    sender.core.decide(NOW)
    sender.core.look(NOW, 0, FRAME)
    now, precise = NOW, False
    while not precise:
        now, precise = sender.core.alarm(now)
        sender.core.look(now, 0, FRAME)
        assert sender.core.rates[0] == 0
        sender.core.decide(now)
    assert now == start - 20 * US
    assert sender.core.rates[0] == PACED

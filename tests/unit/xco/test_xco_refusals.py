"""When a host refuses new connections to another one: the compiled law, and what a liar can do."""

import ctypes
import itertools
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import LINE, MS, NOW, SILENCE, build, long
from xco_peers_rig import World

PERIOD, HOLD = 10 * MS, 100 * MS
MOST = REST = 5000 * MS
SYNS = (0, 1, 3, 7)
"""Seconds after the first of the SYNs of a connection (RFC 6298)."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = build(tmp_path_factory.mktemp("shim"))
    loaded.xco_admission_follow.restype = ctypes.c_bool
    return loaded


class Heard(ctypes.Structure):
    """struct xco_admission_heard."""

    _fields_: ClassVar = [
        ("packets", ctypes.c_uint64),
        ("marks", ctypes.c_uint64),
        ("at_ns", ctypes.c_int64),
    ]


class Terms(ctypes.Structure):
    """struct xco_admission_terms."""

    _fields_: ClassVar = [("limit", ctypes.c_double), ("silence_ns", ctypes.c_int64)]


class Admission(ctypes.Structure):
    """struct xco_admission."""

    _fields_: ClassVar = [
        ("heard", Heard),
        ("share", ctypes.c_double),
        ("mean", ctypes.c_double),
        *(
            (f"{name}_ns", ctypes.c_int64)
            for name in ("arrived", "above", "below", "began", "rests")
        ),
    ]


class Way:
    """One destination, from which a message comes each period."""

    def __init__(self, shim: ctypes.CDLL, limit: float = 0.5) -> None:
        self._shim, self._terms = shim, Terms(limit, SILENCE)
        self.state, self._told = Admission(), Heard()
        self.now = NOW

    def follow(self) -> bool:
        """Judge what was said last; return whether connections are refused."""
        parts = (ctypes.byref(one) for one in (self.state, self._terms))
        state, terms = parts
        told = ctypes.byref(self._told)
        return bool(self._shim.xco_admission_follow(state, terms, long(self.now), told))

    def hear(self, packets: int, marks: int) -> bool:
        """Let a period pass in which so much arrived."""
        self.now += PERIOD
        return self.tell(self._told.packets + packets, self._told.marks + marks)

    def tell(self, packets: int, marks: int) -> bool:
        """Take a message with these counters."""
        self._told = Heard(packets, marks, self.now)
        return self.follow()

    def through(self, milliseconds: int, share: float, packets: int = 100) -> list[bool]:
        """Hear the same share for some time."""
        marks = round(packets * share)
        return [self.hear(packets, marks) for _ in range(milliseconds * MS // PERIOD)]

    def wait(self, milliseconds: int) -> list[bool]:
        """Hear nothing for some time."""
        found = []
        for _ in range(milliseconds * MS // PERIOD):
            self.now += PERIOD
            found.append(self.follow())
        return found


@pytest.fixture
def way(shim: ctypes.CDLL) -> Way:
    return Way(shim)


def refusing(shim: ctypes.CDLL, limit: float = 0.5) -> Way:
    way = Way(shim, limit)
    way.through(300, 1.0)
    assert way.follow()
    return way


def test_marks_that_last_refuse_connections_until_they_end(way: Way) -> None:
    began = way.through(400, 0.8).index(True) * PERIOD
    assert HOLD <= began <= HOLD + 4 * PERIOD
    assert all(way.through(1000, 0.3)), "half the limit is the end of it"
    ended = way.through(400, 0.1).index(False) * PERIOD
    assert HOLD <= ended <= HOLD + 4 * PERIOD
    assert not any(way.through(400, 0.1))


@pytest.mark.parametrize("limit", [0.05, 0.5, 1.0])
def test_a_burst_refuses_nothing(shim: ctypes.CDLL, limit: float) -> None:
    way = Way(shim, limit)
    for _ in range(5):
        assert not any(way.through(60, 1.0) + way.through(200, 0.0))
    assert not any(way.through(60, 1.0) + way.wait(500)), "nor one after which nothing arrives"


def test_marks_of_every_packet_reach_the_highest_limit(shim: ctypes.CDLL) -> None:
    assert Way(shim, 1.0).through(2000, 1.0)[-1]


def test_a_refusal_ends_when_nothing_arrives(shim: ctypes.CDLL) -> None:
    way = refusing(shim)
    assert way.through(90, 0.0, packets=0)[-1]
    assert not way.through(20, 0.0, packets=0)[-1]


def test_a_refusal_ends_with_the_silence(shim: ctypes.CDLL) -> None:
    way = refusing(shim)
    way.now += SILENCE - 1
    assert way.follow()
    way.now += 1
    assert not way.follow()


def test_a_refusal_has_a_longest_duration_and_a_rest_after_it(shim: ctypes.CDLL) -> None:
    found = Way(shim).through(20_000, 1.0)
    changes = [at for at in range(1, len(found)) if found[at] != found[at - 1]]
    first, second, third = (b - a for a, b in itertools.pairwise(changes))
    assert (first * PERIOD, second * PERIOD, third * PERIOD) == (MOST, REST, MOST)


def test_counters_that_restart_tell_nothing(shim: ctypes.CDLL) -> None:
    way = Way(shim)
    way.through(80, 1.0)
    way.now += PERIOD
    assert not way.tell(10, 10)
    assert not any(way.through(90, 1.0))
    assert way.through(50, 1.0)[-1]


def test_more_messages_refuse_no_earlier(way: Way) -> None:
    """A period is a time, not a message."""
    for at in range(1, 90):
        way.now += MS
        assert not way.tell(at * 10, at * 10)


def over_a_link(shim: ctypes.CDLL, capacity: float, warm_s: int, limit: float) -> list[bool]:
    """Return for 3 s whether one of eight hosts is refused whose flows share a link of this part.

    Their rates follow the link's marks, first for `warm_s` seconds.
    """
    world, way = World(shim, 16, {"core": capacity * LINE}), Way(shim, limit)
    flows = [world.send(at, at + 8, float("inf"), "core") for at in range(8)]
    world.run(warm_s * 1000 + 1)
    found = []
    for _ in range(300):
        world.run(10)
        way.now = world.now
        found.append(way.tell(int(flows[0].arrived), int(flows[0].marked)))
    return found


@pytest.mark.parametrize("limit", [0.05, 0.8])
def test_rates_that_have_settled_refuse_nothing(shim: ctypes.CDLL, limit: float) -> None:
    assert not any(over_a_link(shim, 1.0, 3, limit))


def test_a_link_that_rates_do_not_relieve_refuses_connections(shim: ctypes.CDLL) -> None:
    """The guaranteed twentieth of safe shares alone exceeds it."""
    assert sum(over_a_link(shim, 0.02, 1, 0.8)) > 280


LIMITS = st.floats(1e-6, 1.0)
PERIODS = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1)), max_size=300)


@given(LIMITS, PERIODS)
def test_below_the_limit_nothing_is_refused(
    shim: ctypes.CDLL, limit: float, periods: list[tuple[int, float]]
) -> None:
    way = Way(shim, limit)
    for packets, part in periods:
        assert not way.hear(packets, int(packets * limit * part * (1 - 1e-9)))


U64 = st.integers(0, 2**64 - 1)
STEPS = st.tuples(st.integers(0, 3000 * MS), st.booleans(), U64, U64)
LIES = st.tuples(st.integers(1, 700), st.sampled_from([0.0, 1.0]), st.integers(0, 12))


@given(LIMITS, st.lists(STEPS, max_size=100))
def test_what_was_said_too_long_ago_never_refuses(
    shim: ctypes.CDLL, limit: float, steps: list[tuple[int, bool, int, int]]
) -> None:
    way, heard = Way(shim, limit), 0
    for pause, speaks, packets, marks in steps:
        way.now += pause
        heard = way.now if speaks else heard
        refused = way.tell(packets, marks) if speaks else way.follow()
        assert not refused or way.now - heard < SILENCE


@given(st.lists(LIES, min_size=1, max_size=20), st.integers(0, 10**6))
def test_whatever_a_host_says_a_connection_is_made_within_seven_seconds(
    shim: ctypes.CDLL, lies: list[tuple[int, float, int]], phase: int
) -> None:
    """A refusal is no longer than the rest after it: not all of a connection's SYNs meet one."""
    way, refused = Way(shim), list[bool]()
    for periods, share, silent in lies:
        refused += way.through(periods * PERIOD // MS, share) + way.wait(silent * PERIOD // MS)
    each = 10**9 // PERIOD
    refused += [False] * (SYNS[-1] * each + 1)
    start = phase % (len(refused) - SYNS[-1] * each)
    assert not all(refused[start + second * each] for second in SYNS)
    longest = max(map(len, "".join("x" if one else " " for one in refused).split()), default=0)
    assert longest * PERIOD <= MOST

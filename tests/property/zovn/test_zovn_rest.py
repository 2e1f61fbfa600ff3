"""How long the forwarding thread sleeps: briefly after a move, and longer while nothing moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zovn_rig import build

from zovn.native.switch import library

LONGEST, FIRST, LEAST_IDLE, MOST_IDLE = 100_000_000, 20_000, 1_000_000, 4_000_000
NEVER = 2**64 - 1
PORTS = st.integers(1, 72)


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    build()


def nap(polled: int, before: int = 0, due: int = NEVER) -> int:
    return int(library().zovn_rest_ns(polled, before, due))


def settled(polled: int) -> int:
    """Return how long it sleeps after a while without a move."""
    before = 0
    for _ in range(10):
        before = nap(polled, before)
    return before


@given(st.integers(0, NEVER), st.integers(1, NEVER))
def test_without_polled_ports_only_a_rate_ends_the_long_sleep(before: int, due: int) -> None:
    assert nap(0, before, due) == min(LONGEST, due)


@given(PORTS)
def test_after_a_move_it_is_short_and_doubles_until_it_is_settled(polled: int) -> None:
    naps = [nap(polled)]
    while naps[-1] < settled(polled):
        naps.append(nap(polled, naps[-1]))
    assert naps[0] == FIRST
    assert naps[:-1] == [FIRST << number for number in range(len(naps) - 1)]
    assert LEAST_IDLE <= naps[-1] <= MOST_IDLE


@given(PORTS, st.integers(0, NEVER), st.integers(1, NEVER))
def test_it_is_over_when_a_frame_is_due_and_never_long(polled: int, before: int, due: int) -> None:
    assert min(FIRST, due) <= nap(polled, before, due) <= min(settled(polled), due)


@given(PORTS)
def test_more_ports_sleep_longer_and_are_stepped_less_before(polled: int) -> None:
    steps = library().zovn_rest_steps
    assert settled(polled) <= settled(polled + 1)
    assert 1 <= steps(polled + 1) <= steps(polled) < steps(0)

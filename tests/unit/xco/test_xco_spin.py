"""How long a coordinator waits awake before a gate's time, from how late it woke up."""

import ctypes
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import US, build

MOST = 100 * US


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = build(tmp_path_factory.mktemp("spin"))
    library.xco_spin_ns.restype = ctypes.c_int64
    return library


class Spin(ctypes.Structure):
    """struct xco_spin."""

    _fields_ = (("late_ns", ctypes.c_int64),)


def learn(shim: ctypes.CDLL, lateness: list[int]) -> list[int]:
    """Return how long it waits awake before each of these wake-ups, and after them."""
    spin = Spin()
    shim.xco_spin_begin(ctypes.byref(spin))
    waits = []
    for late in lateness:
        waits.append(int(shim.xco_spin_ns(ctypes.byref(spin), ctypes.c_int64(MOST))))
        shim.xco_spin_learn(ctypes.byref(spin), ctypes.c_int64(late), ctypes.c_int64(MOST))
    return [*waits, int(shim.xco_spin_ns(ctypes.byref(spin), ctypes.c_int64(MOST)))]


@given(st.integers(0, 80 * US), st.integers(0, 2**32))
def test_nineteen_of_twenty_wake_ups_are_not_later(
    shim: ctypes.CDLL, middle: int, seed: int
) -> None:
    chance = random.Random(seed)
    late = [middle + chance.randrange(10 * US) for _ in range(4000)]
    later = [one > wait for one, wait in zip(late, learn(shim, late), strict=False)][2000:]
    assert 0.02 < sum(later) / len(later) < 0.1


@given(st.lists(st.integers(-(10**9), 10**12), max_size=200))
def test_it_is_never_longer_than_what_was_configured(shim: ctypes.CDLL, late: list[int]) -> None:
    assert all(0 <= wait <= MOST for wait in learn(shim, late))


def test_one_that_is_very_late_changes_little(shim: ctypes.CDLL) -> None:
    usual = [20 * US] * 2000
    assert abs(learn(shim, [*usual, 10**9])[-1] - learn(shim, usual)[-1]) <= 2 * US

"""Background work of the coordinator: in pieces, and not shortly before a gate is to be set."""

import ctypes

import pytest
from xco_coordinator_rig import NOW, US, build, long

NEVER = 2**63 - 1


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = build(tmp_path_factory.mktemp("shim"))
    loaded.xco_chores_from.restype = ctypes.c_int64
    loaded.xco_walk_take.restype = ctypes.c_bool
    return loaded


@pytest.mark.parametrize(
    ("moves", "begins"),
    [
        (NEVER, 0),
        (300 * US, 0),
        (299 * US, 299 * US),
        (1, 1),
        (0, 0),
        (-5 * US, 0),
    ],
)
def test_nothing_is_begun_shortly_before_a_gate_is_set(
    shim: ctypes.CDLL, moves: int, begins: int
) -> None:
    at = moves if moves == NEVER else NOW + moves
    assert shim.xco_chores_from(long(NOW), long(at)) == NOW + begins


def test_a_walk_takes_each_entry_once_and_begins_again(shim: ctypes.CDLL) -> None:
    walk, entry = ctypes.c_uint(0), ctypes.c_uint()
    for _ in range(2):
        seen = []
        while shim.xco_walk_take(ctypes.byref(walk), 40, ctypes.byref(entry)):
            seen.append(entry.value)
        assert seen == list(range(40))

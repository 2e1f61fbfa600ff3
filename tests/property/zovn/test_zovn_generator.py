"""The checker of the figures: what it says of received numbers is what became of them."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
CORE = ROOT / "zovn" / "core"
SOURCES = (
    ROOT / "tests" / "rigs" / "zovn_generator_shim.c",
    CORE / "tools" / "generator_frames.c",
)
SEEN = 1024
"""Numbers before the newest of which it knows whether they came."""
NUMBERS = st.lists(st.integers(0, 4000), max_size=200)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("generator") / "shim.so"
    flags = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-iquote", CORE]
    subprocess.run(["cc", *flags, "-o", made, *SOURCES], check=True)
    return ctypes.CDLL(str(made))


def received(shim: ctypes.CDLL, numbers: list[int]) -> tuple[int, int, int]:
    """Return what the checker counts: received, repeated, overtaken."""
    found = (ctypes.c_uint64 * 3)()
    shim.shim_receive((ctypes.c_uint64 * len(numbers))(*numbers), len(numbers), found)
    return found[0], found[1], found[2]


def expected(numbers: list[int]) -> tuple[int, int, int]:
    """Return the same from a set of all numbers; those from long ago count as overtaken."""
    seen: set[int] = set()
    repeated = overtaken = following = 0
    for number in numbers:
        if number < following:
            again = number in seen and number + SEEN >= following
            repeated, overtaken = repeated + again, overtaken + (not again)
        following = max(following, number + 1)
        seen.add(number)
    return len(numbers), repeated, overtaken


@given(NUMBERS)
def test_any_numbers_are_counted_as_a_set_of_them_would(
    shim: ctypes.CDLL, numbers: list[int]
) -> None:
    assert received(shim, numbers) == expected(numbers)


@given(st.integers(1, 3000), st.integers(0, 2999), st.sampled_from(["twice", "late"]))
def test_one_frame_of_many_that_comes_twice_or_late_is_found(
    shim: ctypes.CDLL, count: int, which: int, way: str
) -> None:
    numbers, one = list(range(count)), min(which, count - 1)
    if way == "late":
        numbers.remove(one)
    late = int(way == "late" and one < count - 1)
    recent = one + SEEN >= count
    repeated = int(way == "twice" and recent)
    found = received(shim, [*numbers, one])
    assert found == (len(numbers) + 1, repeated, late + int(way == "twice" and not recent))

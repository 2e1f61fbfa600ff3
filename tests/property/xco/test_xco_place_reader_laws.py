"""A reader of a log of addresses knows where each is, whatever came between its messages."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
CORE = ROOT / "xco" / "core"
SHIM = ROOT / "tests" / "rigs" / "xco_place_reader_shim.c"
FLAGS = ("-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared")
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
ADDRESSES, NOWHERE = 12, 0xFFFF
MOVES = st.tuples(st.integers(0, ADDRESSES - 1), st.sampled_from([0, 1, 2, NOWHERE]))
STEPS = st.lists(st.one_of(MOVES, st.sampled_from(["tell", "sweep", "restart"])), max_size=40)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("reader") / "shim.so"
    sources = [SHIM, CORE / "common" / "place_log.c", CORE / "common" / "place_reader.c"]
    command = ["cc", *FLAGS, *SANITIZED, f"-I{CORE}", "-o", library, *sources]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.shim_pair.restype = ctypes.c_void_p
    loaded.shim_tell.restype = loaded.shim_agrees.restype = ctypes.c_bool
    return loaded


@given(STEPS)
def test_what_was_read_and_swept_is_what_there_is(
    shim: ctypes.CDLL, steps: list[tuple[int, int] | str]
) -> None:
    pair = ctypes.c_void_p(shim.shim_pair())
    shim.shim_restart(pair)
    for step in steps:
        if isinstance(step, str):
            getattr(shim, f"shim_{step}")(pair)
        else:
            shim.shim_move(pair, *step)
    shim.shim_tell(pair)
    shim.shim_sweep(pair)
    assert shim.shim_agrees(pair, ADDRESSES)
    shim.shim_end(pair)


def test_an_address_that_comes_before_the_sweep_stays(shim: ctypes.CDLL) -> None:
    pair = ctypes.c_void_p(shim.shim_pair())
    shim.shim_move(pair, 0, 1)
    assert shim.shim_tell(pair)
    shim.shim_move(pair, 1, 2)
    shim.shim_tell(pair)
    shim.shim_sweep(pair)
    assert shim.shim_agrees(pair, ADDRESSES)
    shim.shim_end(pair)

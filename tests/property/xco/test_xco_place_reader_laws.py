"""A reader of a log of addresses knows where each is, whatever came between its messages."""

import ctypes
import subprocess
from collections.abc import Iterator
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
HOSTS = (0, 1, 2)
MOVES = st.tuples(st.integers(0, ADDRESSES - 1), st.sampled_from([*HOSTS, NOWHERE]))
HEARD = st.sampled_from(HOSTS)
STEPS = st.lists(
    st.one_of(MOVES, HEARD, st.sampled_from(["tell", "sweep", "restart"])), max_size=40
)
Step = tuple[int, int] | int | str


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("reader") / "shim.so"
    sources = [SHIM, CORE / "common" / "place_log.c", CORE / "common" / "place_reader.c"]
    command = ["cc", *FLAGS, *SANITIZED, f"-I{CORE}", "-o", library, *sources]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.shim_pair.restype = ctypes.c_void_p
    loaded.shim_tell.restype = loaded.shim_agrees.restype = ctypes.c_bool
    loaded.shim_sweep.restype = ctypes.c_bool
    return loaded


@pytest.fixture
def pair(shim: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
    made = ctypes.c_void_p(shim.shim_pair())
    yield made
    shim.shim_end(made)


def take(shim: ctypes.CDLL, pair: ctypes.c_void_p, step: Step) -> bool:
    """Have the writer restart, hear of all of a host, or move an address; or the reader go on.

    Returns whether it swept.
    """
    if isinstance(step, int):
        shim.shim_hear(pair, step)
    elif isinstance(step, tuple):
        shim.shim_move(pair, *step)
    else:
        swept = getattr(shim, f"shim_{step}")(pair)
        return step == "sweep" and bool(swept)
    return False


@given(STEPS)
def test_what_was_read_and_swept_is_what_there_is(shim: ctypes.CDLL, steps: list[Step]) -> None:
    pair = ctypes.c_void_p(shim.shim_pair())
    shim.shim_restart(pair)
    for step in (*steps, *HOSTS, "tell", "sweep"):
        take(shim, pair, step)
    assert shim.shim_agrees(pair, ADDRESSES)
    shim.shim_end(pair)


class Model:
    """What the writer has said since it began, what of it was read, and where each address is."""

    def __init__(self) -> None:
        self.where = dict.fromkeys(range(ADDRESSES), NOWHERE)
        self.said, self.heard = dict[int, int](), set[int]()
        self.read = self.said, self.heard

    def take(self, step: Step) -> None:
        """Take a step, other than a sweep."""
        if isinstance(step, int):
            self.heard.add(step)
        elif isinstance(step, tuple):
            if step[0] in self.said or step[1] != NOWHERE:
                self.said[step[0]] = step[1]
        elif step == "restart":
            self.said, self.heard = {}, set()
        elif step == "tell":
            self.read = self.said.copy(), self.heard.copy()
            self.where |= self.said

    def sweep(self) -> None:
        """Forget what a host of which all was heard does not have."""
        said, heard = self.read
        gone = [one for one, at in self.where.items() if at in heard and one not in said]
        self.where |= dict.fromkeys(gone, NOWHERE)


@given(STEPS)
def test_what_a_writer_says_counts_and_what_it_has_not_heard_of_stays(
    shim: ctypes.CDLL, steps: list[Step]
) -> None:
    pair, model = ctypes.c_void_p(shim.shim_pair()), Model()
    for step in (*steps, "tell", "sweep"):
        model.take(step)
        if take(shim, pair, step):
            model.sweep()
    assert {one: shim.shim_where(pair, one) for one in model.where} == model.where
    shim.shim_end(pair)


def steps(shim: ctypes.CDLL, pair: ctypes.c_void_p, *some: Step) -> None:
    for step in some:
        take(shim, pair, step)


def test_a_host_that_a_new_writer_has_not_heard_of_keeps_its_addresses(
    shim: ctypes.CDLL, pair: ctypes.c_void_p
) -> None:
    steps(shim, pair, (0, 1), (1, 2), 1, 2, "tell", "sweep")
    steps(shim, pair, "restart", 1, "tell", "sweep")
    assert [shim.shim_where(pair, one) for one in (0, 1)] == [NOWHERE, 2]
    steps(shim, pair, 2, "tell", "sweep")
    assert shim.shim_where(pair, 1) == NOWHERE


def test_an_address_that_moved_meanwhile_is_where_its_new_host_says(
    shim: ctypes.CDLL, pair: ctypes.c_void_p
) -> None:
    steps(shim, pair, (0, 2), 1, 2, "tell", "sweep")
    steps(shim, pair, "restart", (0, 1), 1, "tell", "sweep")
    assert shim.shim_where(pair, 0) == 1
    steps(shim, pair, 2, "tell", "sweep")
    assert shim.shim_where(pair, 0) == 1


def test_an_address_that_comes_before_the_sweep_stays(
    shim: ctypes.CDLL, pair: ctypes.c_void_p
) -> None:
    steps(shim, pair, (0, 1), 1, 2, "tell", (1, 2), "tell", "sweep")
    assert shim.shim_agrees(pair, ADDRESSES)

"""Programs that are loaded ahead: taken once each, refilled in the background, errors told."""

import errno
import threading
from itertools import count
from typing import cast

import pytest
from support.waiting import eventually

from xtc.kernel.bpf import Program
from xtc.shield.spares import Spares


class Kernel:
    """Loads numbers, in whichever thread asks; refuses where it is told to."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.threads: list[int] = []
        self.refuses = False

    def load(self) -> Program:
        if self.refuses:
            raise OSError(errno.EPERM, "no CAP_BPF")
        self.threads.append(threading.get_ident())
        return cast("Program", next(self.numbers))


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def test_without_a_beginning_each_is_loaded_by_who_takes_it(kernel: Kernel) -> None:
    spares = Spares(kernel.load, keep=2)
    assert [spares.take(), spares.take()] == [1, 2]
    assert set(kernel.threads) == {threading.get_ident()}


def test_those_ahead_are_loaded_elsewhere_and_refilled(kernel: Kernel) -> None:
    spares = Spares(kernel.load, keep=2)
    spares.begin()
    eventually(lambda: spares.ready == 2)
    assert [spares.take(), spares.take()] == [1, 2]
    eventually(lambda: spares.ready == 2)
    assert threading.get_ident() not in kernel.threads
    assert spares.take() == 3


def test_who_takes_one_is_told_why_there_is_none(kernel: Kernel) -> None:
    kernel.refuses = True
    spares = Spares(kernel.load, keep=1)
    spares.begin()
    with pytest.raises(OSError, match="no CAP_BPF"):
        spares.take()
    kernel.refuses = False
    assert spares.take()
    eventually(lambda: len(kernel.threads) >= 2)

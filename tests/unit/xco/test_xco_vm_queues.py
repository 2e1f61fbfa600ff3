"""Queues of VMs are made, changed and removed in pieces, and divide a guarantee among gates."""

import ctypes
import subprocess
from pathlib import Path

import pytest
from xco_coordinator_rig import CORE, FLAGS, MS, NOW, long

SHIM = Path(__file__).parents[2] / "rigs" / "xco_vm_queues_shim.c"
PARTS = ("vm_queues.c", "engine/vms.c", "engine/chores.c")
GATES, SLOTS, OUTSIDE, PIECE = 65, 32, 64, 16
GOLD, TIN = 8, 9
MBPS = 10**6


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("queues") / "shim.so"
    sources = [CORE / "coordinator" / part for part in PARTS]
    subprocess.run(["cc", *FLAGS, f"-I{CORE}", "-o", library, SHIM, *sources], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.shim_begin.restype = ctypes.c_void_p
    loaded.shim_guarantee.restype = ctypes.c_uint64
    loaded.shim_work.restype = loaded.xco_vm_queues_stand.restype = ctypes.c_bool
    return loaded


class Host:
    """A host with some gates."""

    def __init__(self, shim: ctypes.CDLL, gates: int) -> None:
        self._shim, self._state = shim, ctypes.c_void_p(shim.shim_begin(gates))
        self._bytes = [(ctypes.c_uint64 * SLOTS)() for _ in range(GATES)]
        self.now = NOW

    def set(self, slot: int, weight: int, guarantee_mbps: int = 0) -> None:
        self._shim.shim_set(self._state, slot, weight, guarantee_mbps)

    def piece(self, clear: bool = True) -> tuple[list[int], bool]:
        """Do a piece; return how many queues were added, changed, removed, and if that was all."""
        done = (ctypes.c_uint * 3)()
        over = self._shim.shim_work(self._state, long(self.now), clear, done)
        return list(done), over

    def all(self) -> list[int]:
        """Do all that is due."""
        total, over = [0, 0, 0], False
        while not over:
            done, over = self.piece()
            total = [a + b for a, b in zip(total, done, strict=True)]
        return total

    def stands(self, slot: int) -> bool:
        return bool(self._shim.xco_vm_queues_stand(self._state, slot))

    def send(self, **mbps: int) -> None:
        """Have gold send to gates, such as g0=40, for three windows and a look."""
        for _ in range(31):
            self.now += 5 * MS
            for name, rate in mbps.items():
                gate = int(name[1:])
                self._bytes[gate][GOLD] += rate * MBPS // 8 // 200
                self._shim.shim_look(self._state, long(self.now), gate, self._bytes[gate])

    def guarantees(self, gates: int) -> list[int]:
        """Return gold's guarantee behind the first gates, in Mbit/s."""
        return [
            round(self._shim.shim_guarantee(self._state, gate, GOLD) / MBPS)
            for gate in range(gates)
        ]


def test_a_vm_that_comes_gets_its_queues_in_pieces(shim: ctypes.CDLL) -> None:
    host = Host(shim, GATES)
    host.set(GOLD, 3)
    assert host.piece(clear=False) == ([0, 0, 0], False)
    for _ in range(GATES // PIECE):
        assert host.piece() == ([PIECE, 0, 0], False)
        assert not host.stands(GOLD)
    assert host.piece() == ([GATES % PIECE, 0, 0], True)
    assert host.stands(GOLD)
    assert host.piece() == ([0, 0, 0], True)


def test_a_vm_that_goes_leaves_in_pieces(shim: ctypes.CDLL) -> None:
    host = Host(shim, 20)
    host.set(GOLD, 3)
    host.all()
    host.set(GOLD, 0)
    assert host.piece() == ([0, 0, PIECE], False)
    assert host.piece() == ([0, 0, 20 - PIECE], True)


def test_a_slot_with_another_vm_changes_the_queues_that_are_left(shim: ctypes.CDLL) -> None:
    host = Host(shim, 20)
    host.set(GOLD, 3)
    host.all()
    host.set(GOLD, 0)
    host.piece()
    host.set(GOLD, 5)
    assert host.all() == [PIECE, 20 - PIECE, 0]
    assert host.stands(GOLD)


def test_a_guarantee_is_divided_among_gates_as_it_is_used(shim: ctypes.CDLL) -> None:
    host = Host(shim, 3)
    host.set(GOLD, 1, 40)
    host.all()
    assert host.guarantees(3) == [40, 40, 40]  # it sends nowhere: whichever is first
    host.send(g0=400)
    host.all()
    assert host.guarantees(3) == [40, 20, 20]  # a new one begins with its part by count
    host.send(g0=400, g1=400)
    host.all()
    assert host.guarantees(2) == [20, 20]
    host.send(g0=4, g1=400)
    host.all()
    assert host.guarantees(2) == [7, 33]


def test_a_guarantee_changes_on_news_only(shim: ctypes.CDLL) -> None:
    host = Host(shim, 2)
    host.set(GOLD, 1, 1000)
    host.all()
    host.send(g0=100)
    assert host.all()[1] > 0
    host.send(g0=107)
    assert host.all() == [0, 0, 0]
    host.send(g0=150)
    assert host.all() == [0, 1, 0]


def test_destinations_outside_have_what_hosts_leave(shim: ctypes.CDLL) -> None:
    host = Host(shim, GATES)
    host.set(GOLD, 1, 40)
    host.all()
    host.send(g0=10)
    host.all()
    assert host.guarantees(GATES)[OUTSIDE] == pytest.approx(40 - 16, rel=1 / 8)
    host.send(g0=400)
    host.all()
    assert host.guarantees(GATES)[OUTSIDE] == 0


def test_vms_without_a_guarantee_change_nothing(shim: ctypes.CDLL) -> None:
    host = Host(shim, 3)
    host.set(GOLD, 3)
    host.set(TIN, 1)
    host.all()
    host.send(g0=400, g1=4)
    assert host.all() == [0, 0, 0]

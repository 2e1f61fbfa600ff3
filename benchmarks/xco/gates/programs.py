"""The coordinator's BPF programs, run on single frames by the kernel (BPF_PROG_TEST_RUN).

It needs root, a compiler and libbpf's headers. It uses no queues: fq's handling of a time of
departure is not included.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from xco.core_files import CLASSIFIER, find

HERE: Final = Path(__file__).parent
CORE: Final = Path(__file__).parents[3] / "xco" / "core"
FLAGS: Final = ("-std=c17", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared")
PASS, DROP = -1, 2  # TC_ACT_UNSPEC, TC_ACT_SHOT
OUTSIDE, NEWCOMERS, SMALL, CONTROL = 64, 65, 66, 67
"""Queues behind those of the gates (xco/core/qdisc/maps.h)."""


@dataclass(frozen=True)
class Queue:
    """State of a queue: times are of CLOCK_MONOTONIC."""

    next_ns: int
    rate_bps: int
    sent_bytes: int
    dropped_bytes: int


@dataclass(frozen=True)
class Ran:
    """A program's result for a frame: its action, the frame's time of departure, its run time."""

    verdict: int
    departs_ns: int
    took_ns: int


def build(folder: Path) -> ctypes.CDLL:
    """Compile the runner of the programs.

    Raises:
        CalledProcessError: the compiler failed; it prints the reason.
    """
    library = folder / "programs.so"
    sources = [HERE / "programs.c", CORE / "qdisc/classifier.c"]
    command = ["cc", *FLAGS, f"-I{CORE}", "-o", str(library), *map(str, sources), "-lbpf"]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(library), use_errno=True)
    loaded.programs_open.restype = ctypes.c_void_p
    loaded.programs_waiting.restype = ctypes.c_uint64
    return loaded


class Programs:
    """The loaded programs with their maps; `paced`: times of departure instead of classes."""

    def __init__(
        self,
        library: ctypes.CDLL,
        *,
        paced: bool = True,
        hosts: int = 64,
        horizon_ns: int = 50_000_000,
    ) -> None:
        """Load them.

        Raises:
            OSError: the kernel rejects them, or they are not built.
        """
        self._library = library
        file = str(find(CLASSIFIER)).encode()
        opened = library.programs_open(file, int(paced), hosts, ctypes.c_uint64(horizon_ns))
        if not opened:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), CLASSIFIER)
        self._programs = ctypes.c_void_p(opened)

    def close(self) -> None:
        """Unload them."""
        self._library.programs_close(self._programs)

    def place(self, address: str, host: int, gate: int) -> None:
        """Assign an address to a host with this gate."""
        number = int.from_bytes(IPv4Address(address).packed, "little")
        assert self._library.programs_place(self._programs, number, host, gate) == 0

    def pace(self, queue: int, rate_bps: int, now_ns: int | None = None) -> None:
        """Set a queue's rate."""
        now = time.monotonic_ns() if now_ns is None else now_ns
        rate = ctypes.c_uint64(rate_bps)
        self._library.xco_classifier_pace(self._programs, queue, rate, ctypes.c_int64(now))

    def reset(self, queue: int) -> None:
        """Reset a gate, as for another host."""
        self._library.xco_classifier_reset(self._programs, queue)

    def run(self, frame: bytes, *, wanted_ns: int = 0, repeat: int = 1) -> Ran:
        """Run the program on a frame with the socket's time of departure, or without one."""
        departs, took = ctypes.c_uint64(wanted_ns), ctypes.c_uint32()
        rest = repeat, ctypes.byref(departs), ctypes.byref(took)
        verdict = self._library.programs_run(self._programs, frame, len(frame), *rest)
        return Ran(verdict, departs.value, took.value)

    def queue(self, number: int) -> Queue:
        """Return the state of a queue."""
        values = (ctypes.c_uint64 * 4)()
        self._library.programs_read(self._programs, number, values)
        return Queue(*values)

    def waiting(self, number: int, now_ns: int) -> int:
        """Return the bytes that wait in a queue, as the coordinator reads them."""
        now = ctypes.c_int64(now_ns)
        return int(self._library.programs_waiting(self._programs, number, now))


@contextmanager
def loaded(
    library: ctypes.CDLL, *, paced: bool = True, hosts: int = 64, horizon_ns: int = 50_000_000
) -> Iterator[Programs]:
    """Load the programs for the duration of the context."""
    programs = Programs(library, paced=paced, hosts=hosts, horizon_ns=horizon_ns)
    try:
        yield programs
    finally:
        programs.close()


def frame(to: str, payload: int = 1400) -> bytes:
    """Return a frame of UDP to an address, without check sums."""
    head = bytes.fromhex("0200000000ff0200000000010800") + bytes.fromhex("4500")
    length = (20 + 8 + payload).to_bytes(2)
    packet = bytes.fromhex("0001400040110000") + IPv4Address("10.77.0.1").packed
    return head + length + packet + IPv4Address(to).packed + bytes(8 + payload)

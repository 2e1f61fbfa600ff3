"""The soak's simulated hosts, in separate processes, as the benchmark sees them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.policer.hosts import CAPACITY, PROMISED
from benchmarks.policer.soak_faults import FAULTS
from benchmarks.policer.soak_hosts import Seen
from policer.contracts.contract import Contract
from policer.contracts.host import Host

PROCESSES: Final = 2


class Fleet:
    """Simulated hosts in separate processes."""

    def __init__(self, hosts: int, routers: int, folder: Path) -> None:
        shares = [hosts // PROCESSES + (n < hosts % PROCESSES) for n in range(PROCESSES)]
        self.faults = {f"h{number:04}": fault for number, fault in enumerate(FAULTS, 1)}
        words = ",".join(f"{number}={fault}" for number, fault in enumerate(FAULTS, 1))
        self._processes = [
            _started(sum(shares[:n]), share, routers, folder, words)
            for n, share in enumerate(shares)
        ]
        lines = [_line(process) for process in self._processes]
        self.hosts = [host for line in lines for host in msgspec.json.decode(line, type=list[Host])]

    def contracts(self, routers: int) -> dict[str, dict[str, Contract]]:
        """Return the contracts of the routers of all hosts; a second entry has none."""
        promise = Contract(guarantee_pps=PROMISED * CAPACITY / routers)
        terms = {f"vr{number}": promise for number in range(routers)}
        return {host.name: terms for host in self.hosts if not host.name.endswith("-again")}

    def count(self) -> None:
        """Tell all hosts to begin counting."""
        for process in self._processes:
            _say(process, "begin\n")

    def counted(self) -> list[Seen]:
        """End them; return each host's record."""
        for process in self._processes:
            _say(process, "end\n")
        lines = [_line(process) for process in self._processes]
        return [seen for line in lines for seen in msgspec.json.decode(line, type=list[Seen])]

    def end(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.communicate()


def _started(
    first: int, count: int, routers: int, folder: Path, faults: str
) -> "subprocess.Popen[str]":
    numbers = (str(number) for number in (first, count, routers))
    command = [
        sys.executable,
        "-m",
        "benchmarks.policer.soak_faults",
        *numbers,
        str(folder),
        faults,
    ]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _say(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(word)
    process.stdin.flush()


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the simulated hosts ended")
    return line


@contextmanager
def fleet_of(hosts: int, routers: int, folder: Path) -> Iterator[Fleet]:
    """Yield some simulated hosts."""
    fleet = Fleet(hosts, routers, folder)
    try:
        yield fleet
    finally:
        fleet.end()

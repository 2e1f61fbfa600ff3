"""Late wake-ups made on purpose: real-time tasks that take random bites of the CPUs.

At the highest priority in use (SCHED_FIFO, 90), a task on each CPU spins for 1 to 10 ms and then
rests, so that it takes a tenth of the time. The kernel can evade independent bites of the CPUs: it
moves real-time programs to the CPU that is free. Simultaneous bites of all CPUs are what a virtual
machine sees when its host runs another one. Meanwhile a program measures how late it wakes.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from common.arguments import whole_number

SHARE: Final = 0.10
"""Of each CPU: then one wake-up in a hundred is 3 to 7 ms late, as on machines where xco
suffered."""
SHORTEST_S: Final = 0.001
LONGEST_S: Final = 0.010
BITER_PRIORITY: Final = 90
PROBE_PRIORITY: Final = 50
"""The priority of coordinators and controller."""
PROBE_S: Final = 0.001
PATIENCE_S: Final = 10.0
BEGIN_S: Final = 0.5
"""Time for the programs to start before the first bite."""

Bites = Literal["none", "each CPU", "all at once"]


@dataclass(frozen=True)
class Lateness:
    """How late a program of real-time priority woke up."""

    p50_ms: float
    p99_ms: float
    max_ms: float


def bite(cpu: int, seed: int, begin_s: float) -> None:
    """Bite a CPU until the parent has ended; those with the same seed bite at the same times."""
    parent = os.getppid()
    _take_place(cpu, BITER_PRIORITY)
    chance = random.Random(seed)  # noqa: S311  no secret
    while os.getppid() == parent:
        bite_s = chance.uniform(SHORTEST_S, LONGEST_S)
        time.sleep(max(0.0, begin_s - time.monotonic()))
        while time.monotonic() < begin_s + bite_s:
            pass
        begin_s += bite_s + chance.uniform(0, 2) * bite_s * (1 - SHARE) / SHARE


def probe(cpu: int) -> None:
    """Wake up every millisecond until SIGTERM; then print the lateness as JSON."""
    ending = False

    def end(_signal: int, _frame: object) -> None:
        nonlocal ending
        ending = True

    parent = os.getppid()
    signal.signal(signal.SIGTERM, end)
    _take_place(cpu, PROBE_PRIORITY)
    late_ms: list[float] = []
    while not ending and os.getppid() == parent:
        due = time.monotonic() + PROBE_S
        time.sleep(PROBE_S)
        late_ms.append((time.monotonic() - due) * 1e3)
    sys.stdout.write(json.dumps(late_ms))


def _take_place(cpu: int, priority: int) -> None:
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    sys.stdout.write("ready\n")
    sys.stdout.flush()


@contextmanager
def bites(kind: Bites) -> Iterator[None]:
    """Take bites of the CPUs."""
    begin_s = time.monotonic() + BEGIN_S
    cpus = sorted(os.sched_getaffinity(0)) if kind != "none" else ()
    with ExitStack() as stack:
        for cpu in cpus:
            seed = cpu if kind == "each CPU" else 0
            stack.enter_context(_running("bite", str(cpu), str(seed), str(begin_s)))
        yield


@contextmanager
def measured_lateness() -> Iterator[list[Lateness]]:
    """Measure on every CPU; the list has the results when the context ends."""
    found: list[Lateness] = []
    with ExitStack() as stack:
        cpus = sorted(os.sched_getaffinity(0))
        probes = [stack.enter_context(_running("probe", str(cpu))) for cpu in cpus]
        yield found
        late: list[float] = []
        for process in probes:
            process.terminate()
            late += json.loads(process.communicate(timeout=PATIENCE_S)[0])
    late.sort()
    found.append(Lateness(late[len(late) // 2], late[len(late) * 99 // 100], late[-1]))


@contextmanager
def _running(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-m", "benchmarks.xco.bites", *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # Popen opened a pipe
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{' '.join(argv)}: did not start: it needs CAP_SYS_NICE")
            yield process
        finally:
            process.kill()


def main() -> None:
    """Run as one of the two programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("bite", "probe"))
    parser.add_argument("cpu", type=whole_number(0))
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("begin_s", type=float, nargs="?", default=0.0)
    chosen = parser.parse_args()
    if chosen.role == "bite":
        bite(chosen.cpu, chosen.seed, chosen.begin_s)
    else:
        probe(chosen.cpu)


if __name__ == "__main__":
    main()

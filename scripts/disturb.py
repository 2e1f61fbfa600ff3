"""Keep this machine's CPUs busy as other tenants would, to try tests and daemons under load.

Three kinds of load:

- ``busy``: a loop on each CPU that never sleeps, at ordinary priority.
- ``fifo``: a real-time task (SCHED_FIFO) that takes half of each second of one CPU.
- ``bites``: real-time tasks that take 1 to 10 ms at random from every CPU, 15 % of its time in
  all. A hypervisor takes CPU from a virtual machine in this way (steal).

``python -m scripts.disturb fifo -- make test`` loads the machine while a command runs and exits
with its exit code. Without a command the load lasts for ``--seconds``, or until Ctrl-C. ``fifo``
and ``bites`` need root.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from common.process import end_with_parent

FIFO_PRIORITY: Final = 50
"""Above the real-time loops of the lab's programs, so that only steal is worse."""
STEAL_PRIORITY: Final = 99
BITE_S: Final = (0.001, 0.010)
BITE_SHARE: Final = 0.15


def spin(seconds: float) -> None:
    """Use the CPU for a time of the wall clock, not of the process."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def busy(_cpu: int) -> None:
    """Never sleep."""
    while True:
        spin(1.0)


def fifo(_cpu: int) -> None:
    """Take the first half of each second."""
    while True:
        now = time.perf_counter()
        spin(0.5)
        time.sleep(max(0.0, now + 1.0 - time.perf_counter()))


def bites(cpu: int) -> None:
    """Take 1 to 10 ms repeatedly, after gaps of random length."""
    draw = random.Random(cpu)  # noqa: S311  the same load each time; no secret hangs on it
    gap = sum(BITE_S) / 2 * (1 / BITE_SHARE - 1)
    while True:
        time.sleep(draw.expovariate(1 / gap))
        spin(draw.uniform(*BITE_S))


KINDS: Final[dict[str, tuple[Callable[[int], None], int | None]]] = {
    "busy": (busy, None),
    "fifo": (fifo, FIFO_PRIORITY),
    "bites": (bites, STEAL_PRIORITY),
}
"""Function of each kind, and its real-time priority, if any."""


def disturber(kind: str, cpu: int, parent: int) -> None:
    """Load one CPU until this process is killed or its parent ends."""
    end_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        return
    work, priority = KINDS[kind]
    os.sched_setaffinity(0, {cpu})
    if priority is not None:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    work(cpu)


@contextlib.contextmanager
def disturbance(kind: str) -> Iterator[None]:
    """Load the machine for the duration of the context."""
    cpus = sorted(os.sched_getaffinity(0))
    chosen = cpus[:1] if kind == "fifo" else cpus
    processes = [
        multiprocessing.Process(target=disturber, args=(kind, cpu, os.getpid())) for cpu in chosen
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def run(command: Sequence[str]) -> int:
    """Run a command and return its exit code, in a shell's convention."""
    code = subprocess.run(command, check=False).returncode  # noqa: S603  the user's own
    return 128 - code if code < 0 else code


def wait(seconds: float | None) -> int:
    """Wait for some time, or until Ctrl-C."""
    if seconds is None:
        signal.pause()
    else:
        time.sleep(seconds)
    return 0


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS, help="what kind of load")
    parser.add_argument("--seconds", type=float, help="how long, where there is no command")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- COMMAND ...")
    arguments = parser.parse_args()
    if arguments.command[:1] == ["--"]:
        del arguments.command[0]
    if KINDS[arguments.kind][1] is not None and os.geteuid() != 0:
        parser.error(f"{arguments.kind} needs root: its tasks have real-time priority")
    return arguments


def main() -> int:
    """Load the machine while a command runs, or for a time."""
    arguments = parse()
    with contextlib.suppress(KeyboardInterrupt), disturbance(arguments.kind):
        return run(arguments.command) if arguments.command else wait(arguments.seconds)
    return 130


if __name__ == "__main__":
    sys.exit(main())

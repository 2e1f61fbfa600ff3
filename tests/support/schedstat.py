"""What the kernel counts of a task: the CPU time it got, and how long it waited for a CPU."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self


class Turns(NamedTuple):
    """A task's /proc/PID/schedstat (Linux, sched-stats.rst), in seconds."""

    ran: float
    waited: float
    """Ready to run, while other tasks or the hypervisor had the CPU."""

    def since(self, earlier: Self) -> "Turns":
        """Return what was added since an earlier reading."""
        return Turns(self.ran - earlier.ran, self.waited - earlier.waited)


def turns(pid: int) -> Turns:
    """Read what a task has had so far."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return Turns(int(ran) / 1e9, int(waited) / 1e9)


def ran(pids: Iterable[int]) -> float:
    """Return the CPU seconds of several tasks together."""
    return sum(turns(pid).ran for pid in pids)

"""CPU time of tasks and their waits for a CPU, second by second, from the kernel's counters.

A task's `schedstat` has the nanoseconds that it ran and that it waited in a run queue while it
could have run (Documentation/scheduler/sched-stats.rst). Its demand is the sum of both. The CPUs'
lines of `/proc/stat` have the time taken by other virtual machines on the same host (steal).
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

PROC: Final = Path("/proc")
TICKS: Final = os.sysconf("SC_CLK_TCK")
Tasks = Mapping[str, Callable[[], Iterable[int]]]
"""The threads of each group, by its name, read at each sample, since they start and end."""


@dataclass(frozen=True)
class Share:
    """CPU use of a group of threads in a second, in CPUs."""

    ran: float
    waited: float
    """Ready to run, and not run."""

    @property
    def wanted(self) -> float:
        """Its demand."""
        return self.ran + self.waited


@dataclass(frozen=True)
class Second:
    """Sample of one second."""

    at: float
    """Its end, on the monotonic clock."""
    groups: dict[str, Share]
    busy: dict[int, float]
    """By CPU: share used by this machine."""
    stolen: dict[int, float]
    """By CPU: share taken by other machines of the same host."""
    runnable: int
    """Threads that run or could, at the end of the second."""

    def as_json(self, since: float) -> dict[str, Any]:
        """Return it with the seconds since an instant."""
        return {**asdict(self), "at": round(self.at - since, 2)}


class RunQueue:
    """A context manager that samples once a second into `seconds`."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.seconds: list[Second] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="run queue", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def between(self, begin: float, end: float) -> list[Second]:
        """Return the seconds that ended between two instants."""
        return [second for second in list(self.seconds) if begin <= second.at < end]

    def _run(self) -> None:
        before = _Account.of(self._tasks)
        while not self._ended.wait(1.0):
            after = _Account.of(self._tasks)
            self.seconds.append(after.since(before))
            before = after


@dataclass(frozen=True)
class _Account:
    """The kernel's counters at an instant."""

    at: float
    groups: Mapping[str, Mapping[int, tuple[int, int]]]
    """Nanoseconds run and waited, by thread."""
    cpus: Mapping[int, tuple[int, int]]
    """Ticks busy and stolen, by CPU."""
    runnable: int

    @classmethod
    def of(cls, tasks: Tasks) -> "_Account":
        groups = {name: dict(_threads(find())) for name, find in tasks.items()}
        lines = (PROC / "stat").read_text().splitlines()
        cpus = dict(_cpu(line) for line in lines if line[:3] == "cpu" and line[3] != " ")
        running = next(line for line in lines if line.startswith("procs_running"))
        return cls(time.monotonic(), groups, cpus, int(running.split()[1]))

    def since(self, before: "_Account") -> Second:
        seconds = self.at - before.at
        return Second(
            self.at,
            {
                name: _share(threads, before.groups.get(name, {}), seconds)
                for name, threads in self.groups.items()
            },
            {n: (busy - before.cpus[n][0]) / TICKS / seconds for n, (busy, _) in self.cpus.items()},
            {n: (gone - before.cpus[n][1]) / TICKS / seconds for n, (_, gone) in self.cpus.items()},
            self.runnable,
        )


def threads_of(pid: int) -> list[int]:
    """Return the threads of a process; none if it has ended."""
    try:
        return [int(task.name) for task in (PROC / str(pid) / "task").iterdir()]
    except FileNotFoundError:
        return []


def _threads(tids: Iterable[int]) -> Iterable[tuple[int, tuple[int, int]]]:
    for tid in tids:
        try:
            ran, waited, _ = (PROC / str(tid) / "schedstat").read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # it ended
            continue
        yield tid, (int(ran), int(waited))


def _share(
    after: Mapping[int, tuple[int, int]], before: Mapping[int, tuple[int, int]], seconds: float
) -> Share:
    """Return the CPU use of threads that exist at both ends."""
    both = after.keys() & before.keys()
    ran, waited = (sum(after[t][i] - before[t][i] for t in both) / 1e9 / seconds for i in (0, 1))
    return Share(ran, waited)


def _cpu(line: str) -> tuple[int, tuple[int, int]]:
    """Read a line such as `cpu0 user nice system idle iowait irq softirq steal ...` (proc(5))."""
    name, *fields = line.split()
    user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
    return int(name[3:]), (user + nice + system + irq + softirq, steal)

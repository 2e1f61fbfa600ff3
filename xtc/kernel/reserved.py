"""CPU time reserved by deadline threads: read when the kernel refuses more."""

from collections.abc import Collection, Iterator
from pathlib import Path

from xtc.kernel.scheduling import SCHED_DEADLINE, get_policy


def reserved(ours: Collection[int] = (), proc: Path = Path("/proc")) -> float:
    """Return the CPUs that all visible deadline threads except ours have reserved.

    This takes about 30 us for each thread of the host.
    """
    return sum(_share(tid) for tid in _threads(proc) if tid not in ours)


def _threads(proc: Path) -> Iterator[int]:
    for process in proc.iterdir():
        if process.name.isdecimal():
            try:
                yield from [int(task.name) for task in (process / "task").iterdir()]
            except OSError:
                continue  # it has ended


def _share(tid: int) -> float:
    """Return the share reserved by a thread; 0 if it has ended."""
    try:
        policy = get_policy(tid)
    except OSError:
        return 0.0
    if policy.policy != SCHED_DEADLINE:
        return 0.0
    return policy.runtime_ns / (policy.period_ns or policy.deadline_ns)

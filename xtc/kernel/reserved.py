"""What the kernel has promised to deadline threads already: asked for when it refuses more."""

from collections.abc import Collection, Iterator
from pathlib import Path

from xtc.kernel.scheduling import SCHED_DEADLINE, get_policy


def reserved(ours: Collection[int] = (), proc: Path = Path("/proc")) -> float:
    """Return the CPUs that all deadline threads but ours have, as far as they can be seen.

    Takes about 30 us for each thread of the host.
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
    """Return what is promised to a thread; nothing to one that has ended."""
    try:
        policy = get_policy(tid)
    except OSError:
        return 0.0
    if policy.policy != SCHED_DEADLINE:
        return 0.0
    return policy.runtime_ns / (policy.period_ns or policy.deadline_ns)

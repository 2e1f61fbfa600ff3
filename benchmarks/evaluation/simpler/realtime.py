"""Real-time bandwidth of a router's control group (kernel document sched-rt-group.rst).

Only version 1 of the `cpu` controller has it, in kernels with `CONFIG_RT_GROUP_SCHED`.
"""

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from lab.routers.router import Router
from lab.system.cgroups import find_root

RUNTIME: Final = "cpu.rt_runtime_us"
PERIOD: Final = "cpu.rt_period_us"
PERIOD_US: Final = 10_000
PRIORITY: Final = 1


def has_bandwidth(router: Router) -> bool:
    """Return whether this kernel has real-time bandwidth for the router's group."""
    return router.cgroup is not None and (router.cgroup / RUNTIME).exists()


def runtime_us(percent: float, period_us: int) -> int:
    """Return the runtime of a period that is this percentage of one CPU, rounded up."""
    return math.ceil(percent / 100 * period_us)


@contextmanager
def bandwidth(router: Router, percent: float) -> Iterator[None]:
    """Run the forwarder as a real-time process with this percentage of one CPU.

    The groups above it get at least as much, since the kernel refuses more than they have.
    """
    group, root = router.cgroup, find_root()
    assert group is not None
    assert root is not None
    above = [parent for parent in group.parents if root in parent.parents]
    own = runtime_us(percent, PERIOD_US)
    rounded = 100 * own / PERIOD_US
    with ExitStack() as stack:
        for parent in reversed(above):
            most = max(_read(parent / RUNTIME), runtime_us(rounded, _read(parent / PERIOD)))
            stack.enter_context(_written(parent / RUNTIME, most))
        stack.enter_context(_written(group / PERIOD, PERIOD_US))
        stack.enter_context(_written(group / RUNTIME, own))
        stack.enter_context(_scheduled(router.forwarder_pid))
        yield


@contextmanager
def _scheduled(pid: int) -> Iterator[None]:
    os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def _written(file: Path, value: int) -> Iterator[None]:
    before = _read(file)
    file.write_text(str(value))
    try:
        yield
    finally:
        file.write_text(str(before))


def _read(file: Path) -> int:
    return int(file.read_text())

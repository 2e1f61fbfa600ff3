"""The files of one control group with a CPU controller, v1 or v2, kept open."""

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from common.units import Seconds
from xtc.kernel.cputime import ThreadTimes
from xtc.kernel.files import KeptFile, lines_of
from xtc.kernel.quota import (
    Quota,
    controller_mount,
    format_cpu_max,
    parse_cpu_max,
    parse_cpu_stat,
    parse_v1,
    v1_writes,
)

_TASK_LIST = 65_536  # bytes; a list of more than 8,000 threads is truncated


class GroupUsage(NamedTuple):
    """The kernel's counters of a group."""

    used: Seconds
    """CPU time."""
    throttled: int | None
    """Periods in which the quota throttled the group; None where this kernel does not count
    them."""
    periods: int | None
    """Periods in which the group ran."""


class Group(Protocol):
    """The actuator's view of a control group; every method raises OSError or ValueError."""

    def read(self) -> Quota:
        """Return the quota in force."""
        ...

    def write(self, old: Quota, new: Quota) -> None:
        """Change the group from one quota to another."""
        ...

    def usage(self) -> GroupUsage:
        """Return the kernel's counters."""
        ...


class GroupV1:
    """cgroup v1: quota and period are two files, CPU time belongs to another controller."""

    def __init__(self, path: str, directory: int) -> None:
        self._files = {
            name: KeptFile(name, directory=directory, writable=True)
            for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        }
        self._quota, self._period = self._files.values()
        self._stat = KeptFile("cpu.stat", directory=directory)
        self._clock = _accounting(path) or TaskClock(directory)

    def read(self) -> Quota:
        """Return the quota in force."""
        return parse_v1(self._quota.read(), self._period.read())

    def write(self, old: Quota, new: Quota) -> None:
        """Write only what changes, in an order without overshoot of the cap."""
        for name, value in v1_writes(old, new):
            self._files[name].write(f"{value}\n")

    def usage(self) -> GroupUsage:
        """Return the clock's CPU time, and the periods of cpu.stat."""
        stat = parse_cpu_stat(self._stat.read())
        return GroupUsage(self._clock.used(), stat.get("nr_throttled"), stat.get("nr_periods"))


class GroupV2:
    """cgroup v2: one file for quota and period, one for all counters."""

    def __init__(self, directory: int) -> None:
        self._max = KeptFile("cpu.max", directory=directory, writable=True)
        self._stat = KeptFile("cpu.stat", directory=directory)

    def read(self) -> Quota:
        """Return the quota in force."""
        return parse_cpu_max(self._max.read())

    def write(self, old: Quota, new: Quota) -> None:
        """Write quota and period atomically."""
        if new != old:
            self._max.write(format_cpu_max(new))

    def usage(self) -> GroupUsage:
        """Return the counters of one reading of cpu.stat."""
        stat = parse_cpu_stat(self._stat.read())
        used = Seconds(stat.get("usage_usec", 0) / 1e6)
        return GroupUsage(used, stat.get("nr_throttled"), stat.get("nr_periods"))


class AccountingClock:
    """The group's CPU time as the v1 cpuacct controller counts it, in ns (cpuacct.rst)."""

    def __init__(self, usage: KeptFile) -> None:
        self._usage = usage

    def used(self) -> Seconds:
        """Return the CPU time since the group was created."""
        return Seconds(int(self._usage.read()) / 1e9)


class TaskClock:
    """The CPU time of a v1 group's threads, where cpuacct does not know the group."""

    def __init__(self, directory: int) -> None:
        self._directory = os.dup(directory)
        self._times = ThreadTimes()

    def used(self) -> Seconds:
        """Return the CPU time since the first reading; it misses threads with a shorter life."""
        self._times.read()
        # An open list is the kernel's copy of an earlier one, renewed by each reading.
        tasks = KeptFile("tasks", directory=self._directory).read(_TASK_LIST)
        self._times.follow(int(line) for line in tasks.splitlines())
        return self._times.total

    def __del__(self) -> None:
        os.close(self._directory)


def open_group(path: str) -> Group | None:
    """Open a group's files; None where its directory has no CPU controller.

    Raises:
        OSError: there is no such directory, or its files may not be written.
    """
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(directory) as entries:
            names = {entry.name for entry in entries}
        if "cpu.cfs_quota_us" in names:
            return GroupV1(path, directory)
        return GroupV2(directory) if "cpu.max" in names else None
    finally:
        os.close(directory)


def _accounting(path: str) -> AccountingClock | None:
    mounts = lines_of(Path("/proc/self/mounts"))
    cpu, cpuacct = controller_mount(mounts, "cpu"), controller_mount(mounts, "cpuacct")
    group = Path(path).resolve()
    if cpu is None or cpuacct is None or not group.is_relative_to(cpu):
        return None
    usage = Path(cpuacct) / group.relative_to(cpu) / "cpuacct.usage"
    return AccountingClock(KeptFile(str(usage))) if usage.exists() else None

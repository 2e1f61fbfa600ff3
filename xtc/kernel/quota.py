"""The arithmetic of a CFS quota: caps to quota and period, the order of writes, file formats."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from common.units import CapFraction

MIN_QUOTA_US = 1_000
"""The kernel's smallest quota, and smallest period (Linux, sched-bwc.rst)."""
MAX_PERIOD_US = 1_000_000
"""The kernel's maximum period."""
FLOOR = CapFraction(MIN_QUOTA_US / MAX_PERIOD_US)
"""The smallest cap that a quota can express: 0.1 %."""

_TARGET_QUOTA_US = 2_000  # twice the kernel's minimum: short periods, yet room for small caps
_SHORTEST_US, _LONGEST_US = 10_000, 100_000  # below 10 ms, CPU usage deviates from the cap
_HYSTERESIS = 2.0  # a period within this factor of the ideal one stays
_REFILLS = 10  # of a quota between two samples, so that one more or less changes little


class Quota(NamedTuple):
    """CPU time per period; ``quota_us`` is None where the group is uncapped."""

    quota_us: int | None
    period_us: int

    @property
    def cap(self) -> CapFraction | None:
        """The cap of this quota, None if there is none."""
        return None if self.quota_us is None else CapFraction(self.quota_us / self.period_us)


def quota_for(cap: CapFraction, current_period_us: int, longest_us: int = _LONGEST_US) -> Quota:
    """Return the valid quota nearest to a cap, keeping the current period while it is suitable.

    The quota aims at 2 ms in a period of 10 to 100 ms; caps under 1 % get up to 1 s, since the
    kernel accepts no quota below 1 ms. Caps below 0.1 % give the smallest valid quota.

    Args:
        cap: as a fraction of one CPU.
        current_period_us: the period in force.
        longest_us: the longest period, except where the kernel's smallest quota requires a longer
            one.
    """
    period = _period_for(cap, current_period_us, longest_us)
    return Quota(max(MIN_QUOTA_US, round(cap * period)), period)


def _period_for(cap: CapFraction, current_us: int, longest_us: int) -> int:
    ideal = ideal_period_us(cap, longest_us)
    fits = cap * current_us >= MIN_QUOTA_US and _SHORTEST_US <= current_us <= MAX_PERIOD_US
    near = ideal / _HYSTERESIS <= current_us <= ideal * _HYSTERESIS
    return current_us if fits and near else ideal


def longest_period_us(loop_s: float) -> int:
    """Return the longest period that a quota should have for a loop with this period."""
    return min(_LONGEST_US, max(_SHORTEST_US, round(loop_s * 1e6 / _REFILLS)))


def ideal_period_us(cap: CapFraction, longest_us: int = _LONGEST_US) -> int:
    """Return the period for a cap if there is no previous period."""
    wanted = min(max(_TARGET_QUOTA_US / cap, _SHORTEST_US), longest_us)
    legal = -(-MIN_QUOTA_US // cap)  # rounded up, so that the quota is at least 1 ms
    return min(MAX_PERIOD_US, max(round(wanted), int(legal)))


def v1_writes(old: Quota, new: Quota) -> Iterator[tuple[str, int]]:
    """Yield the (file, value) writes that change a v1 group from one quota to another.

    Quota and period are separate files there. A longer period is written before the quota, a
    shorter one after it, so that the cap in between never exceeds both.
    """
    quota = ("cpu.cfs_quota_us", -1 if new.quota_us is None else new.quota_us)
    period = ("cpu.cfs_period_us", new.period_us)
    lengthens = new.period_us > old.period_us
    if lengthens and new.quota_us is not None:
        yield period
    if new.quota_us != old.quota_us:
        yield quota
    if new.period_us < old.period_us or (lengthens and new.quota_us is None):
        yield period


def parse_cpu_max(text: str) -> Quota:
    """Parse ``cpu.max`` of cgroup v2: ``max 100000`` or ``2000 10000``.

    Raises:
        ValueError: the first line is not two numbers, or ``max`` and a number.
    """
    quota, period = text.partition("\n")[0].split()
    return Quota(None if quota == "max" else int(quota), int(period))


def format_cpu_max(quota: Quota) -> str:
    """Format ``cpu.max`` of cgroup v2, for one atomic write."""
    return f"{'max' if quota.quota_us is None else quota.quota_us} {quota.period_us}\n"


def parse_v1(quota: str, period: str) -> Quota:
    """Read ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us``; -1 means uncapped.

    Raises:
        ValueError: one of them is not a number.
    """
    value = int(quota.partition("\n")[0])
    return Quota(None if value < 0 else value, int(period.partition("\n")[0]))


def parse_cpu_stat(text: str) -> dict[str, int]:
    """Read the counters of ``cpu.stat``, as far as this kernel has them.

    Raises:
        ValueError: a line is not a name and a number.
    """
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def controller_mount(mounts: Iterable[str], controller: str) -> str | None:
    """Return the mount point of a v1 controller, from the lines of /proc/self/mounts (proc(5))."""
    found = _mounted(mounts, "cgroup")
    return next((where for where, options in found if controller in options.split(",")), None)


def unified_mount(mounts: Iterable[str]) -> str | None:
    """Return the mount point of cgroup v2, from the lines of /proc/self/mounts (proc(5))."""
    return next((where for where, _ in _mounted(mounts, "cgroup2")), None)


def _mounted(mounts: Iterable[str], kind: str) -> Iterator[tuple[str, str]]:
    """Yield directory and options; splits only at spaces, since users name mounts, too (FUSE)."""
    for line in mounts:
        match line.split(" "):
            case [_, directory, found, options, *_] if found == kind:
                yield directory, options

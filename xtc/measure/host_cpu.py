"""Load of the host's busiest CPU: a host may be overloaded before its routers show it.

Packets that the host drops for lack of CPU before a router counts them (in the queue of a virtual
link, for example) look like less demand. A CPU without idle time shows the difference. The policer
gets this value; no control law uses it.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import structlog

from common.units import Seconds

STAT: Final = Path("/proc/stat")
SPAN_S: Final = 0.9
"""Minimum time between readings: the kernel counts in hundredths of a second."""
_CPU = re.compile(rb"^cpu(\d+) ([\d ]+)$", re.MULTILINE)
_IDLE, _IO_WAIT = 3, 4
_GUESTS = 8
"""From this column on, columns repeat what `user` and `nice` contain (proc(5))."""

log = structlog.get_logger()

Times = Mapping[int, tuple[int, int]]
"""By CPU: idle clock ticks, and all ticks."""


def parse(raw: bytes) -> dict[int, tuple[int, int]]:
    """Read the lines of CPUs in /proc/stat (proc(5)): idle ticks and all ticks, by CPU.

    Lines with fewer columns than in Linux 2.6 are ignored.
    """
    found: dict[int, tuple[int, int]] = {}
    for match in _CPU.finditer(raw):
        ticks = [int(text) for text in match[2].split()[:_GUESTS]]
        if len(ticks) > _IO_WAIT:
            found[int(match[1])] = ticks[_IDLE] + ticks[_IO_WAIT], sum(ticks)
    return found


def busiest(before: Times, after: Times) -> float | None:
    """Return the share of time in which the busiest CPU was not idle; None where unknown.

    Time stolen by a hypervisor counts as busy: it is not available for packets.
    """
    shares = [
        1.0 - (idle - before[cpu][0]) / (ticks - before[cpu][1])
        for cpu, (idle, ticks) in after.items()
        if cpu in before and ticks > before[cpu][1]
    ]
    return min(1.0, max(0.0, *shares)) if shares else None


class CpuWatch:
    """Reads about once a second, even if called more often."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._before: tuple[Seconds, Times] | None = None
        self._busiest: float | None = None
        self._problem = ""
        """Why the file could not be read; empty while it can."""

    def look(self, now: Seconds) -> float | None:
        """Return the recent load of the busiest CPU, 0 to 1; None where unknown."""
        if self._before is not None and now - self._before[0] < SPAN_S:
            return self._busiest
        times = self._read()
        before, self._before = self._before, None if times is None else (now, times)
        self._busiest = None
        if before is not None and times is not None:
            self._busiest = busiest(before[1], times)
        return self._busiest

    def _read(self) -> Times | None:
        """Read the file; log once why it cannot be read."""
        try:
            times = parse(self._stat.read_bytes())
        except OSError as error:
            if not self._problem:
                log.warning("cpus_unknown", problem=str(error))
            self._problem = str(error)
            return None
        self._problem = ""
        return times

"""CPU time as the kernel counts it, judged against a cap on any machine.

From above: a group gets at most its quota in each period. From below: in each period in which the
kernel throttled it, it got its quota; in the others, the machine may have left it less.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.inconclusive import inconclusive
from support.rates import between, read
from support.stalls import Stalls
from xtc.kernel.quota import parse_cpu_stat

TICK_S: Final = 0.004
"""The kernel ends a task's turn at its tick, so that it may overdraw by so much, once."""
ENOUGH: Final = 0.25
"""The part of the periods that must have been throttled for a judgement from below."""
DEBT_S: Final = 0.5
"""Within this a group has paid back what it overdrew."""


@dataclass(frozen=True, slots=True)
class Periods:
    """How many periods a group has had, and in how many it was throttled."""

    all: int
    throttled: int


def periods(group: Path) -> Periods:
    """Read a control group's cpu.stat (Linux, sched-bwc.rst)."""
    text = (group / "cpu.stat").read_text()
    stat = parse_cpu_stat(text)
    counts = (stat.get(key) for key in ("nr_periods", "nr_throttled"))
    return Periods(*(0 if count is None else count for count in counts))


@dataclass(frozen=True, slots=True)
class Used:
    """What a group used between two readings, in CPUs, and how often its quota ended its turn."""

    least: float
    most: float
    seconds: float
    bound: float
    """The part of the periods in which it was throttled."""
    stalled: float = 0.0
    """How long a CPU stood still at the end, in seconds: its clock ran on, and no tick came."""


def used(group: Path, spent: Callable[[], float], seconds: float, stalls: Stalls) -> Used:
    """Watch a group for so long; `spent` returns the CPU seconds it has used."""
    before, first = periods(group), read(spent)
    time.sleep(seconds)
    second, after = read(spent), periods(group)
    rate, elapsed = between(first, second), max(after.all - before.all, 1)
    bound = (after.throttled - before.throttled) / elapsed
    stalled = stalls.longest(second.before - DEBT_S, second.before)
    return Used(rate.least, rate.most, rate.seconds, bound, stalled)


def check_used(seen: Used, cap: float, period_s: float, tolerance: float = 0.05) -> None:
    """Check that a group that never sleeps got its cap.

    Raises:
        AssertionError: it got more, or less although its quota was what ended its turns.
        Inconclusive: it got less, and the machine's other work ended them; or it got more, and
            may not have paid back what it overdrew while a CPU stood still.
    """
    slack = (cap * period_s + TICK_S) / seen.seconds
    most = cap * (1 + tolerance) + slack
    if most < seen.least <= most + seen.stalled / seen.seconds:
        inconclusive(f"more than its cap, after a CPU stood still: {seen}")
    assert seen.least <= most, f"more than its cap: {seen}"
    if seen.bound < ENOUGH:
        inconclusive(f"the quota ended its turns in too few periods: {seen}")
    # The kernel counts the periods of a stall as throttled where the one before it was.
    bound = min(seen.bound, 1.0) - seen.stalled / seen.seconds
    assert seen.most >= cap * bound * (1 - tolerance) - slack, f"less: {seen}"

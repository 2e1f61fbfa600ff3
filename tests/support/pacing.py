"""Judges a program that works at a rate, on a machine that may keep it from running.

The lab's sources make good a lag of up to MAX_LAG_S and forget a longer one. So they do no more
than their rate for the time watched and that lag, and no less than it for the time in which they
could run, as the kernel counts it.
"""

from collections.abc import Callable
from typing import Final

from lab.programs.pacer import MAX_LAG_S
from support.inconclusive import inconclusive
from support.rates import read
from support.schedstat import turns

MOST_WAITED: Final = 0.8
"""The part of the time that a program may have waited for a CPU, where it is to be judged."""


class Pace:
    """What a program does from now on."""

    def __init__(self, pid: int, counter: Callable[[], float]) -> None:
        self._pid, self._counter = pid, counter
        self._turns, self._first = turns(pid), read(counter)

    def waited(self) -> float:
        """Return for how many seconds it was ready to run, and did not."""
        return turns(self._pid).since(self._turns).waited

    def check(self, rate: float, tolerance: float = 0.03) -> None:
        """Check that it has worked at the rate since then.

        Raises:
            AssertionError: it did more than the rate allows, or less than it could do.
            Inconclusive: it hardly ran.
        """
        second = read(self._counter)
        done, waited = second.value - self._first.value, self.waited()
        longest, shortest = second.before - self._first.after, second.after - self._first.before
        lag = min(MAX_LAG_S, turns(self._pid).waited)
        assert done <= rate * (longest + lag) * (1 + tolerance), f"more than {rate:g}/s"
        assert done >= rate * (shortest - waited) * (1 - tolerance), f"less than {rate:g}/s"
        if waited > MOST_WAITED * shortest:
            inconclusive(f"it waited {waited:.3g} s of {shortest:.3g} for a CPU")

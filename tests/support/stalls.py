"""How long each CPU let an ordinary thread wait: the noise under which a test judged times.

A thread on each CPU sleeps for 5 ms again and again and keeps by how much it woke late. What it
lost to real-time tasks, to other threads and to the hypervisor, the tested programs may have lost
as well.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from support.inconclusive import inconclusive

STEP_S: Final = 0.005
LATE_S: Final = 0.002
"""Less than this is ordinary."""
KEPT: Final = 100_000
PROPERTY: Final = "longest_stall_s"


class Stall(NamedTuple):
    """A time in which a thread was due and did not run, in monotonic seconds."""

    begun: float
    ended: float


class Probe(threading.Thread):
    """Watches one CPU."""

    def __init__(self, cpu: int) -> None:
        super().__init__(name=f"stalls-{cpu}", daemon=True)
        self._cpu, self._ended = cpu, threading.Event()
        self._stalls: deque[Stall] = deque(maxlen=KEPT)
        self._due = time.monotonic() + STEP_S

    def run(self) -> None:
        """Sleep and look at the clock until stopped."""
        os.sched_setaffinity(0, {self._cpu})
        while not self._ended.is_set():
            self._due = time.monotonic() + STEP_S
            time.sleep(STEP_S)
            if (now := time.monotonic()) - self._due > LATE_S:
                self._stalls.append(Stall(self._due, now))

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join()

    def stalled(self, since: float, until: float) -> list[float]:
        """Return how long each stall between two instants lasted, one that goes on included."""
        stalls = [*self._stalls, Stall(self._due, time.monotonic())]
        times = (min(stall.ended, until) - max(stall.begun, since) for stall in stalls)
        return [seconds for seconds in times if seconds > 0]


class Stalls:
    """Watches every CPU; one test at a time has it."""

    def __init__(self) -> None:
        self._probes = [Probe(cpu) for cpu in sorted(os.sched_getaffinity(0))]
        self.begun = time.monotonic()
        for probe in self._probes:
            probe.start()

    def stop(self) -> None:
        """End all threads."""
        for probe in self._probes:
            probe.stop()

    def restart(self) -> None:
        """Count from now on: another test begins."""
        self.begun = time.monotonic()

    def longest(self, since: float | None = None, until: float = float("inf")) -> float:
        """Return the longest stall of any CPU, in seconds; by default since the test began."""
        return max(max(stalls, default=0.0) for stalls in self._by_cpu(since, until))

    def lost(self, since: float | None = None, until: float = float("inf")) -> float:
        """Return the sum of the stalls of the CPU that stalled most, in seconds."""
        return max(sum(stalls) for stalls in self._by_cpu(since, until))

    def _by_cpu(self, since: float | None, until: float) -> list[list[float]]:
        start = self.begun if since is None else since
        return [probe.stalled(start, until) for probe in self._probes]

    def check_within(self, begun: float, ended: float, limit: float) -> None:
        """Check that something took no longer than a limit, in seconds.

        Raises:
            AssertionError: it took longer, and the machine's own stalls do not explain that.
            Inconclusive: it took longer, and they may.
        """
        took, lost = ended - begun, self.lost(begun, ended)
        if limit < took <= limit + lost:
            inconclusive(f"took {took:.3g} s of {limit:.3g}; CPUs stood still for {lost:.3g} s")
        assert took <= limit


@pytest.fixture(scope="session")
def _watched_cpus() -> Iterator[Stalls]:
    """The threads, once for all tests."""
    stalls = Stalls()
    yield stalls
    stalls.stop()


@pytest.fixture
def stalls(_watched_cpus: Stalls) -> Stalls:
    """What the CPUs withhold during this test."""
    _watched_cpus.restart()
    return _watched_cpus


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the longest stall with a test's report, and show a failed test's."""
    stalls = getattr(item, "funcargs", {}).get("stalls")
    if call.when == "call" and stalls is not None:
        item.user_properties.append((PROPERTY, stalls.longest()))
    report: Any = yield
    if call.when == "call" and report.failed and stalls is not None:
        report.sections.append(("Longest stall of a CPU", f"{stalls.longest():.3f} s"))
    return report

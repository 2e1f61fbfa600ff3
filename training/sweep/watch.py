"""One router's throughput, period by period, as the daemon reads it; and how to stop."""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from common.clock import Clock
from common.units import Seconds
from training.errors import TrainingError
from xtc.config.plan import RouterPlan
from xtc.daemon.loop import MAX_LEAD, SnapshotSource
from xtc.errors import MeterError
from xtc.libvirt.hypervisors import Hypervisors
from xtc.measure.collector import Binding, Collector, Reading
from xtc.measure.meter import Snapshot, rates

NAP_S = 0.1
"""Delay until a wait notices a request to stop."""
PATIENCE = 5
"""Periods without a throughput before a measurement gives up."""
LATE = 1.5
"""Periods after which a reading covers more than its own period."""

Event = tuple[Seconds, Callable[[], object]]


class MeasureError(TrainingError):
    """A router that cannot be measured: which, why, and what to do."""

    def __init__(self, router: str, problem: str, fix: str) -> None:
        self.router, self.problem, self.fix = router, problem, fix
        super().__init__(f"{router}: {problem} ({fix})")


class Stopped(TrainingError):  # noqa: N818  a request: no error
    """A stop was requested; everything is restored."""

    def __init__(self) -> None:
        super().__init__("stopped; what was capped is as it was")


@dataclass
class Stop:
    """Whether a stop was requested; checked between samples, never in the middle of work."""

    asked: bool = False
    _before: dict[signal.Signals, object] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() returned

    def _ask(self, *_: object) -> None:
        self.asked = True


@dataclass(frozen=True, slots=True)
class Period:
    """Result of one period."""

    at: Seconds
    """Its end, on the monotonic clock."""
    reading: Reading | None
    """None if the meter was blind or late."""


class Watch:
    """Meter and collector for one router, on a grid of periods."""

    def __init__(
        self,
        plan: RouterPlan,
        *,
        clock: Clock,
        source: SnapshotSource,
        period: Seconds,
        hypervisors: Hypervisors,
        stop: Stop,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        """Take the check of every period: ``check`` raises if there is nothing to measure."""
        self._plan, self.clock, self._source = plan, clock, source
        self.period, self._hypervisors, self._stop = period, hypervisors, stop
        self._check = check
        self._collector = Collector({plan.name: self._binding()})
        self._due = Seconds(clock.now())
        self._before: Snapshot | None = None

    def _binding(self) -> Binding:
        domain = self._plan.domain
        return self._plan.binding if domain is None else self._hypervisors.binding(domain)

    def next(self, events: Iterable[Event] = ()) -> Period:
        """Wait for the end of the next period, and do the scheduled work within it.

        Raises:
            Stopped: a stop was requested.
            MeasureError: the source, or a program of the lab, has ended by itself.
        """
        now = self.clock.now()
        self._due = Seconds(max(self._due + self.period, now))
        lead = min(self._hypervisors.lead, MAX_LEAD * self.period)
        ask: Event = (Seconds(self._due - lead), self._hypervisors.ask)
        for at, work in sorted([*events, ask], key=lambda event: event[0]):
            self.wait_until(at)
            work()
        self.wait_until(self._due)
        self._check()
        if self._hypervisors.supervise():
            self._collector.rebind({self._plan.name: self._binding()})
        at = self.clock.now()
        return Period(at, self._reading(at))

    def wait_until(self, at: Seconds) -> None:
        """Wait.

        Raises:
            Stopped: a stop was requested.
        """
        while True:
            if self._stop.asked:
                raise Stopped
            left = at - self.clock.now()
            if left <= 0:
                return
            self.clock.sleep(Seconds(min(left, NAP_S)))

    def _reading(self, now: Seconds) -> Reading | None:
        before, self._before = self._before, None
        try:
            self._before = self._source.read(now)
            if before is None or now - before.at > LATE * self.period:
                return None
            return self._collector.aggregate(rates(before, self._before))[self._plan.name]
        except MeterError as error:
            return Reading(None, None, (), (str(error),))

"""Runs the dumbbell: the competitors, then all, then the tagged sender alone (paper, figure 1)."""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from xco.arrays import Flags, Floats, jain
from xco.simulate.dumbbell.control import Control, Limits, Period
from xco.simulate.dumbbell.options import Dumbbell, control_of
from xco.simulate.dumbbell.port import PACKET_BITS, Passed, Port
from xco.simulate.dumbbell.senders import Kind, Senders

PAYLOAD: Final = 1460 / 1500
"""Of an IP packet of TCP without options."""
PARTS: Final = 150
"""Points of a series."""


class DumbbellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run; rates are of payload, in Mb/s."""

    strategy: str
    law: str | None
    """None where the strategy has none."""
    competitors: str
    senders: int
    tagged_mbps: float
    """Mean of the tagged sender over the three phases."""
    ideal_mbps: float
    """The same at equal shares of the whole link: 0, 1/n and 1 of it in the phases."""
    phases_mbps: list[float]
    """Of the tagged sender in each phase."""
    used: list[float]
    """Share of the link that was used in each phase."""
    jain: float
    """Jain's index of all senders in the second phase."""
    lost_packets: float
    lost_in_second: float
    """Packets lost in the second phase."""
    marked: float
    """Share of all packets."""
    seconds: list[float]
    tagged_series_mbps: list[float]
    queue_packets: list[float]

    @property
    def name(self) -> str:
        """Strategy and law."""
        return self.strategy if self.law is None else f"{self.strategy}, {self.law}"

    @property
    def title(self) -> str:
        """What was run."""
        return (
            f"A tagged sender beside {self.senders - 1} of {self.competitors.upper()} (simulated)"
        )

    @property
    def of_ideal(self) -> float:
        """The tagged sender's mean as a share of the ideal."""
        return self.tagged_mbps / self.ideal_mbps


class Counted:
    """Sums since the start of a run; arrays of shape (senders,), bits."""

    def __init__(self, senders: int) -> None:
        """Begin at zero."""
        self.sent, self.kept, self.marked = (np.zeros(senders) for _ in range(3))
        self.left = self.all_marked = self.lost = 0.0

    def add(self, sent: Floats, passed: Passed) -> None:
        """Add a step; the last of each array is the foreign traffic."""
        self.sent += sent[:-1]
        self.kept += passed.kept[:-1]
        self.marked += passed.marked[:-1]
        self.left += passed.left
        self.all_marked += float(passed.marked.sum())
        self.lost += float(passed.lost.sum())

    def since(self, before: "Counted") -> "Counted":
        """Return what was added since an earlier copy."""
        found = Counted(0)
        found.sent, found.kept = self.sent - before.sent, self.kept - before.kept
        found.marked, found.left = self.marked - before.marked, self.left - before.left
        found.all_marked = self.all_marked - before.all_marked
        found.lost = self.lost - before.lost
        return found

    def copy(self) -> "Counted":
        """Return a copy."""
        return self.since(Counted(len(self.sent)))


def run_dumbbell(
    given: Dumbbell, progress: Callable[[int], object] = lambda _done: None
) -> DumbbellResult:
    """Run it, one round trip a step; `progress` gets the steps done.

    Raises:
        ConfigError: an option is out of its range.
    """
    given.check()
    return _Run(given, control_of(given)).result(progress)


class _Run:
    def __init__(self, given: Dumbbell, control: Control) -> None:
        self._given, self._control = given, control
        kinds = [given.tagged, *[given.competitors] * (given.senders - 1)]
        self._senders = Senders(kinds, rto_s=given.rto_s)
        self._capable = _capable(kinds, given, control)
        buffer = given.buffer_packets * PACKET_BITS
        self._port = Port(given.capacity_bps, buffer, given.mark_at * buffer)
        self._limits = Limits(_first(given, control), given.delay_s)
        self._counted = Counted(given.senders)
        self._at_period = self._at_phase = self._counted.copy()
        self._period_steps = max(1, round(control.period_s / given.rtt_s))
        self._phases: list[Counted] = []
        self._part_steps = max(1, given.steps // PARTS)
        self._series: list[tuple[float, float, float]] = []
        self._at_part = 0.0

    def result(self, progress: Callable[[int], object]) -> DumbbellResult:
        given, third = self._given, self._given.steps // 3
        tagged, every = np.arange(given.senders) == 0, np.ones(given.senders, np.bool_)
        for phase, active in enumerate((~tagged, every, tagged)):
            foreign = given.foreign * given.capacity_bps * given.rtt_s * (phase == 1)
            for step in range(phase * third, (phase + 1) * third):
                self._step(step, active, foreign)
                if (step + 1) % self._part_steps == 0:
                    self._end_part(step + 1)
                    progress(step + 1)
            self._phases.append(self._counted.since(self._at_phase))
            self._at_phase = self._counted.copy()
        return self._summed()

    def _step(self, step: int, active: Flags, foreign: float) -> None:
        given, now = self._given, step * self._given.rtt_s
        rtt_s = given.rtt_s + self._port.delay_s
        limit = np.minimum(self._limits.at(now), given.capacity_bps)
        every = np.empty(given.senders + 1)
        every[:-1] = self._senders.send(now, limit, active, given.rtt_s, rtt_s)
        every[-1] = foreign
        passed = self._port.take(every, given.rtt_s, self._capable)
        own = Passed(passed.kept[:-1], passed.marked[:-1], passed.lost[:-1], passed.left)
        self._senders.hear(now, own, rtt_s, marks_seen=not self._control.hides_marks)
        self._counted.add(every, passed)
        if (step + 1) % self._period_steps == 0:
            self._end_period(now + given.rtt_s)

    def _end_period(self, now: float) -> None:
        counted = self._counted.since(self._at_period)
        seen = Period(
            ends=now,
            seconds=self._period_steps * self._given.rtt_s,
            active=counted.sent > 0,
            sent=counted.sent,
            kept=counted.kept,
            marked=counted.marked,
            left=counted.left,
            all_marked=counted.all_marked,
            lost=counted.lost,
        )
        self._limits.tell(now, self._control.decide(seen))
        self._at_period = self._counted.copy()

    def _end_part(self, step: int) -> None:
        length_s = self._part_steps * self._given.rtt_s
        kept = float(self._counted.kept[0])
        rate = (kept - self._at_part) / length_s * PAYLOAD / 1e6
        queue = self._port.queue / PACKET_BITS
        self._series.append((step * self._given.rtt_s - length_s / 2, rate, queue))
        self._at_part = kept

    def _summed(self) -> DumbbellResult:
        given = self._given
        tagged = [float(phase.kept[0]) / given.phase_s * PAYLOAD / 1e6 for phase in self._phases]
        link = given.capacity_bps * given.phase_s
        every = sum(phase.left for phase in self._phases)
        marked = sum(phase.all_marked for phase in self._phases)
        lost = [phase.lost / PACKET_BITS for phase in self._phases]
        full = given.capacity_bps * PAYLOAD / 1e6
        return DumbbellResult(
            strategy=given.strategy,
            law=given.law if given.strategy in ("gcc", "hygenicc") else None,
            competitors=given.competitors.value,
            senders=given.senders,
            tagged_mbps=sum(tagged) / 3,
            ideal_mbps=full * (1 / given.senders + 1) / 3,
            phases_mbps=tagged,
            used=[phase.left / link for phase in self._phases],
            jain=jain(self._phases[1].kept),
            lost_packets=sum(lost),
            lost_in_second=lost[1],
            marked=marked / every if every else 0.0,
            seconds=[at for at, _, _ in self._series],
            tagged_series_mbps=[rate for _, rate, _ in self._series],
            queue_packets=[queue for _, _, queue in self._series],
        )


def _capable(kinds: list[Kind], given: Dumbbell, control: Control) -> Floats | None:
    """Return whose packets may be marked, the foreign traffic last; None if all may."""
    if control.hides_marks or given.mark_at >= 1.0:
        return None
    marks = {Kind.ECN, Kind.DCTCP, *([Kind.UDP] if given.udp_marks else [])}
    return np.array([*(kind in marks for kind in kinds), given.udp_marks], np.float64)


def _first(given: Dumbbell, control: Control) -> Floats:
    """Return the limits at the start: those of a quiet period, without senders."""
    senders = given.senders
    if given.first_share is not None:
        rest = (1.0 - given.first_share) / (senders - 1)
        shares = np.array([given.first_share, *[rest] * (senders - 1)])
        return shares * given.capacity_bps
    idle, nothing = np.zeros(senders, np.bool_), np.zeros(senders)
    quiet = Period(0.0, control.period_s, idle, nothing, nothing, nothing, 0.0, 0.0, 0.0)
    return control.decide(quiet)

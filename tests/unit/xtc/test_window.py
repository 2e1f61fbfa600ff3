"""Caps that are given out rarely: several periods are one sample, and the router is held.

The plant is a flooded router under a CFS quota: it uses a whole quota at each refill, and is
stopped until the next.
"""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manager_rig import ManagerRig, planned

from common.units import CapFraction, PacketsPerSecond, Seconds
from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.binding import Evidence, binds
from xtc.control.law import Bounds, Sample
from xtc.kernel.quota import FLOOR, ideal_period_us, longest_period_us, quota_for
from xtc.manager.cap import CapView
from xtc.manager.window import REFILLS, joined, mean_of, periods_for, steadied
from xtc.measure.collector import Reading
from xtc.measure.meter import Snapshot, rates
from xtc.spec import ActuatorSpec, Original, SimulatedOriginal, SimulatedSpec
from xtc.wire import Activate

SPEED = 250e3
"""Packets that the plant forwards in a second of CPU."""
OFFERED = 1e6
BOUNDS = Bounds(CapFraction(0.001), CapFraction(2.0))
HEADER = "Inter-|  a  |  b\n face |a|b\n"


class QuotaPlant:
    """A router under a quota, its counters, and its actuator."""

    slow = False
    limits = CapLimits(FLOOR, CapFraction(2.0))

    def __init__(self, loop_s: float, phase: float) -> None:
        self._longest, self._phase = longest_period_us(loop_s), phase
        self.now = 0.0
        self.forwarded = self.received = self.used = 0.0
        self.throttled = self.refills = 0
        self.quota_us: int | None = None
        self.period_us = 100_000
        self._next = 0.0
        self.cycle = 0.0
        """Seconds after which a load of which half is silence begins again; 0 is a steady one."""

    def advance(self, seconds: float) -> None:
        """Let time pass, refill by refill."""
        until = self.now + seconds
        self.received += OFFERED * seconds * (0.5 if self.cycle else 1.0)
        if self.quota_us is None:
            self._forward(seconds)
        while self.quota_us is not None and self._next <= until + 1e-12:
            if not self.cycle or self._next % self.cycle < self.cycle / 2:
                self._forward(self.quota_us / 1e6)
                self.refills += 1
                self.throttled += 1
            self._next += self.period_us / 1e6
        self.now = until

    def _forward(self, cpu: float) -> None:
        self.used += cpu
        self.forwarded += SPEED * cpu

    def apply(self, cap: CapFraction) -> CapFraction:
        """Set the quota; the refills go on from here."""
        quota = quota_for(cap, self.period_us, self._longest)
        if (quota.quota_us, quota.period_us) != (self.quota_us, self.period_us):
            self.quota_us, self.period_us = quota.quota_us, quota.period_us
            self._next = self.now + self._phase * self.period_us / 1e6
        return cap

    def applied(self) -> CapFraction | None:
        """Return the quota as a cap."""
        return None if self.quota_us is None else CapFraction(self.quota_us / self.period_us)

    def usage(self) -> CpuUsage:
        """Return what the kernel has counted."""
        refill = 0.0 if self.quota_us is None else self.period_us / 1e6
        used = Seconds(self.used)
        return CpuUsage(used, self.throttled, self.refills, refill=Seconds(refill))

    def capture(self) -> Original:
        """Return that there was none."""
        return SimulatedOriginal(None)

    def restore(self, _original: Original) -> None:
        """Lift the quota."""
        self.quota_us = None

    def settle(self) -> bool:
        """Return True: at once."""
        return True

    def rebalance(self) -> CapFraction | None:
        """Return None: common to all threads."""
        return None


class QuotaRig(ManagerRig):
    """A manager over one router with a quota."""

    def __init__(self, directory: Path, period: float, phase: float) -> None:
        self.period = Seconds(period)
        super().__init__(directory, {"a": planned("a", SimulatedSpec("a"))})
        self.router = QuotaPlant(period, phase)
        self.last: Snapshot | None = None
        self.start()

    def start(self) -> None:
        """Start a manager."""
        self.open_manager(self.open)
        self.manager.start()

    def open(self, _spec: ActuatorSpec, _original: Original | None) -> Actuator:
        """Return the router's actuator."""
        return self.router

    def run(self, seconds: float) -> list[float]:
        """Let time pass; return the throughput of each period."""
        seen = []
        for _ in range(round(seconds / self.period)):
            before = self.router.forwarded
            self.router.advance(self.period)
            self.clock.sleep(self.period)
            seen.append((self.router.forwarded - before) / self.period)
            self._tick()
        return seen

    def _tick(self) -> None:
        counts = f"{int(self.router.forwarded)} 0 0 0 0 0 0 0 {int(self.router.received)}"
        line = f"a.0: 0 {counts} 0 0 0 0 0 0\n"
        after = Snapshot(self.clock.now(), (HEADER + line).encode())
        before, self.last = self.last, after
        readings = {} if before is None else self.collector.aggregate(rates(before, after))
        self.manager.tick(readings, self.clock.now())


@pytest.mark.parametrize("period", [0.1, 0.2, 1.0])
@pytest.mark.parametrize("cap", [0.002, 0.004, 0.007, 0.013, 0.03, 0.08, 0.3, 0.8])
@pytest.mark.parametrize("phase", [0.0, 0.37, 0.9])
def test_every_cap_is_held_at_every_period(
    tmp_path: Path, period: float, cap: float, phase: float
) -> None:
    rig = QuotaRig(tmp_path, period, phase)
    rig.run(3 * period)
    rig.ask(Activate("a", SPEED * cap))
    refill = ideal_period_us(CapFraction(cap), longest_period_us(period)) / 1e6
    rig.run(max(10 * period, 10 * REFILLS * refill))
    lasting = max(20 * period, 40 * refill)
    seen = rig.run(lasting)
    mean = sum(seen) / len(seen)
    assert mean == pytest.approx(SPEED * cap, rel=0.02 + refill / lasting)
    assert rig.report("a").problem == ""


@pytest.mark.parametrize("period", [0.1, 0.2, 1.0])
def test_a_step_is_followed_within_three_periods(tmp_path: Path, period: float) -> None:
    rig = QuotaRig(tmp_path, period, 0.37)
    rig.run(3 * period)
    rig.ask(Activate("a", SPEED * 0.5))
    rig.run(8 * period)
    for cap in (0.2, 0.6):
        rig.ask(Activate("a", SPEED * cap))
        seen = rig.run(8 * period)
        grain = 0.01 / period  # one refill more or less, of a period of 10 ms
        assert seen[3:] == pytest.approx([SPEED * cap] * 5, rel=0.05 + 2 * grain)


@pytest.mark.parametrize("cycle", [0.03, 0.07, 0.13, 0.21])
@pytest.mark.parametrize("period", [0.1, 0.2])
def test_a_load_that_changes_faster_than_the_period_does_not_open_the_cap(
    tmp_path: Path, period: float, cycle: float
) -> None:
    """What is offered in half of the time is no reason for twice the cap: a flood may follow."""
    rig = QuotaRig(tmp_path, period, 0.37)
    rig.run(3 * period)
    rig.ask(Activate("a", SPEED * 0.3))
    rig.run(8 * period)
    rig.router.cycle = cycle
    rig.run(20.0)
    rig.router.cycle = 0.0
    seen = rig.run(10 * period)
    assert max(seen) <= 2.1 * SPEED * 0.3  # never what the bursts alone would ask for, and more
    assert seen[4:] == pytest.approx([SPEED * 0.3] * 6, rel=0.25)


@given(st.floats(0.0, 1.0), st.floats(0.05, 60.0))
def test_a_sample_holds_enough_refills(refill: float, period: float) -> None:
    count = periods_for(refill, period)
    assert count >= 1
    assert count * period >= REFILLS * refill - 1e-6
    assert count == 1 or (count - 1) * period < REFILLS * refill


@pytest.mark.parametrize(
    ("loop_s", "longest"), [(0.1, 10_000), (0.2, 20_000), (0.5, 50_000), (1.0, 100_000), (9, 1e5)]
)
def test_a_quota_is_refilled_often_between_two_samples(loop_s: float, longest: int) -> None:
    assert longest_period_us(loop_s) == longest
    assert ideal_period_us(CapFraction(0.3), longest_period_us(loop_s)) == 10_000
    smallest = ideal_period_us(CapFraction(0.02), longest_period_us(loop_s))
    assert smallest == max(50_000, longest)  # the kernel takes no quota below 1 ms


def seen(throughput: float, cap: float = 0.01, **view: float) -> tuple[Reading, CapView]:
    reading = Reading(PacketsPerSecond(throughput), PacketsPerSecond(1e4), ("a.0",))
    return reading, CapView(CapFraction(cap), refill=Seconds(0.1), **view)  # type: ignore[arg-type]


def test_periods_are_joined_until_they_are_enough_and_begin_anew_with_another_cap() -> None:
    window, enough = joined((), seen(100.0), 0.1)
    for count in (2, 3):
        window, enough = joined(window, seen(100.0), 0.1)
        assert (len(window), enough) == (count, False)
    assert joined(window, seen(100.0), 0.1)[1]
    assert joined(window, seen(100.0, cap=0.02), 0.1) == ((seen(100.0, cap=0.02),), False)


@pytest.mark.parametrize("noise", [0.1, 0.2, 0.3])
def test_noise_alone_takes_nothing_off_the_throughput(noise: float) -> None:
    """With a backlog, samples of little use count as those of much use."""
    seen, setpoint = [], 30e3
    for seed in range(10):
        random_, law, cap, recent = random.Random(seed), AdaptiveLaw(), 0.05, ()
        state = law.start(CapFraction(cap))
        for _ in range(300):
            share = max(0.05, random_.gauss(1.0, noise))
            rate, used = 600e3 * cap * share, CapFraction(cap * share)
            shown = Evidence(CapFraction(cap), rate, 10 * rate, used)
            recent, judged = steadied(recent, shown, 0.1)
            sample = Sample(rate, CapFraction(cap), 10 * rate, used, binds(judged))
            state, decision = law.step(state, setpoint, sample, BOUNDS)
            cap = decision.cap
            seen.append(rate)
    assert sum(seen) / len(seen) == pytest.approx(setpoint, rel=0.03)


def evidence(throughput: float, *, offered: float, used: float) -> Evidence:
    rates = PacketsPerSecond(throughput), PacketsPerSecond(offered)
    return Evidence(CapFraction(0.1), *rates, CapFraction(used))


def test_a_router_that_forwards_all_is_judged_by_each_sample() -> None:
    full = Evidence(
        CapFraction(0.1), PacketsPerSecond(1e4), PacketsPerSecond(2e4), CapFraction(0.1)
    )
    recent, _ = steadied((), full, 0.1)
    idle = Evidence(
        CapFraction(0.1), PacketsPerSecond(1e3), PacketsPerSecond(1e3), CapFraction(0.01)
    )
    recent, judged = steadied(recent, idle, 0.1)
    assert judged == idle
    assert steadied(recent, Evidence(None), 0.1) == ((), Evidence(None))


def test_at_one_second_each_sample_stands_alone() -> None:
    short = Evidence(
        CapFraction(0.1), PacketsPerSecond(1e3), PacketsPerSecond(1e4), CapFraction(0.01)
    )
    assert steadied((1.0,), short, 1.0) == ((pytest.approx(0.1),), short)


def test_the_mean_is_of_what_is_known_in_all_periods() -> None:
    window = [seen(100.0, used=0.0, throttled=0.0), seen(300.0, used=0.02, throttled=1.0)]
    reading, view = mean_of(window)
    assert (reading.throughput, reading.offered, reading.throughput_bps) == (200.0, 1e4, None)
    assert (view.used, view.throttled, view.hottest) == (0.01, 0.5, None)
    assert mean_of(window[:1]) == window[0]

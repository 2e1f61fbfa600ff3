"""How precise gates are: packets that leave after their slice's end, and the delay of its start.

A sender that never stops waits behind the gate of a real coordinator, which gets a slice every few
milliseconds. The kernel stamps arrivals at the far end of the veth pair, so the figures include the
whole path: the clock's offset, the wake-up, the netlink change, the queue and the wire. Goals: at
most 0.1 % of packets after the end, and the first packet within 100 us of the start in 99 % of
slices.
"""

import argparse
import json
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.xco.gates.rig import LINE_BPS, Capture, StandIn, rig
from common.arguments import whole_number
from xco.protocol.messages import Mode, Permit

LATE_GOAL = 0.001
START_GOAL_US = 100.0
LEAD_NS = 1_500_000
LEAST_LEAD_NS = 500_000
"""A directive that this program sent later than this before its slice says nothing about the
gate."""
COORDINATORS_PRIORITY = 50
US = 1000


@dataclass(frozen=True)
class Precision:
    """Results; times in us."""

    slices: int
    empty: int
    skipped: int
    """Slices with a directive that this program sent too late."""
    packets: int
    late_share: float
    """Of the packets: those that arrived after the end of their slice."""
    overshoot_p50_us: float
    """Of the slices: delay of the last packet after the end; negative: before it."""
    overshoot_p99_us: float
    latest_us: float
    start_p50_us: float
    start_p99_us: float
    start_max_us: float
    wake_late_max_us: float
    gate_set_us: float
    clock_offset_us: float
    """Both clocks are one, so that this is the error of the estimate."""
    flow_ready_ms: float
    timer_p50_us: float
    """Wake-up delay of a thread of the coordinator's priority that only sleeps."""
    timer_p99_us: float
    load: float
    """Of the machine, over the last minute."""

    @property
    def reached(self) -> bool:
        """Whether both goals are met."""
        return self.late_share <= LATE_GOAL and self.start_p99_us <= START_GOAL_US


def main() -> None:
    """Measure and print; fail on a missed goal if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--slice-ms", type=float, default=2.0)
    parser.add_argument("--guard-us", type=whole_number(0), default=50)
    parser.add_argument("--spin-us", type=whole_number(0), default=100)
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times = {"guard": f"{options.guard_us}us", "spin": f"{options.spin_us}us"}
    precision = measure(options.seconds, round(options.slice_ms * 1e6), times)
    if options.json:
        print(json.dumps(asdict(precision) | {"reached": precision.reached}, indent=2))
    else:
        show(precision)
    sys.exit(1 if options.strict and not precision.reached else 0)


def measure(seconds: float, slice_ns: int, times: dict[str, str]) -> Precision:
    """Run the coordinator on a separate rig and give it slices, every second one free."""
    timer = _lateness_of_timers(seconds / 2, slice_ns)
    with rig("xcogb") as bench:
        capture, stand_in = bench.capture(), bench.stand_in()
        running = bench.start(bench.config(**times))
        stand_in.wait_for(lambda: stand_in.reports)
        stand_in.direct(Mode.CLOSED, 0, 0)
        bench.send()
        stand_in.keep_until(lambda: stand_in.reports[-1].waiting, Mode.CLOSED)
        stand_in.keep(0.3, Mode.CLOSED)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))  # below the coordinator's
        slices = _run_slices(stand_in, capture, seconds, slice_ns)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        time.sleep(0.2)
        counters = running.statistics().values
    return _judged(slices, counters, timer)


def _lateness_of_timers(seconds: float, step_ns: int) -> list[float]:
    """Return the sorted wake-up delays of a real-time thread that only sleeps, in us."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(COORDINATORS_PRIORITY))
    due = time.monotonic_ns() + step_ns
    late = []
    for _ in range(round(seconds * 1e9 / step_ns)):
        _sleep_until(due)
        late.append((time.monotonic_ns() - due) / US)
        due += step_ns
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return sorted(late)


@dataclass
class Slices:
    """Directives sent, and packets that arrived."""

    bounds: list[tuple[int, int]]
    arrivals: list[int]
    skipped: int


def _run_slices(stand_in: StandIn, capture: Capture, seconds: float, slice_ns: int) -> Slices:
    capture.take()
    slices = Slices([], [], 0)
    start = time.monotonic_ns() + 10_000_000
    end = start + round(seconds * 1e9)
    while start < end:
        _sleep_until(start - LEAD_NS)
        stand_in.hear()
        stand_in.direct(Mode.SLICE, start, start + slice_ns, Permit(1, LINE_BPS))
        if time.monotonic_ns() > start - LEAST_LEAD_NS:
            slices.skipped += 1
        else:
            slices.bounds.append((start, start + slice_ns))
        start += 2 * slice_ns
    time.sleep(0.02)
    slices.arrivals = sorted(_all(capture))
    return slices


def _sleep_until(instant_ns: int) -> None:
    wait_ns = instant_ns - time.monotonic_ns()
    if wait_ns > 0:
        time.sleep(wait_ns / 1e9)


def _all(capture: Capture) -> list[int]:
    """Take everything that waits: the sender continues, so arrivals may not end by themselves."""
    stamps: list[int] = []
    while batch := capture.take():
        stamps += [at for at, _, _ in batch]
        if batch[-1][0] > time.monotonic_ns() - 1_000_000:
            break
    return stamps


def _judged(slices: Slices, counters: dict[str, int], timer: Sequence[float]) -> Precision:
    starts: list[float] = []
    overshoots: list[float] = []
    late = total = empty = 0
    for start, end in slices.bounds:
        first = bisect_right(slices.arrivals, start)
        after = bisect_right(slices.arrivals, end)
        last = bisect_right(slices.arrivals, end + (end - start))  # until the next slice begins
        if first == after:
            empty += 1
            continue
        starts.append((slices.arrivals[first] - start) / US)
        total += last - first
        late += last - after
        overshoots.append((slices.arrivals[last - 1] - end) / US)
    starts.sort()
    overshoots.sort()
    return Precision(
        slices=len(slices.bounds),
        empty=empty,
        skipped=slices.skipped,
        packets=total,
        late_share=late / total if total else 0.0,
        overshoot_p50_us=_quantile(overshoots, 0.5),
        overshoot_p99_us=_quantile(overshoots, 0.99),
        latest_us=_quantile(overshoots, 1.0),
        start_p50_us=_quantile(starts, 0.5),
        start_p99_us=_quantile(starts, 0.99),
        start_max_us=_quantile(starts, 1.0),
        wake_late_max_us=counters["gate_late_max_ns"] / US,
        gate_set_us=counters["gate_set_ns"] / max(1, counters["gate_changes"]) / US,
        clock_offset_us=_signed(counters["clock_offset_ns"]) / US,
        flow_ready_ms=counters["flow_ready_max_ns"] / 1e6,
        timer_p50_us=_quantile(timer, 0.5),
        timer_p99_us=_quantile(timer, 0.99),
        load=os.getloadavg()[0],
    )


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def show(precision: Precision) -> None:
    """Print one row for each figure, with its goal."""
    table = Table("figure", "measured", "goal", box=None, pad_edge=False)
    late = f"{precision.late_share * 100:.3f} %"
    table.add_row("packets after the slice's end", late, f"{LATE_GOAL * 100:g} %")
    table.add_row("start delay p99", f"{precision.start_p99_us:.0f} us", f"{START_GOAL_US:g} us")
    for name, value in asdict(precision).items():
        if name not in {"late_share", "start_p99_us"}:
            table.add_row(name, f"{value:.1f}" if isinstance(value, float) else str(value), "")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()

"""Cost of late wake-ups for a lone sender, safe shares, and five senders that take turns.

Each load is measured three times in one run: on the machine as it is, while tasks of higher
priority take random bites of 1 to 10 ms of each CPU, and while they bite all CPUs simultaneously,
which no program can evade (benchmarks/xco/bites.py). Goals under the bites: a lone sender and four
at their safe shares use at least 90 % of the link, five with timeslices at least 85 %, and nothing
is lost at the port.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from benchmarks.xco.bites import BEGIN_S, SHARE, Bites, Lateness, bites, measured_lateness
from benchmarks.xco.rig import XcoRig, rig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Options,
    Seen,
    Window,
    options,
    percent,
    seen_columns,
    show,
)
from lab.fabric.fabric import Fabric
from lab.fabric.plan import FabricHost
from lab.traffic import roles

WAITING_BYTES = 1 << 20
"""Send buffer, as the kernel counts: during a bite the sender has no CPU, either."""
LONE, SAFE, TURNS = "lone sender", "four at safe shares", "five in turns"
SENDERS = {LONE: 1, SAFE: 4, TURNS: 5}
STREAMS = {LONE: 0, SAFE: 0, TURNS: 3}
"""Of the senders, how many send a TCP stream; the others send UDP messages of 64 KB."""
COUNTED = ("slices", "fallbacks")
KINDS: tuple[Bites, ...] = ("none", "each CPU", "all at once")
GOALS = {LONE: 0.90, SAFE: 0.90, TURNS: 0.85}


@dataclass(frozen=True)
class Late:
    """One load on a machine with late wake-ups."""

    way: str
    bites: Bites
    lateness: Lateness
    link_bps: int
    slices: int
    """Slices that began on all hosts meanwhile."""
    fallbacks: int
    seen: Seen

    @property
    def used(self) -> float:
        """The part of the link that was used, with Ethernet headers."""
        return self.seen.wire_bps / self.link_bps

    @property
    def reached(self) -> bool:
        """Whether the goal is met."""
        return self.used >= GOALS[self.way] and self.seen.drops == 0


def begin(xco: XcoRig, load: str) -> None:
    """Coordinate the hosts, or, for safe shares, stop their controller."""
    xco.go("timeslice")
    if load == SAFE:
        xco.kill_controller()
        for host in xco.fabric.plan.hosts:
            xco.wait_until(partial(_fell_back, xco, host), f"{host.name} has fallen back")


def _fell_back(xco: XcoRig, host: FabricHost) -> bool:
    return xco.host_counters(host)["fallbacks"] > 0


def _counters(xco: XcoRig) -> Counter[str]:
    total: Counter[str] = Counter()
    for host in xco.fabric.senders:
        counters = xco.host_counters(host)
        total.update({key: counters[key] for key in COUNTED})
    return total


def measure(xco: XcoRig, load: str, link_bps: int, kind: Bites, seconds: float) -> Late:
    """Make the load's hosts send to one, bitten or not."""
    fabric = xco.fabric
    to = fabric.receivers[0]
    with ExitStack() as stack:
        stack.enter_context(roles.sink_streams(fabric.place(to)))
        stack.enter_context(roles.sink_messages(fabric.place(to)))
        for index, host in enumerate(fabric.senders):
            place = fabric.place(host)
            if index < STREAMS[load]:
                stack.enter_context(roles.send_stream(place, to.address))
            else:
                stack.enter_context(
                    roles.send_messages(place, to.address, buffer_bytes=WAITING_BYTES)
                )
        stack.enter_context(bites(kind))
        time.sleep(SETTLING_S + BEGIN_S)
        with measured_lateness() as found:
            before, window = _counters(xco), Window(fabric)
            time.sleep(seconds)
            seen, after = window.close(), _counters(xco)
    slices, fallbacks = (after[key] - before[key] for key in COUNTED)
    return Late(load, kind, found[0], link_bps, slices, fallbacks, seen)


def run(chosen: Options, load: str) -> Iterator[Late]:
    """Measure one load, as the machine is and bitten, on a fabric of its own."""
    link_bps = chosen.bottleneck_bps
    with Fabric("xcolate") as fabric:
        fabric.incast(SENDERS[load], link_bps, BUFFER_BYTES)
        with rig(fabric, chosen.settings) as xco:
            begin(xco, load)
            for kind in KINDS:
                yield measure(xco, load, link_bps, kind, chosen.seconds)


def columns() -> dict[str, Callable[[Late], str]]:
    """Return the table's columns."""
    return {
        "way": lambda row: row.way,
        "bites": lambda row: row.bites,
        "late p50, ms": lambda row: f"{row.lateness.p50_ms:.2f}",
        "p99": lambda row: f"{row.lateness.p99_ms:.2f}",
        "max": lambda row: f"{row.lateness.max_ms:.1f}",
        "link used": lambda row: percent(row.used),
        "slices": lambda row: str(row.slices),
        "fallbacks": lambda row: str(row.fallbacks),
        **seen_columns(),
    }


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 5.0, "100Mbps")
    rows = [row for load in SENDERS for row in run(chosen, load)]
    reached = all(row.reached for row in rows if row.bites != "none")
    show(chosen, rows, columns(), bitten_share=SHARE, goals=GOALS, reached=reached)


if __name__ == "__main__":
    main()

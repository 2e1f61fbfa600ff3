"""Scheduling decisions per second and core, and the time of one event, at 256 to 50,000 hosts.

Side by side on the same demands, Poisson as in Fastpass's benchmark (sizes exponential with mean
10 slices, destinations drawn evenly) at 90 % load: the compiled scheduler, event by event, under
both policies; Algorithm 1 as published, in C, with whole contention groups;
and the oracle, which is Algorithm 1 in Python. `star` is one switch without a bottleneck, as
Fastpass has it; `tree` is the paper's (20 hosts a rack, 10 racks a row, 1 and 10 Gb/s) with the
busiest link at 90 %; `greedy` is the same tree when every host always has something for eight
others. That is the case that coordination is made for, with large contention groups.

A program in C (`make -C xco/core bench`) measures all but the oracle: a decision is a grant, and
its cost includes the driver's bookkeeping of demands. Rates are by the program's CPU time;
latencies by the clock, so their maximum includes other work of the machine.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from xco.scheduler.grant import Grant
from xco.scheduler.reference import PublishedScheduler
from xco.topology.graph import Host, Link, Switch, Topology

CORE: Final = Path(__file__).parents[3] / "xco" / "core"
BENCH: Final = CORE / "build" / "xco-bench"
LOAD: Final = 0.9
SLICES: Final = {256: 60_000, 1024: 15_000, 4800: 3_000, 50_000: 480}
"""Of simulated time, by hosts: the first sixth fills the queues."""
COMPILED: Final = {
    "fair": "compiled, fair (default)",
    "events": "compiled, published",
    "published": "Algorithm 1 in C",
}
ORACLE: Final = "Algorithm 1 in Python"
SLICE_NS: Final = 2_000_000
SEED: Final = 1
MOST_OF_PUBLISHED: Final = {"star": 50_000, "tree": 50_000, "greedy": 4800}
MOST_OF_ORACLE: Final = {"star": 4800, "tree": 4800, "greedy": 1024}
"""Maximum number of hosts, by network: with more, the run ends before the queues are full."""


@dataclass(frozen=True)
class Cost:
    """Cost of one scheduler at one size."""

    hosts: int
    network: str
    scheduler: str
    decisions: int
    events: int
    decisions_per_s: float
    events_per_s: float
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    memory_bytes: int | None


def measure(hosts: int, network: str, what: str, seconds: float) -> Cost:
    """Run the program in C once for speed, and once more for the time of each event."""
    found = json.loads(_bench(what, network, hosts, seconds))
    return Cost(
        hosts=hosts,
        network=network,
        scheduler=COMPILED[what],
        memory_bytes=found["bytes"] or None,
        **{
            name: found[name]
            for name in (
                "decisions",
                "events",
                "decisions_per_s",
                "events_per_s",
                "p50_us",
                "p99_us",
                "p999_us",
                "max_us",
            )
        },
    )


def _bench(what: str, network: str, hosts: int, seconds: float) -> str:
    numbers = [str(n) for n in (hosts, LOAD, seconds, SLICES[hosts], SEED)]
    command = [str(BENCH), what, network, *numbers]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Oracle:
    """Algorithm 1 in Python on the same demands: slices end in the order in which they began."""

    def __init__(self, topology: Topology) -> None:
        self._scheduler = PublishedScheduler(topology, SLICE_NS)
        self._left: dict[int, dict[int, int]] = defaultdict(dict)
        self._ends: deque[tuple[int, int]] = deque()
        self._sending: dict[int, int] = {}
        self._due: dict[int, int] = {}
        self.decisions = 0
        self.took_ns: list[int] = []

    def run(self, demands: Iterator[tuple[int, int, int, int]], seconds: float) -> None:
        """Continue until the time is over, or demands and slices are used up."""
        deadline = time.monotonic() + seconds
        for at, host, destination, slices in demands:
            while self._ends and self._ends[0][0] <= at:
                self._end()
            known = self._left[host].get(destination, 0)
            self._left[host][destination] = known + slices
            if not known:
                self._arrive(at, host)
            if time.monotonic() > deadline:
                return
        while self._ends and time.monotonic() < deadline:
            self._end()

    def _arrive(self, at: int, host: int) -> None:
        group = list(self._left[host])
        began = time.perf_counter_ns()
        self._take(at, self._scheduler.backlogged(at, host, group), began)

    def _end(self) -> None:
        at, host = self._ends.popleft()
        if self._due.get(host) != at:
            return  # it was preempted at the very end of its slice
        left, destination = self._left[host], self._sending[host]
        left[destination] -= 1
        event = self._scheduler.expired if left[destination] else self._scheduler.gave_up
        if not left[destination]:
            del left[destination]
        began = time.perf_counter_ns()
        self._take(at, event(at, host), began)

    def _take(self, at: int, grants: list[Grant], began: int) -> None:
        self.took_ns.append(time.perf_counter_ns() - began)
        for grant in grants:
            self._due.pop(grant.host, None)
            if grant.destination is not None:
                self._sending[grant.host] = grant.destination
                self._due[grant.host] = at + SLICE_NS
                self._ends.append((at + SLICE_NS, grant.host))
                self.decisions += 1


def measure_oracle(hosts: int, network: str, seconds: float) -> Cost:
    """Measure Algorithm 1 in Python for some time, from empty queues on, which favours it."""
    lines = _bench("demands", network, hosts, seconds).splitlines()
    oracle = Oracle(topology_of(hosts, network))
    oracle.run((_demand(line) for line in lines), seconds)
    took = sorted(oracle.took_ns)
    busy = sum(took) / 1e9
    return Cost(
        hosts=hosts,
        network=network,
        scheduler=ORACLE,
        decisions=oracle.decisions,
        events=len(took),
        decisions_per_s=oracle.decisions / busy,
        events_per_s=len(took) / busy,
        p50_us=took[len(took) // 2] / 1e3,
        p99_us=took[-1 - len(took) // 100] / 1e3,
        p999_us=took[-1 - len(took) // 1000] / 1e3,
        max_us=took[-1] / 1e3,
        memory_bytes=None,
    )


def _demand(line: str) -> tuple[int, int, int, int]:
    at, host, destination, slices = map(int, line.split())
    return at, host, destination, slices


def topology_of(hosts: int, network: str) -> Topology:
    """Return the network that the program in C makes, in its order of links."""
    names = tuple(Host(f"h{n}") for n in range(hosts))
    if network == "star":
        links = [Link(f"h{n}", "switch", 10**9) for n in range(hosts)]
        return Topology((Switch("switch"),), names, tuple(links))
    racks = -(-hosts // 20)
    rows = -(-racks // 10)
    links = [Link(f"row{n}", "core", 10**10) for n in range(rows)]
    links += [Link(f"rack{n}", f"row{n // 10}", 10**10) for n in range(racks)]
    links += [Link(f"h{n}", f"rack{n // 20}", 10**9) for n in range(hosts)]
    switches = ["core", *(f"row{n}" for n in range(rows)), *(f"rack{n}" for n in range(racks))]
    return Topology(tuple(map(Switch, switches)), names, tuple(links))


def costs(sizes: list[int], seconds: float) -> Iterator[Cost]:
    """Yield the cost of each scheduler at each size, on both networks."""
    for network, hosts in product(MOST_OF_ORACLE, sizes):
        for what in COMPILED:
            if what != "published" or hosts <= MOST_OF_PUBLISHED[network]:
                yield measure(hosts, network, what, seconds)
        if hosts <= MOST_OF_ORACLE[network]:
            yield measure_oracle(hosts, network, seconds)


def show(found: list[Cost]) -> None:
    """Print the table."""
    table = Table("network", "hosts", "scheduler", "decisions/s/core", "events/s/core")
    for name in ("p50 us", "p99 us", "p99.9 us", "max us", "MiB"):
        table.add_column(name, justify="right")
    for cost in found:
        memory = f"{cost.memory_bytes / 2**20:.1f}" if cost.memory_bytes else ""
        times = (cost.p50_us, cost.p99_us, cost.p999_us, cost.max_us)
        table.add_row(
            cost.network,
            f"{cost.hosts:,}",
            cost.scheduler,
            f"{cost.decisions_per_s:,.0f}",
            f"{cost.events_per_s:,.0f}",
            *(f"{value:,.2f}" for value in times),
            memory,
        )
    Console(width=150).print(table)


def main() -> int:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement")
    parser.add_argument("--hosts", type=int, nargs="*", choices=SLICES, default=list(SLICES))
    arguments = parser.parse_args()
    subprocess.run(["make", "-s", "-C", str(CORE), "bench"], check=True)  # noqa: S607  any make
    found = list(costs(arguments.hosts, arguments.seconds))
    if arguments.json:
        print(json.dumps([asdict(cost) for cost in found], indent=2))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

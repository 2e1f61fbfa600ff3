"""Partition-aggregate: completion times of queries whose answers meet at one shallow port.

One aggregator asks all workers; a query is complete when the last byte of the last one has arrived.
TCP is real, CUBIC, and its connections stay open. The ways take turns within each point, so that
other work of the machine slows all of them down. With three tiers, mid-level aggregators ask the
workers and answer the aggregator.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import product
from typing import Final

from rich.table import Table

from benchmarks.zovn.partition_ways import WAYS, Losses, Network, Request
from common.output import fitting_console
from lab.errors import LabError
from lab.system import requirements
from lab.traffic import roles
from lab.traffic.completion import completion
from lab.traffic.partition import BACKGROUND_PORT, Tiers, aggregate, send_background

WORKERS: Final = (8, 16, 32)
SIZES: Final = ("2KB", "6KB", "12KB", "24KB", "48KB", "96KB", "192KB", "1MB")
QUEUES: Final = (64, 256)
POLL_S: Final = 0.1
UNITS: Final = {"KB": 10**3, "MB": 10**6, "B": 1}


@dataclass(frozen=True)
class Point:
    """One point of the figure in one way; times are None where no query was complete."""

    mode: str
    queue: int
    workers: int
    tiers: int
    size_bytes: int
    queries: int
    """Complete; fewer than asked for if the time was over."""
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    dropped: int
    timeouts: int
    probes: int
    retransmitted: int


def size_of(text: str) -> int:
    """Return bytes written as 12KB or 1MB, in powers of ten.

    Raises:
        argparse.ArgumentTypeError: it is no such size.
    """
    for unit, scale in UNITS.items():
        number = text.removesuffix(unit)
        if text.endswith(unit) and number.isdecimal() and int(number) > 0:
            return int(number) * scale
    raise argparse.ArgumentTypeError(f'"{text}" is not a size: write e.g. 12KB')


def sizes_of(text: str) -> list[int]:
    """Return sizes separated by commas."""
    return [size_of(word) for word in text.split(",")]


def numbers_of(text: str) -> list[int]:
    """Return whole numbers above 0, separated by commas."""
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of numbers: write e.g. 8,16')
    return [int(word) for word in words]


@dataclass
class Measured:
    """What the rounds of one point have measured so far."""

    query_ns: list[int]
    losses: Losses


@dataclass(frozen=True)
class Running:
    """A way with everything that answers on it."""

    network: Network
    tiers: Tiers

    def ask(self, size: int, queries: int, options: argparse.Namespace, into: Measured) -> None:
        """Send queries until they are complete or the time is over; add what was measured."""
        servers, port, rate = self.tiers.servers, self.tiers.port, options.rate
        before, deadline = self.network.losses(), time.monotonic() + options.limit
        with aggregate(
            self.network.top, servers, size=size, queries=queries, rate=rate, port=port
        ) as running:
            while time.monotonic() < deadline:
                time.sleep(POLL_S)
                counts = running.counts()
                into.query_ns += counts.query_ns
                if counts.queries == queries:
                    break
        into.losses += self.network.losses() - before


def start(stack: ExitStack, request: Request, way: str, options: argparse.Namespace) -> Running:
    """Build a way, and start workers, mid-level aggregators and background flows on it."""
    network = stack.enter_context(WAYS[way](request))
    middles = options.middles if options.tiers == 3 else 0
    tiers = stack.enter_context(Tiers(network.hosts[middles:], network.hosts[:middles]))
    if options.background is not None:
        start_background(stack, network, options.background)
    return Running(network, tiers)


def start_background(stack: ExitStack, network: Network, gap_s: float) -> None:
    """Start a sink and a source of background flows on every host."""
    for host in network.hosts:
        stack.enter_context(roles.sink_streams(host.place, port=BACKGROUND_PORT))
    for seed, host in enumerate(network.hosts):
        others = [other.address for other in network.hosts if other is not host]
        stack.enter_context(send_background(host.place, others, gap_s=gap_s, seed=seed))


def measure(workers: int, queue: int, options: argparse.Namespace) -> Iterator[Point]:
    """Measure all sizes in all ways, which take turns."""
    found: dict[tuple[int, str], Measured] = defaultdict(lambda: Measured([], Losses()))
    hosts = workers + (options.middles if options.tiers == 3 else 0)
    with ExitStack() as stack:
        ways = {
            way: start(
                stack, Request(f"zpa{number}", hosts, queue, options.bottleneck), way, options
            )
            for number, way in enumerate(options.ways)
        }
        for turn, size in product(range(options.rounds), options.sizes):
            say(f"{workers} workers, queue {queue}, {size} bytes: {turn + 1} of {options.rounds}")
            for way, running in ways.items():
                queries = max(1, options.queries // options.rounds)
                running.ask(size, queries, options, found[size, way])
    for (size, way), measured in sorted(found.items()):
        yield point(way, queue, workers, size, measured, tiers=options.tiers)


def point(
    way: str, queue: int, workers: int, size: int, measured: Measured, *, tiers: int
) -> Point:
    """Return the figures of one point."""
    found, lost = completion(measured.query_ns), measured.losses
    return Point(
        mode=way,
        queue=queue,
        workers=workers,
        tiers=tiers,
        size_bytes=size,
        queries=len(measured.query_ns),
        mean_ms=None if found is None else found.mean_ms,
        p50_ms=None if found is None else found.p50_ms,
        p99_ms=None if found is None else found.p99_ms,
        dropped=lost.dropped,
        timeouts=lost.timeouts,
        probes=lost.probes,
        retransmitted=lost.retransmitted,
    )


def show(points: Sequence[Point]) -> None:
    """Print the table."""
    table = Table("workers", "queue", "bytes", "way", "queries", "mean ms", "p50 ms", "p99 ms")
    for heading in ("dropped", "timeouts", "probes", "sent again"):
        table.add_column(heading)
    for each in points:
        times = ("-" if t is None else f"{t:.2f}" for t in (each.mean_ms, each.p50_ms, each.p99_ms))
        first = (each.workers, each.queue, each.size_bytes, each.mode, each.queries)
        last = (each.dropped, each.timeouts, each.probes, each.retransmitted)
        table.add_row(*map(str, first), *times, *map(str, last))
    fitting_console().print(table)


def say(line: str) -> None:
    """Print progress."""
    sys.stderr.write(line + "\n")


def arguments() -> argparse.Namespace:
    """Read the command line; end the program if the machine cannot hold the networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--workers", type=numbers_of, default=WORKERS, help="numbers of workers: 8,16,32")
    add("--sizes", type=sizes_of, default=sizes_of(",".join(SIZES)), help="of an answer: 2KB,1MB")
    add("--queue", type=numbers_of, default=QUEUES, help="frames at the shallow port: 64,256")
    add("--queries", type=int, default=1000, help="for each point")
    add("--rounds", type=int, default=5, help="in which the ways take turns")
    add("--rate", type=float, help="queries/s; by default one after another")
    add("--limit", type=float, default=20.0, help="seconds for a round of a point at most")
    add("--bottleneck", default="1Gbps", help="rate of the port to the aggregator")
    add("--tiers", type=int, choices=(2, 3), default=2)
    add("--middles", type=int, default=4, help="mid-level aggregators with three tiers")
    add("--background", type=float, help="background flows, with this mean gap in seconds")
    add("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quick", action="store_true", help="few workers and queries: no figures")
    options = parser.parse_args()
    if options.quick:
        options.workers, options.sizes, options.queue = [8], [2_000, 48_000], [32]
        options.queries, options.rounds, options.limit = 20, 2, 3.0
    if missing := requirements.missing():
        parser.error("; ".join(missing))
    return options


def main() -> int:
    """Measure, and print a table or JSON."""
    options = arguments()
    points: list[Point] = []
    try:
        for workers, queue in product(options.workers, options.queue):
            points += measure(workers, queue, options)
    except LabError as error:
        say(str(error))
        return 1
    if options.json:
        print(json.dumps([asdict(each) for each in points], indent=2))
    else:
        show(points)
    return 0


if __name__ == "__main__":
    sys.exit(main())

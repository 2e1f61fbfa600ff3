"""Partition-aggregate over lossy and lossless virtual and physical networks: LL, LZ, ZL, ZZ.

Hosts are namespaces with a switch each (`zovn switch run`), their containers, and a wire port to a
star, which stands for the physical network (docs/howto/lab-star.md). The first letter is the
virtual network, the second the physical one; L drops at full queues, Z is lossless. All four take
turns in each round, so that other work of the machine slows all of them down.

Background traffic goes between one more container on each host: TCP flows to random hosts, or UDP
to the next host. It has the class of the queries (`shared`), or a lower one (`own`).
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Final

from rich.table import Table

from benchmarks.zovn.overlay_network import Lost, Overlay
from benchmarks.zovn.overlay_plan import BACKGROUNDS, MODES, Request
from benchmarks.zovn.partition_aggregate import say, sizes_of
from common.arguments import whole_number
from common.output import fitting_console
from lab.errors import LabError
from lab.fabric.plan import parse_bitrate
from lab.system import requirements
from lab.traffic import roles
from lab.traffic.completion import completion
from lab.traffic.partition import BACKGROUND_PORT, Member, Tiers, aggregate, send_background

POLL_S: Final = 0.1
Key = tuple[str, str, int]
"""Mode, background, size."""


@dataclass(frozen=True)
class Point:
    """One row of the table; times are None where no query was complete."""

    mode: str
    background: str
    size_bytes: int
    queries: int
    """Complete; fewer than asked for if the time was over."""
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    dropped_virtual: int
    """Frames, by the hosts' switches for congestion."""
    dropped_physical: int
    """Frames, by the star, or by wires that had no room for them."""
    dropped_otherwise: int
    """Frames, for other reasons: 0, or the measurement is void."""
    timeouts: int
    probes: int
    retransmitted: int


@dataclass
class Measured:
    """What the rounds of one row have measured so far."""

    query_ns: list[int] = field(default_factory=list)
    lost: Lost = Lost()


def ask(overlay: Overlay, tiers: Tiers, size: int, options: argparse.Namespace) -> Measured:
    """Send the queries of a round, until they are complete or the time is over."""
    found, before = Measured(), overlay.lost()
    queries, deadline = max(1, options.queries // options.rounds), time.monotonic() + options.limit
    with aggregate(
        overlay.top, tiers.servers, size=size, queries=queries, port=tiers.port
    ) as running:
        while len(found.query_ns) < queries and time.monotonic() < deadline:
            time.sleep(POLL_S)
            found.query_ns += running.counts().query_ns
    found.lost = overlay.lost() - before
    return found


def start_flows(stack: ExitStack, members: Sequence[Member], gap_s: float) -> None:
    """Start TCP flows from each host to random others."""
    for member in members:
        stack.enter_context(roles.sink_streams(member.place, port=BACKGROUND_PORT))
    for seed, member in enumerate(members):
        others = [other.address for other in members if other is not member]
        stack.enter_context(send_background(member.place, others, gap_s=gap_s, seed=seed))


def start_datagrams(stack: ExitStack, members: Sequence[Member], rate_bps: int) -> None:
    """Start UDP from each host to the next one."""
    for member in members:
        stack.enter_context(roles.sink_messages(member.place))
    for member, other in zip(members, [*members[1:], *members[:1]], strict=True):
        size = roles.DATAGRAM_BYTES
        stack.enter_context(
            roles.send_messages(member.place, other.address, size=size, rate_bps=rate_bps)
        )


def measure(request: Request, options: argparse.Namespace) -> dict[int, Measured]:
    """Build a network, and measure all sizes on it."""
    with ExitStack() as stack:
        overlay = stack.enter_context(Overlay(request))
        workers = [overlay.member(each) for each in overlay.containers.workers]
        tiers = stack.enter_context(Tiers(workers))
        members = [overlay.member(each) for each in overlay.containers.background]
        if members and options.udp:
            start_datagrams(stack, members, round(options.udp * request.line_bps))
        elif members:
            start_flows(stack, members, options.gap)
        return {size: ask(overlay, tiers, size, options) for size in options.sizes}


def measure_all(
    options: argparse.Namespace, one: Callable[[Request, argparse.Namespace], dict[int, Measured]]
) -> list[Point]:
    """Measure all modes in turns; return a row for each."""
    found: dict[Key, Measured] = defaultdict(Measured)
    for turn, background, mode in product(range(options.rounds), options.background, options.modes):
        say(f"{mode}, background {background}: {turn + 1} of {options.rounds}")
        request = Request(
            mode=mode,
            hosts=options.hosts,
            workers=options.workers,
            line_bps=options.line,
            delay_s=options.delay_us / 1e6,
            queue=options.queue,
            star_queue=options.star_queue,
            background=background,
        )
        for size, measured in one(request, options).items():
            row = found[mode, background, size]
            row.query_ns += measured.query_ns
            row.lost += measured.lost
    return [point(*key, measured) for key, measured in sorted(found.items(), key=_order)]


def _order(row: tuple[Key, Measured]) -> tuple[int, int, int]:
    mode, background, size = row[0]
    return BACKGROUNDS.index(background), size, list(MODES).index(mode)


def point(mode: str, background: str, size: int, measured: Measured) -> Point:
    """Return the figures of one row."""
    times, lost = completion(measured.query_ns), measured.lost
    return Point(
        mode=mode,
        background=background,
        size_bytes=size,
        queries=len(measured.query_ns),
        mean_ms=None if times is None else times.mean_ms,
        p50_ms=None if times is None else times.p50_ms,
        p99_ms=None if times is None else times.p99_ms,
        dropped_virtual=lost.virtual,
        dropped_physical=lost.physical,
        dropped_otherwise=lost.otherwise,
        timeouts=lost.timeouts,
        probes=lost.probes,
        retransmitted=lost.retransmitted,
    )


def show(points: Sequence[Point]) -> None:
    """Print the table."""
    table = Table("background", "bytes", "network", "queries", "mean ms", "p50 ms", "p99 ms")
    for heading in ("virtual", "physical", "other", "timeouts", "probes", "sent again"):
        table.add_column(heading)
    for each in points:
        times = ("-" if t is None else f"{t:.2f}" for t in (each.mean_ms, each.p50_ms, each.p99_ms))
        dropped = (each.dropped_virtual, each.dropped_physical, each.dropped_otherwise)
        first = (each.background, each.size_bytes, each.mode, each.queries)
        last = (*dropped, each.timeouts, each.probes, each.retransmitted)
        table.add_row(*map(str, first), *times, *map(str, last))
    fitting_console().print(table)


def arguments() -> argparse.Namespace:
    """Read the command line; end the program if the machine cannot hold the networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--hosts", type=int, choices=range(2, 5), default=4)
    add("--workers", type=whole_number(1), default=32, help="on all hosts in turn")
    add("--sizes", type=sizes_of, default=[12_000], help="of an answer: 2KB,1MB")
    add(
        "--queue",
        type=whole_number(1),
        default=64,
        help="full frames that a lossy switch's queue holds",
    )
    add(
        "--star-queue",
        type=whole_number(1),
        default=64,
        help="the same of the star; or before it pauses",
    )
    add("--line", default="200Mbps", help="rate of the lines")
    add("--delay-us", type=whole_number(0), default=20, help="of a line, one way")
    add("--queries", type=whole_number(1), default=1000, help="for each row")
    add("--rounds", type=whole_number(1), default=4, help="in which the modes take turns")
    add("--limit", type=float, default=30.0, help="seconds for a round of a row at most")
    add("--modes", nargs="+", choices=MODES, default=list(MODES))
    add("--background", nargs="+", choices=BACKGROUNDS, default=list(BACKGROUNDS))
    add("--gap", type=float, default=0.05, help="mean seconds between a host's TCP flows")
    add("--udp", type=float, help="UDP instead of TCP flows, at this share of a line")
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quick", action="store_true", help="two hosts and few queries: no figures")
    options = parser.parse_args()
    if options.quick:
        options.hosts, options.workers, options.queries = 2, 4, 10
        options.rounds, options.limit, options.background = 1, 3.0, ["none", "own"]
    if missing := requirements.missing():
        parser.error("; ".join(missing))
    try:
        options.line = parse_bitrate("--line", options.line)
    except LabError as error:
        parser.error(str(error))
    return options


def main() -> int:
    """Measure, and print a table or JSON."""
    options = arguments()
    try:
        points = measure_all(options, measure)
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

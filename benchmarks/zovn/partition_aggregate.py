"""Partition-aggregate: completion times of queries whose answers meet at one shallow port.

One aggregator asks all workers; a query is complete when the last byte of the last one has arrived.
TCP is real, and its connections stay open. The ways take turns within each point, so that other
work of the machine slows all of them down. With three tiers, mid-level aggregators ask the workers
and answer the aggregator.

Without tail loss probes (--tail-probes no) TCP waits 200 ms for each lost end of an answer, as it
did when the paper was written.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Final

from benchmarks.zovn.partition_points import Record, Round, points, table
from benchmarks.zovn.partition_run import Load, Plan, measure
from benchmarks.zovn.partition_ways import WAYS, missing
from common.arguments import whole_number
from common.output import fitting_console
from lab.errors import LabError

WORKERS: Final = (8, 16, 32)
SIZES: Final = ("2KB", "6KB", "12KB", "24KB", "48KB", "96KB", "192KB", "1MB")
QUEUES: Final = (64, 256)
TAIL_PROBES: Final = {"yes": True, "no": False}
"""By the words of the command line."""
UNITS: Final = {"KB": 10**3, "MB": 10**6, "B": 1}


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


def say(line: str) -> None:
    """Print progress."""
    sys.stderr.write(line + "\n")


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; end the program if the machine cannot hold the networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--workers", type=numbers_of, default=WORKERS, help="numbers of workers: 8,16,32")
    add("--sizes", type=sizes_of, default=sizes_of(",".join(SIZES)), help="of an answer: 2KB,1MB")
    add(
        "--queue",
        "--queues",
        type=numbers_of,
        default=QUEUES,
        help="frames at the shallow port: 64,256",
    )
    add("--queries", type=whole_number(1), default=1000, help="for each point")
    add("--rounds", type=whole_number(1), default=5, help="in which the ways take turns")
    add("--rate", type=float, help="queries/s; by default one after another")
    add("--limit", type=float, default=20.0, help="seconds for a round of a point at most")
    add("--bottleneck", default="1Gbps", help="rate of the port to the aggregator")
    add("--congestion", default="cubic", help="congestion control of the workers, e.g. bbr")
    add("--tail-probes", nargs="+", choices=TAIL_PROBES, default=["yes"], help="of TCP (TLP)")
    add("--tiers", type=int, choices=(2, 3), default=2)
    add("--middles", type=whole_number(1), default=4, help="mid-level aggregators with three tiers")
    add("--background", type=float, help="background flows, with this mean gap in seconds")
    add("--ways", nargs="+", choices=WAYS, help="by default all that can run here")
    add("--raw", type=Path, help="file of rounds: those that it has are not measured again")
    add("--json", action="store_true", help="print JSON instead of a table")
    add("--quick", action="store_true", help="few workers and queries: no figures")
    options = parser.parse_args(words)
    if options.quick:
        options.workers, options.sizes, options.queue = [8], [2_000, 48_000], [32]
        options.queries, options.rounds, options.limit = 20, 2, 3.0
    if options.ways is None:
        options.ways = available()
    if lacking := missing(options.ways):
        parser.exit(1, "\n".join(lacking) + "\n")
    return options


def available() -> list[str]:
    """Return the ways that can run here, and say why others cannot."""
    lacking = {way: missing([way]) for way in WAYS}
    found = [way for way in WAYS if not lacking[way]]
    for way in set(WAYS) - set(found) if found else ():
        say(f"without {way}: {'; '.join(lacking[way])}")
    return found or list(WAYS)


def plan_of(options: argparse.Namespace) -> Plan:
    """Return what the command line asks for."""
    load = Load(
        queries=max(1, options.queries // options.rounds),
        limit=options.limit,
        bottleneck=options.bottleneck,
        congestion=options.congestion,
        rate=options.rate,
        tiers=options.tiers,
        middles=options.middles,
        background=options.background,
    )
    cases = list(product(options.sizes, (TAIL_PROBES[word] for word in options.tail_probes)))
    return Plan(options.ways, cases, options.rounds, load)


def main() -> int:
    """Measure, and print a table or JSON."""
    options = arguments()
    record, plan, rounds = Record(options.raw), plan_of(options), list[Round]()
    try:
        for workers, queue in product(options.workers, options.queue):
            rounds += measure(workers, queue, plan, record, say)
    except LabError as error:
        say(str(error))
        return 1
    found = points(rounds)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    else:
        fitting_console().print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

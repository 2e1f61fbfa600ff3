"""Cost of the BPF programs per packet: naming a class for a tree of queues, or a time for fq.

The kernel runs each program alone on frames to 1, 64 and 256 addresses of 64 hosts
(BPF_PROG_TEST_RUN), without the queues behind it. Then two threads give times at one gate, and at
two. Ways take turns within each repetition. Needs root and a compiler.
"""

import argparse
import json
import statistics
import tempfile
import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.xco.gates.programs import Programs, build, frame, loaded
from common.arguments import whole_number

WAYS: Final = ("class", "time")
DESTINATIONS: Final = (1, 64, 256)
HOSTS, REPEAT, FRAMES = 64, 20_000, 16
FIRST: Final = IPv4Address("10.77.2.0")
RATE_BPS: Final = 10**12
HORIZON_NS: Final = 3600 * 10**9
"""A limit that drops nothing: drops would cost less."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every way."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.xco.gates.pace", description=__doc__
    )
    parser.add_argument("--repetitions", type=whole_number(1), default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        rounds = range(options.repetitions)
        for _ in track(rounds, "measuring", console=Console(stderr=True), disable=options.json):
            for way in WAYS:
                with loaded(library, paced=way == "time", horizon_ns=HORIZON_NS) as programs:
                    for name, cost in measured(programs, way):
                        found.setdefault(name, []).append(cost)
    rows = [
        {"what": name, "ns": statistics.median(costs), "all": costs}
        for name, costs in found.items()
    ]
    print(json.dumps(rows)) if options.json else Console().print(table(found))
    return 0


def measured(programs: Programs, way: str) -> Iterator[tuple[str, float]]:
    """Yield each measurement and its cost, ns per packet."""
    for host in range(HOSTS):
        programs.pace(host, RATE_BPS)
    for count in DESTINATIONS:
        for number in range(count):
            programs.place(str(FIRST + number), number % HOSTS, number % HOSTS)
        chosen = range(0, count, max(1, count // FRAMES))
        costs = [cost(programs, str(FIRST + number)) for number in chosen]
        yield f"{way}, {count} destinations", statistics.mean(costs)
    if way == "time":
        yield "time, two CPUs at one gate", together(programs, FIRST, FIRST)
        yield "time, two CPUs at two gates", together(programs, FIRST, FIRST + 1)


def cost(programs: Programs, address: str) -> float:
    """Return the cost of a packet to an address, ns."""
    return programs.run(frame(address), repeat=REPEAT).took_ns


def together(programs: Programs, *addresses: IPv4Address) -> float:
    """Return the cost of a packet while other CPUs send too, ns."""
    costs: list[float] = []
    threads = [
        threading.Thread(
            target=lambda to: costs.append(programs.run(frame(to), repeat=50 * REPEAT).took_ns),
            args=(str(address),),
        )
        for address in addresses
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statistics.mean(costs)


def table(found: dict[str, list[float]]) -> Table:
    """Return the figures, in ns."""
    shown = Table(title="a run of the program, ns (median of repetitions)")
    shown.add_column("what")
    for name in ("median", "least", "most"):
        shown.add_column(name, justify="right")
    for name, costs in found.items():
        numbers = statistics.median(costs), min(costs), max(costs)
        shown.add_row(name, *(f"{number:.0f}" for number in numbers))
    return shown


if __name__ == "__main__":
    raise SystemExit(main())

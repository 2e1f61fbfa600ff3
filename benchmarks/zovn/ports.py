"""Cost of a frame of 64 bytes with 2 to 64 connected ports, of which two or all are in use.

With `pair`, the first port sends to the second, and the others are idle; with `all`, each sends to
the next one. DPDK's virtio-user plays all guests on one CPU, above 32 ports in two processes that
take turns. Cycles are those of benchmarks.zovn.speed: ours count polls that find nothing, too, so
with many guests, which together are slower than the switch, they are an upper bound.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from benchmarks.zovn.runs import (
    Spread,
    build,
    in_turns,
    numbers_of,
    parsed,
    parser,
    present,
    show,
    shown,
    spread,
    spread_of_known,
)
from benchmarks.zovn.switches import Measured, measure
from benchmarks.zovn.traffic import Traffic

PORTS: Final = (2, 4, 8, 16, 32, 64)
LOADS: Final = ("pair", "all")
BYTES: Final = 64


@dataclass(frozen=True)
class Ports:
    """Cost in one way at one number of ports."""

    way: str
    ports: int
    load: str
    cycles: Spread | None
    frames_per_s: Spread
    lost: int


def traffic(ports: int, load: str, seconds: float) -> Traffic:
    """Return what is sent."""
    senders = 1 if load == "pair" else ports
    return Traffic(BYTES, {at: [(at + 1) % ports] for at in range(senders)}, seconds=seconds)


def figures(way: str, ports: int, load: str, runs: Sequence[Measured]) -> Ports:
    """Return the figures of all repetitions."""
    return Ports(
        way=way,
        ports=ports,
        load=load,
        cycles=spread_of_known(run.cycles for run in runs),
        frames_per_s=spread(run.counted.rate() for run in runs),
        lost=sum(run.counted.total("lost") for run in runs),
    )


def main() -> int:
    """Measure, and print a table or JSON."""
    made = parser(__doc__, seconds=1.0, repetitions=5, ways=["zovn", "lossy", "ovs"])
    made.set_defaults(ways=["zovn", "ovs"])
    made.add_argument("--ports", type=numbers_of, default=list(PORTS), help="2,4,8")
    made.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    options = parsed(made, ports=[2, 4])
    if not all(2 <= ports <= PORTS[-1] for ports in options.ports):
        made.error(f"--ports: 2 to {PORTS[-1]}")
    build()
    found = in_turns(
        product(options.ports, options.loads),
        present(options.ways),
        options.repetitions,
        lambda case, way: measure(way, case[0], traffic(*case, options.seconds)),
    )
    columns = {
        "way": lambda row: row.way,
        "ports": lambda row: str(row.ports),
        "load": lambda row: row.load,
        "cycles": lambda row: shown(row.cycles, ".0f"),
        "million frames/s": lambda row: shown(row.frames_per_s, ".2f", 1e-6),
        "lost": lambda row: str(row.lost),
    }
    show(options, [figures(way, *case, runs) for (case, way), runs in found.items()], columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())

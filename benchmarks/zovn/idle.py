"""CPU time of an idle switch: guests are connected to all ports, and send nothing.

Ours sleeps, and its wakes are those of its own timers. OVS-DPDK and testpmd poll their ports all
the time, which takes a core; testpmd has two ports and is left out.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
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
)
from benchmarks.zovn.switches import cpu_ns, running
from benchmarks.zovn.traffic import Generators, Traffic

PORTS: Final = (16,)
GOAL: Final = 0.02
SETTLING_S: Final = 0.5
BYTES: Final = 64


@dataclass(frozen=True)
class Idle:
    """Share of a core that an idle switch takes."""

    way: str
    ports: int
    core: Spread


def share(way: str, ports: int, seconds: float) -> float:
    """Return the share of a core that a switch takes with idle guests."""
    with running(way, ports, BYTES) as switch, Generators(Traffic(BYTES, {}), switch.devices):
        assert switch.pid is not None
        time.sleep(SETTLING_S)
        begun, before = time.monotonic(), cpu_ns(switch.pid)
        time.sleep(seconds)
        return (cpu_ns(switch.pid) - before) / 1e9 / (time.monotonic() - begun)


def reached(rows: Sequence[Idle]) -> bool:
    """Return whether our switch takes as little as it should."""
    return all(row.core.median <= GOAL for row in rows if row.way == "zovn")


def main() -> int:
    """Measure, and print a table or JSON; 1 if our switch takes more than it should."""
    made = parser(__doc__, seconds=10.0, repetitions=3, ways=["zovn", "ovs"])
    made.add_argument("--ports", type=numbers_of, default=list(PORTS), help="16,64")
    options = parsed(made)
    build()
    found = in_turns(
        options.ports,
        present(options.ways),
        options.repetitions,
        lambda ports, way: share(way, ports, options.seconds),
    )
    rows = [Idle(way, ports, spread(shares)) for (ports, way), shares in found.items()]
    columns = {
        "way": lambda row: row.way,
        "ports": lambda row: str(row.ports),
        "of a core, %": lambda row: shown(row.core, ".2f", 100),
    }
    show(options, rows, columns)
    return int(not options.quick and not reached(rows))


if __name__ == "__main__":
    sys.exit(main())

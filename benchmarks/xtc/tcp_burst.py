"""Throughput of one TCP flow through a held router, by the burst of its setpoint.

    python -m benchmarks.xtc.tcp_burst [--json]

A user-space router of the lab is held at a setpoint behind its shield with several bursts, and by
its cap alone; one CUBIC flow of 524-byte segments fills it. Bursts take turns, and turns repeat.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.rig import Rig, lab_missing, lab_router
from common.arguments import whole_number
from lab.routers.router import Router
from lab.routers.topology import Lab
from xtc.wire import Activate

PREFIX: Final = "xtctcpburst"
BURSTS_S: Final = (0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
CAP_ALONE: Final = 0.0
"""Stands for no shield."""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--setpoint", type=float, default=20e3, help="packets/s (20000)")
    parser.add_argument("--settle", type=whole_number(0), default=4, help="seconds before each (4)")
    parser.add_argument("--seconds", type=whole_number(1), default=8, help="seconds of each (8)")
    parser.add_argument("--rounds", type=whole_number(1), default=3, help="repetitions (3)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def throughput(lab: Lab, router: Router, burst_s: float, given: argparse.Namespace) -> float:
    """Return the flow's throughput with answers, as a share of the setpoint."""
    setpoint: float = given.setpoint
    table = lab_router(router) + ("\nshield = false" if burst_s == CAP_ALONE else "")
    with Rig({router.name: table}, lab) as rig:
        flow = router.tcp()
        try:
            burst = burst_s * setpoint or None
            rig.client.call(Activate(router.name, setpoint, burst=burst))
            rig.wait_for_ticks(given.settle + given.seconds)
        finally:
            flow.stop()
        rates = [pps for _, pps in rig.recording.throughput(router.name)]
        return statistics.fmean(rates[-given.seconds :]) / setpoint


def measured(given: argparse.Namespace) -> dict[float, list[float]]:
    """Return the shares of each burst."""
    found: dict[float, list[float]] = {burst: [] for burst in (*BURSTS_S, CAP_ALONE)}
    with Lab(PREFIX) as lab:
        router = lab.add_router("user", "user-space")
        for number in range(given.rounds):
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr)
            for burst, shares in found.items():
                shares.append(throughput(lab, router, burst, given))
    return found


def rows(found: dict[float, list[float]]) -> Iterator[Sequence[str]]:
    """Yield the lines of a table."""
    for burst, shares in found.items():
        name = "no shield, cap alone" if burst == CAP_ALONE else f"{burst:g} s"
        yield name, f"{min(shares):.2f} to {max(shares):.2f}"


def main() -> None:
    """Measure and print."""
    given = options()
    if problems := lab_missing():
        sys.exit("real packets need: " + "; ".join(problems))
    found = measured(given)
    if given.json:
        listed = [{"burst_s": burst or None, "of_setpoint": found[burst]} for burst in found]
        print(json.dumps(listed, indent=1))
        return
    table = Table("burst", "throughput, of the setpoint")
    for row in rows(found):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()

"""What six held routers lose of the aggregate, by what their setpoints add up to.

    python -m benchmarks.evaluation.xtc.headroom    # eight minutes, as root

`xtc-six` gives out all that the host forwards without control, as the paper does. Here the
setpoints of its configuration A add up to that, to less, and to more, in turns.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.evaluation.intervals import interval
from benchmarks.evaluation.xtc import calibrate
from benchmarks.evaluation.xtc.shared import Turn, shared_host, turns_on
from benchmarks.evaluation.xtc.six import WINDOW, setpoints_of
from benchmarks.evaluation.xtc.stage import NONE, OURS
from benchmarks.rig import lab_missing
from common.arguments import whole_number

CONFIGURATION: Final = "configuration A"
PARTS: Final = (0.9, 1.0, 1.05, 1.1, 1.25)
"""Sums of the setpoints, relative to the uncontrolled aggregate."""
Turns = dict[str, list[Turn]]


def measure(repetitions: int) -> Turns:
    """Return the turns without control, and by what the setpoints add up to."""
    found: Turns = {name_of(part): [] for part in (None, *PARTS)}
    with shared_host(calibrate.measure(quick=True), "xtcevalroom", routers=6) as host:
        for router in host.routers:
            router.tcp()
        turns = turns_on(host, WINDOW)
        for _ in range(repetitions):
            found[NONE].append(turns.make(NONE, lambda _aggregate: {}))
            for part in PARTS:
                found[name_of(part)].append(turns.make(OURS, partial(_scaled, part)))
    return found


def name_of(part: float | None) -> str:
    """Return the name of a sum of setpoints."""
    return NONE if part is None else f"{part:.0%}"


def _scaled(part: float, aggregate: float) -> dict[str, float]:
    return setpoints_of(CONFIGURATION, part * aggregate)


def lowest_percent(turn: Turn) -> float:
    """Return the throughput of the router that has least of its part of the aggregate."""
    whole = sum(turn.setpoints.values()) or 1.0
    aggregate = (turn.before + turn.after) / 2
    parts = [turn.pps[name] / (rate / whole) for name, rate in turn.setpoints.items()]
    return min(parts, default=0.0) / aggregate * 100


def rows(found: Turns) -> list[dict[str, object]]:
    """Return means and 95 % intervals of the aggregate, and of the lowest router's part."""
    return [_row(name, turns) for name, turns in found.items()]


def _row(name: str, turns: Sequence[Turn]) -> dict[str, object]:
    aggregate = interval([turn.aggregate_percent for turn in turns])
    row: dict[str, object] = {
        "setpoints": name,
        "aggregate_percent": aggregate.mean,
        "low": aggregate.low,
        "high": aggregate.high,
    }
    if name != NONE:
        row["lowest_percent"] = interval([lowest_percent(turn) for turn in turns]).mean
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repetitions", type=whole_number(2), default=4)
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    found = rows(measure(options.repetitions))
    if options.json:
        print(json.dumps(found, indent=2))
        return
    table = Table(box=None, header_style="bold")
    for heading in found[-1]:
        table.add_column(heading.replace("_percent", ", %"), justify="right")
    for row in found:
        table.add_row(
            *(f"{one:.1f}" if isinstance(one, float) else str(one) for one in row.values())
        )
    Console(highlight=False, width=100).print(table)


if __name__ == "__main__":
    main()

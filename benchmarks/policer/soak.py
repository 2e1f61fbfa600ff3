"""A fleet with five bad hosts for a while, and clients that only hold connections open.

The policer is the real one (`policer serve` on SQLite). Its 500 hosts are simulated in processes of
their own and talk to it over encrypted TCP; all are contended all the time. One reports falsehoods,
one flaps (with its connections), one answers late, one has two entries, and one causes as many
events as it can (`benchmarks.policer.soak_faults`). 1,100 connections are open and idle.

Each criterion is printed on a line, and the exit code is 1 if one fails. No criterion is a time in
seconds: rounds are compared with the hosts' ticks, leases with their own ends, memory and disk by
their growth (`benchmarks.policer.soak_judged`).

It takes twenty minutes, since memory grows in the first eleven, though nothing leaks. ZeroMQ takes
16 KiB more for each of a connection's queues, once, when 255 messages have passed.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq.auth
from rich.console import Console
from rich.table import Table

from benchmarks.policer.rig import Policer, enter
from benchmarks.policer.scale import quantile
from benchmarks.policer.soak_fleet import fleet_of
from benchmarks.policer.soak_judged import Line, Soak, judged
from benchmarks.policer.soak_load import Probes, idle
from benchmarks.policer.soak_watch import Watch
from common.arguments import whole_number

HOLDS: Final = {True: "holds", False: "FAILS", None: "too short to tell"}
DEFECT: Final = re.compile(r"Traceback|a round failed|was not taken|\"level\": ?\"critical\"")
"""Log lines that only a policer with a defect writes."""


def measure(hosts: int, routers: int, minutes: float, connections: int) -> Soak:
    """Soak a policer for some time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-soak-")))
        fleet = stack.enter_context(fleet_of(hosts, routers, folder))
        _, key = zmq.auth.create_certificates(folder, "policer")
        Path(key).chmod(0o600)
        url = f"sqlite:///{folder}/policer.db"
        secret = enter(url, fleet.hosts, fleet.contracts(routers))
        with Policer(folder / "one", url, secret, keys=Path(key)) as policer:
            crowd = stack.enter_context(idle(policer, connections))
            probes = Probes(stack.enter_context(policer.client(kept=0)))
            watch = Watch(policer, fleet, probes)
            if troubled := watch.until_controlled():
                raise RuntimeError(f"hosts are not controlled: {troubled}\n{policer.log[-2000:]}")
            watch.run(60 * minutes)
            troubled, seen = watch.until_controlled(), fleet.counted()
            refused = not watch.entered_again()
        return Soak(
            minutes=minutes,
            hosts=hosts,
            routers=hosts * routers,
            rounds=sum(watch.began <= one.at <= watch.ended for one in policer.rounds()),
            seen=seen,
            samples=watch.samples,
            troubled=troubled,
            shown=watch.shown,
            refused=refused,
            asked=probes.asked,
            unanswered=probes.failed,
            read_p99_ms=1e3 * quantile(probes.seconds, 0.99),
            idle=connections,
            reopened=crowd.opened - connections,
            failures=list(_failures(policer.log)),
        )


def _failures(log: str) -> Iterator[str]:
    """Yield the lines of a log that show a defect."""
    return (line[:300] for line in log.splitlines() if DEFECT.search(line))


def main() -> None:
    """Measure, print and check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--hosts", type=whole_number(1), default=500)
    parser.add_argument("--routers", type=whole_number(1), default=10, help="of each host")
    parser.add_argument(
        "--connections", type=whole_number(0), default=1100, help="that ask nothing"
    )
    options = parser.parse_args()
    soak = measure(options.hosts, options.routers, options.minutes, options.connections)
    lines = list(judged(soak))
    if options.json:
        print(json.dumps(_as_json(soak, lines), indent=2))
    else:
        _print(soak, lines)
    sys.exit(any(line.holds is False for line in lines))


def _as_json(soak: Soak, lines: list[Line]) -> dict[str, Any]:
    """Return the result without the records of each compliant host."""
    found = asdict(soak) | {
        "seen": [msgspec.structs.asdict(seen) for seen in soak.seen if seen.fault]
    }
    return found | {"lines": [asdict(line) for line in lines]}


def _print(soak: Soak, lines: list[Line]) -> None:
    table = Table(box=None, header_style="bold")
    for heading in ("minute", "memory", "database", "log", "events"):
        table.add_column(heading, justify="right")
    step = max(1, len(soak.samples) // 10)
    for sample in soak.samples[::step]:
        table.add_row(
            f"{sample.at / 60:.1f}",
            f"{sample.rss_mib:.1f} MiB",
            f"{sample.store_mib:.1f} MiB",
            f"{sample.log_mib:.1f} MiB",
            str(sample.events),
        )
    console = Console(highlight=False, width=130)
    console.print(table)
    console.print(f"{soak.hosts} hosts, {soak.routers} routers, {soak.minutes:g} minutes")
    for line in lines:
        console.print(f"{HOLDS[line.holds]:17} {line.name}: {line.words}", soft_wrap=True)


if __name__ == "__main__":
    main()

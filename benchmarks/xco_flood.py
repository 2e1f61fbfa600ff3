"""Directives under a flood: how late the controller answers reports while forged messages arrive.

The loop, with all hosts joined, answers the reports of one of them: first alone, then while
processes send as fast as they can over the loopback interface. ``forged`` are reports with a wrong
authenticator, which reach the program; ``noise`` is dropped by the socket's filter. The time is the
loop's own, from a report's arrival in the kernel to its directive. The goal is that a flood adds at
most 1 ms, on a machine that does nothing else.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from benchmarks.xco_exchange import Host, first_backlogs, now_ns, running_loop, wait_for
from xco.messages import Flag, Header, Report
from xco.stats import read_statistics
from xco.topologies import star_topology
from xco.wire import encode

KINDS = ("none", "forged", "noise")
GOAL_MS = 1.0


@dataclass(frozen=True)
class Row:
    """What one kind of flood did."""

    flood: str
    hosts: int
    exchanges: int
    mean_ms: float
    max_ms: float
    wake_late_max_ms: float
    forged_per_s: int
    """Messages that the program dropped for their authenticator."""
    realtime: bool


def flood(port: int, kind: str) -> None:
    """Send one datagram again and again; never returns."""
    forged = Report(Header(0, 2**62, 2**64 - 1, now_ns()), Flag.NONE, 0, 0)
    datagram = encode(forged, bytes(32)) if kind == "forged" else bytes(96)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect(("127.0.0.1", port))
        while True:
            out.send(datagram)


@contextmanager
def flooding(port: int, kind: str, senders: int) -> Iterator[None]:
    """Flood meanwhile."""
    words = [sys.executable, "-m", "benchmarks.xco_flood", "--flood", kind, "--port", str(port)]
    processes = [subprocess.Popen(words) for _ in range(0 if kind == "none" else senders)]
    try:
        time.sleep(0.5 if processes else 0)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(kind: str, hosts: int, count: int, senders: int) -> Row:
    """Time the exchanges of one host under a kind of flood."""
    topology = star_topology(hosts, "1Gbps")
    with running_loop(topology) as (stats_file, master):
        port = wait_for(stats_file).values["port"]
        all_hosts = [Host(index, topology, port, master) for index in range(hosts)]
        for host in all_hosts:
            host.join()
        time.sleep(0.2)
        before, began = read_statistics(stats_file).values, time.monotonic()
        with flooding(port, kind, senders):
            first_backlogs(all_hosts[0], hosts - 1, count)
            took_s = time.monotonic() - began
            time.sleep(0.1)
            after = read_statistics(stats_file).values
    exchanges = after["exchange_count"] - before["exchange_count"]
    return Row(
        kind,
        hosts,
        exchanges,
        (after["exchange_ns"] - before["exchange_ns"]) / max(1, exchanges) / 1e6,
        after["exchange_ns_max"] / 1e6,
        after["wake_late_ns_max"] / 1e6,
        round((after["dropped_forged"] - before["dropped_forged"]) / took_s),
        bool(after["realtime"]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all kinds; 1 where a flood adds more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=256)
    parser.add_argument("--count", type=int, default=2000, help="reports to answer")
    parser.add_argument("--senders", type=int, default=2, help="processes that flood")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--flood", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.flood:
        flood(options.port, options.flood)
    rows = [measure(kind, options.hosts, options.count, options.senders) for kind in KINDS]
    for row in rows:
        print(json.dumps(asdict(row)) if options.json else row)
    return int(any(row.max_ms > rows[0].max_ms + GOAL_MS for row in rows[1:]))


if __name__ == "__main__":
    sys.exit(main())

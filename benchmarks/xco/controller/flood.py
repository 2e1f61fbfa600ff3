"""Directives under a flood: the controller's delay in answering reports under forged messages.

The loop, with all hosts joined, answers the reports of one of them: first alone, then while
programs in C (`make -C xco/core load`) send over the loopback interface, 64 datagrams a system
call, as fast as the kernel takes them. ``forged`` are reports with a wrong authenticator, which
reach the program; ``noise`` is dropped by the socket's filter. ``max_ms`` is the loop's own time,
from a report's arrival in the kernel to its directive. A report that finds the socket's buffer full
is lost; the host repeats it after 5 ms, a heartbeat, and it is counted in ``repeated``.
``host_max_ms`` is the host's time from its first report to the directive, and includes these
repetitions, and the waits of the host's own process for a CPU. The goal is that a flood adds at
most 1 ms to ``max_ms``.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from benchmarks.xco.controller.exchange import Host, now_ns, running_loop, wait_for
from benchmarks.xco.controller.load import BUILD
from benchmarks.xco.controller.scheduler import CORE
from common.arguments import whole_number
from xco.protocol.messages import Directive, Flag, Header, Mode, Report
from xco.protocol.stats import read_statistics
from xco.protocol.wire import encode
from xco.topology.shapes import star_topology

KINDS = ("none", "forged", "noise")
GOAL_MS = 1.0
HEARTBEAT_S = 0.005


@dataclass(frozen=True)
class Row:
    """Effect of one kind of flood."""

    flood: str
    hosts: int
    exchanges: int
    mean_ms: float
    max_ms: float
    wake_late_max_ms: float
    host_max_ms: float
    repeated: int
    sent_per_s: int
    """Datagrams of the flood that the kernel took."""
    forged_per_s: int
    """Messages that the program dropped because of their authenticator."""
    realtime: bool


def datagram(kind: str) -> bytes:
    """Return the datagrams of a kind of flood."""
    forged = Report(Header(0, 2**62, 2**64 - 1, now_ns()), Flag.NONE, 0, 0)
    return encode(forged, bytes(32)) if kind == "forged" else bytes(96)


@contextmanager
def flooding(port: int, kind: str, senders: int) -> Iterator[list[int]]:
    """Flood within the context; afterwards the list has each sender's datagrams per second."""
    words = [str(BUILD / "xco-flood"), str(port), datagram(kind).hex()]
    count, rates = 0 if kind == "none" else senders, list[int]()
    processes = [subprocess.Popen(words, stdout=-1, text=True) for _ in range(count)]
    try:
        time.sleep(0.5 if processes else 0)
        yield rates
    finally:
        for process in processes:
            process.terminate()
            taken, seconds = process.communicate()[0].split()
            rates.append(round(int(taken) / float(seconds)))


def backlogs(host: Host, sink: int, count: int) -> tuple[list[int], int]:
    """Time reports of a backlog until they are granted, in ns; also count repeated ones."""
    took, repeated = [], 0
    for _ in range(count):
        began = now_ns()
        host.report(sink)
        while (granted := heard(host, Mode.SLICE)) is None:
            repeated += 1
            host.report(sink)
        took.append(now_ns() - began)
        give_up(host, granted.header.sequence)
        time.sleep(0.0005)
    return took, repeated


def give_up(host: Host, sequence: int) -> None:
    """Release a slice, again at each heartbeat, until the controller has received that."""
    host.report(None, sequence)
    while heard(host, Mode.CLOSED) is None:
        host.report(None, sequence)


def heard(host: Host, mode: Mode) -> Directive | None:
    """Return the directive of a mode; None if none came within a heartbeat."""
    with suppress(TimeoutError):
        return host.hear(mode)
    return None


def measure(kind: str, hosts: int, count: int, senders: int) -> Row:
    """Time the exchanges of one host under a kind of flood."""
    topology = star_topology(hosts, "1Gbps")
    with running_loop(topology) as (stats_file, master):
        port = wait_for(stats_file).values["port"]
        all_hosts = [Host(index, topology, port, master) for index in range(hosts)]
        for host in all_hosts:
            host.join()
        time.sleep(0.2)
        all_hosts[0].patience(HEARTBEAT_S)
        before, began = read_statistics(stats_file).values, time.monotonic()
        with flooding(port, kind, senders) as rates:
            took, repeated = backlogs(all_hosts[0], hosts - 1, count)
            took_s = time.monotonic() - began
            time.sleep(0.1)
            after = read_statistics(stats_file).values
    exchanges = after["exchange_count"] - before["exchange_count"]
    return Row(
        flood=kind,
        hosts=hosts,
        exchanges=exchanges,
        mean_ms=(after["exchange_ns"] - before["exchange_ns"]) / max(1, exchanges) / 1e6,
        max_ms=after["exchange_ns_max"] / 1e6,
        wake_late_max_ms=after["wake_late_ns_max"] / 1e6,
        host_max_ms=max(took) / 1e6,
        repeated=repeated,
        sent_per_s=sum(rates),
        forged_per_s=round((after["dropped_forged"] - before["dropped_forged"]) / took_s),
        realtime=bool(after["realtime"]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all kinds; return 1 if a flood adds more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=whole_number(1), default=256)
    parser.add_argument("--count", type=whole_number(1), default=2000, help="reports to answer")
    parser.add_argument("--senders", type=whole_number(1), default=2, help="processes that flood")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    subprocess.run(["make", "-s", "-C", str(CORE), "all", "load"], check=True)  # noqa: S607  any make
    with suppress(PermissionError):  # the host that reports must not wait for the flood's CPUs
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(40))
    rows = [measure(kind, options.hosts, options.count, options.senders) for kind in KINDS]
    for row in rows:
        print(json.dumps(asdict(row)) if options.json else row)
    return int(any(row.max_ms > rows[0].max_ms + GOAL_MS for row in rows[1:]))


if __name__ == "__main__":
    sys.exit(main())

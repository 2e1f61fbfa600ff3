"""Round trips of a ping between containers: over our switch, its lossy mode and a Linux bridge.

Hosts are namespaces. The first one, whose port has the rate of the bottleneck, pings another:

- idle: no host sends anything else;
- others: one of two other hosts reads from the other, as fast as TCP can;
- receiver: three other hosts answer reads of the first one, so that its port is full. The answer to
  a ping waits for frames before it: in a lossless switch for all that the senders' windows have let
  out, in the bridge for those in the shallow queue, which drops others.

A container cannot wake our switch, so it looks, more and more seldom while nothing moves: the idle
figure has that in it (docs/howto/zovn-veth.md).
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.zovn.partition_network import Network, Request
from benchmarks.zovn.partition_ways import WAYS, missing
from benchmarks.zovn.runs import Spread, in_turns, parsed, parser, say, show, shown, spread_of_known
from lab.errors import LabError
from lab.traffic import roles
from lab.traffic.counts import Pinged

LOADS: Final = ("idle", "others", "receiver")
HOSTS: Final = 4
QUEUE: Final = 256
INTERVAL_US: Final = 5_000
SETTLING_S: Final = 0.7


@dataclass(frozen=True)
class Pings:
    """Round trips of one measurement; times are None where no ping was answered."""

    sent: int
    unanswered: int
    """One may still be on its way."""
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@dataclass(frozen=True)
class Latency:
    """Round trips in one way under one load, of all repetitions."""

    way: str
    load: str
    sent: int
    unanswered: int
    p50_ms: Spread | None
    p99_ms: Spread | None
    max_ms: Spread | None


def pings(before: Pinged, after: Pinged) -> Pings:
    """Return the round trips between two reports."""
    took = [each / 1e6 for each in sorted(after.rtt_ns)]
    sent = after.sent - before.sent
    unanswered = max(0, sent - (after.received - before.received))
    if not took:
        return Pings(sent, unanswered, None, None, None)
    middle, late = (took[len(took) * share // 100] for share in (50, 99))
    return Pings(sent, unanswered, middle, late, took[-1])


def latency(way: str, load: str, runs: Sequence[Pings]) -> Latency:
    """Return the figures of all repetitions."""
    return Latency(
        way,
        load,
        sent=sum(run.sent for run in runs),
        unanswered=sum(run.unanswered for run in runs),
        p50_ms=spread_of_known(run.p50_ms for run in runs),
        p99_ms=spread_of_known(run.p99_ms for run in runs),
        max_ms=spread_of_known(run.max_ms for run in runs),
    )


@contextmanager
def loaded(network: Network, load: str) -> Iterator[None]:
    """Have hosts send while this is open."""
    _, *others = network.hosts
    with ExitStack() as stack:
        if load != "idle":
            for host in others:
                stack.enter_context(roles.serve_reads(host.place))
        if load == "others":
            stack.enter_context(roles.read_blocks(others[0].place, [others[1].address]))
        elif load == "receiver":
            servers = [host.address for host in others]
            stack.enter_context(roles.read_blocks(network.top, servers))
        yield


def watched(network: Network, load: str, seconds: float) -> Pings:
    """Ping the host that no load uses."""
    pinged = network.hosts[0].address
    with (
        network.awake(),
        loaded(network, load),
        roles.ping(network.top, pinged, interval_us=INTERVAL_US) as ping,
    ):
        time.sleep(SETTLING_S)
        before = ping.counts()
        time.sleep(seconds)
        return pings(before, ping.counts())


def measure(ways: Sequence[str], seconds: float, repetitions: int, rate: str) -> list[Latency]:
    """Measure all loads in all ways, which take turns."""
    with ExitStack() as stack:
        networks = {
            way: stack.enter_context(WAYS[way](Request(f"zlat{number}", HOSTS, QUEUE, rate)))
            for number, way in enumerate(ways)
        }
        found = in_turns(
            LOADS, ways, repetitions, lambda load, way: watched(networks[way], load, seconds)
        )
    return [latency(way, load, runs) for (load, way), runs in found.items()]


def main() -> int:
    """Measure, and print a table or JSON."""
    made = parser(__doc__, seconds=5.0, repetitions=5, ways=list(WAYS))
    made.add_argument("--bottleneck", default="1Gbps", help="rate of the port that can be full")
    options = parsed(made, seconds=1.0)
    if lacking := missing(options.ways):
        made.error("; ".join(lacking))
    try:
        rows = measure(options.ways, options.seconds, options.repetitions, options.bottleneck)
    except LabError as error:
        say(str(error))
        return 1
    columns = {
        "way": lambda row: row.way,
        "load": lambda row: row.load,
        "sent": lambda row: str(row.sent),
        "unanswered": lambda row: str(row.unanswered),
        "p50, ms": lambda row: shown(row.p50_ms, ".3f"),
        "p99, ms": lambda row: shown(row.p99_ms, ".3f"),
        "longest, ms": lambda row: shown(row.max_ms, ".3f"),
    }
    show(options, rows, columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())

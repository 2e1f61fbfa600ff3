"""A link that machines without a coordinator use as well: `rate` and `gcc` (SDN-GCC) side by side.

Three coordinated senders (one of TCP, two of UDP) and one that is in no topology share the port of
a receiver. The foreign one sends a share of the link. `rate` gives out the whole link and drops
what does not fit; `gcc` sees what arrives, and gives out the rest. Goal: a hundred times fewer
drops than `rate`, with equal shares.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from benchmarks.xco.rig import LAB, Settings, Way, XcoRig, rig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    Options,
    Seen,
    Window,
    require,
    seen_columns,
    show,
)
from common.arguments import whole_number
from lab.fabric.fabric import Fabric
from lab.fabric.plan import parse_bitrate
from lab.traffic import roles
from lab.traffic.counts import shares_bps
from xco.arrays import jain

WAYS: Final[tuple[Way, ...]] = ("uncoordinated", "rate", "gcc")
SENDERS: Final = 3
SETTLING_S: Final = 1.5
"""Until TCP, queues and budgets have settled."""
GOAL: Final = 100
FOREIGN_PORT: Final = 5099


@dataclass(frozen=True)
class Shared:
    """A port in one way."""

    way: Way
    foreign: float
    """What the foreign sender offers, as a share of the link."""
    tcp_bps: float
    udp_bps: float
    foreign_bps: float
    jain: float
    """Of the coordinated senders' goodput."""
    seen: Seen


def measure(xco: XcoRig, way: Way, foreign: float, link_bps: int, seconds: float) -> Shared:
    """Let all send; count in a window after they have settled."""
    fabric = xco.fabric
    to, (outsider, *senders) = fabric.receivers[0], reversed(fabric.senders)
    with ExitStack() as stack:
        streams = stack.enter_context(roles.sink_streams(fabric.place(to)))
        messages = stack.enter_context(roles.sink_messages(fabric.place(to)))
        other = stack.enter_context(roles.sink_messages(fabric.place(to), port=FOREIGN_PORT))
        stack.enter_context(
            roles.send_messages(
                fabric.place(outsider),
                to.address,
                size=roles.DATAGRAM_BYTES,
                rate_bps=round(foreign * link_bps),
                port=FOREIGN_PORT,
            )
        )
        stack.enter_context(roles.send_stream(fabric.place(senders[0]), to.address))
        for host in senders[1:]:
            size = roles.DATAGRAM_BYTES
            stack.enter_context(roles.send_messages(fabric.place(host), to.address, size=size))
        time.sleep(SETTLING_S)
        sinks = streams, messages, other
        before, window = [sink.counts() for sink in sinks], Window(fabric)
        time.sleep(seconds)
        after, seen = [sink.counts() for sink in sinks], window.close()
    got = [shares_bps(b, a) for b, a in zip(before, after, strict=True)]
    ours = [got[0].get(senders[0].address, 0.0), *(got[1].get(h.address, 0.0) for h in senders[1:])]
    return Shared(
        way, foreign, ours[0], sum(ours[1:]), sum(got[2].values()), jain(np.array(ours)), seen
    )


def rows_of(chosen: argparse.Namespace) -> Iterator[Shared]:
    """Measure the ways in turns, on one fabric."""
    link_bps = parse_bitrate("bottleneck", chosen.bottleneck)
    with Fabric("xcoforeign") as fabric:
        fabric.incast(SENDERS + 1, link_bps, BUFFER_BYTES)
        foreign = fabric.senders[-1:]
        fabric.pace(foreign)
        with rig(fabric, settings(), foreign) as xco:
            for repetition in range(chosen.repetitions):
                for way in chosen.ways:
                    if sys.stderr.isatty():
                        print(f"{repetition + 1}: {way}", file=sys.stderr)
                    yield measure(xco.go(way), way, chosen.foreign, link_bps, chosen.seconds)


def settings() -> Settings:
    """Return those of the lab with the default pace of rates, and the arrivals counted."""
    return Settings(LAB.controller, {**LAB.coordinator, "pace": 0.98, "marks": "hide"})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--short", action="store_true", help="one repetition, a second each")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--bottleneck", default="100Mbps", help="capacity of the shared port")
    parser.add_argument("--foreign", type=float, default=0.3, help="share of the link")
    parser.add_argument("--repetitions", type=whole_number(1), default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    chosen = parser.parse_args()
    require(parser)
    if chosen.short:
        chosen.seconds, chosen.repetitions = 1.0, 1
    rows = list(rows_of(chosen))
    drops = {way: median([row.seen.drops for row in rows if row.way == way]) for way in chosen.ways}
    ratio = drops.get("rate", 0.0) / max(1.0, drops.get("gcc", 0.0))
    columns = {
        "way": lambda row: row.way,
        "TCP, Mb/s": lambda row: f"{row.tcp_bps / 1e6:.1f}",
        "UDP": lambda row: f"{row.udp_bps / 1e6:.1f}",
        "foreign": lambda row: f"{row.foreign_bps / 1e6:.1f}",
        "Jain": lambda row: f"{row.jain:.4f}",
        **seen_columns(),
    }
    link_bps = parse_bitrate("bottleneck", chosen.bottleneck)
    ways, short = tuple(chosen.ways), chosen.short
    shown = Options(chosen.seconds, link_bps, ways, settings(), short, chosen.json)
    show(shown, rows, columns, fewer_drops_than_rate=ratio, goal=GOAL, reached=ratio >= GOAL)


if __name__ == "__main__":
    main()

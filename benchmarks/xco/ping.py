"""Ping while other hosts fill the link, in four ways (paper, Fig. 8 and 18).

Two hosts send UDP messages and two TCP to one receiver; a fifth, which sends nothing else, pings
it, and so does one of the busy ones. Goal with timeslices: no round trip takes longer than two
slices, since a small flow does not wait for its turn.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Seen,
    Window,
    options,
    seen_columns,
    show,
    side_by_side,
)
from lab.traffic import roles
from lab.traffic.counts import Pinged
from xco.units import parse_duration

SLICES = 2
SENDERS = 5
INTERVAL_US = 5_000


@dataclass(frozen=True)
class Ping:
    """Round trips of one host in one way."""

    way: Way
    pinger: str
    """idle: no host sends; quiet: the host sends nothing else; busy: it fills the link too."""
    sent: int
    lost: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    seen: Seen


def row(way: Way, pinger: str, before: Pinged, after: Pinged, seen: Seen) -> Ping:
    """Return the round trips between two reports."""
    took = sorted(after.rtt_ns) or [0]
    sent = after.sent - before.sent
    return Ping(
        way,
        pinger,
        sent=sent,
        lost=max(0, sent - (after.received - before.received)),
        p50_ms=took[len(took) // 2] / 1e6,
        p99_ms=took[len(took) * 99 // 100] / 1e6,
        max_ms=took[-1] / 1e6,
        seen=seen,
    )


def pings(xco: XcoRig, way: Way, seconds: float) -> Iterator[Ping]:
    """Ping without senders, then from a quiet and from a busy host with four sending."""
    yield from watched(xco, way, {"idle": SENDERS - 1}, seconds)
    fabric, to = xco.fabric, xco.fabric.receivers[0]
    with ExitStack() as stack:
        stack.enter_context(roles.sink_streams(fabric.place(to)))
        stack.enter_context(roles.sink_messages(fabric.place(to)))
        for host in fabric.senders[:2]:
            stack.enter_context(roles.send_messages(fabric.place(host), to.address))
        for host in fabric.senders[2 : SENDERS - 1]:
            stack.enter_context(roles.send_stream(fabric.place(host), to.address))
        yield from watched(xco, way, {"quiet": SENDERS - 1, "busy": 0}, seconds)


def watched(xco: XcoRig, way: Way, places: dict[str, int], seconds: float) -> Iterator[Ping]:
    """Ping from some senders in parallel."""
    fabric, to = xco.fabric, xco.fabric.receivers[0].address
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                roles.ping(fabric.place(fabric.senders[index]), to, interval_us=INTERVAL_US)
            )
            for index in places.values()
        ]
        time.sleep(SETTLING_S)
        before, window = [one.counts() for one in running], Window(fabric)
        time.sleep(seconds)
        seen, after = window.close(), [one.counts() for one in running]
    for name, first, last in zip(places, before, after, strict=True):
        yield row(way, name, first, last, seen)


def longest_ms(rows: Sequence[Ping], way: Way) -> float | None:
    """Return the longest round trip under load in a way."""
    return max((r.max_ms for r in rows if r.way == way and r.pinger != "idle"), default=None)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 4.0, "200Mbps")
    rows = list(
        side_by_side(
            "xcoping",
            chosen,
            lambda fabric: fabric.incast(SENDERS, chosen.bottleneck_bps, BUFFER_BYTES),
            lambda xco, way: pings(xco, way, chosen.seconds),
        )
    )
    columns = {
        "pinger": lambda row: row.pinger,
        "way": lambda row: row.way,
        "sent": lambda row: str(row.sent),
        "lost": lambda row: str(row.lost),
        "p50, ms": lambda row: f"{row.p50_ms:.3f}",
        "p99, ms": lambda row: f"{row.p99_ms:.3f}",
        "max, ms": lambda row: f"{row.max_ms:.3f}",
        **seen_columns(),
    }
    slice_ms = parse_duration(str(chosen.settings.controller["slice"])) / 1e6
    longest = longest_ms(rows, "timeslice")
    facts = {"slice_ms": slice_ms, "longest_ms_with_timeslices": longest}
    reached = longest is not None and longest <= SLICES * slice_ms
    show(chosen, rows, columns, **facts, goal_ms=SLICES * slice_ms, reached=reached)


if __name__ == "__main__":
    main()

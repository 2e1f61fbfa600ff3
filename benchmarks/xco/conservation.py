"""Work conservation: three slow and two greedy UDP flows over one uplink (paper, Fig. 21).

The slow ones send a twentieth of the link each. Goal with timeslices: the link is used to at least
95 %, since a host that has nothing to send returns its slice. For comparison, slices that are never
returned: a hysteresis almost as long as a slice of 1 ms can be.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from benchmarks.xco.rig import Settings, Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Options,
    Seen,
    Window,
    options,
    percent,
    seen_columns,
    show,
    side_by_side,
)
from lab.traffic import roles
from lab.traffic.counts import rate_bps

GOAL = 0.95
SLOW, GREEDY = 3, 2
SLOW_SHARE = 20
FRAME_BYTES = 1_514
"""Of a datagram that fills a packet."""
KEEPING: dict[str, str] = {"hysteresis": "900us"}


@dataclass(frozen=True)
class Conservation:
    """Five flows in one way."""

    way: str
    slow_share: float
    """Throughput of the three slow flows together, as a part of what they sent."""
    greedy_bps: float
    goodput_bps: float
    """In whole datagrams, all flows together."""
    link_bps: int
    seen: Seen

    @property
    def used(self) -> float:
        """The part of the link that whole datagrams took, with their headers."""
        return self.goodput_bps * FRAME_BYTES / roles.DATAGRAM_BYTES / self.link_bps


def measure(xco: XcoRig, way: str, link_bps: int, seconds: float) -> Conservation:
    """Make three hosts send slowly and two as fast as possible, each to a separate receiver."""
    fabric, slow_bps = xco.fabric, link_bps // SLOW_SHARE
    with ExitStack() as stack:
        sinks = [
            stack.enter_context(roles.sink_messages(fabric.place(host)))
            for host in fabric.receivers
        ]
        for index, (host, to) in enumerate(zip(fabric.senders, fabric.receivers, strict=True)):
            rate = slow_bps if index < SLOW else None
            stack.enter_context(
                roles.send_messages(
                    fabric.place(host), to.address, size=roles.DATAGRAM_BYTES, rate_bps=rate
                )
            )
        time.sleep(SETTLING_S)
        before, window = [sink.counts() for sink in sinks], Window(fabric)
        time.sleep(seconds)
        seen, after = window.close(), [sink.counts() for sink in sinks]
    got = [rate_bps(b, a) for b, a in zip(before, after, strict=True)]
    slow = sum(got[:SLOW]) / (SLOW * slow_bps)
    return Conservation(way, slow, sum(got[SLOW:]), sum(got), link_bps, seen)


def run(chosen: Options) -> Iterator[Conservation]:
    """Measure the four ways, and slices that are never returned."""
    link_bps = chosen.bottleneck_bps

    def measured(name: str | None, options_: Options) -> Iterator[Conservation]:
        def flows(xco: XcoRig, way: Way) -> Iterator[Conservation]:
            yield measure(xco, name or way, link_bps, options_.seconds)

        return side_by_side(
            "xcoconserve",
            options_,
            lambda fabric: fabric.uplink(SLOW + GREEDY, link_bps, link_bps, BUFFER_BYTES),
            flows,
        )

    yield from measured(None, chosen)
    coordinator = {**chosen.settings.coordinator, **KEEPING}
    settings = Settings(chosen.settings.controller, coordinator)
    yield from measured("timeslice, kept", replace(chosen, settings=settings, ways=("timeslice",)))


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "100Mbps")
    rows = list(run(chosen))
    columns = {
        "way": lambda row: row.way,
        "link used": lambda row: percent(row.used),
        "goodput, Mb/s": lambda row: f"{row.goodput_bps / 1e6:.1f}",
        "slow flows got": lambda row: percent(row.slow_share),
        "greedy, Mb/s": lambda row: f"{row.greedy_bps / 1e6:.1f}",
        **seen_columns(),
    }
    used = min((row.used for row in rows if row.way == "timeslice"), default=0.0)
    show(chosen, rows, columns, used_with_timeslices=used, goal=GOAL, reached=used >= GOAL)


if __name__ == "__main__":
    main()

"""The uplink between two switches: 7 pairs, K of them of UDP messages (paper, Fig. 5 and 16).

Scaled: 5 of 7 may send at a time, each over a link of a fifth of the uplink; in the paper it is 10
of 13, but two cores cannot run that many coordinators. Slices are of 10 ms, 16 packets of such a
link. Goal with timeslices: application goodput is at least 90 % of the uplink at every K.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.xco.mix import Mix, columns, unequal
from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Window,
    options,
    show,
    side_by_side,
)
from lab.traffic import roles
from lab.traffic.counts import MessagesReceived, StreamReceived, rate_bps
from lab.traffic.program import Traffic

GOAL = 0.9
PAIRS = 7
AT_ONCE = 5
UDP_SENDERS = (0, 1, 3, 5, 7)
SHORT = (0, 3, 7)


def measure(xco: XcoRig, way: Way, udp_senders: int, seconds: float) -> Mix:
    """Make every sender send to the receiver of its pair."""
    fabric = xco.fabric
    with ExitStack() as stack:
        sinks: list[Traffic[MessagesReceived] | Traffic[StreamReceived]] = []
        pairs = list(zip(fabric.senders, fabric.receivers, strict=True))
        for host, to in pairs[udp_senders:]:  # first, while a connection can still be made
            sinks.append(stack.enter_context(roles.sink_streams(fabric.place(to))))
            stack.enter_context(roles.send_stream(fabric.place(host), to.address))
        for host, to in pairs[:udp_senders]:
            sinks.append(stack.enter_context(roles.sink_messages(fabric.place(to))))
            stack.enter_context(roles.send_messages(fabric.place(host), to.address))
        time.sleep(SETTLING_S)
        before, window = [sink.counts() for sink in sinks], Window(fabric)
        time.sleep(seconds)
        after, seen = [sink.counts() for sink in sinks], window.close()
    got = [rate_bps(b, a) for b, a in zip(before, after, strict=True)]
    streams = PAIRS - udp_senders
    tcp_bps, udp_bps = sum(got[:streams]), sum(got[streams:])
    return Mix(way, udp_senders, tcp_bps, udp_bps, unequal(got), seen)


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "100Mbps", slice_="10ms")
    link = chosen.bottleneck_bps

    def uplinks(xco: XcoRig, way: Way) -> Iterator[Mix]:
        counts = SHORT if chosen.short else UDP_SENDERS
        return (measure(xco, way, count, chosen.seconds) for count in counts)

    rows = list(
        side_by_side(
            "xcouplink",
            chosen,
            lambda fabric: fabric.uplink(PAIRS, link // AT_ONCE, link, BUFFER_BYTES),
            uplinks,
        )
    )
    table = columns(link, PAIRS, "uplink")
    least = min((row.goodput_bps / link for row in rows if row.way == "timeslice"), default=0.0)
    show(chosen, rows, table, least_share_with_timeslices=least, goal=GOAL, reached=least >= GOAL)


if __name__ == "__main__":
    main()

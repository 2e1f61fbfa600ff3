"""TCP next to UDP: five senders of which K send UDP messages, in four ways (paper, Fig. 4, 15, 20).

Goals with timeslices: application goodput is at least 90 % of the link at every K, and each sender
gets within 10 % of an equal share. Messages are of 64 KB: one lost packet makes 44 useless.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.xco.rig import Way, XcoRig
from benchmarks.xco.runs import (
    BUFFER_BYTES,
    SETTLING_S,
    Seen,
    Window,
    options,
    percent,
    seen_columns,
    show,
    side_by_side,
)
from lab.traffic import roles
from lab.traffic.counts import rate_bps, shares_bps

GOAL = 0.9
GOAL_SHARES = 0.1
SENDERS = 5


@dataclass(frozen=True)
class Mix:
    """Senders that share a link in one way, with the number that send UDP messages."""

    way: Way
    udp_senders: int
    tcp_bps: float
    """All TCP senders together."""
    udp_bps: float
    """All UDP senders together, in whole messages."""
    unequal: float
    """How far the share that is farthest from the mean is from it, as a part of the mean."""
    seen: Seen

    @property
    def goodput_bps(self) -> float:
        """Application goodput."""
        return self.tcp_bps + self.udp_bps


def measure(xco: XcoRig, way: Way, udp_senders: int, seconds: float) -> Mix:
    """Make all senders send, the first ones UDP messages and the others a TCP stream each."""
    fabric = xco.fabric
    to, senders = fabric.receivers[0], fabric.senders
    with ExitStack() as stack:
        streams = stack.enter_context(roles.sink_streams(fabric.place(to)))
        messages = stack.enter_context(roles.sink_messages(fabric.place(to)))
        for host in senders[udp_senders:]:
            stack.enter_context(roles.send_stream(fabric.place(host), to.address))
        for host in senders[:udp_senders]:
            stack.enter_context(roles.send_messages(fabric.place(host), to.address))
        time.sleep(SETTLING_S)
        before, window = (streams.counts(), messages.counts()), Window(fabric)
        time.sleep(seconds)
        after, seen = (streams.counts(), messages.counts()), window.close()
    tcp_bps, udp_bps = (rate_bps(b, a) for b, a in zip(before, after, strict=True))
    shares = [
        sum(shares_bps(b, a).get(host.address, 0.0) for b, a in zip(before, after, strict=True))
        for host in senders
    ]
    return Mix(way, udp_senders, tcp_bps, udp_bps, unequal(shares), seen)


def unequal(shares: list[float]) -> float:
    """Return how far the share farthest from the mean is from it, as a part of the mean."""
    mean = sum(shares) / len(shares)
    return max(abs(share - mean) for share in shares) / mean if mean > 0 else 1.0


def columns(link_bps: int, senders: int, link: str) -> dict[str, Callable[[Mix], str]]:
    """Return the table's columns: goodput also as a part of the link's capacity."""
    return {
        f"UDP of {senders}": lambda row: str(row.udp_senders),
        "way": lambda row: row.way,
        "goodput, Mb/s": lambda row: f"{row.goodput_bps / 1e6:.1f}",
        f"of the {link}": lambda row: percent(row.goodput_bps / link_bps),
        "TCP": lambda row: f"{row.tcp_bps / 1e6:.1f}",
        "UDP": lambda row: f"{row.udp_bps / 1e6:.1f}",
        "unequal by": lambda row: percent(row.unequal),
        **seen_columns(),
    }


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, 2.5, "200Mbps")
    counts = (0, 2, SENDERS) if chosen.short else range(SENDERS + 1)

    def mixes(xco: XcoRig, way: Way) -> Iterator[Mix]:
        return (measure(xco, way, count, chosen.seconds) for count in counts)

    link_bps = chosen.bottleneck_bps
    rows = list(
        side_by_side(
            "xcomix", chosen, lambda fabric: fabric.incast(SENDERS, link_bps, BUFFER_BYTES), mixes
        )
    )
    sliced = [row for row in rows if row.way == "timeslice"]
    least = min((row.goodput_bps / link_bps for row in sliced), default=0.0)
    widest = max((row.unequal for row in sliced), default=1.0)
    facts = {"least_share_with_timeslices": least, "most_unequal_with_timeslices": widest}
    reached = least >= GOAL and widest <= GOAL_SHARES
    show(
        chosen,
        rows,
        columns(link_bps, SENDERS, "link"),
        **facts,
        goal=GOAL,
        goal_unequal=GOAL_SHARES,
        reached=reached,
    )


if __name__ == "__main__":
    main()

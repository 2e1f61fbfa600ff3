"""How a shallow-buffered link collapses on real packets when nobody coordinates the senders.

Two figures of the paper (section 2) on the lab's fabric: barrier reads of 1 MB blocks, N servers
(Fig. 3), and five senders of which K send UDP messages of 64 KB and the others TCP (Fig. 4). Each
sender's line is as fast as the bottleneck. Goodput is what the application gets; the wire is what
the receiver's interface counts.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from lab import requirements
from lab.fabric import Fabric
from lab.fabric_plan import FabricHost, parse_bitrate
from lab.traffic import roles
from lab.traffic.counts import rate_bps

PREFIX = "xcocollapse"
SERVERS = range(1, 17)
SENDERS = 5
INCAST_BOTTLENECK = "500Mbps"
MIX_BOTTLENECK = "200Mbps"
BUFFER_BYTES = 32_000
SECONDS = 2.5
SETTLING_S = 0.5


@dataclass(frozen=True)
class Incast:
    """Barrier reads from so many servers."""

    servers: int
    goodput_bps: float
    wire_bps: float
    block_p50_ms: float | None
    """None: no block became whole."""
    block_max_ms: float | None
    drops: int
    timeouts: int


@dataclass(frozen=True)
class Mix:
    """Five senders, so many of them of UDP messages."""

    udp_senders: int
    tcp_bps: float
    """All TCP senders together."""
    udp_bps: float
    """All UDP senders together, in whole messages."""
    wire_bps: float
    drops: int
    timeouts: int

    @property
    def goodput_bps(self) -> float:
        """What applications get."""
        return self.tcp_bps + self.udp_bps


class Window:
    """What the fabric has counted since this was made."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._before = self._counts()

    def close(self) -> tuple[float, int, int]:
        """Return the rate on the receiver's wire in bits/s, the drops and the TCP timeouts."""
        start, wire, drops, timeouts = self._before
        now, wire_now, drops_now, timeouts_now = self._counts()
        return (wire_now - wire) * 8 / (now - start), drops_now - drops, timeouts_now - timeouts

    def _counts(self) -> tuple[float, int, int, int]:
        fabric = self._fabric
        return time.monotonic(), fabric.wire_bytes(), fabric.drops(), fabric.timeouts()


def measure_incast(fabric: Fabric, servers: Sequence[FabricHost], seconds: float) -> Incast:
    """Read blocks from some servers, which run already."""
    addresses = [server.address for server in servers]
    with roles.read_blocks(fabric.place(fabric.receivers[0]), addresses) as reader:
        time.sleep(SETTLING_S)
        before, window = reader.counts(), Window(fabric)
        time.sleep(seconds)
        wire_bps, drops, timeouts = window.close()
        after = reader.finish()
    took = sorted(after.block_ns)
    middle, longest = (took[len(took) // 2] / 1e6, took[-1] / 1e6) if took else (None, None)
    goodput = rate_bps(before, after)
    return Incast(len(servers), goodput, wire_bps, middle, longest, drops, timeouts)


def measure_mix(fabric: Fabric, udp_senders: int, seconds: float) -> Mix:
    """Have all senders send, the first ones UDP messages and the others a TCP stream each."""
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
        after = streams.counts(), messages.counts()
        tcp_bps, udp_bps = (rate_bps(b, a) for b, a in zip(before, after, strict=True))
        return Mix(udp_senders, tcp_bps, udp_bps, *window.close())


def run_incast(seconds: float, bottleneck: str, counts: Sequence[int]) -> list[Incast]:
    """Measure barrier reads from each number of servers."""
    with Fabric(PREFIX) as fabric, ExitStack() as stack:
        fabric.incast(max(counts), bottleneck, BUFFER_BYTES).pace()
        for host in fabric.senders:
            stack.enter_context(roles.serve_reads(fabric.place(host)))
        return [measure_incast(fabric, fabric.senders[:count], seconds) for count in counts]


def run_mix(seconds: float, bottleneck: str) -> list[Mix]:
    """Measure five senders, of which none to all send UDP messages."""
    with Fabric(PREFIX) as fabric:
        fabric.incast(SENDERS, bottleneck, BUFFER_BYTES).pace()
        return [measure_mix(fabric, count, seconds) for count in range(SENDERS + 1)]


def show(incast: Sequence[Incast], mix: Sequence[Mix]) -> None:
    """Print both tables."""
    reads = Table("servers", "goodput, Mb/s", "wire, Mb/s", "block p50, ms", "drops", "timeouts")
    for row in incast:
        middle = "-" if row.block_p50_ms is None else f"{row.block_p50_ms:.0f}"
        rates = f"{row.goodput_bps / 1e6:.0f}", f"{row.wire_bps / 1e6:.0f}"
        reads.add_row(str(row.servers), *rates, middle, str(row.drops), str(row.timeouts))
    mixes = Table("UDP of 5", "goodput, Mb/s", "TCP", "UDP", "wire, Mb/s", "drops", "timeouts")
    for one in mix:
        rates_bps = one.goodput_bps, one.tcp_bps, one.udp_bps, one.wire_bps
        cells = [f"{rate / 1e6:.0f}" for rate in rates_bps]
        mixes.add_row(str(one.udp_senders), *cells, str(one.drops), str(one.timeouts))
    console = Console()
    console.print(reads, mixes)


def main() -> None:
    """Measure and print, as tables or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement")
    options = parser.parse_args()
    if missing := requirements.missing():
        parser.exit(1, "\n".join(missing) + "\n")
    incast = run_incast(options.seconds, INCAST_BOTTLENECK, SERVERS)
    mix = run_mix(options.seconds, MIX_BOTTLENECK)
    if not options.json:
        show(incast, mix)
        return
    print(
        json.dumps(
            {
                "cpus": os.cpu_count(),
                "buffer_bytes": BUFFER_BYTES,
                "incast_bottleneck_bps": parse_bitrate("bottleneck", INCAST_BOTTLENECK),
                "mix_bottleneck_bps": parse_bitrate("bottleneck", MIX_BOTTLENECK),
                "incast": [asdict(row) for row in incast],
                "mix": [asdict(row) | {"goodput_bps": row.goodput_bps} for row in mix],
            }
        )
    )


if __name__ == "__main__":
    main()

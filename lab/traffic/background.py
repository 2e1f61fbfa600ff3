"""Background flows of one host: a random destination, a TCP flow to it, a pause, and again.

As in the paper's section 5.3, the pause begins when the flow has ended.
"""

import argparse
import random
import socket
import threading
import time
from typing import Final

from lab.traffic.counts import FlowsSent
from lab.traffic.flow_sizes import draw_gap, draw_size
from lab.traffic.gather import connect
from lab.traffic.orders import now_ns, serve

CHUNK: Final = bytes(1 << 16)


class Tally:
    """What has been sent, shared by the thread that works and the one that reports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows = self._failed = self._bytes = 0
        self._took: list[int] = []

    def sent(self, size: int) -> None:
        """Count bytes that were passed to the kernel."""
        with self._lock:
            self._bytes += size

    def ended(self, took_ns: int, *, failed: bool) -> None:
        """Count a flow that has ended."""
        with self._lock:
            self._flows += not failed
            self._failed += failed
            self._took.append(took_ns)

    def report(self) -> FlowsSent:
        """Return the counts; durations since the report before."""
        with self._lock:
            took, self._took = tuple(self._took), []
            return FlowsSent(now_ns(), self._bytes, self._flows, self._failed, took, 0)


def run(tally: Tally, options: argparse.Namespace) -> None:
    """Send flows without end."""
    generator = random.Random(options.seed)  # noqa: S311  a load, not a secret
    destinations = options.to.split(",")
    while True:
        size = draw_size(generator, options.largest)
        send_flow(generator.choice(destinations), options.port, size, tally)
        time.sleep(draw_gap(generator, options.gap))


def send_flow(address: str, port: int, size: int, tally: Tally) -> None:
    """Send one flow, and wait until the sink has closed it."""
    begun, failed = now_ns(), False
    try:
        with connect(address, port) as flow:
            for left in range(size, 0, -len(CHUNK)):
                flow.sendall(CHUNK[:left])
                tally.sent(min(left, len(CHUNK)))
            flow.shutdown(socket.SHUT_WR)
            flow.recv(1)
    except OSError:  # refused, reset or timed out
        failed = True
    tally.ended(now_ns() - begun, failed=failed)


def main() -> None:
    """Send and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="addresses of the destinations, with commas")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--gap", type=float, required=True, help="mean seconds between flows")
    parser.add_argument("--largest", type=int, required=True, help="bytes of a flow at most")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tally = Tally()
    serve(lambda: run(tally, options), tally.report)


if __name__ == "__main__":
    main()

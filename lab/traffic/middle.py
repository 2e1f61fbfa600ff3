"""Mid-level aggregator: it answers a query when all of its own workers have answered theirs.

It speaks the protocol of a server of reads to both sides, so that tiers can be stacked. Its answer
has as many bytes as each of its workers': it stands for the best of their results.
"""

import argparse
import socket
from contextlib import suppress
from dataclasses import dataclass

from lab.traffic.counts import Served
from lab.traffic.gather import REQUEST, Gather, tune
from lab.traffic.orders import now_ns, serve


@dataclass
class Tally:
    """What has been answered."""

    requests: int = 0
    bytes: int = 0

    def report(self) -> Served:
        """Return the counts."""
        return Served(now_ns(), self.bytes, self.requests)


def run(listener: socket.socket, gather: Gather, tally: Tally) -> None:
    """Serve one client after the other, without end."""
    while True:
        client, _ = listener.accept()
        with client, suppress(ConnectionError):  # it was killed; the next one may connect
            tune(client)
            answer(client, gather, tally)


def answer(client: socket.socket, gather: Gather, tally: Tally) -> None:
    """Answer the requests of one client until it ends."""
    while len(request := client.recv(REQUEST.size, socket.MSG_WAITALL)) == REQUEST.size:
        (size,) = REQUEST.unpack(request)
        gather.ask(size)
        client.sendall(bytes(size))
        tally.requests += 1
        tally.bytes += size


def main() -> None:
    """Connect to the workers, listen, then serve and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="addresses of its workers, with commas")
    parser.add_argument("--to-port", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    gather, tally = Gather(options.to.split(","), options.to_port), Tally()
    listener = socket.create_server(("", options.port))
    serve(lambda: run(listener, gather, tally), tally.report)


if __name__ == "__main__":
    main()

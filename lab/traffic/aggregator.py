"""Aggregator of partition-aggregate: queries to all workers, each timed until the last byte.

Queries come one after another, or at a rate with exponential gaps. Each starts after the one before
has ended; its time counts from its arrival, as an external client would see it.
"""

import argparse
import random
import threading
import time
from collections.abc import Iterator
from typing import Final

from lab.traffic.counts import NS_PER_S, Queried
from lab.traffic.gather import Gather
from lab.traffic.orders import now_ns, serve

WARM_UP: Final = 3
"""Queries before the first that counts: TCP's windows and the caches."""


class Tally:
    """What has been measured, shared by the thread that works and the one that reports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries = self._bytes = 0
        self._took: list[int] = []

    def add(self, took_ns: int, size: int) -> None:
        """Count a complete query."""
        with self._lock:
            self._queries += 1
            self._bytes += size
            self._took.append(took_ns)

    def report(self) -> Queried:
        """Return the counts; durations since the report before."""
        with self._lock:
            took, self._took = tuple(self._took), []
            return Queried(now_ns(), self._bytes, self._queries, took)


def arrivals(start_ns: int, rate: float | None, seed: int) -> Iterator[int | None]:
    """Yield the instants of queries; None: when the query before has ended."""
    generator, at = random.Random(seed), float(start_ns)  # noqa: S311  a load, not a secret
    while True:
        if rate is None:
            yield None
        else:
            at += generator.expovariate(rate) * NS_PER_S
            yield int(at)


def run(gather: Gather, tally: Tally, options: argparse.Namespace) -> None:
    """Send the queries, warm-up first."""
    for _ in range(WARM_UP):
        gather.ask(options.size)
    due = arrivals(now_ns(), options.rate, options.seed)
    for _, at in zip(range(options.queries), due, strict=False):
        begun = now_ns() if at is None else at
        time.sleep(max(0, begun - now_ns()) / NS_PER_S)
        size = gather.ask(options.size)
        tally.add(now_ns() - begun, size)


def main() -> None:
    """Connect, then query and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", required=True, help="addresses of the workers, with commas")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--size", type=int, required=True, help="bytes of each answer")
    parser.add_argument("--queries", type=int, required=True)
    parser.add_argument("--rate", type=float, help="queries/s; by default one after another")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    gather, tally = Gather(options.to.split(","), options.port), Tally()
    serve(lambda: run(gather, tally, options), tally.report)


if __name__ == "__main__":
    main()

"""Partition-aggregate: one function for each of its programs, and whole tiers of them.

Workers are servers of reads (``roles.serve_reads``); start them before those that ask them.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Self

from lab.errors import BadRequestError
from lab.programs.processes import Place, environment
from lab.programs.reporter import Counts, Reporter, words_of
from lab.traffic import roles
from lab.traffic.counts import FlowsSent, Queried, Served

MIDDLE_PORT: Final = 5002
BACKGROUND_PORT: Final = 5003
LARGEST_FLOW: Final = 1_000_000
"""Bytes: larger background flows would outlast the run on one machine."""
SMALLEST_ANSWER: Final = 1
LARGEST_ANSWER: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Member:
    """A place in the workload, and its address for the others."""

    place: Place
    address: str


def aggregate(
    place: Place,
    servers: Sequence[str],
    *,
    size: int,
    queries: int,
    rate: float | None = None,
    seed: int = 0,
    port: int = roles.READ_PORT,
) -> Reporter[Queried]:
    """Start an aggregator that queries servers, which are workers or mid-level aggregators.

    Args:
        place: where it runs.
        servers: addresses.
        size: bytes of each server's answer.
        queries: that count; it then waits for its end.
        rate: queries/s with exponential gaps; None means one after another.
        seed: of the gaps.
        port: of the servers.

    Raises:
        BadRequestError: a value is invalid.
        ProgramError: a server refuses, or does not accept within ten seconds.
    """
    _check("size", size, SMALLEST_ANSWER, LARGEST_ANSWER)
    _check("queries", queries, 1, 10**9)
    if rate is not None and not 0 < rate <= 1e6:
        raise BadRequestError("rate", rate, "a rate above 0 and up to 1e6 queries/s")
    words = words_of(
        to=",".join(servers),
        port=port,
        size=size,
        queries=queries,
        rate=None if rate is None else str(rate),
        seed=seed,
    )
    return _start("aggregator", Queried, place, words)


def aggregate_middle(
    place: Place, workers: Sequence[str], *, port: int = MIDDLE_PORT
) -> Reporter[Served]:
    """Start a mid-level aggregator for its workers.

    Raises:
        ProgramError: a worker refuses, or does not accept within ten seconds.
    """
    words = words_of(to=",".join(workers), to_port=roles.READ_PORT, port=port)
    return _start("middle", Served, place, words)


def send_background(
    place: Place,
    destinations: Sequence[str],
    *,
    gap_s: float,
    largest: int = LARGEST_FLOW,
    seed: int = 0,
) -> Reporter[FlowsSent]:
    """Start background flows to random destinations, which need a ``roles.sink_streams``.

    Args:
        place: where it runs.
        destinations: addresses.
        gap_s: mean seconds between the end of a flow and the next.
        largest: bytes of a flow at most.
        seed: of destinations, sizes and gaps.

    Raises:
        BadRequestError: a value is invalid.
    """
    if not 0 < gap_s <= 3600:
        raise BadRequestError("gap_s", gap_s, "a time above 0 and up to 3600 s")
    _check("largest", largest, 1, 1 << 40)
    words = words_of(
        to=",".join(destinations),
        port=BACKGROUND_PORT,
        gap=str(gap_s),
        largest=largest,
        seed=seed,
    )
    return _start("background", FlowsSent, place, words)


class Tiers:
    """Running workers, and mid-level aggregators if there are three tiers, as a context manager."""

    def __init__(
        self,
        workers: Sequence[Member],
        middles: Sequence[Member] = (),
        *,
        congestion: str | None = None,
    ) -> None:
        """Start them; each mid-level aggregator has an equal part of the workers.

        Args:
            workers: those that answer.
            middles: those that ask them, if there are three tiers.
            congestion: congestion control (tcp(7)) of the workers; None means CUBIC.

        Raises:
            BadRequestError: the workers cannot be divided equally.
        """
        if not workers or (middles and len(workers) % len(middles)):
            expected = f"a multiple of the {max(1, len(middles))} mid-level aggregators"
            raise BadRequestError("workers", len(workers), expected)
        self.port = MIDDLE_PORT if middles else roles.READ_PORT
        self.servers = [member.address for member in middles or workers]
        """Whom the aggregator at the top asks, on ``port``."""
        with ExitStack() as stack:
            for worker in workers:
                stack.enter_context(roles.serve_reads(worker.place, congestion=congestion))
            for number, middle in enumerate(middles):
                mine = [worker.address for worker in workers[number :: len(middles)]]
                stack.enter_context(aggregate_middle(middle.place, mine))
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _start(module: str, counts: type[Counts], place: Place, words: list[str]) -> Reporter[Counts]:
    command = place.command([sys.executable, "-m", f"lab.traffic.{module}", *words])
    return Reporter(module, counts, command, environment())


def _check(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadRequestError(field, value, f"a number from {least} to {most}")

"""Completion times of queries in a few numbers."""

import math
from collections.abc import Sequence

import msgspec


class Completion(msgspec.Struct, frozen=True):
    """Completion times of queries, in ms."""

    queries: int
    mean_ms: float
    p50_ms: float
    p99_ms: float
    longest_ms: float


def completion(query_ns: Sequence[int]) -> Completion | None:
    """Return the completion times of queries; None for no query."""
    if not query_ns:
        return None
    times = sorted(took / 1e6 for took in query_ns)
    mean = math.fsum(times) / len(times)
    return Completion(len(times), mean, rank(times, 0.5), rank(times, 0.99), times[-1])


def rank(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of ordered values that this share of them does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

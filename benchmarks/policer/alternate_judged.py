"""Evaluate hosts' records of their orders from policers that were killed in turns; pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.policer.alternate_hosts import Kept, Order


@dataclass(frozen=True)
class Turn:
    """One leader, until the next one."""

    name: str
    epoch: int
    killed_at: float
    led_at: float
    """When the next one announced that it leads."""


@dataclass(frozen=True)
class Kill:
    """One leader that was killed."""

    killed: str
    epoch: int
    """Its own."""
    without_s: float
    """Until the other one announced that it leads."""
    obeyed_s: float
    """Until the first host obeyed the other one."""
    all_obeyed_s: float
    """Until all hosts did."""


@dataclass(frozen=True)
class Proof:
    """Result of all kills on one database."""

    database: str
    kills: list[Kill]
    orders: int
    refused: dict[str, int]
    """By code."""
    twice: list[Order]
    """Orders that came more than once, obeyed or not."""
    not_rising: list[Order]
    """Orders that were obeyed after one that was given later."""
    lower_epoch: list[Order]
    """Orders that were obeyed after one of a higher epoch on the same host."""
    lapsed: int
    """Setpoints that ran out."""
    epochs: list[int]
    """Of all leads, as they came."""

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        rising = all(before < after for before, after in pairwise(self.epochs))
        wrong = self.twice or self.not_rising or self.lower_epoch or self.lapsed
        return rising and bool(self.orders) and not wrong


def repeated(orders: Iterable[Order]) -> list[Order]:
    """Return orders that came before, with the same router, epoch and sequence."""
    known: set[tuple[str, str, int, int]] = set()
    found = []
    for order in orders:
        key = (order.host, order.vr, *order.number)
        if key in known:
            found.append(order)
        known.add(key)
    return found


def not_rising(orders: Iterable[Order]) -> list[Order]:
    """Return obeyed orders that are not above all that were obeyed by the router before."""
    highest: dict[tuple[str, str], tuple[int, int]] = {}
    found = []
    for order in orders:
        if not order.refused:
            if order.number <= highest.get((order.host, order.vr), (-1, -1)):
                found.append(order)
            highest[order.host, order.vr] = order.number
    return found


def of_lower_epochs(orders: Iterable[Order]) -> list[Order]:
    """Return obeyed orders of an epoch below one that their host had obeyed before."""
    highest: dict[str, int] = {}
    found = []
    for order in orders:
        if not order.refused:
            if order.epoch < highest.get(order.host, 0):
                found.append(order)
            highest[order.host] = max(order.epoch, highest.get(order.host, 0))
    return found


def proof_of(database: str, turns: Sequence[Turn], kept: Kept) -> Proof:
    """Return the result from the hosts' records."""
    return Proof(
        database=database,
        kills=[_kill(turn, after.epoch, kept.orders) for turn, after in pairwise(turns)],
        orders=sum(not order.refused for order in kept.orders),
        refused=dict(Counter(order.refused for order in kept.orders if order.refused)),
        twice=repeated(kept.orders),
        not_rising=not_rising(kept.orders),
        lower_epoch=of_lower_epochs(kept.orders),
        lapsed=len(kept.lapsed),
        epochs=[turn.epoch for turn in turns],
    )


def _kill(turn: Turn, following: int, orders: Sequence[Order]) -> Kill:
    """Return how long it took until the next leader was obeyed."""
    first: dict[str, float] = {}
    for order in orders:
        if order.epoch == following and not order.refused:
            first.setdefault(order.host, order.at - turn.killed_at)
    return Kill(
        killed=turn.name,
        epoch=turn.epoch,
        without_s=turn.led_at - turn.killed_at,
        obeyed_s=min(first.values()),
        all_obeyed_s=max(first.values()),
    )

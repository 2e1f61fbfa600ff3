"""Judges what arrives behind a limit on packets, against what a paced sender sent meanwhile."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from support.inconclusive import inconclusive
from support.paced import Paced
from support.rates import Rate, between, read

PUNCTUAL: Final = 0.5
"""The part of the time in which the sender must have sent for a judgement from below."""


@dataclass(frozen=True, slots=True)
class Passed:
    """What arrived and what was sent, and for which part of the time the sender was punctual."""

    arrived: Rate
    sent: Rate
    punctual: float


def passing(arrived: Callable[[], float], sender: Paced, seconds: float) -> Passed:
    """Watch a counter of arrivals and the sender for so long."""
    late, here, there = sender.late(), read(arrived), read(sender.sent)
    time.sleep(seconds)
    sent, got = between(there, read(sender.sent)), between(here, read(arrived))
    return Passed(got, sent, 1 - (sender.late() - late) / got.seconds)


def check_limited(seen: Passed, limit: float, tolerance: float = 0.1) -> None:
    """Check that a limit in packets/s let through its rate and no more.

    Raises:
        AssertionError: more arrived, or less although the sender sent.
        Inconclusive: the sender could not send for half of the time.
    """
    assert seen.arrived.least <= limit * (1 + tolerance), f"more than {limit:g}: {seen}"
    if seen.punctual < PUNCTUAL:
        inconclusive(f"the sender stood still: {seen}")
    assert seen.arrived.most >= limit * seen.punctual * (1 - tolerance), f"less: {seen}"


def check_unlimited(seen: Passed, tolerance: float = 0.1) -> None:
    """Check that all that was sent arrived.

    Raises:
        AssertionError: it did not.
    """
    assert seen.arrived.most >= seen.sent.least * (1 - tolerance), f"lost: {seen}"
    assert seen.arrived.least <= seen.sent.most * (1 + tolerance), f"more than sent: {seen}"

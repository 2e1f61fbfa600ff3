"""The time that waiting for hypervisors may cost in a period: spent once, refilled, never owed."""

import pytest

from common.clock import FakeClock
from common.units import Seconds
from xtc.libvirt.budget import Budget


def waits(patience: Budget, clock: FakeClock, took: float) -> float:
    """Spend; return how long the wait was allowed to be."""
    allowed: list[Seconds] = []

    def wait(most: Seconds) -> None:
        allowed.append(most)
        clock.sleep(Seconds(min(took, most)))

    patience.spend(wait)
    return allowed[0]


def test_it_is_spent_by_who_waits_first_and_refilled() -> None:
    clock = FakeClock()
    patience = Budget(clock, Seconds(0.3))
    assert [waits(patience, clock, 0.1) for _ in range(5)] == pytest.approx([0.3, 0.2, 0.1, 0, 0])
    patience.refill()
    assert waits(patience, clock, 0.5) == pytest.approx(0.3)
    assert waits(patience, clock, 0.5) == 0.0
    assert clock.now() == pytest.approx(0.6)


def test_a_wait_that_overruns_leaves_nothing_owed() -> None:
    clock = FakeClock()
    patience = Budget(clock, Seconds(0.3))
    patience.spend(lambda _most: clock.sleep(Seconds(9.0)))
    assert waits(patience, clock, 0.1) == 0.0
    patience.refill()
    assert waits(patience, clock, 0.1) == 0.3

"""Threads take short turns, and the garbage collector has little to look at."""

import gc
import subprocess
import sys

import msgspec
import pytest

from policer.daemon.interpreter import TURN_S, YOUNG
from policer.decide.allocation import Claim
from policer.decide.dispatch import Sent
from policer.decide.evidence import Evidence, Observation
from policer.decide.state import Demand, Order, RouterState
from policer.fleet.compliance import Counted, Kept

SHOWN = """
import gc, sys
from policer.daemon.interpreter import share_interpreter
share_interpreter()
print(sys.getswitchinterval(), gc.get_threshold()[0], gc.isenabled(), gc.get_freeze_count() > 1000)
"""


def test_turns_are_short_and_what_is_there_is_not_looked_at_again() -> None:
    """In a process of its own: the settings are the whole interpreter's."""
    answer = subprocess.run(
        [sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == [str(TURN_S), str(YOUNG), "True", "True"]


@pytest.mark.parametrize(
    "value",
    [
        RouterState(Evidence((True, None))),
        Evidence((True, None)),
        Observation(None, 1.0, healthy=True),
        Order(1.0),
        Sent(Order(1.0)),
        Claim("gold", 1.0),
        Demand(0.0, 1.0, None, 1.0, 1.0, 1.0, configured=False),
        Kept(0.0, Counted()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_each_round_makes_of_each_router_is_not_looked_at(value: msgspec.Struct) -> None:
    assert not gc.is_tracked(value)

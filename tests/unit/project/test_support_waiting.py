"""The rig that waits: what it returns, and what its failure says."""

import socket
from itertools import count

import pytest
from support.waiting import eventually, free_port


def test_the_first_true_value_is_returned() -> None:
    rounds = count()
    assert eventually(lambda: next(rounds)) == 1


def test_the_condition_is_checked_again_after_the_deadline() -> None:
    rounds = count()
    with pytest.raises(AssertionError):
        eventually(lambda: next(rounds) < 0, seconds=0.0)
    assert next(rounds) == 1


def test_a_failure_reports_the_last_value_and_where_the_condition_is() -> None:
    found: list[int] = []
    with pytest.raises(AssertionError, match=r"test_support_waiting\.py:\d+: \[\]$"):
        eventually(lambda: found, seconds=0.0)


def test_a_failure_reports_the_state_that_the_test_names() -> None:
    with pytest.raises(AssertionError, match="'two of three'"):
        eventually(lambda: False, seconds=0.0, state=lambda: "two of three")


def test_a_free_port_can_be_bound() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))

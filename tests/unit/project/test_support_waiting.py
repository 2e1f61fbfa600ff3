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


def test_a_port_that_is_in_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr("benchmarks.ports._turns", count(port))
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        monkeypatch.setattr("benchmarks.ports._turns", count(port))
        assert free_port() != taken


def test_ports_differ_and_are_none_that_linux_gives_by_itself() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) == 20
    assert max(ports) < 32_768


def test_two_processes_of_a_run_have_no_port_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[int] = set()
    for worker in ("gw0", "gw1", "gw30"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        monkeypatch.setattr("benchmarks.ports._turns", count())
        found |= {free_port() for _ in range(20)}
    assert len(found) == 60

"""Whether a cap binds: the truth table of `docs/reference/binding.md`, and routers that poll."""

import pytest

from common.units import CapFraction, PacketsPerSecond
from xtc.control.binding import Evidence, Polling, binds, observed

SETPOINT = 20e3
DOES = 40e3
"""Packets that the routers here forward in a second of CPU."""


def evidence(
    throughput: float | None = 10e3,
    offered: float | None = 80e3,
    *,
    cap: float | None = 0.25,
    use: float | None = 1.0,
    throttled: float | None = None,
) -> Evidence:
    used = None if use is None or cap is None else CapFraction(use * cap)
    return Evidence(
        None if cap is None else CapFraction(cap),
        None if throughput is None else PacketsPerSecond(throughput),
        None if offered is None else PacketsPerSecond(offered),
        used,
        throttled,
    )


@pytest.mark.parametrize(
    ("seen", "bound"),
    [
        # no cap: nothing binds, whatever else is reported
        (evidence(cap=None, throttled=1.0), False),
        # nothing of CPU time is reported: what was offered decides
        (evidence(use=None), True),
        (evidence(9.8e3, 10e3, use=None), False),
        (evidence(9.79e3, 10e3, use=None), True),
        (evidence(offered=None, use=None), True),
        (evidence(throughput=None, use=None), True),
        # CPU time alone (Xen, QEMU, deadline): three quarters of the cap
        (evidence(use=0.75), True),
        (evidence(use=0.74), False),
        # a quota counts its periods, too: both must agree
        (evidence(use=1.0, throttled=0.1), True),
        (evidence(use=1.0, throttled=0.0), False),
        (evidence(use=0.5, throttled=1.0), False),
        # throttling alone, where CPU time is counted too coarsely
        (evidence(use=None, throttled=0.5), True),
        (evidence(use=None, throttled=0.0), False),
        # senders that adapt (TCP): all is forwarded, at the cap
        (evidence(10e3, 10.05e3, throttled=1.0), True),
    ],
)
def test_the_truth_table_of_a_router_that_sleeps(seen: Evidence, *, bound: bool) -> None:
    assert binds(seen) is bound


POLLS = Polling(polls=True, best=DOES, offered=80e3)


@pytest.mark.parametrize(
    ("seen", "before", "bound"),
    [
        (evidence(10e3, 80e3, throttled=1.0), 80e3, True),
        # idle, or with less to do than it could
        (evidence(0.0, 0.0, throttled=1.0), 0.0, False),
        (evidence(5e3, 5e3, throttled=1.0), 5e3, False),
        # the load began or ended within the period
        (evidence(5e3, 40e3, throttled=1.0), 0.0, False),
        (evidence(5e3, 40e3, throttled=1.0), 80e3, False),
        (evidence(10e3, 72e3, throttled=1.0), 80e3, True),
        # half of its efficiency is gone while as much is offered as before: bound all the same
        (evidence(5e3, 80e3, throttled=1.0), 80e3, True),
        (evidence(10e3, None, throttled=1.0), 80e3, False),
    ],
)
def test_the_truth_table_of_a_router_that_polls(
    seen: Evidence, before: float, *, bound: bool
) -> None:
    assert binds(seen, Polling(polls=True, best=DOES, offered=before)) is bound


def test_a_full_cpu_at_a_fraction_of_its_efficiency_polls() -> None:
    flooded = observed(Polling(), evidence(10e3, 80e3))
    assert not flooded.polls
    assert observed(flooded, evidence(5e3, 5e3)).polls


def test_a_full_cpu_with_nothing_to_do_polls_though_its_efficiency_is_not_known() -> None:
    assert observed(Polling(), evidence(0.0, 0.0)).polls
    assert not binds(evidence(0.0, 0.0), Polling())


def test_an_efficiency_that_falls_under_a_flood_is_no_polling() -> None:
    """Another process in the router takes half of its CPU."""
    flooded = observed(Polling(), evidence(10e3, 80e3))
    assert not observed(flooded, evidence(5e3, 80e3)).polls


def test_a_router_that_was_seen_to_sleep_never_polls() -> None:
    """Its efficiency halves under TCP, which then offers no more than it forwards."""
    known = observed(Polling(), evidence(10e3, 80e3))
    known = observed(known, evidence(4e3, 4e3, use=0.4))
    assert known.sleeps
    slow = evidence(5e3, 5e3)
    assert not observed(known, slow).polls
    assert binds(slow, known)


def test_a_polling_router_short_of_cpu_does_not_seem_to_sleep() -> None:
    known = observed(Polling(best=DOES), evidence(1e3, 1e3, use=0.5))
    assert not known.sleeps


def test_a_router_stops_polling_when_it_leaves_cpu_unused() -> None:
    assert not observed(POLLS, evidence(4e3, 4e3, use=0.4)).polls


def test_a_period_without_cpu_time_tells_nothing_of_polling() -> None:
    known = observed(POLLS, evidence(use=None))
    assert (known.polls, known.best) == (True, DOES)


def test_a_cpu_that_is_burnt_for_something_else_raises_no_cap() -> None:
    """A tenant who forwards next to nothing fills the CPU, to have his cap raised for a flood."""
    known = observed(Polling(), evidence(10e3, 80e3))
    known = observed(known, evidence(4e3, 4e3, use=0.4))
    assert known.sleeps
    assert not binds(evidence(100.0, 100.0, throttled=1.0), known)
    assert binds(evidence(10e3 / 2.9, 10e3 / 2.9, throttled=1.0), known)


def test_a_polling_router_short_of_cpu_does_not_bind_while_it_is_idle() -> None:
    for use in (0.75, 0.85, 1.0):
        idle = evidence(0.0, 0.0, use=use, throttled=1.0)
        assert not binds(idle, POLLS)
        assert observed(POLLS, idle).polls


def test_a_router_that_is_back_at_its_efficiency_no_longer_polls() -> None:
    assert not observed(POLLS, evidence(9.9e3, 10e3)).polls

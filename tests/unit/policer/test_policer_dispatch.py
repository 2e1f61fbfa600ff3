"""Dispatch: what changed is told once, leases are renewed in time, punishments are ended."""

from collections.abc import Mapping
from itertools import count

import pytest
from policer_plant import held_report, report_of

from policer.contracts.contract import MAX_PPS
from policer.decide.dispatch import NOTICE_S, RENEWALS, Sent, Terms, due
from policer.decide.state import Order
from xtc.modes import Finding, Mode
from xtc.wire import Activate, Kind, Limit, Report

TERMS = Terms(epoch=3)
HELD = Order(1e4)
PUNISHED = Order(1e3, punishment=True)


class Context:
    """Sends orders, and remembers what was sent."""

    def __init__(self) -> None:
        self.sent: Mapping[str, Sent] = {}
        self.sequence = count(1)

    def tell(
        self, now: float, order: Order | None, report: Report | None = None
    ) -> tuple[Activate | Limit, ...]:
        orders = {} if order is None else {"a": order}
        reports = {} if report is None else {"a": report}
        told = due(now, orders, self.sent, reports, TERMS, lambda: next(self.sequence))
        self.sent = told.sent
        return told.requests


def test_a_setpoint_is_told_as_a_lease_of_this_epoch() -> None:
    context = Context()
    assert context.tell(0.0, HELD) == (Activate("a", 1e4, 3, 1, TERMS.ttl_s, Kind.NORMAL),)


def test_a_burst_goes_with_its_setpoint_and_with_each_renewal() -> None:
    context, order = Context(), Order(1e4, burst=500.0)
    told = [request for now in range(6) for request in context.tell(float(now), order)]
    assert [(r.setpoint_pps, r.burst) for r in told if isinstance(r, Activate)] == [(1e4, 500)] * 2


@pytest.mark.parametrize(("before", "after"), [(None, 500.0), (500.0, 900.0), (900.0, None)])
def test_a_change_of_the_burst_alone_is_told_at_once(
    before: float | None, after: float | None
) -> None:
    context, report = Context(), held_report("a", setpoint=1e4)
    context.tell(0.0, Order(1e4, burst=before))
    assert context.tell(1.0, Order(1e4, burst=before), report) == ()
    (request,) = context.tell(2.0, Order(1e4, burst=after), report)
    assert request == Activate("a", 1e4, 3, 2, TERMS.ttl_s, Kind.NORMAL, burst=after)
    assert context.tell(3.0, Order(1e4, burst=after), report) == ()


def test_what_stands_is_renewed_thrice_in_its_length_and_not_more() -> None:
    context = Context()
    report = held_report("a", setpoint=1e4)
    told = [now for now in range(60) if context.tell(float(now), HELD, report)]
    assert told == list(range(0, 60, int(TERMS.ttl_s / RENEWALS)))


def test_a_change_is_told_at_once() -> None:
    context = Context()
    context.tell(0.0, HELD)
    (request,) = context.tell(1.0, Order(2e4))
    assert isinstance(request, Activate)
    assert (request.setpoint_pps, request.sequence) == (2e4, 2)


def test_letting_go_sends_nothing() -> None:
    context = Context()
    assert context.tell(0.0, Order()) == ()
    context.tell(1.0, HELD)
    assert context.tell(2.0, Order()) == ()
    assert context.tell(100.0, Order()) == ()


@pytest.mark.parametrize(
    "report",
    [
        report_of("a"),
        held_report("a", setpoint=5e3),
        held_report(
            "a",
            setpoint=1e4,
            lease_remaining_s=0.0,
            mode=Mode.RELEASED,
            finding=Finding.LEASE_ENDED,
        ),
    ],
)
def test_what_did_not_arrive_is_told_again(report: Report) -> None:
    context = Context()
    context.tell(0.0, HELD)
    assert context.tell(NOTICE_S - 0.1, HELD, report) == ()
    assert len(context.tell(NOTICE_S, HELD, report)) == 1
    assert context.tell(NOTICE_S + 1, HELD, report) == ()


def test_a_limit_that_a_restarted_daemon_lifted_is_set_again() -> None:
    context, order = Context(), Order(1e4, limit_pps=1.1e4)
    context.tell(0.0, order)
    assert Limit("a", 1.1e4, ttl_s=TERMS.ttl_s, epoch=TERMS.epoch) in context.tell(
        NOTICE_S, order, held_report("a")
    )
    shown = held_report("a", limit_pps=1.1e4)
    assert context.tell(NOTICE_S + NOTICE_S, order, shown) == ()


def test_a_limit_is_lifted_once() -> None:
    context = Context()
    context.tell(0.0, Order(1e4, limit_pps=1.1e4))
    assert Limit("a", None, epoch=TERMS.epoch) in context.tell(1.0, HELD)
    assert context.tell(2.0, HELD) == ()


def test_a_punishment_is_ended_by_a_short_one_that_lets_go() -> None:
    context = Context()
    context.tell(0.0, PUNISHED)
    (end,) = context.tell(1.0, Order())
    assert end == Activate("a", MAX_PPS, 3, 2, TERMS.last_s, Kind.PUNISHMENT)
    assert context.tell(2.0, Order()) == ()
    assert context.tell(100.0, Order()) == ()


def test_or_that_already_gives_the_next_setpoint() -> None:
    context = Context()
    context.tell(0.0, PUNISHED)
    (end,) = context.tell(1.0, HELD)
    assert end == Activate("a", 1e4, 3, 2, TERMS.last_s, Kind.PUNISHMENT)
    after = [context.tell(now, HELD) for now in (2.0, 5.0, 1.0 + 1.2 * TERMS.last_s)]
    assert after[:2] == [(), ()]
    assert after[2] == (Activate("a", 1e4, 3, 3, TERMS.ttl_s, Kind.NORMAL),)


def test_while_it_runs_no_order_is_sent_that_would_be_refused() -> None:
    context = Context()
    context.tell(0.0, PUNISHED)
    context.tell(1.0, HELD)
    assert context.tell(2.0, Order(2e4)) == ()
    (later,) = context.tell(1.0 + 1.2 * TERMS.last_s, Order(2e4))
    assert isinstance(later, Activate)
    assert later.setpoint_pps == 2e4


def test_but_a_new_punishment_waits_for_nothing() -> None:
    context = Context()
    context.tell(0.0, PUNISHED)
    context.tell(1.0, HELD)
    (again,) = context.tell(2.0, PUNISHED)
    assert isinstance(again, Activate)
    assert (again.kind, again.setpoint_pps) == (Kind.PUNISHMENT, 1e3)


def test_a_router_that_vanished_is_told_anew_when_it_is_back() -> None:
    context = Context()
    context.tell(0.0, HELD)
    assert context.tell(1.0, None) == ()
    assert len(context.tell(2.0, HELD)) == 1


def test_a_new_policer_tells_all_that_it_wants() -> None:
    """Whatever leases of the old one telemetry shows."""
    assert len(Context().tell(0.0, HELD, held_report("a", setpoint=1e4))) == 1


def test_a_clock_that_jumps_renews_once() -> None:
    context = Context()
    context.tell(0.0, HELD)
    assert len(context.tell(3600.0, HELD, held_report("a", lease_remaining_s=0.0))) == 1
    assert context.tell(3601.0, HELD, held_report("a")) == ()

"""Dispatch, number by number: lengths, renewals and notices from both sides."""

from collections.abc import Mapping
from itertools import count

import pytest
from policer_plant import held_report, report_of

from policer.contracts.contract import MAX_PPS
from policer.decide.dispatch import Dispatch, Sent, Terms, due
from policer.decide.state import Order
from xtc.wire import Activate, Kind, Limit, Report

TERMS = Terms(epoch=3)
HELD = Order(1e4)
PUNISHED = Order(1e3, punishment=True)


def told(
    now: float, order: Order, last: Sent | None = None, report: Report | None = None
) -> Dispatch:
    sent = {} if last is None else {"a": last}
    reports = {} if report is None else {"a": report}
    return due(now, {"a": order}, sent, reports, TERMS, count(7).__next__)


def test_a_lease_lasts_15_s_and_the_last_of_a_punishment_4() -> None:
    assert (TERMS.ttl_s, TERMS.last_s) == (15.0, 4.0)
    first = told(100.0, HELD)
    assert first.requests == (Activate("a", 1e4, 3, 7, 15.0, Kind.NORMAL),)
    assert first.sent == {"a": Sent(HELD, 100.0, 105.0)}
    ended = told(100.0, HELD, Sent(PUNISHED, 99.0, 104.0))
    assert ended.requests == (Activate("a", 1e4, 3, 7, 4.0, Kind.PUNISHMENT),)
    assert ended.sent == {"a": Sent(HELD, 100.0, 104.4, barred_until=104.4)}


def test_a_lease_that_stands_is_renewed_after_a_third() -> None:
    last, report = Sent(HELD, 100.0, 105.0), held_report("a", 1e4)
    early = told(104.9, HELD, last, report)
    assert (early.requests, early.sent) == ((), {"a": last})
    assert len(told(105.0, HELD, last, report).requests) == 1


def test_telemetry_has_three_seconds_to_show_it() -> None:
    last, other = Sent(HELD, 100.0, 105.0), held_report("a", 2e4)
    assert told(102.9, HELD, last, other).requests == ()
    assert len(told(103.0, HELD, last, other).requests) == 1
    assert told(103.0, HELD, last, None).requests == ()


@pytest.mark.parametrize(
    ("seen", "again"), [(1e4, 0), (1.0009e4, 0), (0.9991e4, 0), (1.0011e4, 1), (0.9989e4, 1)]
)
def test_rates_within_a_thousandth_are_the_same(seen: float, again: int) -> None:
    last = Sent(HELD, 100.0, 105.0)
    assert len(told(103.0, HELD, last, held_report("a", seen)).requests) == again
    limited = Order(None, limit_pps=1e4)
    report = report_of("a", limit_pps=seen)
    assert len(told(103.0, limited, Sent(limited, 100.0, 105.0), report).requests) == again


@pytest.mark.parametrize(
    ("order", "report", "again"),
    [
        (Order(1e4, limit_pps=2e4), held_report("a", 1e4, limit_pps=2e4), False),
        (Order(1e4, limit_pps=2e4), held_report("a", 1e4, limit_pps=3e4), True),
        (Order(1e4, limit_pps=2e4), held_report("a", 2e4, limit_pps=2e4), True),
        (Order(1e4, limit_pps=2e4), held_report("a", 1e4), True),
        (Order(1e4), held_report("a", 1e4, limit_pps=3e4), False),
        (Order(limit_pps=2e4), held_report("a", 1e4, limit_pps=2e4), False),
    ],
)
def test_setpoint_and_limit_must_both_be_seen(order: Order, report: Report, again: bool) -> None:
    found = told(103.0, order, Sent(order, 100.0, 105.0), report)
    assert bool(found.requests) is again


def test_messages_of_limits() -> None:
    limit = Limit("a", 2e4, 15.0, 3)
    assert told(0.0, Order(limit_pps=2e4)).requests == (limit,)
    assert told(0.0, Order(1e3, punishment=True, limit_pps=2e4)).requests == (
        Activate("a", 1e3, 3, 7, 15.0, Kind.PUNISHMENT),
        limit,
    )
    lifted = told(1.0, Order(), Sent(Order(limit_pps=2e4), 0.0, 5.0))
    assert lifted.requests == (Limit("a", None, epoch=3),)
    assert told(1.0, HELD, Sent(Order(2e4), 0.0, 5.0)).requests == (
        Activate("a", 1e4, 3, 7, 15.0, Kind.NORMAL),
    )


def test_while_a_punishments_last_lease_runs_only_punishments_are_told() -> None:
    last = Sent(HELD, 100.0, 104.4, barred_until=104.4)
    for order in (HELD, Order(2e4), Order()):
        kept = told(104.3, order, last)
        assert (kept.requests, kept.sent) == ((), {"a": last})
    assert len(told(104.4, HELD, last).requests) == 1
    again = told(101.0, PUNISHED, last)
    assert again.requests == (Activate("a", 1e3, 3, 7, 15.0, Kind.PUNISHMENT),)
    assert again.sent == {"a": Sent(PUNISHED, 101.0, 106.0)}


def test_a_punishment_that_ends_in_nothing_lets_all_through() -> None:
    found = told(1.0, Order(), Sent(PUNISHED, 0.0, 5.0))
    assert found.requests == (Activate("a", MAX_PPS, 3, 7, 4.0, Kind.PUNISHMENT),)
    assert told(99.0, Order(), found.sent["a"]).requests == ()


def test_a_punishment_that_changes_is_no_end_of_one() -> None:
    harder = Order(1.0, punishment=True)
    found = told(1.0, harder, Sent(PUNISHED, 0.0, 5.0))
    assert found.requests == (Activate("a", 1.0, 3, 7, 15.0, Kind.PUNISHMENT),)


def test_each_router_is_told_by_its_own_memory() -> None:
    orders: Mapping[str, Order] = {"a": HELD, "b": HELD, "c": Order()}
    sent = {"a": Sent(HELD, 100.0, 105.0)}
    found = due(101.0, orders, sent, {}, TERMS, count(7).__next__)
    assert found.requests == (Activate("b", 1e4, 3, 7, 15.0, Kind.NORMAL),)
    assert found.sent == {"a": sent["a"], "b": Sent(HELD, 101.0, 106.0), "c": Sent()}

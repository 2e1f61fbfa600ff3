"""Dispatch, for any orders and losses: what a daemon holds is what was ordered, within a time."""

import random
from collections.abc import Mapping
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st
from policer_plant import Router, SimulatedHost, steady

from policer.decide.demand import leased_bps, leased_pps
from policer.decide.dispatch import NOTICE_S, RENEWALS, Sent, Terms, due
from policer.decide.state import Order
from xtc.lease import Kind
from xtc.wire import Activate, Limit

TERMS = Terms(epoch=7)
WITHIN_S = TERMS.ttl_s + NOTICE_S + 1
"""By then a daemon holds what was ordered: an old punishment has ended, and a word came through."""
setpoints = st.sampled_from([1.0, 5e3, 2e4])
held = st.builds(
    Order,
    setpoint_pps=setpoints,
    punishment=st.booleans(),
    limit_pps=st.none() | st.sampled_from([2e3, 9e3]),
    burst=st.none() | st.sampled_from([1.0, 4e3]),
)
in_bits = st.builds(
    Order,
    punishment=st.booleans(),
    limit_pps=st.none() | st.sampled_from([2e3, 9e3]),
    burst=st.none() | st.sampled_from([12_144.0, 4e6]),
    setpoint_bps=st.sampled_from([1e4, 14e6, 56e6]),
)
orders = st.one_of(st.just(Order()), held, in_bits)
histories = st.lists(st.tuples(orders, st.integers(1, 12)), max_size=8)


class Line:
    """A policer's end and a daemon's, with a line between them that loses messages."""

    def __init__(self, seed: int, loss: float) -> None:
        self.host = SimulatedHost({"a": Router(steady(1e5))})
        self.random, self.loss = random.Random(seed), loss
        self.sent: Mapping[str, Sent] = {}
        self.sequence = count(1)
        self.sequences: list[int] = []
        self.told: list[tuple[float, Activate | Limit]] = []

    def second(self, order: Order) -> None:
        telemetry = self.host.advance()
        told = due(
            self.host.now,
            {"a": order},
            self.sent,
            {report.vr: report for report in telemetry.routers},
            TERMS,
            lambda: next(self.sequence),
        )
        self.sent = told.sent
        self.told += [(self.host.now, request) for request in told.requests]
        self.sequences += [r.sequence for r in told.requests if isinstance(r, Activate)]
        self.host.carry_out(r for r in told.requests if self.random.random() >= self.loss)

    def holds(self, order: Order) -> bool:
        router = self.host.routers["a"]
        (report,) = self.host.telemetry().routers
        kind = None if router.lease is None else router.lease.kind
        expected = Kind.PUNISHMENT if order.punishment else Kind.NORMAL
        same_kind = not order.holds or kind is expected
        lease = router.lease
        burst = None if lease is None else lease.setpoint.burst
        return (
            same_kind
            and (not order.holds or burst == order.burst)
            and leased_pps(report) == order.setpoint_pps
            and leased_bps(report) == order.setpoint_bps
            and router.limit == order.limit_pps
        )


@given(histories, orders, st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 1.0]))
def test_what_the_daemon_holds_is_soon_what_was_ordered(
    history: list[tuple[Order, int]], last: Order, seed: int, loss: float
) -> None:
    line = Line(seed, loss)
    for order, seconds in history:
        for _ in range(seconds):
            line.second(order)
    line.loss = 0.0
    for _ in range(int(WITHIN_S)):
        line.second(last)
    for _ in range(40):
        line.second(last)
        assert line.holds(last)


@given(histories, st.integers(0, 2**32), st.sampled_from([0.0, 0.3]))
def test_sequences_only_rise(history: list[tuple[Order, int]], seed: int, loss: float) -> None:
    line = Line(seed, loss)
    for order, seconds in history:
        for _ in range(seconds):
            line.second(order)
    assert line.sequences == sorted(set(line.sequences))
    assert all(refusal.code == "punished" for refusal in line.host.refusals)


@given(histories)
def test_without_losses_nothing_is_refused(history: list[tuple[Order, int]]) -> None:
    line = Line(0, 0.0)
    for order, seconds in history:
        for _ in range(seconds):
            line.second(order)
    assert line.host.refusals == []


@given(histories, orders)
def test_what_does_not_change_is_only_renewed(
    history: list[tuple[Order, int]], last: Order
) -> None:
    line = Line(0, 0.0)
    for order, seconds in history:
        for _ in range(seconds):
            line.second(order)
    for _ in range(10):
        line.second(last)
    line.told = []
    seconds = 300
    for _ in range(seconds):
        line.second(last)
    leases = [at for at, request in line.told if isinstance(request, Activate)]
    limits = [at for at, request in line.told if isinstance(request, Limit)]
    every = TERMS.ttl_s / RENEWALS
    for times in (leases, limits):
        assert all(later - at >= every for at, later in pairwise(times))
    assert len(leases) == (seconds / every if last.holds else 0)


@given(histories)
def test_a_policer_that_dies_lets_go_of_all(history: list[tuple[Order, int]]) -> None:
    line = Line(0, 0.0)
    for order, seconds in history:
        for _ in range(seconds):
            line.second(order)
    for _ in range(int(TERMS.ttl_s) + 1):
        line.host.advance()
    assert line.holds(Order())

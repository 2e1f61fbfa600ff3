"""A host that is full before its capacity is reached: it is slower than its model today."""

import pytest
from policer_plant import report_of
from round_rig import CAPACITY, Context

from policer.contracts.contract import Contract
from policer.decide.telemetry import HostTelemetry, seen
from xtc.wire import HostDrops, Telemetry

CONTRACTS = {"a": Contract(0.55 * CAPACITY), "b": Contract(0.2 * CAPACITY)}


def _flooded(context: Context) -> Context:
    """Let half of what was sent to one router get lost uncounted, once the other is flooded."""
    context.decide_round(*_rates(0.5, 0.0), rounds=10)
    context.decide_round(*_rates(0.25, 0.4), rounds=2)
    return context


def _rates(a: float, b: float) -> tuple[object, ...]:
    return tuple(
        report_of(vr, throughput_pps=share * CAPACITY, offered_pps=share * CAPACITY)
        for vr, share in (("a", a), ("b", b))
    )


def test_a_host_with_cpu_to_spare_is_not_full() -> None:
    context = Context(**CONTRACTS)
    context.busiest_cpu = 0.6
    assert not _flooded(context).state.standing.engaged


@pytest.mark.parametrize(
    ("busiest_cpu", "drops"),
    [
        (0.99, None),
        (None, HostDrops({"eth0": 0.2 * CAPACITY}, None)),
        (0.5, HostDrops({}, 0.02 * CAPACITY)),
    ],
)
def test_a_host_that_has_no_cpu_left_holds_routers_within_two_rounds(
    busiest_cpu: float | None, drops: HostDrops | None
) -> None:
    context = Context(**CONTRACTS)
    context.busiest_cpu, context.drops = busiest_cpu, drops
    standing = _flooded(context).state.standing
    assert standing.engaged
    assert standing.harmed == ("a",)
    assert standing.setpoints["b"] < 0.4 * CAPACITY


def test_a_busy_cpu_alone_holds_nobody() -> None:
    context = Context(**CONTRACTS)
    context.busiest_cpu = 1.0
    context.decide_round(*_rates(0.5, 0.1), rounds=20)
    assert not context.state.standing.engaged


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_an_impossible_share_of_a_cpu_is_not_believed(share: float) -> None:
    told = Telemetry(5.0, 1, (), busiest_cpu=share)
    assert "CPU" in seen(HostTelemetry(), told, 1.0, CAPACITY).distrust

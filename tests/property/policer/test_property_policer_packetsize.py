"""Contracts in bits/s, for any sizes and any lies: no more of the CPU than was sold, in any order.

What is checked of a contract in packets/s holds of one in bits/s too, once it is converted.
"""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st
from policer_plant import held_report, report_of

from common.burst import check_burst
from common.setpoint import Setpoint, Unit
from policer.contracts.contract import MAX_PPS, Contract, contradictions
from policer.decide.packet_size import (
    LARGEST,
    SECONDS,
    SMALLEST,
    UNKNOWN,
    Size,
    burst_bits,
    ceiling_bps,
    in_packets,
    is_in_bits,
    report_in_packets,
    size_after,
)
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Policy
from policer.decide.telemetry import HostTelemetry, seen
from xtc.lease import Lease
from xtc.wire import Report, Telemetry

EXACT = 1 + 1e-9
sizes_sold = st.integers(64, 65_535)
bit_rates = st.floats(1e3, 1e12)
packet_rates = st.floats(1.0, MAX_PPS)
guarantees = st.one_of(
    st.just({}),
    packet_rates.map(lambda rate: {"guarantee_pps": rate}),
    bit_rates.map(lambda rate: {"guarantee_bps": rate}),
)
ceilings = st.one_of(
    st.just({}),
    packet_rates.map(lambda rate: {"ceiling_pps": rate}),
    bit_rates.map(lambda rate: {"ceiling_bps": rate}),
)
bursts = st.none() | st.floats(1.0, 1e6)
contracts = st.builds(
    lambda guarantee, ceiling, size, burst: Contract(
        **guarantee, **ceiling, packet_bytes=size, burst=burst
    ),
    guarantees,
    ceilings,
    sizes_sold,
    bursts,
).filter(lambda contract: not list(contradictions(contract)))
rates = st.none() | st.floats() | st.floats(0, 1e12)
lies = st.builds(lambda pps, bps: report_of(throughput_pps=pps, throughput_bps=bps), rates, rates)
truths = st.builds(
    lambda pps, size: report_of(throughput_pps=pps, throughput_bps=8 * size * pps),
    st.floats(0.1, MAX_PPS),
    st.floats(SMALLEST + 1, LARGEST - 1),
)
histories = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 1.0, 40.0]), lies | truths | truths), max_size=12
)


def sizes(contract: Contract, history: list[tuple[float, Report]]) -> list[Size]:
    """Return what is known after each round."""
    found, now = [UNKNOWN], 0.0
    for passed, report in history:
        now += passed
        found.append(size_after(now, found[-1], contract, report))
    return found


@given(contracts, histories)
def test_a_guarantee_is_within_its_ceiling_and_its_reserve(
    contract: Contract, history: list[tuple[float, Report]]
) -> None:
    for size in sizes(contract, history):
        packets = in_packets(contract, size)
        assert not is_in_bits(packets)
        assert packets.guarantee_pps <= packets.ceiling
        assert packets.guarantee_pps <= contract.reserve_pps * EXACT
        assert contract.ceiling_bps is None or 0 < packets.ceiling <= MAX_PPS
        if contract.guarantee_pps and contract.ceiling_bps is None:
            assert packets.guarantee_pps == contract.guarantee_pps


@given(contracts, histories)
def test_a_contract_in_packets_contradicts_itself_no_more_than_the_one_sold(
    contract: Contract, history: list[tuple[float, Report]]
) -> None:
    """Its burst can be kept at every setpoint at or above its reference."""
    for size in sizes(contract, history):
        packets = in_packets(contract, size)
        assert [p for p in contradictions(packets) if p.field != "burst"] == []
        reference = packets.reference_pps
        if packets.burst is not None and reference is not None and reference >= 1:
            check_burst(packets.burst_at(reference) or 1.0, Setpoint(reference * EXACT))


@given(contracts, histories)
def test_what_is_known_is_bounded(contract: Contract, history: list[tuple[float, Report]]) -> None:
    for size in sizes(contract, history):
        assert len(size.seconds) <= SECONDS
        assert (size.low is None) is (size.likely is None) is (size.high is None)
        for known in (size.low, size.likely, size.high):
            assert known is None or SMALLEST * 0.97 <= known <= LARGEST * 1.04


@given(contracts, histories, st.floats(-1e12, 1e12))
def test_a_ceiling_in_bits_is_one_that_a_daemon_takes(
    contract: Contract, history: list[tuple[float, Report]], saved: float
) -> None:
    for size in sizes(contract, history):
        most = ceiling_bps(contract, size, saved)
        if most is None:
            assert contract.ceiling_bps is None
            continue
        assert contract.ceiling_bps is not None
        assert contract.ceiling_bps <= most <= 1e12
        burst = burst_bits(contract, most)
        Lease.of(Setpoint(most, Unit.BITS, burst))
        assert burst is None or check_burst(burst, Setpoint(most, Unit.BITS))


@given(truths, bit_rates)
def test_a_setpoint_in_bits_is_reached_in_packets_when_it_is_reached_in_bits(
    report: Report, setpoint: float
) -> None:
    held = held_report(
        setpoint_pps=None,
        setpoint_bps=setpoint,
        throughput_pps=report.throughput_pps,
        throughput_bps=report.throughput_bps,
    )
    converted = report_in_packets(held)
    assert converted.setpoint_pps is not None
    assert held.throughput_pps is not None
    assert held.throughput_bps is not None
    in_bits = held.throughput_bps / setpoint
    assert abs(held.throughput_pps / converted.setpoint_pps - in_bits) <= 1e-9 * in_bits


CAPACITY = 1e5
small_rates = st.sampled_from([1e3, 5e6, 28e6, 140e6])
sold = st.builds(
    lambda guarantee, more, size: Contract(
        guarantee_bps=guarantee, ceiling_bps=guarantee * more, packet_bytes=size
    ),
    small_rates,
    st.sampled_from([1.0, 1.5, 10.0]),
    st.sampled_from([64, 350, 1500]),
)
loads = st.tuples(st.floats(0, 2e5), st.sampled_from([42.0, 64.0, 350.0, 1500.0, 9000.0, 65_535.0]))


def shown(vr: str, load: tuple[float, float], held: float | None, bps: float | None) -> Report:
    pps, size = load
    fields: dict[str, object] = {"throughput_pps": pps, "throughput_bps": 8 * size * pps}
    fields["offered_pps"] = 1.2 * pps
    if held is None and bps is None:
        return report_of(vr, **fields)
    return held_report(vr, **fields, setpoint_pps=held, setpoint_bps=bps)


@given(sold, st.lists(st.tuples(loads, loads), min_size=1, max_size=30))
def test_every_order_can_be_obeyed_and_a_contended_host_orders_packets(
    contract: Contract, history: list[tuple[tuple[float, float], tuple[float, float]]]
) -> None:
    contracts = {"a": contract, "b": Contract(guarantee_pps=2e4)}
    state, telemetry, orders = HostState(), HostTelemetry(), {}
    for now, seconds in zip(accumulate([1.0] * len(history)), history, strict=True):
        reports = []
        for vr, load in zip("ab", seconds, strict=True):
            order = orders.get(vr)
            held = (None, None) if order is None else (order.setpoint_pps, order.setpoint_bps)
            reports.append(shown(vr, load, *held))
        telemetry = seen(telemetry, Telemetry(now, int(now), tuple(reports)), now, CAPACITY)
        decided = decide_round(now, HostView(CAPACITY, contracts, telemetry), state, Policy())
        state, orders = decided.state, decided.orders
        for order in orders.values():
            assert order.setpoint_pps is None or order.setpoint_bps is None
            assert order.setpoint_pps is None or 1.0 <= order.setpoint_pps <= MAX_PPS
            assert order.limit_pps is None or 1.0 <= order.limit_pps <= MAX_PPS
            assert order.holds or order.limit_pps is None
            in_bits = order.setpoint_bps is not None
            assert not (in_bits and state.standing.engaged)
            assert not in_bits or order.setpoint_bps == contract.ceiling_bps

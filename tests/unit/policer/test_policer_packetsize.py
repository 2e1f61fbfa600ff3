"""Contracts in bits/s as packets/s: by what sizes, and what no size does."""

import math

import pytest
from policer_plant import report_of

from policer.contracts.contract import MAX_PPS, PACKET_BYTES, Contract
from policer.decide.packet_size import (
    REMEMBERED_S,
    SECONDS,
    UNKNOWN,
    Size,
    burst_bits,
    ceiling_bps,
    fewer,
    in_packets,
    mean_bytes,
    report_in_packets,
    saved_as,
    size_after,
)
from xtc.wire import Report

SOLD = Contract(guarantee_bps=80e6, ceiling_bps=160e6, packet_bytes=500)
RESERVED = 20e3


def forwarding(size: float, pps: float = 10e3) -> Report:
    return report_of(throughput_pps=pps, throughput_bps=8 * size * pps)


def after(*sizes: float, contract: Contract = SOLD, pps: float = 10e3) -> Size:
    """Return what is known after a second of each size."""
    size = UNKNOWN
    for second, one in enumerate(sizes):
        size = size_after(float(second), size, contract, forwarding(one, pps))
    return size


def test_the_size_of_a_router_of_which_nothing_is_known_is_the_one_sold() -> None:
    packets = in_packets(SOLD, UNKNOWN)
    assert (packets.guarantee_pps, packets.ceiling_pps) == (RESERVED, 2 * RESERVED)
    assert (packets.guarantee_bps, packets.ceiling_bps) == (None, None)
    assert in_packets(Contract(guarantee_bps=28e6), UNKNOWN).guarantee_pps == 10e3
    assert PACKET_BYTES == 350


def test_a_contract_in_packets_is_left_as_it_is() -> None:
    plain = Contract(guarantee_pps=1e3, ceiling_pps=2e3)
    assert in_packets(plain, after(1500.0)) is plain
    assert size_after(0.0, after(1500.0), plain, forwarding(1500.0)) is UNKNOWN


def test_larger_packets_than_sold_make_fewer() -> None:
    packets = in_packets(SOLD, after(1000.0))
    assert (packets.guarantee_pps, packets.ceiling_pps) == (10e3, 20e3)


def test_smaller_packets_than_sold_take_no_more_than_was_reserved() -> None:
    packets = in_packets(SOLD, after(100.0, pps=100e3))
    assert packets.guarantee_pps == RESERVED
    assert packets.ceiling_pps == 200e3


def test_of_sizes_that_vary_a_guarantee_goes_by_the_smallest_and_a_ceiling_by_the_largest() -> None:
    packets = in_packets(SOLD, after(600.0, 1000.0))
    assert packets.guarantee_pps == pytest.approx(80e6 / 8 / 600)
    assert packets.ceiling_pps == pytest.approx(20e3)


def test_sizes_that_go_up_and_down_change_nothing() -> None:
    """Not from second to second, and not from two seconds to two."""
    for sizes in ([100.0, 1500.0] * 6, [100.0, 100.0, 1500.0, 1500.0] * 4):
        seen = {in_packets(SOLD, after(*sizes[:known])) for known in range(SECONDS, len(sizes))}
        (steady,) = seen
        assert steady.guarantee_pps <= RESERVED


def test_a_ceiling_leaves_what_the_guarantee_takes_at_the_mean_size() -> None:
    line = Contract(guarantee_bps=80e6, ceiling_bps=80e6, packet_bytes=500)
    packets = in_packets(line, after(*[500.0, 1500.0] * 3))
    assert packets.ceiling_pps == packets.guarantee_pps == pytest.approx(80e6 / 8 / 1000)


def test_packets_that_are_joined_no_longer_have_their_guarantee_after_three_rounds() -> None:
    joined = [64_000.0] * 5
    guarantees = [
        in_packets(SOLD, after(*joined, *[500.0] * rounds)).guarantee_pps for rounds in range(4)
    ]
    assert guarantees[0] == pytest.approx(80e6 / 8 / 64e3)
    assert guarantees[3] == RESERVED
    free = Contract(guarantee_bps=80e6, packet_bytes=500)
    assert in_packets(free, after(*joined, 500.0, contract=free)).guarantee_pps == RESERVED


def test_a_size_that_hardly_changes_is_the_same() -> None:
    sizes = [after(*[1000.0] * 5, *[other] * 5) for other in (971.0, 1029.0)]
    assert {(size.low, size.likely, size.high) for size in sizes} == {(1000.0, 1000.0, 1000.0)}
    changed = after(*[1000.0] * 5, *[1040.0] * 5)
    assert (changed.low, changed.high) == (1040.0, 1040.0)


@pytest.mark.parametrize(
    "report",
    [
        report_of(),
        report_of(throughput_pps=None, throughput_bps=8e6),
        report_of(throughput_pps=1e3, throughput_bps=None),
        report_of(throughput_pps=0.0, throughput_bps=8e6),
        report_of(throughput_pps=1e-300, throughput_bps=1e12),
        report_of(throughput_pps=1e3, throughput_bps=0.0),
        report_of(throughput_pps=1e3, throughput_bps=1e12),
        report_of(throughput_pps=math.nan, throughput_bps=8e6),
        report_of(throughput_pps=1e3, throughput_bps=math.nan),
        report_of(throughput_pps=math.inf, throughput_bps=math.inf),
    ],
)
def test_what_cannot_be_tells_nothing(report: Report) -> None:
    known = after(700.0)
    assert mean_bytes(report) is None
    assert size_after(1.0, known, SOLD, report) is known
    held = report_in_packets(
        report_of(setpoint_bps=8e6, throughput_pps=None, throughput_bps=None), UNKNOWN
    )
    assert held.setpoint_pps is None


def test_a_router_that_hardly_forwards_tells_nothing() -> None:
    """A few large packets of its protocols would leave it little when it wakes."""
    assert after(9000.0, pps=100.0) == UNKNOWN
    assert after(9000.0, pps=120.0).low == 9000.0


def test_one_that_is_given_few_packets_tells_of_them() -> None:
    """Else a router whose packets have shrunk would be held by the size that they had."""
    small = Contract(guarantee_bps=1e6, packet_bytes=500)
    joined = after(*[64_000.0] * 5, contract=small)
    given = in_packets(small, joined).guarantee_pps
    now = size_after(5.0, joined, small, forwarding(64.0, given))
    assert in_packets(small, now).guarantee_pps == 250.0


def test_what_it_told_is_forgotten_after_a_while() -> None:
    known = after(1000.0)
    assert size_after(REMEMBERED_S, known, SOLD, report_of()) is known
    assert size_after(REMEMBERED_S + 1.0, known, SOLD, report_of()) == UNKNOWN


def test_units_may_be_mixed() -> None:
    port = Contract(guarantee_pps=20e3, ceiling_bps=160e6, packet_bytes=500)
    packets = in_packets(port, after(600.0, contract=port))
    assert (packets.guarantee_pps, packets.ceiling_pps) == (20e3, pytest.approx(160e6 / 4800))
    jumbo = in_packets(port, after(9000.0, contract=port))
    assert jumbo.guarantee_pps == jumbo.ceiling_pps == pytest.approx(160e6 / 72e3)
    cpu = Contract(guarantee_bps=80e6, ceiling_pps=30e3, packet_bytes=500)
    packets = in_packets(cpu, after(64.0, contract=cpu, pps=100e3))
    assert (packets.guarantee_pps, packets.ceiling_pps) == (RESERVED, 30e3)


def test_no_rate_is_more_than_a_port_forwards() -> None:
    fast = Contract(guarantee_bps=1e12, ceiling_bps=1e12, packet_bytes=64)
    packets = in_packets(fast, UNKNOWN)
    assert packets.guarantee_pps == packets.ceiling_pps == MAX_PPS


def test_a_burst_has_the_same_bits_whatever_its_unit() -> None:
    bursty = Contract(guarantee_bps=80e6, ceiling_bps=160e6, packet_bytes=500, burst=4e3)
    assert in_packets(bursty, UNKNOWN).burst == 4e3
    assert in_packets(bursty, after(1000.0, contract=bursty)).burst == 2e3
    assert in_packets(bursty, after(100.0, contract=bursty, pps=100e3)).burst == 4e3
    assert burst_bits(bursty, 160e6) == 16e6
    assert burst_bits(SOLD, 160e6) is None


@pytest.mark.parametrize(("burst", "bits"), [(1.0, 8 * 1518.0), (6e4, 60 * 1e6)])
def test_a_burst_in_bits_is_one_that_a_daemon_takes(burst: float, bits: float) -> None:
    assert burst_bits(Contract(ceiling_bps=1e6, burst=burst), 1e6) == bits


def test_a_ceiling_in_bits_has_what_was_saved_on_top() -> None:
    assert ceiling_bps(SOLD, after(1000.0), 0.0) == 160e6
    assert ceiling_bps(SOLD, after(1000.0), -9.0) == 160e6
    assert ceiling_bps(SOLD, after(1000.0), 500.0) == 164e6
    assert ceiling_bps(SOLD, UNKNOWN, 1e12) == 1e12
    assert ceiling_bps(Contract(guarantee_bps=1e6), UNKNOWN, 5.0) is None


def test_a_report_in_bits_is_read_by_its_own_size() -> None:
    held = report_of(setpoint_bps=8e6, throughput_pps=500.0, throughput_bps=4e6)
    assert report_in_packets(held).setpoint_pps == 1e3
    idle = report_of(setpoint_bps=8e6)
    assert report_in_packets(idle, after(500.0)).setpoint_pps == 2e3
    assert report_in_packets(idle) is idle
    plain = report_of(setpoint_pps=7.0, throughput_pps=1.0, throughput_bps=8e3)
    assert report_in_packets(plain) is plain


def test_what_a_router_has_shown_to_need_is_fewer_packets_when_they_grow_and_no_more() -> None:
    small, large = after(500.0), after(1000.0)
    assert fewer(SOLD, small, large) == 0.5
    assert fewer(SOLD, large, small) == 1.0
    assert fewer(SOLD, UNKNOWN, after(64.0, pps=100e3)) == 1.0
    assert fewer(Contract(ceiling_bps=1e6), small, large) == 1.0
    assert saved_as(SOLD, small, large) == 0.5
    assert saved_as(SOLD, large, small) == 2.0
    assert saved_as(Contract(guarantee_bps=1e6), small, large) == 1.0

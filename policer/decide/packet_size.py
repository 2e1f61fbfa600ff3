"""Contracts in bits/s as packets/s, by the size of a router's packets; pure.

A host's CPU is spent on packets, so all decisions are in packets/s. Sizes are the mean of each of
the last four seconds. A guarantee uses the smallest of these, and never exceeds what was reserved
for it; a ceiling uses the largest. Neither changes while sizes vary within these seconds.
"""

import msgspec
from msgspec.structs import replace

from common.burst import burst_bounds
from common.setpoint import Setpoint, Unit
from common.units import MAX_BIT_RATE
from policer.contracts.contract import BURST_MOST_S, MAX_PPS, Contract
from policer.decide.burst import SPENT_WITHIN_S
from xtc.wire import Report

SMALLEST, LARGEST = 42.0, 524_288.0
"""Bytes of a frame: an ARP packet with its Ethernet header; the most that Linux joins (BIG TCP). A
mean outside is wrong: its counters were read at different times, or the daemon reports nonsense."""
SECONDS = 4
"""Rounds in the window: an even number, in which alternating sizes have one mean."""
LIKELY = 3
"""If the packets of this many last rounds are smaller, these rounds predict the next."""
ENOUGH = 0.1
"""A router that forwards less than this share of its contract shows no size: the few packets of its
protocols are not the traffic that was sold."""
REMEMBERED_S = 30.0
"""An observed size is valid for this time; then the size that was sold applies."""
SAME = 0.03
"""A size that differs by no more than this share is the same: setpoints stay."""


class Size(msgspec.Struct, frozen=True):
    """Known size of a router's packets, in bytes."""

    seconds: tuple[tuple[float, float], ...] = ()
    """Packets/s and bits/s of the last rounds that showed a size, the latest last."""
    low: float | None = None
    """Of the round with the smallest; None if unknown."""
    likely: float | None = None
    """All bits by all packets; or the largest of the last three rounds, if that is less."""
    high: float | None = None
    """Of the round with the largest."""
    at: float | None = None
    """When that was seen, in seconds of the policer's clock."""


UNKNOWN = Size()


def is_in_bits(contract: Contract) -> bool:
    """Whether a contract has a rate in bits/s."""
    return contract.guarantee_bps is not None or contract.ceiling_bps is not None


def mean_bytes(report: Report) -> float | None:
    """Return the mean size of the packets that a router forwards; None if unknown."""
    packets, bits = report.throughput_pps, report.throughput_bps
    if packets is None or bits is None or not packets > 0:
        return None
    mean = bits / 8 / packets
    return mean if SMALLEST <= mean <= LARGEST else None


def size_after(now: float, last: Size, contract: Contract, report: Report) -> Size:
    """Return the known size of a router's packets after another round.

    Args:
        now: seconds of the policer's clock.
        last: the previous size.
        contract: the router's; without a rate in bits/s, sizes are ignored.
        report: of this round.
    """
    if not is_in_bits(contract):
        return UNKNOWN
    recent = last if last.at is not None and now - last.at <= REMEMBERED_S else UNKNOWN
    seen = mean_bytes(report)
    if seen is None or not _tells(seen, recent, contract, report):
        return recent
    latest = (report.throughput_pps or 0.0, report.throughput_bps or 0.0)
    seconds = (*recent.seconds[1 - SECONDS :], latest)
    sizes = [bits / 8 / packets for packets, bits in seconds]
    packets, bits = (sum(column) for column in zip(*seconds, strict=True))
    return Size(
        seconds,
        _settled(recent.low, min(sizes)),
        _settled(recent.likely, min(bits / 8 / packets, max(sizes[-LIKELY:]))),
        _settled(recent.high, max(sizes)),
        now,
    )


def _tells(seen: float, last: Size, contract: Contract, report: Report) -> bool:
    """Whether a router uses enough of its contract, or of the packets that it may forward."""
    size = max(seen, last.high or 0.0)
    rate = contract.guarantee_bps or contract.ceiling_bps or 0.0
    return 8 * size * (report.throughput_pps or 0.0) >= ENOUGH * rate


def _settled(last: float | None, size: float) -> float:
    return size if last is None or abs(size - last) > SAME * last else last


def in_packets(contract: Contract, size: Size) -> Contract:
    """Return a contract in packets/s alone, for packets of a size.

    Its guarantee never exceeds its ceiling or what was reserved for it. If sizes vary, the ceiling
    allows as many packets as the guarantee needs at the likely size.

    Args:
        contract: in any units; returned unchanged if nothing is in bits/s.
        size: of the router's packets; if unknown, the size that was sold applies.
    """
    if not is_in_bits(contract):
        return contract
    ceiling = _ceiling(contract, size)
    guarantee = min(_guarantee(contract, size.low), MAX_PPS if ceiling is None else ceiling)
    return replace(
        contract,
        guarantee_pps=guarantee,
        ceiling_pps=ceiling,
        burst=_burst(contract, guarantee or ceiling),
        burst_packets=contract.burst_packets * _sold_by(contract, size),
        guarantee_bps=None,
        ceiling_bps=None,
    )


def _guarantee(contract: Contract, size: float | None) -> float:
    if contract.guarantee_bps is None:
        return contract.guarantee_pps
    return contract.guarantee_bps / (8 * _reserved_bytes(contract, size))


def _reserved_bytes(contract: Contract, size: float | None) -> float:
    """Return the size by which a guarantee is counted: smaller packets take no more capacity."""
    return max(size or 0.0, contract.packet_bytes)


def _ceiling(contract: Contract, size: Size) -> float | None:
    if contract.ceiling_bps is None:
        return contract.ceiling_pps
    strict = contract.ceiling_bps / (8 * _largest(contract, size))
    likely = contract.ceiling_bps / (8 * (size.likely or contract.packet_bytes))
    return min(MAX_PPS, max(strict, min(likely, _guarantee(contract, size.likely))))


def _largest(contract: Contract, size: Size) -> float:
    return size.high or contract.packet_bytes


def _sold_by(contract: Contract, size: Size) -> float:
    """Return how many current packets equal one of the size sold, under a ceiling in bits/s."""
    ceiling = contract.ceiling_bps
    return 1.0 if ceiling is None else contract.packet_bytes / _largest(contract, size)


def _burst(contract: Contract, reference_pps: float | None) -> float | None:
    """Return a burst scaled from the rate as sold to the rate in packets/s."""
    if contract.burst is None or reference_pps is None or contract.reference_pps is None:
        return contract.burst
    scaled = contract.burst * min(1.0, reference_pps / contract.reference_pps)
    return max(1.0, min(scaled, BURST_MOST_S * reference_pps))


def ceiling_bps(contract: Contract, size: Size, saved: float) -> float | None:
    """Return the ceiling plus the saved packets, in bits/s; None if it is not in bits/s.

    Args:
        contract: as sold.
        size: of the router's packets.
        saved: packets of that size that may be forwarded above the ceiling.
    """
    if contract.ceiling_bps is None:
        return None
    extra = 8 * _largest(contract, size) * max(0.0, saved) / SPENT_WITHIN_S
    return min(MAX_BIT_RATE, contract.ceiling_bps + extra)


def burst_bits(contract: Contract, setpoint_bps: float) -> float | None:
    """Return the burst of a setpoint at the ceiling, in bits; None is the default."""
    if contract.burst is None:
        return None
    least, most = burst_bounds(Setpoint(setpoint_bps, Unit.BITS))
    return max(least, min(8 * contract.packet_bytes * contract.burst, most))


def spread(size: Size) -> float:
    """Return the ratio of the largest to the smallest size of the last seconds."""
    return 1.0 if size.low is None or size.high is None else size.high / size.low


def report_in_packets(report: Report, size: Size = UNKNOWN) -> Report:
    """Convert the setpoint of a router held in bits/s to packets/s of this moment.

    The report is returned unchanged if the packet size is unknown or the router is not so held.
    """
    if report.setpoint_bps is None or report.setpoint_pps is not None:
        return report
    mean = mean_bytes(report) or size.likely
    return report if mean is None else replace(report, setpoint_pps=report.setpoint_bps / 8 / mean)


def fewer(contract: Contract, before: Size, after: Size) -> float:
    """Return how many packets, 1 at most, now carry the bits of one earlier packet of a guarantee.

    A router's known need falls by this factor when its packets grow. It does not rise when they
    shrink: whether the router still has as many bits to send is unknown.
    """
    if contract.guarantee_bps is None:
        return 1.0
    was, now = _reserved_bytes(contract, before.high), _reserved_bytes(contract, after.high)
    return min(1.0, was / now)


def saved_as(contract: Contract, before: Size, after: Size) -> float:
    """Return how many packets of a size carry the bits of one of the size before."""
    if contract.ceiling_bps is None:
        return 1.0
    return _largest(contract, before) / _largest(contract, after)

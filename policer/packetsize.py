"""Contracts in bits/s as packets/s, by the size of a router's packets; pure.

A host's CPU is spent on packets, so that all that is decided is decided in packets/s. Sizes are
those of the last four seconds, each second's mean. Of these a guarantee goes by the smallest, and
never above what was reserved for it; a ceiling by the largest. Neither changes while sizes go up
and down within these seconds.
"""

import msgspec
from msgspec.structs import replace

from common.burst import burst_bounds
from common.setpoint import Setpoint, Unit
from common.units import MAX_BIT_RATE
from policer.burst import SPENT_WITHIN_S
from policer.contract import BURST_MOST_S, MAX_PPS, Contract
from xtc.wire import Report

SMALLEST, LARGEST = 42.0, 524_288.0
"""Bytes of a frame: Ethernet's header with ARP's packet; what Linux joins to one at most (BIG TCP).
A mean beyond is no mean: its counters were read at different times, or its daemon lies."""
SECONDS = 4
"""So many rounds are looked at: an even number, in which sizes that alternate have one mean."""
LIKELY = 3
"""So many of the last rounds show what comes next, where their packets are smaller."""
ENOUGH = 0.1
"""A router that forwards less than this share of its contract shows no size: a few packets of its
protocols are not what it was sold for."""
REMEMBERED_S = 30.0
"""What it showed counts for so long; then it is taken to forward what was sold."""
SAME = 0.03
"""A size that differs by no more than this share is the same: setpoints stay."""


class Size(msgspec.Struct, frozen=True):
    """What is known of the size of a router's packets, in bytes."""

    seconds: tuple[tuple[float, float], ...] = ()
    """Packets/s and bits/s of the last rounds that showed a size, the latest last."""
    low: float | None = None
    """Of the round with the smallest; None is not known."""
    likely: float | None = None
    """All bits by all packets; or the largest of the last three rounds, where that is less."""
    high: float | None = None
    """Of the round with the largest."""
    at: float | None = None
    """When that was seen, in seconds of the policer's clock."""


UNKNOWN = Size()


def is_in_bits(contract: Contract) -> bool:
    """Whether a contract has a rate in bits/s."""
    return contract.guarantee_bps is not None or contract.ceiling_bps is not None


def mean_bytes(report: Report) -> float | None:
    """Return the mean size of what a router forwards; None where that is not known."""
    packets, bits = report.throughput_pps, report.throughput_bps
    if packets is None or bits is None or not packets > 0:
        return None
    mean = bits / 8 / packets
    return mean if SMALLEST <= mean <= LARGEST else None


def size_after(now: float, last: Size, contract: Contract, report: Report) -> Size:
    """Return what is known of the size of a router's packets after another round.

    Args:
        now: seconds of the policer's clock.
        last: what was known.
        contract: the router's; the sizes of one without a rate in bits/s are not looked at.
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
    """Whether a router uses enough of what it was sold, or of the packets that it is given."""
    size = max(seen, last.high or 0.0)
    rate = contract.guarantee_bps or contract.ceiling_bps or 0.0
    return 8 * size * (report.throughput_pps or 0.0) >= ENOUGH * rate


def _settled(last: float | None, size: float) -> float:
    return size if last is None or abs(size - last) > SAME * last else last


def in_packets(contract: Contract, size: Size) -> Contract:
    """Return a contract in packets/s alone, as it is for packets of a size.

    Its guarantee is never above its ceiling, nor above what was reserved for it. Where sizes vary,
    the ceiling leaves as many packets as the guarantee takes at the likely size.

    Args:
        contract: in any units; one without bits/s is returned as it is.
        size: of the router's packets; where it is not known, they are of the size sold.
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
    """Return the size by which a guarantee is counted: smaller packets take no more of them."""
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
    """Return how many packets of now are one of the size sold, under a ceiling in bits/s."""
    ceiling = contract.ceiling_bps
    return 1.0 if ceiling is None else contract.packet_bytes / _largest(contract, size)


def _burst(contract: Contract, reference_pps: float | None) -> float | None:
    """Return a burst that goes with the rate in packets/s as it went with the rate as sold."""
    if contract.burst is None or reference_pps is None or contract.reference_pps is None:
        return contract.burst
    scaled = contract.burst * min(1.0, reference_pps / contract.reference_pps)
    return max(1.0, min(scaled, BURST_MOST_S * reference_pps))


def ceiling_bps(contract: Contract, size: Size, saved: float) -> float | None:
    """Return the ceiling with what was saved on top, in bits/s; None where it is not in bits/s.

    Args:
        contract: as it was sold.
        size: of the router's packets.
        saved: packets of that size that may be forwarded above the ceiling.
    """
    if contract.ceiling_bps is None:
        return None
    extra = 8 * _largest(contract, size) * max(0.0, saved) / SPENT_WITHIN_S
    return min(MAX_BIT_RATE, contract.ceiling_bps + extra)


def burst_bits(contract: Contract, setpoint_bps: float) -> float | None:
    """Return the burst that goes with a setpoint at the ceiling, in bits; None is the default."""
    if contract.burst is None:
        return None
    least, most = burst_bounds(Setpoint(setpoint_bps, Unit.BITS))
    return max(least, min(8 * contract.packet_bytes * contract.burst, most))


def spread(size: Size) -> float:
    """Return how many times the smallest size of the last seconds the largest is."""
    return 1.0 if size.low is None or size.high is None else size.high / size.low


def report_in_packets(report: Report, size: Size = UNKNOWN) -> Report:
    """Return a report of a router held in bits/s with its setpoint in packets/s of this moment.

    It is returned as it is where the size of its packets is not known, or it is not so held.
    """
    if report.setpoint_bps is None or report.setpoint_pps is not None:
        return report
    mean = mean_bytes(report) or size.likely
    return report if mean is None else replace(report, setpoint_pps=report.setpoint_bps / 8 / mean)


def fewer(contract: Contract, before: Size, after: Size) -> float:
    """Return how many packets, 1 at most, now carry the bits of one under a guarantee before.

    What a router has shown to need is so much less when its packets grow. When they shrink it is
    not more: whether it has as many bits to send as before, nobody knows.
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

"""Contracts in bits/s as packets/s, by the mean size of a router's packets; pure.

A host's CPU is spent on packets, so that all that is decided is decided in packets/s. The size is
that of the last few seconds, all bits by all packets: of a router whose sizes alternate, rates in
bits/s are right on the average. A jump counts at once, each time for what it makes safer: a
guarantee goes by the smaller size, and never above what was reserved; a ceiling by the larger.
"""

import msgspec
from msgspec.structs import replace

from policer.burst import SPENT_WITHIN_S
from policer.contract import BURST_MOST_S, MAX_PPS, Contract
from xtc.burst import burst_bounds
from xtc.setpoint import Setpoint, Unit
from xtc.units import MAX_BIT_RATE
from xtc.wire import Report

SMALLEST, LARGEST = 42.0, 524_288.0
"""Bytes of a frame: Ethernet's header with ARP's packet; what Linux joins to one at most (BIG TCP).
A mean beyond is no mean: its counters were read at different times, or its daemon lies."""
FADES = 0.5
"""So much of what was counted before is left in each round."""
ENOUGH = 0.1
"""A router that forwards less than this share of its contract tells nothing: a few packets of its
protocols are not what it was sold for."""
REMEMBERED_S = 30.0
"""What it told counts for so long; then it is taken to forward what was sold."""
JUMP = 1.25
"""The last second counts by itself when it differs from the mean by more than this factor."""
SAME = 0.03
"""A size that differs by no more than this share is the same: setpoints stay."""


class Size(msgspec.Struct, frozen=True):
    """What is known of the size of a router's packets; bytes."""

    packets: float = 0.0
    bits: float = 0.0
    """Counted lately, the older the less."""
    low: float | None = None
    """The mean, or the last second's where that is smaller by far; None is not known."""
    high: float | None = None
    """The mean, or the last second's where that is larger by far."""
    at: float | None = None
    """When that was told, in seconds of the policer's clock."""

    @property
    def spread(self) -> float:
        """How many times the larger is the smaller."""
        return 1.0 if self.low is None or self.high is None else self.high / self.low

    @property
    def mean(self) -> float | None:
        """The mean of all packets counted lately."""
        return self.bits / 8 / self.packets if self.packets > 0 else None


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
    seen = mean_bytes(report)
    if seen is None or not _tells(seen, last, contract, report):
        known = last.at is not None and now - last.at <= REMEMBERED_S
        return last if known else UNKNOWN
    packets = FADES * last.packets + (report.throughput_pps or 0.0)
    bits = FADES * last.bits + (report.throughput_bps or 0.0)
    mean = bits / 8 / packets
    jumped = not mean / JUMP <= seen <= mean * JUMP
    low = _settled(last.low, min(seen, mean) if jumped else mean)
    high = _settled(last.high, max(seen, mean) if jumped else mean)
    return Size(packets, bits, low, max(low, high), now)


def _tells(seen: float, last: Size, contract: Contract, report: Report) -> bool:
    """Whether a router uses enough of what it was sold, or of the packets that it is given."""
    size = max(seen, last.low or 0.0)
    rate = contract.guarantee_bps or contract.ceiling_bps or 0.0
    return 8 * size * (report.throughput_pps or 0.0) >= ENOUGH * rate


def _settled(last: float | None, size: float) -> float:
    return size if last is None or abs(size - last) > SAME * last else last


def in_packets(contract: Contract, size: Size) -> Contract:
    """Return a contract in packets/s alone, as it is for packets of a size.

    Its guarantee is never above its ceiling, nor above what was reserved for it.

    Args:
        contract: in any units; one without bits/s is returned as it is.
        size: of the router's packets; where it is not known, they are of the size sold.
    """
    if not is_in_bits(contract):
        return contract
    ceiling = _ceiling(contract, size)
    guarantee = min(_guarantee(contract, size), MAX_PPS if ceiling is None else ceiling)
    return replace(
        contract,
        guarantee_pps=guarantee,
        ceiling_pps=ceiling,
        burst=_burst(contract, size, guarantee or ceiling),
        burst_packets=contract.burst_packets * _sold_by(contract, size),
        guarantee_bps=None,
        ceiling_bps=None,
    )


def _guarantee(contract: Contract, size: Size) -> float:
    if contract.guarantee_bps is None:
        return contract.guarantee_pps
    return contract.guarantee_bps / (8 * _reserved_bytes(contract, size))


def _reserved_bytes(contract: Contract, size: Size) -> float:
    """Return the size by which a guarantee is counted: smaller packets take no more of them."""
    return max(size.low or 0.0, contract.packet_bytes)


def _ceiling(contract: Contract, size: Size) -> float | None:
    if contract.ceiling_bps is None:
        return contract.ceiling_pps
    return min(MAX_PPS, contract.ceiling_bps / (8 * _largest(contract, size)))


def _largest(contract: Contract, size: Size) -> float:
    return size.high or contract.packet_bytes


def _sold_by(contract: Contract, size: Size) -> float:
    """Return how many packets of now are one of the size sold, under a ceiling in bits/s."""
    ceiling = contract.ceiling_bps
    return 1.0 if ceiling is None else contract.packet_bytes / _largest(contract, size)


def _burst(contract: Contract, size: Size, reference_pps: float | None) -> float | None:
    """Return a burst of the same bits, which goes with the rate that it went with."""
    if contract.burst is None or reference_pps is None:
        return contract.burst
    of_guarantee = contract.reserve_pps > 0
    if of_guarantee and contract.guarantee_bps is None:
        bytes_now = float(contract.packet_bytes)
    else:
        bytes_of = _reserved_bytes if of_guarantee else _largest
        bytes_now = bytes_of(contract, size)
    scaled = contract.burst * contract.packet_bytes / bytes_now
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


def report_in_packets(report: Report, size: Size = UNKNOWN) -> Report:
    """Return a report of a router held in bits/s with its setpoint in packets/s of this moment.

    It is returned as it is where the size of its packets is not known, or it is not so held.
    """
    if report.setpoint_bps is None or report.setpoint_pps is not None:
        return report
    mean = mean_bytes(report) or size.mean
    return report if mean is None else replace(report, setpoint_pps=report.setpoint_bps / 8 / mean)


def fewer(contract: Contract, before: Size, after: Size) -> float:
    """Return how many packets, 1 at most, now carry the bits of one under a guarantee before.

    What a router has shown to need is so much less when its packets grow. When they shrink it is
    not more: whether it has as many bits to send as before, nobody knows.
    """
    if contract.guarantee_bps is None:
        return 1.0
    return min(1.0, _reserved_bytes(contract, before) / _reserved_bytes(contract, after))


def saved_as(contract: Contract, before: Size, after: Size) -> float:
    """Return how many packets of a size carry the bits of one of the size before."""
    if contract.ceiling_bps is None:
        return 1.0
    return _largest(contract, before) / _largest(contract, after)

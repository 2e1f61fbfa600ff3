"""Reports of traffic programs: counts since their start, with the instant of each report."""

from typing import Final, TypeVar

import msgspec

NS_PER_S: Final = 1_000_000_000


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The common fields of all reports."""

    now_ns: int
    """CLOCK_MONOTONIC."""


class Total(Report, frozen=True):
    """A report of bytes, for all peers together."""

    bytes: int
    """Passed to the kernel, or read from it."""

    @property
    def total_bytes(self) -> int:
        """The total of bytes."""
        return self.bytes


class FromSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of one IPv4 address."""

    bytes: int = 0
    count: int = 0
    """Unit: see the report."""


class BySource(Report, frozen=True):
    """A report of counts by IPv4 source address."""

    sources: dict[str, FromSource]

    @property
    def total_bytes(self) -> int:
        """The total of all sources."""
        return sum(source.bytes for source in self.sources.values())


class Served(Total, frozen=True):
    """Report of a server of reads."""

    requests: int


class BlocksRead(Total, frozen=True):
    """Report of a reader of striped blocks; bytes include the block in progress."""

    blocks: int
    block_ns: tuple[int, ...]
    """Durations of the blocks completed since the previous report."""
    samples_lost: int


class Queried(Total, frozen=True):
    """Report of an aggregator; warm-up queries do not count."""

    queries: int
    """Complete: the last byte of the last worker has arrived."""
    query_ns: tuple[int, ...]
    """Durations, from arrival on, of the queries completed since the previous report."""


class StreamSent(Total, frozen=True):
    """Report of a source of TCP streams."""


class StreamReceived(BySource, frozen=True):
    """Report of a sink of TCP connections; it counts those that have ended."""


class FlowsSent(Total, frozen=True):
    """Report of a source of short TCP flows."""

    flows: int
    """Flows completely received by the sink."""
    failed: int
    """Refused, reset or timed out."""
    flow_ns: tuple[int, ...]
    """Durations, from connecting on, of the flows that ended since the previous report."""
    samples_lost: int


class MessagesSent(Total, frozen=True):
    """Report of a source of UDP messages."""

    count: int


class MessagesReceived(BySource, frozen=True):
    """Report of a sink of UDP messages; it counts complete ones."""

    overflows: int
    """Messages lost because the sink's own socket was full: the sink was too slow."""


class Pinged(Report, frozen=True):
    """Report of a ping."""

    sent: int
    received: int
    rtt_ns: tuple[int, ...]
    """Round-trip times of the answers since the previous report."""
    samples_lost: int


class Captured(BySource, frozen=True):
    """Report of a capture; it counts packets and the bytes of their frames."""

    packets: int
    missed: int
    """Packets that the capture was too slow for; no other count includes them."""


class Delayed(Report, frozen=True):
    """Report of a delay wire."""

    packets: int
    """Passed, in both directions."""
    lost: int
    """Not passed: too many waited, or an interface did not take them."""
    latest_ns: int
    """How much later than intended a packet was at most; a busy machine is late."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of one direction of a wire."""

    packets: int
    """Passed."""
    bytes: int
    """Of their frames, without checksums."""
    dropped: int
    """The buffer was full."""
    refused: int
    """The other interface did not take them."""
    missed: int
    """The wire was too slow for them; no other count includes them."""
    latest_ns: int
    """How much later than intended a packet was at most; a busy machine is late."""
    paused: tuple[int, ...]
    """PFC frames by class that pause it."""
    resumed: tuple[int, ...]
    """PFC frames by class that resume it."""


class Wired(Report, frozen=True):
    """Report of a wire."""

    lines: dict[str, Line]
    """By the interface that the frames come from."""


Counted = TypeVar("Counted", Total, BySource)


def rate_bps(before: Counted, after: Counted) -> float:
    """Return the rate between two reports of one program, all sources together, in bits/s."""
    return _per_s(after.total_bytes - before.total_bytes, before, after)


def shares_bps(before: BySource, after: BySource) -> dict[str, float]:
    """Return the rate of each source between two reports of one program, in bits/s."""
    then = {address: source.bytes for address, source in before.sources.items()}
    return {
        address: _per_s(source.bytes - then.get(address, 0), before, after)
        for address, source in after.sources.items()
    }


def _per_s(size: int, before: Report, after: Report) -> float:
    return size * 8 * NS_PER_S / (after.now_ns - before.now_ns)

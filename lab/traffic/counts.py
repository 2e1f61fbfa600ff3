"""What traffic programs report: counts since their start, with the instant of each report."""

from typing import Final, TypeVar

import msgspec

NS_PER_S: Final = 1_000_000_000


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all reports begin with."""

    now_ns: int
    """CLOCK_MONOTONIC."""


class Total(Report, frozen=True):
    """A report of bytes, whoever the peer is."""

    bytes: int
    """Given to the kernel, or taken from it."""

    @property
    def total_bytes(self) -> int:
        """All of them."""
        return self.bytes


class FromSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What has come from one IPv4 address."""

    bytes: int = 0
    count: int = 0
    """Of what, the report says."""


class BySource(Report, frozen=True):
    """A report of what came from each IPv4 address."""

    sources: dict[str, FromSource]

    @property
    def total_bytes(self) -> int:
        """Of all sources."""
        return sum(source.bytes for source in self.sources.values())


class Served(Total, frozen=True):
    """Of a server of reads."""

    requests: int


class BlocksRead(Total, frozen=True):
    """Of a reader of striped blocks; its bytes are of whole blocks and of the one in progress."""

    blocks: int
    block_ns: tuple[int, ...]
    """How long each block took that has become whole since the report before."""
    samples_lost: int


class StreamSent(Total, frozen=True):
    """Of a source of TCP streams."""


class StreamReceived(BySource, frozen=True):
    """Of a sink of TCP connections; it counts those that have ended."""


class FlowsSent(Total, frozen=True):
    """Of a source of short TCP flows."""

    flows: int
    """That the sink has received whole."""
    failed: int
    """Refused, reset or timed out."""
    flow_ns: tuple[int, ...]
    """How long each flow took, from connecting on, that has ended since the report before."""
    samples_lost: int


class MessagesSent(Total, frozen=True):
    """Of a source of UDP messages."""

    count: int


class MessagesReceived(BySource, frozen=True):
    """Of a sink of UDP messages; it counts those that are whole."""

    overflows: int
    """Messages that the sink's own socket had no room for: the sink was too slow."""


class Pinged(Report, frozen=True):
    """Of a ping."""

    sent: int
    received: int
    rtt_ns: tuple[int, ...]
    """Of each answer since the report before."""
    samples_lost: int


class Captured(BySource, frozen=True):
    """Of a capture; it counts packets and the bytes of their frames."""

    packets: int
    missed: int
    """Packets that the capture was too slow for; they are in no other count."""


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

"""One function for each role of the traffic program; start sinks before sources."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lab.programs.processes import Place
from lab.traffic.counts import (
    BlocksRead,
    Captured,
    Delayed,
    FlowsSent,
    MessagesReceived,
    MessagesSent,
    Pinged,
    Served,
    StreamReceived,
    StreamSent,
)
from lab.traffic.program import Traffic

READ_PORT: Final = 5001
STREAM_PORT: Final = 6001
MESSAGE_PORT: Final = 7001
BLOCK_BYTES: Final = 1_000_000
"""A block of the paper's barrier reads (section 2.1)."""
SHORT_FLOW_BYTES: Final = 30_000
"""A short flow of the paper's (section 2.3)."""
MESSAGE_BYTES: Final = 65_000
"""About the 64 KB of the paper's UDP messages (section 2.2): 45 packets."""
DATAGRAM_BYTES: Final = 1_472
"""A message that fills one packet."""


def serve_reads(
    place: Place, *, congestion: str | None = None, port: int = READ_PORT
) -> Traffic[Served]:
    """Start a server that answers the reads of ``read_blocks``.

    Args:
        place: where it runs.
        congestion: congestion control (tcp(7)) of its answers; None means CUBIC.
        port: where it listens.

    Raises:
        ProgramError: the kernel lacks the congestion control.
    """
    return Traffic(Served, place, "read-server", congestion=congestion, port=port)


def read_blocks(
    place: Place, servers: Sequence[str], *, block_bytes: int = BLOCK_BYTES, port: int = READ_PORT
) -> Traffic[BlocksRead]:
    """Start a client that reads blocks striped over servers, one after the other."""
    to = ",".join(servers)
    return Traffic(BlocksRead, place, "block-reader", to=to, block=block_bytes, port=port)


def send_stream(
    place: Place,
    to: str,
    *,
    bind: str | None = None,
    streams: int = 1,
    rate_bps: int | None = None,
    congestion: str | None = None,
    port: int = STREAM_PORT,
) -> Traffic[StreamSent]:
    """Start TCP streams, unlimited, or each paced to a rate.

    Args:
        place: where they run.
        to: the destination address.
        bind: the source address.
        streams: number of connections.
        rate_bps: of each, in bits/s; None means unlimited.
        congestion: congestion control (tcp(7)); None means CUBIC.
        port: the destination port.

    Raises:
        ProgramError: they cannot connect, or the kernel lacks the congestion control.
    """
    return Traffic(
        StreamSent,
        place,
        "stream-source",
        to=to,
        bind=bind,
        streams=streams,
        rate=rate_bps,
        congestion=congestion,
        port=port,
    )


def sink_streams(place: Place, *, port: int = STREAM_PORT) -> Traffic[StreamReceived]:
    """Start a sink for TCP streams and short flows."""
    return Traffic(StreamReceived, place, "stream-sink", port=port)


def send_short_flows(
    place: Place,
    to: str,
    *,
    sequences: int,
    bind: str | None = None,
    flow_bytes: int = SHORT_FLOW_BYTES,
    port: int = STREAM_PORT,
) -> Traffic[FlowsSent]:
    """Start sequences of short TCP flows, in each one flow after the other."""
    return Traffic(
        FlowsSent,
        place,
        "short-flows",
        to=to,
        bind=bind,
        sequences=sequences,
        bytes=flow_bytes,
        port=port,
    )


def send_messages(
    place: Place,
    to: str,
    *,
    bind: str | None = None,
    size: int = MESSAGE_BYTES,
    rate_bps: int | None = None,
    buffer_bytes: int | None = None,
    port: int = MESSAGE_PORT,
) -> Traffic[MessagesSent]:
    """Start a source of UDP messages.

    Args:
        place: where it runs.
        to: the destination address.
        bind: the source address.
        size: of a message in bytes; ``DATAGRAM_BYTES`` fills one packet.
        rate_bps: of the messages' bytes; None means as fast as the socket allows.
        buffer_bytes: queue of the socket and below; None means 208 KiB.
        port: the destination port.
    """
    return Traffic(
        MessagesSent,
        place,
        "message-source",
        to=to,
        bind=bind,
        size=size,
        rate=rate_bps,
        buffer=buffer_bytes,
        port=port,
    )


def sink_messages(place: Place, *, port: int = MESSAGE_PORT) -> Traffic[MessagesReceived]:
    """Start a sink that counts complete UDP messages."""
    return Traffic(MessagesReceived, place, "message-sink", port=port)


def ping(
    place: Place, to: str, *, bind: str | None = None, interval_us: int = 10_000, size: int = 56
) -> Traffic[Pinged]:
    """Start a ping; ``size`` is the bytes of its data."""
    return Traffic(Pinged, place, "ping", to=to, bind=bind, interval_us=interval_us, size=size)


def capture(place: Place, interface: str, output: Path | None = None) -> Traffic[Captured]:
    """Start a capture of packets that an interface receives; ``records.read`` reads its output."""
    path = None if output is None else str(output)
    return Traffic(Captured, place, "capture", interface=interface, output=path)


def delay(place: Place, pairs: Sequence[tuple[str, str]], *, delay_s: float) -> Traffic[Delayed]:
    """Start a delay wire between the interfaces of each pair; ``delay_s`` is one way, in seconds.

    Raises:
        ProgramError: there is no such interface.
    """
    joined = ",".join(":".join(pair) for pair in pairs)
    return Traffic(Delayed, place, "delay", pairs=joined, delay_us=round(delay_s * 1e6))

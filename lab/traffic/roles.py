"""The roles of traffic as functions that start one each; sources before sinks do not start."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from lab.programs.processes import Place
from lab.traffic.counts import (
    BlocksRead,
    Captured,
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


def serve_reads(place: Place, *, port: int = READ_PORT) -> Traffic[Served]:
    """Start a server that answers the reads of ``read_blocks``."""
    return Traffic(Served, place, "read-server", port=port)


def read_blocks(
    place: Place, servers: Sequence[str], *, block_bytes: int = BLOCK_BYTES, port: int = READ_PORT
) -> Traffic[BlocksRead]:
    """Start a client that reads blocks striped over servers, each after the one before."""
    to = ",".join(servers)
    return Traffic(BlocksRead, place, "block-reader", to=to, block=block_bytes, port=port)


def send_stream(
    place: Place,
    to: str,
    *,
    bind: str | None = None,
    streams: int = 1,
    rate_bps: int | None = None,
    port: int = STREAM_PORT,
) -> Traffic[StreamSent]:
    """Start TCP streams, CUBIC, as fast as they get or each paced to a rate."""
    return Traffic(
        StreamSent,
        place,
        "stream-source",
        to=to,
        bind=bind,
        streams=streams,
        rate=rate_bps,
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
    """Start so many sequences of short TCP flows, in each one flow after the other."""
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
        to: the address it sends to.
        bind: the address it sends from.
        size: of a message in bytes; ``DATAGRAM_BYTES`` fills one packet.
        rate_bps: of the messages' bytes; None is as fast as the socket takes them.
        buffer_bytes: what may wait in the socket and below; None is 208 KiB.
        port: the port it sends to.
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
    """Start a sink that counts the UDP messages that arrive whole."""
    return Traffic(MessagesReceived, place, "message-sink", port=port)


def ping(
    place: Place, to: str, *, bind: str | None = None, interval_us: int = 10_000, size: int = 56
) -> Traffic[Pinged]:
    """Start a ping; ``size`` is that of its data in bytes."""
    return Traffic(Pinged, place, "ping", to=to, bind=bind, interval_us=interval_us, size=size)


def capture(place: Place, interface: str, output: Path | None = None) -> Traffic[Captured]:
    """Start a capture of what an interface receives; ``records.read`` reads its output."""
    path = None if output is None else str(output)
    return Traffic(Captured, place, "capture", interface=interface, output=path)

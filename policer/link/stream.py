"""Receives one host's telemetry: the newest waiting message; a flood costs no more than needed."""

import asyncio
from dataclasses import dataclass

import zmq

from policer.contracts.host import Host
from policer.errors import LinkError, LinkTimeout
from policer.link.keys import Keys
from policer.link.sockets import Dialled
from xtc.wire import Refused, Telemetry, decode_telemetry

GAP_S = 0.1
"""Between two reads: at most ten messages a second are decoded. No daemon ticks more often."""
MOST_AT_ONCE = 256
"""Messages dropped unread in one read, so that a flood of one host does not delay the others."""
FLOOD_PPS = 20.0
"""Messages a second that no honest daemon sends."""
FLOOD_WINDOW_S = 5.0
"""Period of counting: messages that waited while the policer was busy are no flood."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of messages since an instant; seconds of the policer's clock."""

    since: float
    count: int = 0

    def after(self, now: float, messages: int) -> "Tally":
        """Return the tally with more messages, restarted when the window is over."""
        if now - self.since > FLOOD_WINDOW_S:
            return Tally(now, messages)
        return Tally(self.since, self.count + messages)

    @property
    def flood(self) -> bool:
        """Whether the rate is only possible for a broken or malicious daemon."""
        return self.count > FLOOD_PPS * FLOOD_WINDOW_S


class Stream:
    """One host's telemetry socket, from connecting to closing."""

    def __init__(self, host: Host, keys: Keys | None) -> None:
        """Connect.

        Raises:
            LinkError: as `Dialled`.
        """
        self._line = Dialled(zmq.SUB, host, keys)
        self._waiting: zmq.Socket[bytes] = zmq.Socket.shadow(self._line.socket.underlying)

    async def newest(self, silence_s: float) -> tuple[bytes, int]:
        """Wait for a message; return the newest that waits, and how many older ones were dropped.

        The contents and the number of parts of a message are ignored: each counts as one.
        ZMQ_CONFLATE would keep the newest by itself, but ends the process on a message of parts.

        Raises:
            LinkTimeout: nothing came for this time; gives the reason as far as known.
        """
        try:
            async with asyncio.timeout(silence_s):
                raw = await self._line.socket.recv()
        except TimeoutError:
            words = f"no telemetry for {silence_s:g} s: {self._line.fate()}"
            raise LinkTimeout(words) from None
        self._line.succeeded()
        for dropped in range(MOST_AT_ONCE):
            try:
                raw = self._waiting.recv(zmq.NOBLOCK)
            except zmq.Again:
                return raw, dropped
        return raw, MOST_AT_ONCE

    def close(self) -> None:
        """Disconnect."""
        self._line.close()


def decoded(raw: bytes) -> Telemetry:
    """Decode a message.

    Raises:
        LinkError: it is not telemetry.
    """
    try:
        return decode_telemetry(raw)
    except Refused as refused:
        raise LinkError(f"its telemetry is malformed: {refused}") from None

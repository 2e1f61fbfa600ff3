"""Sends requests to one host's manager, one batch at a time, with a deadline."""

import asyncio
from collections.abc import Iterator, Sequence

import zmq

from policer.contracts.host import Host
from policer.errors import LinkError, LinkRefused, LinkTimeout
from policer.link.keys import Keys
from policer.link.sockets import Dialled, Socket
from xtc.wire import (
    Batch,
    Change,
    Envelope,
    Outcomes,
    Refusal,
    Refused,
    Reply,
    decode_reply,
    encode,
)

AT_ONCE = 240
"""Requests in a message: this many of the longest, with the longest bursts, fit into one."""
MOST_STRAYS = 16
"""Unexpected answers after which the link disconnects."""


class Requests:
    """One host's request socket: connected on demand, closed after a failure.

    A failed request is never sent again from here. A late answer to it is lost, since the next
    request has a new socket.
    """

    def __init__(self, host: Host, keys: Keys | None) -> None:
        self._host, self._keys = host, keys
        self._line: Dialled | None = None
        self._turn = asyncio.Lock()
        self._count = 0
        self._fate = ""
        """Why the last connection failed."""

    async def ask(self, changes: Sequence[Change], deadline_s: float) -> tuple[Refusal | None, ...]:
        """Send changes in their order; return for each the reason of a refusal, or None.

        After an error, the daemon may have carried out some of them: telemetry shows which.

        Raises:
            LinkTimeout: the host did not answer all of it within so many seconds.
            LinkRefused: it refused a batch as a whole, as an older daemon does.
            LinkError: its answer is invalid, or the connection failed.
        """
        refusals: list[Refusal | None] = []
        under_way = False
        try:
            async with asyncio.timeout(deadline_s), self._turn:
                under_way = True
                for batch in batches(changes):
                    refusals += await self._carried_out(batch)
        except TimeoutError:
            why = self._fate if under_way else "it still owes the answer to earlier requests"
            raise LinkTimeout(f"no answer within {deadline_s:g} s: {why}") from None
        return tuple(refusals)

    async def _carried_out(self, batch: Batch) -> Sequence[Refusal | None]:
        """Send a batch and wait for its outcomes; disconnect on any error."""
        if self._line is None:
            self._line = Dialled(zmq.DEALER, self._host, self._keys)
        try:
            reply = await self._reply_to(batch, self._line.socket)
            refusals = _refusals(reply, len(batch.requests))
        except asyncio.CancelledError:
            self.close()
            _raise_if_closed()
            raise
        except LinkError:
            self.close()
            raise
        self._line.succeeded()
        return refusals

    async def _reply_to(self, batch: Batch, socket: Socket) -> Reply:
        self._count += 1
        envelope = Envelope(batch, id=str(self._count))
        await socket.send_multipart([b"", encode(envelope)])
        for _ in range(MOST_STRAYS):
            frames = await socket.recv_multipart()
            reply = _decoded(frames[-1])
            if reply.id == envelope.id:
                return reply
        raise LinkError("it sent an unexpected answer")

    def close(self) -> None:
        """Disconnect; a request in progress ends in a LinkError."""
        if self._line is not None:
            self._fate = self._line.fate()
            self._line.close()
            self._line = None


def batches(changes: Sequence[Change]) -> Iterator[Batch]:
    """Yield changes in messages that a manager accepts."""
    for start in range(0, len(changes), AT_ONCE):
        yield Batch(tuple(changes[start : start + AT_ONCE]))


def _decoded(raw: bytes) -> Reply:
    try:
        return decode_reply(raw)
    except Refused as refused:
        raise LinkError(f"its answer is malformed: {refused}") from None


def _refusals(reply: Reply, count: int) -> Sequence[Refusal | None]:
    """Return the results of a batch of requests."""
    result = reply.result
    if isinstance(result, Refusal):
        raise LinkRefused(result.code, result.field, result.problem, result.fix)
    if not isinstance(result, Outcomes) or len(result.refusals) != count:
        raise LinkError(f"its answer does not tell what became of {count} requests")
    return result.refusals


def _raise_if_closed() -> None:
    """Distinguish a closed socket, which cancels its waiters, from the cancellation of a task."""
    task = asyncio.current_task()
    if task is not None and task.cancelling() == 0:
        raise LinkError("the link was closed") from None

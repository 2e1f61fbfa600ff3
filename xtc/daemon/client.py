"""Client for command line, policer and tests; every call has a deadline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import zmq

from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.errors import Refused, Unreachable
from xtc.wire import (
    Answer,
    Envelope,
    Outcomes,
    Refusal,
    Report,
    Request,
    Telemetry,
    decode_reply,
    decode_telemetry,
)

MAX_REPLY = 16 << 20
"""Bytes; the status of ten thousand routers takes five million."""


class Client:
    """A connection to one manager's local sockets."""

    def __init__(self, directory: Path, *, timeout: float = 3.0) -> None:
        self._directory = directory
        self._timeout = round(timeout * 1000)
        self._context = zmq.Context()
        self._socket = self._connected(zmq.DEALER, REQUESTS)
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close(linger=0)
        self._context.destroy(linger=0)

    def call(self, request: Request) -> tuple[Report, ...]:
        """Send a request and return the resulting reports of the routers concerned.

        Raises:
            Unreachable: no daemon answered in time.
            Refused: the manager refuses it, with a reason.
        """
        return self.ask(request).routers

    def ask(self, request: Request) -> Answer:
        """Send a request and return the whole answer; raises as `call` does."""
        self._count += 1
        envelope = Envelope(request, id=str(self._count))
        try:
            self._socket.send_multipart([b"", msgspec.json.encode(envelope)], zmq.NOBLOCK)
            reply = self._reply_to(envelope.id)
        except zmq.Again:
            raise self._unreachable() from None
        if isinstance(reply, Refusal):
            raise Refused(reply.code, reply.field, reply.problem, reply.fix)
        return reply

    def _reply_to(self, request_id: str) -> Answer | Refusal:
        """Return the answer to this request; late answers to earlier ones are dropped."""
        while self._socket.poll(self._timeout):
            reply = decode_reply(self._socket.recv_multipart(zmq.NOBLOCK)[-1])
            if reply.id == request_id:
                return _answer(reply.result)
        raise self._unreachable()

    def telemetry(self) -> Iterator[Telemetry]:
        """Yield every tick as it arrives.

        Raises:
            Unreachable: no tick came within the deadline.
        """
        stream = self._connected(zmq.SUB, TELEMETRY)
        stream.set(zmq.SUBSCRIBE, b"")
        try:
            while stream.poll(self._timeout):
                yield decode_telemetry(stream.recv(zmq.NOBLOCK))
        finally:
            stream.close(linger=0)
        raise self._unreachable()

    def _connected(self, kind: int, name: str) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.MAXMSGSIZE, MAX_REPLY)
        socket.connect(f"ipc://{self._directory / name}")
        return socket

    def _unreachable(self) -> Unreachable:
        return Unreachable(
            f"no daemon answers at {self._directory / REQUESTS}; "
            "start one with `xtc run`, or name another place with --runtime-dir"
        )


def _answer(result: Answer | Outcomes | Refusal) -> Answer | Refusal:
    """Return the answer; no batch is sent from here."""
    if isinstance(result, Outcomes):
        return Refusal("bad_message", "reply", "the outcomes of an unknown batch")
    return result

"""A proxy between policers and a daemon that records every lease that the daemon obeyed.

The evidence is the daemon's own answers: a lease counts as obeyed when the daemon answers that it
was carried out, even if no policer is left to read the answer. A tap changes no message and drops
none.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import zmq

from xtc.daemon.server import REQUESTS
from xtc.errors import Refused
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Change,
    Outcomes,
    Refusal,
    Reply,
    Request,
    Retune,
    decode_reply,
    decode_request,
)

TURN_MS: Final = 50


@dataclass(frozen=True)
class Obeyed:
    """A lease that a daemon obeyed."""

    vr: str
    setpoint_pps: float | None
    """None for one in bits/s."""
    epoch: int
    sequence: int

    @property
    def order(self) -> tuple[int, int]:
        """The pair that must rise from lease to lease."""
        return self.epoch, self.sequence


def not_rising(obeyed: Iterable[Obeyed]) -> list[Obeyed]:
    """Return the leases that are not above every lease of their router before them.

    These are leases that were obeyed twice, or after their successors.
    """
    highest: dict[str, tuple[int, int]] = {}
    found = []
    for lease in obeyed:
        if lease.order <= highest.get(lease.vr, (-1, -1)):
            found.append(lease)
        else:
            highest[lease.vr] = lease.order
    return found


class Tap:
    """A socket like the daemon's, in a separate folder, that forwards everything to it."""

    def __init__(self, folder: Path, daemon: str) -> None:
        """Take `daemon`'s place; it is the address of its requests."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.address = f"ipc://{folder / REQUESTS}"
        self.obeyed: list[Obeyed] = []
        """Every lease, in the order in which the daemon answered."""
        self.refused: list[Refusal] = []
        """Every refusal of a lease."""
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._front = self._context.socket(zmq.ROUTER)
        self._back = self._context.socket(zmq.DEALER)
        for socket in (self._front, self._back):
            socket.set(zmq.LINGER, 0)
        self._front.bind(self.address)
        self._back.connect(daemon)
        self._asked: dict[tuple[bytes, str], Request | Batch] = {}
        """Requests without an answer yet, by sender and id."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def last(self) -> dict[str, Obeyed]:
        """Return the last lease of each router."""
        return {lease.vr: lease for lease in tuple(self.obeyed)}

    def _run(self) -> None:
        poller = zmq.Poller()
        for socket in (self._front, self._back):
            poller.register(socket, zmq.POLLIN)
        while not self._ending.is_set():
            for socket, _ in poller.poll(TURN_MS):
                if socket is self._front:
                    self._hand_on(self._front.recv_multipart())
                else:
                    self._hand_back(self._back.recv_multipart())

    def _hand_on(self, frames: list[bytes]) -> None:
        with suppress(Refused):  # leave it to the daemon to refuse invalid requests
            envelope = decode_request(frames[-1])
            self._asked[frames[0], envelope.id] = envelope.request
        self._back.send_multipart(frames)

    def _hand_back(self, frames: list[bytes]) -> None:
        reply = decode_reply(frames[-1])
        asked = self._asked.pop((frames[0], reply.id), None)
        if asked is not None:
            self._note(asked, reply)
        self._front.send_multipart(frames)

    def _note(self, asked: Request | Batch, reply: Reply) -> None:
        for change, refusal in _outcomes(asked, reply.result):
            if not isinstance(change, Activate | Retune):
                continue
            if refusal is None:
                lease = Obeyed(change.vr, change.setpoint_pps, change.epoch, change.sequence)
                self.obeyed.append(lease)
            else:
                self.refused.append(refusal)


def _outcomes(
    asked: Request | Batch, result: Answer | Outcomes | Refusal
) -> Iterator[tuple[Change | Request, Refusal | None]]:
    """Yield each request with the reason for its refusal, None if it was carried out."""
    requests = asked.requests if isinstance(asked, Batch) else (asked,)
    if isinstance(result, Outcomes):
        yield from zip(requests, result.refusals, strict=True)
    else:
        refusal = result if isinstance(result, Refusal) else None
        yield from ((request, refusal) for request in requests)

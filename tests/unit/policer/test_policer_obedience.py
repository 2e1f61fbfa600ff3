"""The proof that no lease is obeyed twice: it finds those that are, and sees every answer."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import zmq

from benchmarks.policer.obedience import Obeyed, Tap, not_rising
from xtc.daemon.client import Client
from xtc.daemon.server import Listen, Server
from xtc.errors import Refused
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Envelope,
    Limit,
    Outcomes,
    Refusal,
    Reply,
    Status,
    decode_reply,
    decode_request,
    encode,
)

NO = Refusal("stale_sequence", "sequence", "1 is not above 1")


def lease(vr: str, epoch: int, sequence: int) -> Obeyed:
    return Obeyed(vr, 1e3, epoch, sequence)


def test_leases_that_rise_are_all_right() -> None:
    rising = [lease("a", 1, 1), lease("b", 1, 2), lease("a", 1, 3), lease("a", 2, 1)]
    assert not_rising(rising) == []


def test_a_lease_that_was_obeyed_twice_is_found() -> None:
    twice = lease("a", 1, 1)
    assert not_rising([twice, lease("b", 1, 2), twice]) == [twice]


@pytest.mark.parametrize("late", [lease("a", 2, 2), lease("a", 1, 9)])
def test_a_lease_that_came_after_its_successor_is_found(late: Obeyed) -> None:
    assert not_rising([lease("a", 2, 3), late, lease("a", 2, 4)]) == [late]


class Stub:
    """A daemon that obeys what has an odd sequence, even twice."""

    def __init__(self, folder: Path) -> None:
        self._server = Server(Listen(folder), self._answer)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._server.open()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        while not self._ending.is_set():
            if self._server.request_sockets[0].poll(20):
                self._server.serve()

    @staticmethod
    def _answer(raw: bytes) -> Reply:
        try:
            envelope = decode_request(raw)
        except Refused:
            return Reply(NO)
        if isinstance(envelope.request, Batch):
            verdicts = tuple(map(_verdict, envelope.request.requests))
            return Reply(Outcomes(verdicts), id=envelope.id)
        return Reply(_verdict(envelope.request) or Answer(()), id=envelope.id)


def _verdict(request: object) -> Refusal | None:
    return NO if isinstance(request, Activate) and request.sequence % 2 == 0 else None


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Tap]:
    with Stub(tmp_path), Tap(tmp_path / "tap", f"ipc://{tmp_path}/manager.sock") as tap:
        yield tap


def activate(sequence: int) -> Activate:
    return Activate("a", 1e3, 7, sequence)


def test_a_tap_keeps_what_was_obeyed_and_what_was_refused(tap: Tap) -> None:
    with Client(tap.folder) as client:
        client.call(activate(1))
        with pytest.raises(Refused, match="not above"):
            client.call(activate(2))
        client.call(Limit("a", 5.0))
        client.call(Status())
        client.call(activate(1))
    assert tap.obeyed == [lease("a", 7, 1), lease("a", 7, 1)]
    assert tap.refused == [NO]
    assert not_rising(tap.obeyed) == [lease("a", 7, 1)]


def asked(tap: Tap, raw: bytes) -> Reply:
    """Send bytes as they are, and return the answer."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, context.socket(zmq.DEALER) as socket:
        socket.set(zmq.LINGER, 0)
        socket.connect(tap.address)
        socket.send_multipart([b"", raw])
        assert socket.poll(10_000)
        return decode_reply(socket.recv_multipart()[-1])


def test_a_tap_takes_a_batch_apart_and_hands_it_on_as_it_is(tap: Tap) -> None:
    batch = Batch((activate(3), activate(4), Limit("a", None), activate(5)))
    reply = asked(tap, encode(Envelope(batch, id="9")))
    assert reply == Reply(Outcomes((None, NO, None, None)), id="9")
    assert [one.sequence for one in tap.obeyed] == [3, 5]
    assert tap.last() == {"a": lease("a", 7, 5)}


def test_what_is_no_request_is_handed_on_too(tap: Tap) -> None:
    assert asked(tap, b"nonsense") == Reply(NO)
    assert tap.obeyed == []

"""The link with a daemon that answers nonsense: a typed error each time, and the next is tried."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
import zmq.asyncio
from link_rig import REASON_S

from policer.contracts.host import Host
from policer.errors import LinkError, LinkRefused, LinkTimeout
from policer.link.requests import AT_ONCE, MOST_STRAYS, Requests, batches
from policer.link.sockets import shared_context
from xtc.wire import (
    MAX_MESSAGE,
    Activate,
    Answer,
    Envelope,
    Kind,
    Outcomes,
    Refusal,
    Reply,
    decode_request,
    encode,
)

LEASE = Activate("a", 2e4)
WORST = Activate(
    "v" * 64,
    1.2345678901234567e-300,
    2**62 - 1,
    2**62 - 1,
    12345678.901234567,
    Kind.PUNISHMENT,
    burst=12345678901.234567,
)
"""The longest request that there is."""


def host(directory: Path) -> Host:
    return Host("h", f"ipc://{directory}/requests", f"ipc://{directory}/telemetry", 1e5)


async def told(directory: Path, *answers: Callable[[str], bytes], deadline_s: float = 5.0) -> None:
    """Ask a daemon that gives these answers to the first request, each made with its id."""
    router = shared_context().socket(zmq.ROUTER)
    requests = Requests(host(directory), None)
    try:
        router.bind(host(directory).requests)
        asking = asyncio.create_task(requests.ask([LEASE, LEASE], deadline_s))
        peer, empty, raw = await asyncio.wait_for(router.recv_multipart(), 5)
        for answer in answers:
            await router.send_multipart([peer, empty, answer(decode_request(raw).id)])
        assert await asking == (None, None)
    finally:
        requests.close()
        router.close(linger=0)


def outcomes(count: int) -> Callable[[str], bytes]:
    return lambda id_: encode(Reply(Outcomes((None,) * count), id=id_))


def stray(_id: str) -> bytes:
    return encode(Reply(Outcomes((None, None)), id="another"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: b"", "its answer is malformed"),
        (lambda _: b"\xff\x00", "its answer is malformed"),
        (lambda _: b"[" * 100_000, "its answer is malformed"),
        (
            lambda _: b'{"result":{"type":"answer","routers":[]},"version":9}',
            "9 is not supported",
        ),
        (lambda id_: encode(Reply(Answer(()), id=id_)), "what became of 2 requests"),
        (outcomes(1), "what became of 2 requests"),
        (outcomes(3), "what became of 2 requests"),
    ],
    ids=["empty", "bytes", "nested", "version", "reports", "too few", "too many"],
)
def test_nonsense_is_a_typed_error(
    tmp_path: Path, answer: Callable[[str], bytes], words: str
) -> None:
    with pytest.raises(LinkError, match=words):
        asyncio.run(told(tmp_path, answer))


def test_after_nonsense_the_next_request_has_a_line_of_its_own(tmp_path: Path) -> None:
    async def story() -> None:
        router = shared_context().socket(zmq.ROUTER)
        requests = Requests(host(tmp_path), None)
        router.bind(host(tmp_path).requests)
        peers = []
        for answer in (b"nonsense", outcomes(1)("2")):
            asking = asyncio.create_task(requests.ask([LEASE], 5.0))
            peer, empty, _ = await asyncio.wait_for(router.recv_multipart(), 5)
            await router.send_multipart([peer, empty, answer])
            peers += [peer, await asyncio.gather(asking, return_exceptions=True)]
        requests.close()
        router.close(linger=0)
        first, (error,), second, (result,) = peers
        assert isinstance(error, LinkError)
        assert result == (None,)
        assert first != second

    asyncio.run(story())


def test_a_refusal_of_the_whole_keeps_its_code_and_field(tmp_path: Path) -> None:
    """A daemon of before batches says this."""
    refusal = Refusal("bad_message", "$.request.type", "Invalid value 'batch'")
    with pytest.raises(LinkRefused) as caught:
        asyncio.run(told(tmp_path, lambda id_: encode(Reply(refusal, id=id_))))
    assert (caught.value.code, caught.value.field) == ("bad_message", "$.request.type")


def test_answers_to_nothing_that_was_asked_are_passed_over(tmp_path: Path) -> None:
    asyncio.run(told(tmp_path, stray, stray, outcomes(2)))


def test_a_flood_of_answers_is_hung_up_on(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="an unexpected answer"):
        asyncio.run(told(tmp_path, *[stray] * MOST_STRAYS))


def test_no_answer_is_waited_for_no_longer_than_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(LinkTimeout, match=r"no answer within 0\.2 s"):
        asyncio.run(told(tmp_path, deadline_s=0.2))


def test_a_request_that_waits_for_another_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        requests = Requests(host(tmp_path), None)
        first = asyncio.create_task(requests.ask([LEASE], REASON_S))
        second = asyncio.create_task(requests.ask([LEASE], 0.1))
        with pytest.raises(LinkTimeout, match="it still owes the answer to earlier requests"):
            await second
        with pytest.raises(LinkTimeout, match="no process listens there"):
            await first

    asyncio.run(story())


def test_an_address_that_is_none_is_a_typed_error() -> None:
    async def story() -> None:
        entry = Host("h", "tcp://127.0.0.1:99999", "ipc:///t", 1e5, server_key="a" * 40)
        await Requests(entry, None).ask([LEASE], 1.0)

    with pytest.raises(LinkError):
        asyncio.run(story())


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE])
def test_every_request_is_in_one_batch_in_its_order(count: int) -> None:
    changes = [Activate("a", 1.0 + number) for number in range(count)]
    parts = [batch.requests for batch in batches(changes)]
    assert [change for part in parts for change in part] == changes
    assert all(1 <= len(part) <= AT_ONCE for part in parts)


def test_as_many_of_the_longest_requests_as_a_batch_holds_fit_into_a_message() -> None:
    (batch,) = batches([WORST] * AT_ONCE)
    raw = encode(Envelope(batch, id="i" * 64))
    assert len(raw) <= MAX_MESSAGE
    assert decode_request(raw).request == batch

"""An issuer's keys: asked for in time and never often, whatever tokens name, however it answers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from oidc_rig import Issuer, issuing, published, rsa

from common.clock import FakeClock
from common.units import Seconds
from policer.errors import IssuerAway
from policer.oidc.fetch import MOST_BYTES, FromFile, OverHttp
from policer.oidc.keyring import AGAIN_S, FRESH_S, SOON_S, STALE_S, FetchError, KeyRing

ISSUER = "https://id.example"


class Source:
    """Gives keys, or fails, or hangs; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.raw = published(rsa("first"))
        self.problem = ""
        self.hangs = False

    async def __call__(self) -> bytes:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.problem:
            raise FetchError(self.problem)
        return self.raw


class Ring:
    """A ring on that source, and a clock that stands until it is moved."""

    def __init__(self, wait_s: float = 5.0) -> None:
        self.source, self.clock = Source(), FakeClock(1000.0)
        self.ring = KeyRing(ISSUER, self.source, self.clock.now, wait_s)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.sleep(Seconds(seconds))

    async def kids(self) -> list[str | None]:
        """Return what the keys are called."""
        return [key.kid for key in await self.ring.keys()]


def run(decide_round: Callable[[Ring], Awaitable[None]], wait_s: float = 5.0) -> None:
    """Play a scene in a loop of its own."""

    async def main() -> None:
        ring = Ring(wait_s)
        try:
            await decide_round(ring)
        finally:
            await ring.ring.close()

    asyncio.run(main())


async def settle() -> None:
    """Let what was begun go on as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_keys_are_asked_for_once_by_many() -> None:
    async def decide_round(ring: Ring) -> None:
        found = await asyncio.gather(*(ring.kids() for _ in range(20)))
        assert found == [["first"]] * 20
        assert ring.source.asked == 1

    run(decide_round)


def test_an_unknown_key_asks_at_most_once_a_minute() -> None:
    async def decide_round(ring: Ring) -> None:
        await ring.kids()
        for _ in range(100):
            await ring.ring.renewed()
            ring.wait(AGAIN_S / 200)
        assert ring.source.asked == 1
        ring.wait(AGAIN_S / 2 + 1)
        ring.source.raw = published(rsa("second"))
        assert [key.kid for key in await ring.ring.renewed()] == ["second"]
        assert ring.source.asked == 2

    run(decide_round)


def test_old_keys_are_renewed_while_they_are_used() -> None:
    async def decide_round(ring: Ring) -> None:
        await ring.kids()
        ring.source.raw = published(rsa("second"))
        ring.wait(FRESH_S + 1)
        assert await ring.kids() == ["first"]
        await settle()
        assert await ring.kids() == ["second"]
        assert ring.source.asked == 2

    run(decide_round)


def test_keys_outlive_an_issuer_that_is_away_for_an_hour_and_no_longer() -> None:
    async def decide_round(ring: Ring) -> None:
        await ring.kids()
        ring.source.problem = "refused"
        ring.wait(FRESH_S + 1)
        for _ in range(int((STALE_S - FRESH_S - 2) / AGAIN_S)):
            assert await ring.kids() == ["first"]
            await settle()
            ring.wait(AGAIN_S)
        ring.wait(AGAIN_S)
        with pytest.raises(IssuerAway, match=r"id\.example.*refused"):
            await ring.kids()
        ring.source.problem = ""
        ring.wait(SOON_S)
        assert await ring.kids() == ["first"]

    run(decide_round)


def test_without_keys_the_issuer_is_tried_again_soon_and_not_at_every_request() -> None:
    async def decide_round(ring: Ring) -> None:
        ring.source.problem = "no route to host"
        for _ in range(50):
            with pytest.raises(IssuerAway, match=r"no route to host.*own tokens work on"):
                await ring.kids()
        assert ring.source.asked == 1
        ring.wait(SOON_S)
        ring.source.problem = ""
        assert await ring.kids() == ["first"]

    run(decide_round)


def test_an_unknown_key_while_the_issuer_is_away_is_said_to_be_that() -> None:
    async def decide_round(ring: Ring) -> None:
        await ring.kids()
        ring.source.problem = "refused"
        ring.wait(AGAIN_S)
        with pytest.raises(IssuerAway, match="refused"):
            await ring.ring.renewed()
        assert await ring.kids() == ["first"]  # what is known goes on

    run(decide_round)


def test_an_issuer_that_hangs_holds_up_nobody_for_long() -> None:
    async def decide_round(ring: Ring) -> None:
        ring.source.hangs = True
        waits = [asyncio.create_task(ring.kids()) for _ in range(20)]
        await settle()
        assert not any(task.done() for task in waits)  # and the loop goes round meanwhile
        for outcome in await asyncio.gather(*waits, return_exceptions=True):
            assert isinstance(outcome, IssuerAway)
        assert ring.source.asked == 1

    run(decide_round, wait_s=1.0)


def test_a_client_that_hangs_up_does_not_stop_the_asking() -> None:
    async def decide_round(ring: Ring) -> None:
        ring.source.hangs = True
        waiting = asyncio.create_task(ring.kids())
        await settle()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert ring.ring._trying is not None
        assert not ring.ring._trying.done()

    run(decide_round)


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"keys": []}'])
def test_what_is_no_set_of_keys_replaces_none(raw: bytes) -> None:
    async def decide_round(ring: Ring) -> None:
        await ring.kids()
        ring.source.raw = raw
        ring.wait(AGAIN_S)
        with pytest.raises(IssuerAway, match="key"):
            await ring.ring.renewed()
        assert await ring.kids() == ["first"]

    run(decide_round)


def test_a_bug_in_the_fetching_is_an_issuer_that_is_away() -> None:
    async def decide_round(ring: Ring) -> None:
        async def broken() -> bytes:
            raise ZeroDivisionError

        ring.ring._fetch = broken
        with pytest.raises(IssuerAway, match="the log says how"):
            await ring.kids()

    run(decide_round)


@pytest.fixture(scope="module")
def real() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def issuer(real: Issuer) -> Issuer:
    fresh = Issuer()
    real.keys, real.discovery, real.raw, real.status = fresh.keys, {}, None, 200
    real.asked.clear()
    return real


def fetched(issuer: Issuer, jwks_url: str | None = None) -> bytes:
    return asyncio.run(OverHttp(issuer.url, jwks_url)())


def test_keys_are_where_the_discovery_document_says(issuer: Issuer) -> None:
    assert fetched(issuer) == published(rsa("first"))
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


def test_keys_are_where_the_settings_say(issuer: Issuer) -> None:
    assert fetched(issuer, f"{issuer.url}/elsewhere") == published(rsa("first"))
    assert issuer.asked == ["/elsewhere"]


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ({"issuer": "https://evil.example"}, "is of 'https://evil.example'"),
        ({"issuer": 7}, "cannot be read"),
        ({"jwks_uri": "http://169.254.169.254/latest/meta-data"}, "no jwks_uri with https"),
        ({"jwks_uri": "file:///etc/passwd"}, "no jwks_uri with https"),
        ({"jwks_uri": "https://user:secret@id.example/keys"}, "no jwks_uri with https"),
        ({"jwks_uri": None}, "cannot be read"),
    ],
    ids=str,
)
def test_a_discovery_document_leads_nowhere_else(
    issuer: Issuer, says: dict[str, object], problem: str
) -> None:
    issuer.discovery = says
    with pytest.raises(FetchError, match=problem):
        fetched(issuer)
    assert issuer.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize("status", [204, 301, 302, 404, 500])
def test_any_other_answer_is_none_and_no_redirect_is_followed(issuer: Issuer, status: int) -> None:
    issuer.status = status
    with pytest.raises(FetchError, match=f"answered {status}"):
        fetched(issuer)
    assert len(issuer.asked) == 1


def test_an_answer_without_an_end_is_cut(issuer: Issuer) -> None:
    issuer.raw = b" " * (MOST_BYTES + 1)
    with pytest.raises(FetchError, match="more than"):
        fetched(issuer)


def test_an_issuer_that_is_not_there_is_said() -> None:
    with pytest.raises(FetchError):
        asyncio.run(OverHttp("http://127.0.0.1:1", None)())


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(FetchError, match="No such file"):
        asyncio.run(FromFile(path)())
    path.write_bytes(published(rsa("first")))
    assert asyncio.run(FromFile(path)()) == published(rsa("first"))
    path.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(FetchError, match="larger"):
        FromFile(path).read()

"""The gate: tokens remembered for seconds, rate limits, places for streams; and readiness."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter
from rest_rig import Rig, filled, opened
from sqlalchemy import Connection
from support.waiting import eventually

from policer.daemon.metrics import Metrics
from policer.errors import StoreGone, Unauthenticated
from policer.fleet.live import Fleet
from policer.page import STATIC
from policer.rest.access.gate import GUESSES, REMEMBERED_S
from policer.rest.access.identity import Known
from policer.token_bucket import Buckets

MOST_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""Of asyncio's default executor."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_per_s=2.0, rate_burst=5.0) as rig:
        filled(rig)
        yield rig


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    buckets = Buckets(rate=2.0, burst=3.0)
    assert [buckets.wait(10.0, "a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.wait(10.0, "a") == pytest.approx(0.5)
    assert buckets.wait(10.0, "b") == 0.0
    assert buckets.wait(10.5, "a") == 0.0
    assert buckets.wait(10.5, "a") > 0.0
    assert buckets.wait(9.0, "a") > 0.0


def test_who_asks_too_often_is_told_when_to_come_again(rig: Rig) -> None:
    answers = [rig.client("read").get("/v1/hosts") for _ in range(6)]
    assert [answer.status_code for answer in answers] == 5 * [200] + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert rig.client("operate").get("/v1/hosts").status_code == 200
    rig.wait(1.0)
    assert rig.client("read").get("/v1/hosts").status_code == 200


def test_a_token_that_another_policer_revoked_is_refused_within_seconds(rig: Rig) -> None:
    row, secret = rig.store.tokens.add("brief", ["read"], None, "test")
    client = rig.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.get("/v1/hosts").status_code == 200
    rig.store.tokens.revoke(row.id, "elsewhere")
    assert client.get("/v1/hosts").status_code == 200
    rig.wait(REMEMBERED_S)
    assert client.get("/v1/hosts").status_code == 401


def test_who_guesses_tokens_does_not_occupy_the_database(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = rig.client("read")
    assert known.get("/v1/hosts").status_code == 200
    asked, by_secret = list[str](), rig.store.tokens.by_secret
    monkeypatch.setattr(
        rig.store.tokens, "by_secret", lambda secret: asked.append(secret) or by_secret(secret)
    )
    guess, statuses = rig.client(None), list[int]()
    for number in range(100):
        guess.headers["Authorization"] = f"Bearer xtcp_0123456789ab_{number:043d}"
        statuses.append(guess.get("/v1/hosts").status_code)
    assert statuses == [401] * (int(GUESSES) + 1) + [429] * (99 - int(GUESSES))
    assert len(asked) == GUESSES + 1
    rig.wait(REMEMBERED_S)  # a token that was good before is asked for all the same
    assert known.get("/v1/hosts").status_code == 200
    assert guess.get("/v1/hosts").status_code == 401  # and time lifts the bar


class Refuses:
    """An issuer that has revoked all of its tokens."""

    async def known(self, token: str) -> Known:
        raise Unauthenticated(f"{token} was revoked")


def test_streams_whose_tokens_are_revoked_end_no_others(tmp_path: Path) -> None:
    with opened(tmp_path, rate_burst=1.0, issuer=Refuses()) as rig:
        gate, good = rig.app.state.gate, rig.headers("read")["Authorization"]
        revoked = [f"Bearer xtcp_0123456789ab_{number:043d}" for number in range(2 * int(GUESSES))]
        revoked += [f"Bearer e30.e30.{number}" for number in range(5)]

        async def still(*tokens: str) -> list[bool]:
            return [await gate.still(token) for token in tokens]

        assert asyncio.run(still(*revoked)) == [False] * len(revoked)
        assert asyncio.run(still(good)) == [True]


def test_a_store_that_is_away_is_said_to_be_away(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise StoreGone("the database cannot be reached")

    monkeypatch.setattr(rig.store, "check", gone)
    answer = rig.client(None).get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert "cannot be reached" in answer.json()["detail"]
    assert rig.client(None).get("/livez").status_code == 200


def test_a_store_that_hangs_is_the_stores_problem_and_metrics_are_read_on(tmp_path: Path) -> None:
    answer, gave_up = threading.Event(), list[bool]()
    registry = CollectorRegistry()
    Counter("policer_things", "Things", registry=registry).inc()
    with opened(tmp_path, store_wait_s=0.1, registry=registry) as rig, rig.client(None) as client:
        begun = rig.store._database._begun

        def hung(*, writes: bool) -> AbstractContextManager[Connection]:
            gave_up.append(not answer.wait(20.0))
            return begun(writes=writes)

        try:
            rig.store._database._begun = hung  # type: ignore[method-assign]
            for _ in range(2 * MOST_THREADS):
                refused = client.get("/readyz")
                assert refused.status_code == 503
                assert refused.json()["type"] == "urn:xtc:problem:store"
                assert "did not answer within 0.1 s" in refused.json()["detail"]
            assert client.get("/livez").status_code == 200
            assert "policer_things_total 1.0" in client.get("/metrics").text
            assert gave_up == []  # all threads wait still
        finally:
            answer.set()
            rig.store._database._begun = begun  # type: ignore[method-assign]
        # The threads that waited all run at first, which may take longer than 0.1 s.
        eventually(lambda: client.get("/readyz").status_code == 200)


def test_a_database_that_is_locked_is_read_on_and_says_when_to_write_again(tmp_path: Path) -> None:
    with opened(tmp_path, busy_s=0.05) as rig:
        filled(rig)
        client = rig.client()
        terms = {"guarantee_pps": 5_000}
        other = sqlite3.connect(tmp_path / "policer.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        path = "/v1/hosts/gold/contracts/r5"
        refused = client.put(path, json=terms, headers={"If-None-Match": "*"})
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:xtc:problem:store-busy"
        assert refused.headers["retry-after"]
        assert client.get("/v1/hosts").status_code == 200
        other.execute("ROLLBACK")
        other.close()
        assert client.put(path, json=terms, headers={"If-None-Match": "*"}).status_code == 201


def test_a_loop_that_hangs_is_not_ready(tmp_path: Path) -> None:
    silent = [1.0]
    with opened(tmp_path, heartbeat=lambda: silent[0]) as rig:
        assert rig.client(None).get("/readyz").json() == {"status": "ready"}
        silent[0] = 11.0
        assert rig.client(None).get("/readyz").status_code == 503


def test_metrics_are_open_or_take_a_token_as_configured(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    Counter("policer_things", "Things", registry=registry).inc()
    with opened(tmp_path, registry=registry) as rig:
        answer = rig.client(None).get("/metrics")
        assert "policer_things_total 1.0" in answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    (tmp_path / "closed").mkdir()
    with opened(tmp_path / "closed", registry=registry, metrics_open=False) as rig:
        assert rig.client(None).get("/metrics").status_code == 401
        assert "policer_things_total" in rig.client("read").get("/metrics").text


def test_requests_are_observed_by_their_routes(tmp_path: Path) -> None:
    seen: list[tuple[str, str, int]] = []

    def observe(method: str, route: str, status: int, seconds: float) -> None:
        assert seconds >= 0.0
        seen.append((method, route, status))

    with opened(tmp_path, observe=observe) as rig:
        filled(rig)
        rig.client("read").get("/v1/hosts/gold")
        rig.client("read").get("/v1/hosts/lead")
        rig.client("read").get("/v1/mystery")
    assert seen[:2] == [("GET", "/v1/hosts/{host}", 200), ("GET", "/v1/hosts/{host}", 404)]
    assert seen[2][0::2] == ("GET", 404)
    assert "mystery" not in seen[2][1]


def test_clients_cannot_make_up_labels_of_metrics(tmp_path: Path) -> None:
    metrics = Metrics(Fleet(), lambda: 0.0)
    with opened(tmp_path, observe=metrics.answered) as rig:
        client = rig.client(None)
        for number in range(40):
            client.request(f"INVENTED{number}", f"/v1/made/up/{number}")
            client.request(f"INVENTED{number}", "/v1/hosts")
    labels = [sample.labels for metric in metrics.requests.collect() for sample in metric.samples]
    assert {one["method"] for one in labels} == {"other"}
    assert len({tuple(one.items()) for one in labels}) < 60


def test_the_page_is_served_with_its_types_tags_and_policy(tmp_path: Path) -> None:
    page = tmp_path / "page"
    (page / "js").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html><title>page</title>")
    (page / "js" / "main.js").write_text("export {};")
    (tmp_path / "secret.txt").write_text("not for you")
    with opened(tmp_path, page=page) as rig:
        client = rig.client(None)
        index = client.get("/")
        assert index.headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in index.headers["content-security-policy"]
        assert "unsafe" not in index.headers["content-security-policy"]
        script = client.get("/js/main.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        again = client.get("/js/main.js", headers={"If-None-Match": script.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/js/../../secret.txt", "/none.js"):
            assert client.get(path).status_code == 404


def test_every_file_of_the_page_that_is_shipped_is_served_as_what_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as rig:
        client = rig.client(None)
        assert "<!doctype html>" in client.get("/").text.lower()
        kinds = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
        for path in sorted(STATIC.rglob("*")):
            if path.is_file():
                answer = client.get("/" + path.relative_to(STATIC).as_posix())
                assert answer.content == path.read_bytes()
                expected = kinds.get(path.suffix, "")
                assert answer.headers["content-type"].startswith(expected), path

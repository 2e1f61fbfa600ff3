"""Events and changes by time, and whole as lines of JSON; what is not whole breaks off."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from rest_rig import Rig, filled, opened, serving

from policer.errors import StoreGone
from policer.store import Event

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
LINES = {"Accept": "application/jsonl"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_burst=1e6) as rig:
        filled(rig)
        minutes = [NOON + timedelta(minutes=n) for n in range(10)]
        events = [Event("gold", "punished", str(n), "r1", at=at) for n, at in enumerate(minutes)]
        rig.store.events.add(events)
        yield rig


def words(rig: Rig, **query: str) -> list[str]:
    answer = rig.client("read").get("/v1/events", params=query)
    assert answer.status_code == 200, answer.text
    return [row["words"] for row in answer.json()["items"]]


def exported(rig: Rig, path: str = "/v1/events", **query: str) -> list[Any]:
    answer = rig.client().get(path, params=query, headers=LINES)
    assert answer.headers["content-type"].startswith("application/jsonl")
    assert answer.text.endswith("\n") or not answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_events_are_chosen_by_time(rig: Rig) -> None:
    assert words(rig, **{"from": "2026-11-23T12:07:00Z"}) == ["9", "8", "7"]
    assert words(rig, to="2026-11-23T12:02:00Z") == ["1", "0"]
    both = {"from": "2026-11-23T13:03:00+01:00", "to": "2026-11-23T12:04:30Z"}
    assert words(rig, **both) == ["4", "3"]


def test_changes_are_chosen_by_time(rig: Rig) -> None:
    client = rig.client()
    all_of_them = client.get("/v1/audit").json()["items"]
    begin = all_of_them[0]["at"]
    chosen = client.get("/v1/audit", params={"from": begin}).json()["items"]
    assert chosen == [row for row in all_of_them if row["at"] >= begin]
    assert client.get("/v1/audit", params={"to": "2020-01-01T00:00:00Z"}).json()["items"] == []


def test_an_export_is_whole_and_the_oldest_come_first(rig: Rig) -> None:
    rig.note(1200)
    found = exported(rig)
    assert [row["id"] for row in found] == list(range(1, 1211))
    assert (
        found[:10]
        == rig.client().get("/v1/events", params={"kind": "punished"}).json()["items"][::-1]
    )


def test_an_export_is_chosen_as_pages_are(rig: Rig) -> None:
    rig.note(5, host="silver")
    chosen = exported(rig, kind="punished", **{"from": "2026-11-23T12:08:00Z"})
    assert [row["words"] for row in chosen] == ["8", "9"]
    assert len(exported(rig, host="silver")) == 5
    assert exported(rig, host="nowhere") == []


def test_the_audit_log_is_exported(rig: Rig) -> None:
    found = exported(rig, "/v1/audit")
    assert found == rig.client().get("/v1/audit").json()["items"][::-1]
    assert rig.client("operate").get("/v1/audit", headers=LINES).status_code == 403


@pytest.mark.parametrize("name", ["limit", "after"])
def test_an_export_has_no_pages(rig: Rig, name: str) -> None:
    answer = rig.client().get("/v1/events", params={name: "3"}, headers=LINES)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == name


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*", "text/html"])
def test_pages_are_given_to_who_does_not_ask_for_lines(rig: Rig, accept: str) -> None:
    answer = rig.client().get("/v1/events", headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/json"


def test_an_export_takes_the_place_of_a_stream_and_gives_it_back(tmp_path: Path) -> None:
    with opened(tmp_path, max_streams_each=1) as rig:
        for _ in range(3):
            assert rig.client().get("/v1/events", headers=LINES).status_code == 200
        rig.app.state.context.streams.take("other")
        holder = rig.store.tokens.all()[-1].id
        rig.app.state.context.streams.take(holder)
        assert rig.client().get("/v1/events", headers=LINES).status_code == 429


def test_a_database_that_fails_before_is_said_in_words(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise StoreGone("the database cannot be reached")

    monkeypatch.setattr(rig.store.events, "since", gone)
    answer = rig.client().get("/v1/events", headers=LINES)
    assert answer.status_code == 503
    assert answer.json()["detail"] == "the database cannot be reached"


def test_an_export_that_fails_half_way_is_not_taken_for_whole(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.note(1200)
    real, calls = rig.store.events.since, iter(range(99))

    def fails(*given: Any, **more: Any) -> Any:
        if next(calls):
            raise StoreGone("the database cannot be reached")
        return real(*given, **more)

    monkeypatch.setattr(rig.store.events, "since", fails)
    with serving(rig.app) as address, pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{address}/v1/events", headers=rig.headers() | LINES)

"""Idempotency keys: the same request twice has one effect and one answer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rest_rig import Rig, filled, opened

from policer.errors import StoreBusy
from policer.rest.openapi import EXAMPLES

HOST = {**EXAMPLES["addHost"], "name": "bronze"}
KEY = {"Idempotency-Key": "7f3a"}
CONTRACT: dict[str, Any] = {"host": "gold", "vr": "r5", "contract": {"guarantee_pps": 1000}}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path) as rig:
        filled(rig)
        yield rig


def test_the_same_request_is_answered_alike_and_done_once(rig: Rig) -> None:
    first = rig.client().post("/v1/hosts", json=HOST, headers=KEY)
    generation = rig.store.generation()
    second = rig.client().post("/v1/hosts", json=HOST, headers=KEY)
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    for name in ("location", "etag", "content-type"):
        assert first.headers[name] == second.headers[name]
    assert rig.store.generation() == generation


def test_a_key_with_another_request_is_refused(rig: Rig) -> None:
    client = rig.client()
    client.post("/v1/hosts", json=HOST, headers=KEY)
    other = client.post("/v1/hosts", json=HOST | {"capacity_pps": 1}, headers=KEY)
    assert other.status_code == 422
    assert other.json()["type"] == "urn:xtc:problem:key-reused"
    elsewhere = client.post("/v1/contracts", json=CONTRACT, headers=KEY)
    assert elsewhere.status_code == 422


def test_each_token_has_its_own_keys(rig: Rig) -> None:
    first = rig.client("admin").post("/v1/contracts", json=CONTRACT, headers=KEY)
    second = rig.client("operate").post("/v1/contracts", json=CONTRACT, headers=KEY)
    assert (first.status_code, second.status_code) == (201, 409)


def test_a_refusal_is_answered_alike_too(rig: Rig) -> None:
    body = CONTRACT | {"contract": {"guarantee_pps": 1e9}}
    first = rig.client().post("/v1/contracts", json=body, headers=KEY)
    second = rig.client().post("/v1/contracts", json=body, headers=KEY)
    assert first.status_code == second.status_code == 422
    assert first.json()["title"] == "Unprocessable Content"
    assert first.content == second.content
    assert second.headers["content-type"] == "application/problem+json"


def test_concurrent_requests_of_one_key_have_one_effect(rig: Rig) -> None:
    def post(_: int) -> tuple[int, bytes]:
        answer = rig.client().post("/v1/contracts", json=CONTRACT, headers=KEY)
        return answer.status_code, answer.content

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(post, range(8)))
    assert [status for status, _ in answers] == [201]
    assert rig.store.contracts.get("gold", "r5").version.number == 1


def test_a_request_that_the_store_could_not_do_may_come_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise StoreBusy("locked")

    with monkeypatch.context() as patch:
        patch.setattr(rig.store.contracts, "put", busy)
        failed = rig.client().post("/v1/contracts", json=CONTRACT, headers=KEY)
    assert failed.status_code == 503
    assert failed.headers["retry-after"]
    assert rig.client().post("/v1/contracts", json=CONTRACT, headers=KEY).status_code == 201


@pytest.mark.parametrize("key", ["", "a b", "x" * 129, "\xe9"])
def test_a_key_that_cannot_be_is_refused(rig: Rig, key: str) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    answer = rig.client().post("/v1/contracts", json=CONTRACT, headers=headers)
    assert answer.status_code == 422
    assert "r5" not in rig.store.contracts.all()["gold"]

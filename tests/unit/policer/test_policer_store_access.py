"""Tokens and idempotency keys in the store, on both databases."""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from rest_rig import GOLD, SILVER

from policer.contracts.contract import Contract
from policer.errors import Invalid, KeyReused, StoreBusy, Unknown
from policer.store import SCOPES, Answering, Claim, Store, StoredAnswer
from policer.store.service import idempotency
from policer.store.service.idempotency import ABANDONED, KEPT, MOST_WAITS, Idempotency

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

EMPTY = StoredAnswer(200, {}, b"")

NOTHING = {"events": 0, "dead_letters": 0, "tokens": 0, "plans": 0, "audit": 0, "revisions": 0}


def test_a_token_is_known_by_its_secret_alone(backend: "Backend", store: Store) -> None:
    row, secret = store.tokens.add("ann's laptop", ["operate", "read"], None, "root")
    assert re.fullmatch(rf"xtcp_{row.id}_[A-Za-z0-9_-]{{43}}", secret)
    assert row.scopes == ("read", "operate")
    assert backend.open().tokens.by_secret(secret) == row
    assert store.tokens.all() == [row]


def test_a_wrong_secret_is_nobodys(store: Store) -> None:
    row, secret = store.tokens.add("ann", ["admin"], None, "root")
    other, _ = store.tokens.add("ben", ["read"], None, "root")
    last = "A" if secret[-1] != "A" else "B"
    for wrong in (
        "",
        secret[:-1],
        secret[:-1] + last,
        secret + "\n",
        secret.upper(),
        secret.replace(row.id, other.id),
        secret.replace(row.id, "0" * 12),
        f"xtcp_{row.id}_" + "\udc80" * 43,
        f"xtcp_{row.id}_",
    ):
        assert store.tokens.by_secret(wrong) is None


def test_a_token_ends(backend: "Backend", store: Store) -> None:
    _, secret = store.tokens.add("ann", ["read"], backend.clock() + timedelta(days=1), "root")
    backend.clock.forward(hours=23)
    assert store.tokens.by_secret(secret) is not None
    backend.clock.forward(hours=1)
    assert store.tokens.by_secret(secret) is None


def test_a_token_is_revoked_once_and_for_all(backend: "Backend", store: Store) -> None:
    row, secret = store.tokens.add("ann", ["read"], None, "root")
    revoked = store.tokens.revoke(row.id, "ben")
    assert revoked.revoked_at == backend.clock()
    backend.clock.forward(hours=1)
    assert store.tokens.revoke(row.id, "cid") == revoked
    assert store.tokens.by_secret(secret) is None
    assert store.tokens.all() == [revoked]
    audit = [(line.actor, line.action, line.target) for line in store.audit.page(None, 9)]
    assert audit == [("ben", "revoke", f"token {row.id}"), ("root", "add", f"token {row.id}")]
    with pytest.raises(Unknown):
        store.tokens.revoke("nobody", "ann")


def test_ended_tokens_and_old_changes_are_removed_and_nothing_else(
    backend: "Backend", store: Store
) -> None:
    soon = backend.clock() + timedelta(days=1)
    store.tokens.add("ended", ["read"], soon, "root")
    revoked, _ = store.tokens.add("revoked", ["read"], None, "root")
    store.tokens.revoke(revoked.id, "root")
    kept, secret = store.tokens.add("kept", ["admin"], None, "root")
    assert store.prune(keep_days=1, keep_audit_days=1) == NOTHING
    backend.clock.forward(days=40)
    store.hosts.add(GOLD, "root")
    assert store.prune(keep_days=90, keep_audit_days=50) == NOTHING
    removed = store.prune(keep_days=90, keep_audit_days=30)
    assert removed == {**NOTHING, "tokens": 2, "audit": 4}
    assert store.tokens.all() == [kept]
    assert store.tokens.by_secret(secret) == kept
    assert [row.target for row in store.audit.page(None, 9)] == ["host gold"]


def test_scopes_include_those_before_them(store: Store) -> None:
    for most, scope in enumerate(SCOPES):
        row, _ = store.tokens.add("ann", [scope], None, "root")
        assert [row.allows(other) for other in SCOPES] == [n <= most for n in range(len(SCOPES))]


def test_a_token_that_cannot_be_is_refused_by_field(backend: "Backend", store: Store) -> None:
    naive = datetime(2030, 1, 1)  # noqa: DTZ001  the mistake under test
    cases: list[tuple[str, list[str], datetime | None, str]] = [
        ("", ["read"], None, "name"),
        ("a\nb", ["read"], None, "name"),
        ("a" * 65, ["read"], None, "name"),
        ("ann", [], None, "scopes"),
        ("ann", ["write"], None, "scopes"),
        ("ann", ["read"], backend.clock(), "expires_at"),
        ("ann", ["read"], naive, "expires_at"),
    ]
    for name, scopes, expires_at, field in cases:
        with pytest.raises(Invalid) as refused:
            store.tokens.add(name, scopes, expires_at, "root")
        assert [problem.field for problem in refused.value.problems] == [field]
    assert store.tokens.all() == []


def test_no_secret_is_in_the_database(backend: "Backend", store: Store) -> None:
    row, secret = store.tokens.add("ann", ["admin"], None, "root")
    store.tokens.by_secret(secret)
    claim = claimed(store, "key", "t")
    body = f'{{"id": "{row.id}", "secret": "{secret}"}}'.encode()
    store.idempotency.finish(claim, StoredAnswer(201, {}, body))
    everything = backend.everything()
    assert row.id.encode() in everything
    assert secret.encode() not in everything
    assert secret.removeprefix(f"xtcp_{row.id}_").encode() not in everything
    kept = store.idempotency.begin("key", "t", "hash")
    assert isinstance(kept, StoredAnswer)
    assert kept.body == body.replace(secret.encode(), b"*" * len(secret))


def test_a_request_is_answered_as_it_was_the_first_time(backend: "Backend", store: Store) -> None:
    answer = StoredAnswer(201, {"Location": "/v1/x"}, b"\x00body\xff")
    store.idempotency.finish(claimed(store, "key", "t1"), answer)
    assert backend.open().idempotency.begin("key", "t1", "hash") == answer
    with pytest.raises(KeyReused):
        store.idempotency.begin("key", "t1", "another")
    assert isinstance(store.idempotency.begin("key", "t2", "another"), Claim)


def test_an_answer_is_kept_for_a_day(backend: "Backend", store: Store) -> None:
    store.idempotency.finish(claimed(store, "key", "t"), EMPTY)
    backend.clock.forward(seconds=KEPT.total_seconds())
    assert store.idempotency.begin("key", "t", "hash") == EMPTY
    backend.clock.forward(seconds=1)
    assert isinstance(store.idempotency.begin("key", "t", "hash"), Claim)


def test_the_newest_answers_of_each_token_are_kept(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MOST_ANSWERS", 3)
    waiting = claimed(store, "waiting", "t")
    for number in range(5):
        for token in ("t", "other") if number == 0 else ("t",):
            store.idempotency.finish(claimed(store, f"key {number}", token), EMPTY)
        backend.clock.forward(seconds=1)
    claimed(store, "newest", "t")
    kept = backend.aside().execute("SELECT token_id, key FROM idempotency ORDER BY 1, 2").fetchall()
    of_t = [("t", key) for key in ("key 2", "key 3", "key 4", "newest", "waiting")]
    assert [tuple(row) for row in kept] == [("other", "key 0"), *of_t]
    store.idempotency.finish(waiting, EMPTY)
    assert store.idempotency.begin("key 4", "t", "hash") == EMPTY


def test_a_second_request_waits_for_the_answer_of_the_first(
    backend: "Backend", store: Store
) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            store.idempotency.finish(claim, StoredAnswer(200, {}, b"once"))

    second = Idempotency(store.idempotency._database, backend.clock, sleep)
    claim = claimed(store, "key", "t")
    assert second.begin("key", "t", "hash") == StoredAnswer(200, {}, b"once")
    assert len(waits) == 3


def test_a_second_request_does_not_wait_for_ever(backend: "Backend", store: Store) -> None:
    waits: list[float] = []
    second = Idempotency(store.idempotency._database, backend.clock, waits.append)
    store.idempotency.begin("key", "t", "hash")
    with pytest.raises(KeyReused):
        second.begin("key", "t", "another")
    with pytest.raises(StoreBusy, match="still being carried out"):
        second.begin("key", "t", "hash")
    assert len(waits) == MOST_WAITS


def test_a_key_whose_request_died_or_was_given_up_is_free(backend: "Backend", store: Store) -> None:
    store.idempotency.abandon(claimed(store, "key", "t"))
    claimed(store, "key", "t")
    backend.clock.forward(seconds=ABANDONED.total_seconds() + 1)
    claim = claimed(store, "key", "t")
    store.idempotency.finish(claim, EMPTY)
    store.idempotency.abandon(claim)
    assert store.idempotency.begin("key", "t", "hash") == EMPTY


def test_a_request_given_up_for_dead_neither_answers_nor_changes_for_its_repetition(
    backend: "Backend", store: Store
) -> None:
    store.hosts.add(GOLD, "root")
    slow = claimed(store, "key", "t")
    backend.clock.forward(seconds=ABANDONED.total_seconds() + 1)
    claim = claimed(store, "key", "t")
    answering: Answering[Contract] = Answering(slow, lambda _: EMPTY)
    with pytest.raises(StoreBusy, match="a repetition"):
        store.contracts.put("gold", "r1", Contract(1.0), None, "root", answering=answering)
    with pytest.raises(StoreBusy, match="a repetition"):
        store.hosts.add(SILVER, "root", answering=Answering(slow, lambda _: EMPTY))
    with pytest.raises(StoreBusy, match="a repetition"):
        store.idempotency.finish(slow, EMPTY)
    store.idempotency.abandon(slow)
    assert store.contracts.all() == {}
    assert [stored.value for stored in store.hosts.all()] == [GOLD]
    store.idempotency.finish(claim, StoredAnswer(201, {}, b"done"))
    assert store.idempotency.begin("key", "t", "hash") == StoredAnswer(201, {}, b"done")


def claimed(store: Store, key: str, token: str) -> Claim:
    """Claim a key that is free, for the request of that hash."""
    claim = store.idempotency.begin(key, token, "hash")
    assert isinstance(claim, Claim)
    return claim

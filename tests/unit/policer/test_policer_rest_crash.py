"""A policer that dies at any point of a change: the request repeated has one effect, one answer.

On both databases. Death is a database that takes nothing more from the process after its first so
many transactions; the client comes again when a request without an answer counts as dead.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
from rest_rig import Rig, filled, opened
from sqlalchemy import Connection

from policer.errors import StoreGone
from policer.rest.openapi import EXAMPLES
from policer.store.database.engine import Database
from policer.store.service.idempotency import ABANDONED

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

KEY = {"Idempotency-Key": "7f3a"}
TERMS: dict[str, Any] = {"guarantee_pps": 1000}
R1 = "/v1/hosts/gold/contracts/r1"
R5 = "/v1/hosts/gold/contracts/r5"
GOLD = {**EXAMPLES["addHost"], "name": "gold"}
V1 = {"If-Match": '"v1"'}
BRONZE = {
    "name": "bronze",
    "requests": "ipc:///run/b/requests",
    "telemetry": "ipc:///run/b/telemetry",
    "capacity_pps": 1e5,
}
MOST = 3
"""Transactions of one request; none has more, as the tests see to."""


class Ask(NamedTuple):
    """A request that changes something."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]

    def send(self, rig: Rig) -> httpx.Response:
        sent = {} if self.body is None else {"json": self.body}
        answer: httpx.Response = rig.client().request(
            self.method, self.path, headers=self.headers, **sent
        )
        return answer


KEYED = {
    "addHost": Ask("POST", "/v1/hosts", BRONZE, KEY),
    "addContract": Ask(
        "POST", "/v1/contracts", {"host": "gold", "vr": "r5", "contract": TERMS}, KEY
    ),
    "addContract, refused": Ask(
        "POST",
        "/v1/contracts",
        {"host": "gold", "vr": "r5", "contract": {"guarantee_pps": 1e9}},
        KEY,
    ),
}
VERSIONED = {
    "putContract, new": (Ask("PUT", R5, TERMS, {"If-None-Match": "*"}), 409),
    "putContract": (Ask("PUT", R1, TERMS, V1), 412),
    "removeContract": (Ask("DELETE", R1, None, V1), 404),
    "changeHost": (Ask("PUT", "/v1/hosts/gold", GOLD, V1), 412),
    "removeHost": (Ask("DELETE", "/v1/hosts/bronze", None, V1), 404),
}
"""Each with what a repetition is answered after it was carried out."""


@contextmanager
def dying(patch: pytest.MonkeyPatch, transactions: int) -> Iterator[list[int]]:
    """Let a process commit so many transactions; yield the number of those that it asked for."""
    real, asked = Database.write, [0]

    @contextmanager
    def write(database: Database) -> Iterator[Connection]:
        asked[0] += 1
        if asked[0] > transactions:
            raise StoreGone("the process has died")
        with real(database) as connection:
            yield connection

    with patch.context() as patched:
        patched.setattr(Database, "write", write)
        yield asked


@pytest.fixture
def service(tables: "Backend") -> Iterator[Callable[[], Rig]]:
    """Start a policer, and each time it is called another, on the database of the one before."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(opened(tables.url, today=tables.clock))


@pytest.mark.parametrize("committed", range(MOST + 1))
@pytest.mark.parametrize("ask", KEYED.values(), ids=KEYED.keys())
def test_a_request_with_a_key_has_one_effect_and_one_answer_wherever_the_policer_dies(
    backend: "Backend",
    service: Callable[[], Rig],
    monkeypatch: pytest.MonkeyPatch,
    ask: Ask,
    committed: int,
) -> None:
    first = service()
    filled(first)
    before, status = first.store.generation(), 422 if ask is KEYED["addContract, refused"] else 201
    with dying(monkeypatch, committed) as asked:
        lost = ask.send(first)
    if committed == MOST:
        assert (lost.status_code, asked[0] < MOST + 1) == (status, True)
    backend.clock.forward(seconds=ABANDONED.total_seconds() + 1)
    second = replace(service(), secrets=first.secrets)
    answers = [ask.send(second) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [status, status]
    assert answers[0].content == answers[1].content
    assert second.store.generation() == before + len(first.secrets) + (status == 201)
    if status == 201:
        assert answers[0].json()["version"] == 1
        assert answers[0].headers["etag"] == answers[1].headers["etag"] == V1["If-Match"]
        assert answers[0].headers["location"]


@pytest.mark.parametrize(("ask", "repeated"), VERSIONED.values(), ids=VERSIONED.keys())
def test_a_request_with_a_version_is_carried_out_once_and_its_repetition_says_so(
    service: Callable[[], Rig], monkeypatch: pytest.MonkeyPatch, ask: Ask, repeated: int
) -> None:
    first = service()
    filled(first)
    first.client().post("/v1/hosts", json=BRONZE).raise_for_status()
    before = first.store.generation()
    with dying(monkeypatch, 0):
        away = ask.send(first)
    assert away.status_code == 503
    assert away.headers["retry-after"]
    assert first.store.generation() == before
    assert ask.send(first).is_success  # and the policer dies before it has said so
    second = replace(service(), secrets=first.secrets)
    assert ask.send(second).status_code == repeated
    assert second.store.generation() == before + 1 + len(first.secrets)


def test_a_token_whose_secret_was_lost_is_found_and_another_made(
    service: Callable[[], Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can read a secret again, so that a repetition cannot be answered alike."""
    first, ask = service(), Ask("POST", "/v1/tokens", {"name": "brief", "scope": "read"}, KEY)
    with dying(monkeypatch, 0):
        assert ask.send(first).status_code == 503
    assert ask.send(first).status_code == 201
    second = replace(service(), secrets=first.secrets)
    assert ask.send(second).status_code == 201
    rows = [row for row in second.store.tokens.all() if row.name == "brief"]
    assert len(rows) == 2
    gone = Ask("DELETE", f"/v1/tokens/{rows[0].id}", None, {})
    assert [gone.send(second).status_code for _ in range(2)] == [204, 204]


def test_a_pardon_that_is_asked_for_twice_waits_once(service: Callable[[], Rig]) -> None:
    rig, ask = service(), Ask("POST", "/v1/hosts/gold/routers/r1/pardon", None, {})
    filled(rig)
    assert [ask.send(rig).status_code for _ in range(2)] == [202, 202]
    assert len(rig.inbox.take_all()) == 1

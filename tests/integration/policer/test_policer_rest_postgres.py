"""REST on PostgreSQL: two policers serve one database, and what one answers binds the other.

SQLite's tests are in tests/unit; here is what hangs on the store's locks and on what a second
service sees: races for one version, one key, one host's capacity; pages, tokens, audit, events.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest
from msgspec.structs import replace
from rest_rig import GOLD, Rig, filled, opened, serving

from policer.contracts.contract import Contract
from policer.contracts.overrides import Override
from policer.errors import Taken
from policer.rest.access.gate import REMEMBERED_S
from policer.store import EventRow, Store, open_store

if TYPE_CHECKING:
    from benchmarks.policer.postgres import PostgresServer

pytest_plugins = ["postgres_rig"]
pytestmark = pytest.mark.timeout(600)

T = TypeVar("T")
PATH = "/v1/hosts/gold/contracts/r5"
NEW = {"If-None-Match": "*"}
TURNS = 8
"""Races of each kind: one alone may be won by luck."""
WAIT_S = 45.0
LOCKED_S = 30.0
"""How long those who race wait for each other."""
BUSY_S = 0.3


@pytest.fixture(scope="module")
def made(postgres: "PostgresServer") -> Iterator[str]:
    """A database with its tables, to be copied: to make them takes longer than most tests."""
    with postgres.database() as url:
        open_store(url).close()
        yield url


@pytest.fixture
def url(postgres: "PostgresServer", made: str) -> Iterator[str]:
    with postgres.database(like=made) as url:
        yield url


@pytest.fixture
def two(url: str) -> Iterator[tuple[Rig, Rig]]:
    """Two services on one database that has two hosts and two contracts."""
    options = {"rate_burst": 1e6, "busy_s": LOCKED_S}
    with opened(url, stream_tick_s=0.02, **options) as one, opened(url, **options) as two:
        filled(one)
        yield one, two


def at_once(*works: Callable[[], T]) -> list[T]:
    """Do things in threads that all begin at the same instant; return what came of each."""
    begin = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        begin.wait(WAIT_S)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def requester(rig: Rig, method: str, path: str, **options: Any) -> Callable[[], httpx.Response]:
    """Return what asks a service, with a client of its own."""
    client = rig.client()

    def ask() -> httpx.Response:
        answer: httpx.Response = client.request(method, path, **options)
        return answer

    return ask


def statuses(answers: Sequence[httpx.Response]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


def terms(guarantee: float) -> dict[str, Any]:
    return {"guarantee_pps": guarantee, "measures": ["warn"]}


# Races


def test_of_two_that_replace_one_version_one_is_told_that_it_is_stale(two: tuple[Rig, Rig]) -> None:
    one, _ = two
    made = one.client().put(PATH, json=terms(0), headers=NEW)
    for turn in range(1, TURNS + 1):
        tag = {"If-Match": f'"v{turn}"'}
        works = [
            requester(rig, "PUT", PATH, json=terms(10 * turn + number), headers=tag)
            for number, rig in enumerate(two)
        ]
        answers = at_once(*works)
        assert statuses(answers) == [200, 412]
        (won,) = (answer for answer in answers if answer.status_code == 200)
        (lost,) = (answer for answer in answers if answer.status_code == 412)
        assert lost.headers["content-type"] == "application/problem+json"
        for rig in two:
            read = rig.client().get(PATH)
            assert read.headers["etag"] == won.headers["etag"] == f'"v{turn + 1}"'
            assert read.json()["contract"] == won.json()["contract"]
    history = one.client().get(PATH + "/history").json()["items"]
    assert made.status_code == 201
    assert [revision["version"] for revision in history] == list(range(TURNS + 1, 0, -1))


def test_of_two_that_make_one_contract_one_makes_it(two: tuple[Rig, Rig]) -> None:
    for turn in range(TURNS):
        path = f"/v1/hosts/gold/contracts/m{turn}"
        answers = at_once(*(requester(rig, "PUT", path, json=terms(1), headers=NEW) for rig in two))
        assert statuses(answers) == [201, 409]
        assert two[0].store.contracts.get("gold", f"m{turn}").version.number == 1


def test_of_a_removal_and_a_change_of_one_version_one_is_done(two: tuple[Rig, Rig]) -> None:
    one, other = two
    for turn in range(TURNS):
        path = f"/v1/hosts/gold/contracts/x{turn}"
        one.client().put(path, json=terms(1), headers=NEW)
        tag = {"If-Match": '"v1"'}
        removed, changed = at_once(
            requester(one, "DELETE", path, headers=tag),
            requester(other, "PUT", path, json=terms(2), headers=tag),
        )
        assert (removed.status_code, changed.status_code) in {(204, 412), (412, 200)}
        there = removed.status_code == 412
        assert other.client().get(path).status_code == (200 if there else 404)


def test_clients_of_two_services_are_promised_what_there_is_and_no_more(
    two: tuple[Rig, Rig],
) -> None:
    """80 kp/s are free, and four ask for 50 at once: one gets them, whoever asks where."""
    for turn in range(TURNS):
        paths = [f"/v1/hosts/gold/contracts/c{turn}-{client}" for client in range(4)]
        works = [
            requester(two[client % 2], "PUT", path, json=terms(50e3), headers=NEW)
            for client, path in enumerate(paths)
        ]
        answers = at_once(*works)
        assert Counter(statuses(answers)) == {201: 1, 422: 3}
        for answer in answers:
            if answer.status_code == 422:
                assert answer.json()["errors"][0]["field"] == "guarantee_pps"
        assert _promised(two[0], "gold") == 70e3
        (granted,) = (answer for answer in answers if answer.status_code == 201)
        tag = {"If-Match": granted.headers["etag"]}
        client = two[turn % 2].client()
        client.delete(granted.headers["location"], headers=tag).raise_for_status()


def test_a_host_is_not_made_smaller_than_what_is_promised_meanwhile(two: tuple[Rig, Rig]) -> None:
    one, other = two
    path, capacity = "/v1/hosts/silver", 50_000.0
    for turn in range(TURNS):
        read = one.client().get(path)
        entry, capacity = read.json()["entry"], capacity - 2_000.0
        free = capacity - _promised(one, "silver")
        shrunk, promised = at_once(
            requester(
                one,
                "PUT",
                path,
                json=entry | {"capacity_pps": capacity},
                headers={"If-Match": read.headers["etag"]},
            ),
            requester(
                other,
                "PUT",
                f"{path}/contracts/s{turn}",
                json=terms(free + 1_000.0),
                headers=NEW,
            ),
        )
        assert (shrunk.status_code, promised.status_code) in {(200, 422), (422, 201)}
        if promised.status_code == 201:
            capacity += 2_000.0
            tag = {"If-Match": '"v1"'}
            other.client().delete(f"{path}/contracts/s{turn}", headers=tag).raise_for_status()


def test_of_two_that_override_the_same_one_does(two: tuple[Rig, Rig]) -> None:
    for turn in range(TURNS):
        path = "/v1/hosts/gold/suspension"
        answers = at_once(*(requester(rig, "PUT", path, json={}, headers=NEW) for rig in two))
        assert statuses(answers) == [201, 409]
        tag = {"If-Match": f'"v{2 * turn + 1}"'}
        answers = at_once(*(requester(rig, "DELETE", path, headers=tag) for rig in two))
        assert statuses(answers) in ([204, 404], [204, 412])
        brake = {"json": {"mode": "on" if turn % 2 else "off"}}
        tag = {"If-Match": f'"v{turn + 1}"'}
        works = (requester(rig, "PUT", "/v1/brake", headers=tag, **brake) for rig in two)
        assert statuses(at_once(*works)) == [200, 412]


def test_what_is_over_ends_once_though_all_find_it_at_the_same_time(url: str) -> None:
    """By the leaders' own looks, by changes, and while a host goes: none waits for another."""
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    options = {"rate_burst": 1e6, "busy_s": LOCKED_S, "today": lambda: now[0]}
    with opened(url, **options) as one, opened(url, **options) as two:
        filled(one)
        for turn in range(TURNS):
            stores, until = (one.store, two.store), now[0] + timedelta(hours=1)
            brake = Override("brake", "on", until=until)
            one.store.overrides.put(brake, one.store.overrides.brake().version, "test")
            exempt = Override("exemption", "exempt", "gold", "r1", until)
            one.store.overrides.put(exempt, None, "test")
            one.store.hosts.add(replace(GOLD, name="iron", **_elsewhere(turn)), "test")
            suspended = Override("suspension", "suspended", "iron", until=until)
            two.store.overrides.put(suspended, None, "test")
            now[0] += timedelta(hours=2)
            version = one.store.hosts.get("iron").version.number
            works = [
                *(store.overrides.end_due for store in stores * 2),
                partial(two.store.hosts.remove, "iron", version, "test"),
                *(_silver_suspended(store, now[0] + timedelta(minutes=1)) for store in stores),
            ]
            at_once(*works)
            now[0] += timedelta(hours=2)
            one.store.overrides.end_due()
        ended = Counter((row.kind, row.host) for row in _all_events(one))
        assert ended["override_expired", ""] == ended["override_expired", "gold"] == TURNS
        assert ended["override_expired", "silver"] == ended["override_set", "silver"] == TURNS
        iron = ended["override_expired", "iron"] + ended["override_cleared", "iron"]
        assert iron == ended["override_set", "iron"] == TURNS
        assert one.store.overrides.all() == []


def _silver_suspended(store: Store, until: datetime) -> Callable[[], None]:
    def suspend() -> None:
        with suppress(Taken):  # the other one was faster
            store.overrides.put(
                Override("suspension", "suspended", "silver", until=until), None, "test"
            )

    return suspend


def _elsewhere(turn: int) -> dict[str, str]:
    return {"requests": f"ipc:///run/{turn}/a", "telemetry": f"ipc:///run/{turn}/b"}


def _all_events(rig: Rig) -> list[EventRow]:
    return rig.store.events.since(0, 500)


def _promised(rig: Rig, host: str) -> float:
    return sum(one.value.guarantee_pps for one in rig.store.contracts.all()[host].values())


# Idempotency keys


def test_one_key_at_two_services_has_one_effect_and_one_answer(two: tuple[Rig, Rig]) -> None:
    one, _ = two
    body = {"host": "gold", "vr": "r5", "contract": terms(1)}
    headers = one.headers() | {"Idempotency-Key": "7f3a"}
    works = [
        requester(two[number % 2], "POST", "/v1/contracts", json=body, headers=headers)
        for number in range(8)
    ]
    before = one.store.generation()
    answers = at_once(*works)
    assert set(statuses(answers)) == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["etag"] for answer in answers}) == 1
    assert one.store.generation() == before + 1


def test_a_key_that_another_service_took_is_refused_for_another_request(
    two: tuple[Rig, Rig],
) -> None:
    headers = two[0].headers() | {"Idempotency-Key": "7f3a"}
    works = [
        requester(
            rig,
            "POST",
            "/v1/contracts",
            json={"host": "gold", "vr": f"k{number}", "contract": terms(1)},
            headers=headers,
        )
        for number, rig in enumerate(two)
    ]
    answers = at_once(*works)
    assert statuses(answers) == [201, 422]
    (refused,) = (answer for answer in answers if answer.status_code == 422)
    assert refused.json()["type"] == "urn:xtc:problem:key-reused"


# Pages


def walked(rig: Rig, path: str, between: Callable[[], object]) -> list[Any]:
    """Return all items of a list, page by page; something happens between any two of them."""
    client, items, after = rig.client(), [], ""
    for _ in range(100):
        page = client.get(f"{path}?limit=3{after}").json()
        items += page["items"]
        if page["next"] is None:
            return items
        after = f"&after={page['next']}"
        between()
    raise AssertionError("the list has no end")


def test_contracts_come_each_once_while_another_service_makes_more(two: tuple[Rig, Rig]) -> None:
    """Names are told apart by case, and sorted by their bytes, as the pages before them were."""
    one, other = two
    for name in ("B", "a", "Z9", "b.1", "b-1", "b1", "m"):
        other.store.contracts.put("gold", name, Contract(guarantee_pps=0.0), None, "test")
    later = iter("AzQ0pYcKdL")

    def more() -> None:
        other.store.contracts.put("gold", next(later), Contract(guarantee_pps=0.0), None, "test")

    names = [(row["host"], row["vr"]) for row in walked(one, "/v1/contracts", more)]
    assert names == sorted(set(names))
    assert {("gold", name) for name in ("B", "a", "Z9", "b.1", "b-1", "b1", "m")} <= set(names)


def test_events_come_each_once_while_another_service_adds_more(two: tuple[Rig, Rig]) -> None:
    one, other = two
    one.note(20)
    ids = [row["id"] for row in walked(one, "/v1/events", lambda: other.note(2))]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == len(ids) == 20


# Tokens and the audit log


def test_a_token_of_one_service_is_the_other_s_and_revoked_within_seconds(
    two: tuple[Rig, Rig],
) -> None:
    one, other = two
    made = one.client().post("/v1/tokens", json={"name": "brief", "scope": "read"})
    client = other.client(None)
    client.headers["Authorization"] = f"Bearer {made.json()['secret']}"
    assert client.get("/v1/hosts").status_code == 200
    assert client.delete(made.headers["location"]).status_code == 403
    assert one.client().delete(made.headers["location"]).status_code == 204
    other.wait(REMEMBERED_S)
    assert client.get("/v1/hosts").status_code == 401


def test_the_audit_log_has_every_change_in_the_order_in_which_it_was_made(
    two: tuple[Rig, Rig],
) -> None:
    """Each change of a contract begins where the one before it ended."""
    scopes = ("operate", "admin")

    def change(number: int) -> list[str]:
        """Return who changed it, once for each change that was carried out."""
        ask, done = two[number % 2].client(scopes[number % 2]), []
        for turn in range(6):
            tag = {"If-Match": ask.get(PATH).headers["etag"]}
            answer = ask.put(PATH, json=terms(10 * number + turn), headers=tag)
            done += [scopes[number % 2]] * answer.is_success
        return done

    two[0].client("operate").put(PATH, json=terms(99), headers=NEW)
    done = at_once(*((lambda number=number: change(number)) for number in range(4)))
    rows = walked(two[1], "/v1/audit", lambda: None)
    assert [row["id"] for row in rows] == list(range(len(rows), 0, -1))
    of_ours = [row for row in reversed(rows) if row["target"] == "contract gold/r5"]
    assert Counter(row["actor"].partition(" ")[0] for row in of_ours) == Counter(
        ["operate", *chain(*done)]
    )
    assert len(of_ours) == two[0].store.contracts.get("gold", "r5").version.number >= 7
    for earlier, later in pairwise(of_ours):
        assert later["before"] == earlier["after"]


# Events


def test_a_stream_at_one_service_misses_no_event_that_others_write_at_once(
    two: tuple[Rig, Rig],
) -> None:
    """Numbers are given before they are seen: a stream that went by them could skip some."""
    one, other = two
    one.note(1)
    (first,) = one.store.events.page(None, 1)
    with serving(one.app) as address, httpx.Client(base_url=address, timeout=WAIT_S) as client:
        headers = one.headers("read") | {"Last-Event-ID": str(first.id)}
        with client.stream("GET", "/v1/events/stream", headers=headers) as stream:
            writers = [threading.Thread(target=_write, args=(rig,)) for rig in (one, other) * 2]
            for writer in writers:
                writer.start()
            lines = (line for line in stream.iter_lines() if line.startswith("data:"))
            ids = [json.loads(next(lines).removeprefix("data:"))["id"] for _ in range(4 * 50)]
            for writer in writers:
                writer.join()
    assert ids == sorted(ids)
    stored = {row.id for row in one.store.events.page(None, 500)} - {first.id}
    assert set(ids) == stored
    assert len(stored) == 4 * 50


def _write(rig: Rig) -> None:
    for _ in range(25):
        rig.note(2)


# A database that is away


def test_a_database_that_is_locked_is_read_on_and_says_when_to_write_again(
    url: str, postgres: "PostgresServer"
) -> None:
    with opened(url, busy_s=BUSY_S) as rig, postgres.connect(url) as aside:
        filled(rig)
        client = rig.client()
        assert client.get("/v1/hosts").status_code == 200
        aside.execute("BEGIN")
        aside.execute("SELECT * FROM hosts FOR UPDATE")
        refused = client.put(PATH, json=terms(1), headers=NEW)
        assert refused.status_code == 503
        assert refused.json()["type"] == "urn:xtc:problem:store-busy"
        assert refused.headers["retry-after"]
        assert client.get("/v1/contracts").status_code == 200
        aside.execute("ROLLBACK")
        assert client.put(PATH, json=terms(1), headers=NEW).status_code == 201


def test_a_request_that_found_no_database_is_done_once_when_it_comes_again(
    url: str, postgres: "PostgresServer"
) -> None:
    with opened(url, busy_s=BUSY_S) as rig:
        filled(rig)
        client = rig.client()
        assert client.get("/readyz").status_code == 200
        body = {"host": "gold", "vr": "r5", "contract": terms(1)}
        key = {"Idempotency-Key": "7f3a"}
        postgres.stop()
        try:
            away = client.post("/v1/contracts", json=body, headers=key)
            assert client.get("/readyz").status_code == 503
            assert client.get("/livez").status_code == 200
        finally:
            postgres.start()
        assert away.status_code == 503
        assert away.headers["content-type"] == "application/problem+json"
        assert away.json()["type"] == "urn:xtc:problem:store"
        answers = [_when_ready(client, body, key) for _ in range(2)]
        assert statuses(answers) == [201, 201]
        assert answers[0].content == answers[1].content
        assert rig.store.contracts.get("gold", "r5").version.number == 1


def _when_ready(client: Any, body: Any, key: dict[str, str]) -> httpx.Response:
    """Ask until the database answers; its first connections may be those that were lost."""
    deadline = time.monotonic() + WAIT_S
    while True:
        answer: httpx.Response = client.post("/v1/contracts", json=body, headers=key)
        if answer.status_code != 503 or time.monotonic() > deadline:
            return answer

"""Limited tokens against every operation: what they may not see is not there, in any answer."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from litestar import Litestar, get
from litestar.handlers import HTTPRouteHandler
from litestar.testing import TestClient
from reach_rig import ACME, BETA, BOSS, REACHES, SECRETS, scene
from rest_rig import Rig, report

from policer.contracts.contract import Contract
from policer.contracts.reach import Reach
from policer.errors import Problem
from policer.rest.access.gate import CLOSED, FILTERED, OPEN
from policer.rest.app import ROOMS, describe
from policer.store import Stored
from policer.store.limited.contracts import ReachedContracts

T = TypeVar("T")
CLOSED_ONES = {
    "addHost",
    "changeHost",
    "removeHost",
    "listTokens",
    "readToken",
    "addToken",
    "revokeToken",
    "listAudit",
    "readLeadership",
    "putClass",
    "removeClass",
    "listTenants",
    "readTenant",
    "putTenant",
    "removeTenant",
    "readFleet",
    "makePlan",
    "readPlan",
    "applyPlan",
    "readBrake",
    "changeBrake",
    "exemptRouter",
    "endExemption",
    "raiseEpoch",
    "listWebhooks",
    "addWebhook",
    "readWebhook",
    "removeWebhook",
    "testWebhook",
    "listDeadLetters",
    "redeliverLetters",
}
LIMITED = sorted(REACHES)
PARTS = ["both", "nothing", "router", "tenant"]
PLACES = [
    *[("edge-1", "acme-1"), ("edge-1", "beta-1"), ("core-9", "beta-2"), ("edge-1", "free-1")],
    *[("core-9", "roaming-9"), ("core-9", "lost-9"), ("core-9", "velvet-9")],
]
OTHERS = {"month": "2026-11", "webhook": "0123456789ab", "plan": 32 * "0"}
"""What else paths name."""
TERMS = {"guarantee_pps": 1_000, "tenant": "acme"}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A service that tests only read, or fail to change."""
    with scene(tmp_path_factory.mktemp("reach")) as rig:
        yield rig


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Rig]:
    """A service that a test may change."""
    with scene(tmp_path) as rig:
        yield rig


def handlers() -> Iterator[HTTPRouteHandler]:
    for room in ROOMS:
        for handler in room.HANDLERS:
            assert isinstance(handler, HTTPRouteHandler)
            yield handler


def operations() -> Iterator[tuple[str, str, str]]:
    """Yield method, path and name of every operation that takes a token."""
    for path, methods in describe()["paths"].items():
        for method, operation in methods.items():
            if operation["security"]:
                yield method, path, operation["operationId"]


def test_every_operation_says_what_limited_tokens_get_or_is_closed_to_them() -> None:
    said = {handler.operation_id: handler.opt.get("limited", CLOSED) for handler in handlers()}
    assert {name for name, limited in said.items() if limited == CLOSED} == CLOSED_ONES
    assert set(said.values()) == {CLOSED, FILTERED}
    for method, path, name in operations():
        told = describe()["paths"][path][method]["description"]
        refused = "is refused (403)" in told
        assert refused is (name in CLOSED_ONES), name


@pytest.mark.parametrize("who", LIMITED)
def test_what_is_closed_is_closed_whatever_is_asked(rig: Rig, who: str) -> None:
    for method, path, name in operations():
        if name not in CLOSED_ONES:
            continue
        for host in ("edge-1", "core-9", "nowhere"):
            where = path.format(host=host, vr="r", name="r", token="0123456789ab", **OTHERS)
            answer = rig.client(who).request(method, where, json={"name": "x"})
            assert answer.status_code == 403, name


def test_a_new_operation_that_does_not_say_is_closed(rig: Rig) -> None:
    """As the guard of the application decides it, and not as this file knows the handlers."""

    @get("/v1/brand/new", operation_id="brandNew", scope="read", sync_to_thread=False)
    def brand_new() -> str:
        return "all of the fleet"

    app: Litestar = rig.app
    app.register(brand_new)
    app.state.queries = {**app.state.queries, "brandNew": {}}
    assert rig.client("read").get("/v1/brand/new").status_code == 200
    for who in LIMITED:
        refused = rig.client(who).get("/v1/brand/new")
        assert refused.status_code == 403
        assert "without limits" in refused.json()["detail"]


def test_metrics_are_of_the_whole_fleet_and_closed(tmp_path: Path) -> None:
    with scene(tmp_path, metrics_open=False) as rig:
        assert rig.client("read").get("/metrics").status_code == 200
        for who in LIMITED:
            assert rig.client(who).get("/metrics").status_code == 403


def requests_of(method: str, path: str) -> Iterator[dict[str, Any]]:
    """Yield what a curious client sends, of one operation."""
    bodies: list[Any] = [None]
    for host, vr in [*PLACES, ("edge-1", "none-1"), ("none-9", "none-2")]:
        url = path.format(host=host, vr=vr, name=vr, token="0123456789ab", **OTHERS)
        if method in {"post", "put"}:
            bodies = [
                TERMS,
                {"guarantee_pps": 1e6, "tenant": "acme"},
                {"guarantee_pps": 1},
                {"host": host, "vr": vr, "contract": TERMS},
                {"host": host, "vr": vr, "contract": {"guarantee_pps": 1e6}},
                {"class": vr, "tenant": "acme"},
                {"host": host, "vr": "acme-1", "contract": {"class": vr, "tenant": "acme"}},
                {"vr": vr, "contract": TERMS},
                {"until": None, "reason": "mine"},
                {"until": "2020-01-01T00:00:00Z"},
            ]
        for body in bodies:
            yield {"method": method, "url": url, "json": body}
        if method == "get":
            for extra in (f"host={host}", f"vr={vr}", "kind=refused", "after=MA", "limit=1"):
                yield {"method": method, "url": f"{url}?{extra}"}


RESUMED: list[dict[str, str]] = [{}, {"Last-Event-ID": "0"}]
BODIES: list[dict[str, Any]] = [TERMS, {"guarantee_pps": 1}, {"until": None}]
HEADERS: list[dict[str, str]] = [
    {},
    {"If-None-Match": "*"},
    {"If-Match": "*"},
    {"If-Match": '"v1"'},
    {"If-Match": '"v99"'},
]


def combined(
    who: str, operation: str, some: Iterable[Any], others: Sequence[Any]
) -> list[tuple[Any, Any]]:
    """Return each with all others for a tenant's token, and in turn for those limited otherwise.

    A closed operation is refused before it reads anything: there all take turns.
    """
    if who == "tenant" and operation not in CLOSED_ONES:
        return different(itertools.product(some, others))
    return different(zip(some, itertools.cycle(others), strict=False))


def different(found: Iterable[T]) -> list[T]:
    """Return each once: many paths name no host and no router, and many requests have no body."""
    return list({repr(one): one for one in found}.values())


def without_echo(text: str, request: dict[str, Any]) -> str:
    """Return an answer without what the request itself said, and without its random id."""
    text = re.sub(r"[0-9a-f]{16}", "", text)
    for name in set(re.findall(r"[a-z]+-[0-9]", repr(request))):
        text = text.replace(name, "")
    return text


def told(text: str, who: str) -> list[str]:
    """Return secrets in a text; a number among more digits (a time's) is another number."""
    secrets = "|".join(map(re.escape, SECRETS[who]))
    return re.findall(rf"(?<!\d)(?:{secrets})(?!\d)", text)


@pytest.mark.parametrize("who", LIMITED)
def test_no_answer_tells_a_limited_token_anything_of_others(fresh: Rig, who: str) -> None:
    asked = 0
    with fresh.client(who) as client:
        for method, path, name in operations():
            more = RESUMED if method == "get" else HEADERS
            for sent, headers in combined(who, name, different(requests_of(method, path)), more):
                answer = client.request(**sent, headers=headers)
                assert answer.status_code < 500, (name, sent)
                text = without_echo(answer.text + repr(answer.headers), sent)
                assert not told(text, who), (name, sent, headers, text)
                asked += 1
    assert asked > 300


def same(answer: httpx.Response, names: tuple[str, str]) -> tuple[Any, ...]:
    """Return an answer without the names that were asked for, and what differs each time."""
    text = re.sub(r"urn:xtc:request:[0-9a-f]+", "", answer.text)
    for name in names:
        text = text.replace(name, "?")
    tag = answer.headers.get("etag"), answer.headers.get("retry-after")
    return answer.status_code, text, tag


def hidden_and_missing(who: str) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return pairs of what is there and hidden, and what is not there at all."""
    missing = "none-9", "none-2"
    pairs = [(("core-9", vr), missing) for vr in ("beta-2", "roaming-9", "lost-9", "velvet-9")]
    if who != "host":
        pairs.append((("edge-1", "beta-1"), ("edge-1", "none-1")))
        pairs.append((("edge-1", "other-1"), ("edge-1", "noone-1")))
    if who == "nothing":
        pairs.append((("edge-1", "acme-1"), ("none-1", "none-1")))
    return pairs


@pytest.mark.parametrize("who", LIMITED)
def test_what_is_hidden_is_answered_as_what_does_not_exist(rig: Rig, who: str) -> None:
    with rig.client(who) as client:
        for method, path, name in operations():
            named = {"{vr}", "{host}", "{name}"} & set(re.findall(r"{\w+}", path))
            if not named and not name.endswith("Contract"):
                continue
            for there, missing in hidden_and_missing(who):
                if there[0] == missing[0] and name == "listRoutersOfHost":
                    continue
                bodies = BODIES if method in {"post", "put"} else [None] * len(BODIES)
                for body, headers in combined(who, name, bodies, HEADERS):
                    answers = []
                    for host, vr in (there, missing):
                        full = {"host": host, "vr": vr, "contract": body}
                        sent = full if "{" not in path else body
                        url = path.format(host=host, vr=vr, name=vr, token="x", **OTHERS)
                        answer = client.request(method, url, json=sent, headers=headers)
                        answers.append(same(answer, (host, vr)))
                    assert answers[0] == answers[1], (name, there, headers, body)
                    assert answers[0][0] in {403, 404, 412, 422, 428}, (name, answers[0])


def names_of(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(item["host"], item["vr"]) for item in items]


def items(rig: Rig, who: str, path: str) -> list[dict[str, Any]]:
    answer = rig.client(who).get(path)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["next"] is None
    listed: list[dict[str, Any]] = found["items"]
    return listed


@pytest.mark.parametrize("who", ["both", "router", "tenant"])
def test_lists_have_what_is_reached(rig: Rig, who: str) -> None:
    own = [("edge-1", "acme-1")]
    for path in ("contracts", "routers", "setpoints", "punishments", "hosts/edge-1/routers"):
        assert names_of(items(rig, who, f"/v1/{path}")) == own, path
    assert items(rig, who, "/v1/hosts") == []
    capacity = rig.client(who).get("/v1/capacity").json()
    assert (capacity["hosts"], capacity["capacity_pps"], capacity["forwarded_pps"]) == ([], 0, 0)


def test_hosts_that_are_reached_are_seen_with_all_on_them(rig: Rig) -> None:
    on_edge = [("edge-1", vr) for vr in ("acme-1", "beta-1", "other-1")]
    assert names_of(items(rig, "host", "/v1/contracts")) == on_edge
    assert names_of(items(rig, "host", "/v1/routers")) == [
        *on_edge[:2],
        ("edge-1", "free-1"),
        *on_edge[2:],
    ]
    assert [one["entry"]["name"] for one in items(rig, "host", "/v1/hosts")] == ["edge-1"]
    assert rig.client("host").get("/v1/hosts/edge-1").json()["live"]["braked"]
    capacity = rig.client("host").get("/v1/capacity").json()
    assert [one["host"] for one in capacity["hosts"]] == ["edge-1"]
    assert capacity["capacity_pps"] == 123_457


def test_pages_of_a_part_are_whole_and_go_on(rig: Rig) -> None:
    client, seen, after = rig.client("host"), list[tuple[str, str]](), None
    while True:
        page = client.get(
            "/v1/contracts", params={"limit": 1, **({"after": after} if after else {})}
        )
        seen += names_of(page.json()["items"])
        after = page.json()["next"]
        if after is None:
            break
    assert seen == [("edge-1", vr) for vr in ("acme-1", "beta-1", "other-1")]


def test_a_cursor_of_another_token_shows_no_more(rig: Rig) -> None:
    for path in ("contracts", "routers", "setpoints", "punishments", "events"):
        page = rig.client("read").get(f"/v1/{path}?limit=1").json()
        assert page["next"]
        answer = rig.client("nothing").get(f"/v1/{path}", params={"after": page["next"]})
        assert (answer.status_code, answer.json()["items"]) == (200, [])
        mine = rig.client("tenant").get(f"/v1/{path}", params={"after": page["next"]}).json()
        assert {item["vr"] for item in mine["items"]} <= {"acme-1"}


def kinds(rows: list[dict[str, Any]]) -> list[tuple[str, str | None, str]]:
    return [(row["kind"], row["vr"], row["words"]) for row in rows]


def test_events_are_those_of_ones_routers_in_words_that_name_nobody(rig: Rig) -> None:
    assert kinds(items(rig, "tenant", "/v1/events")) == [
        ("pardoned", "acme-1", "by operator"),
        ("punished", "acme-1", "lower"),
        ("refused", "acme-1", ""),
    ]
    assert {row["actor"] for row in items(rig, "tenant", "/v1/events")} == {"operator", "policer"}
    on_edge = [kind for kind, _, _ in kinds(items(rig, "host", "/v1/events"))]
    said = ["twice", "moved", "shielded", "punished", "pardoned", "punished", "refused", "link"]
    assert on_edge == [*said, *["override_set"] * 3]


def test_a_router_that_was_anothers_shows_nothing_of_that_time(fresh: Rig) -> None:
    history = fresh.client("tenant").get("/v1/hosts/edge-1/contracts/acme-1/history").json()
    assert [(one["version"], one["by"]) for one in history["items"]] == [(2, "operator")]
    fresh.store.contracts.put("edge-1", "acme-1", BETA, 2, BOSS)
    gone = fresh.client("tenant").get("/v1/hosts/edge-1/contracts/acme-1/history")
    assert gone.status_code == 404
    # Events stay whose they were.
    assert len(items(fresh, "tenant", "/v1/events")) == 3


def test_a_removed_contract_keeps_its_tenant(fresh: Rig) -> None:
    where = "/v1/hosts/edge-1/contracts/acme-2"
    client = fresh.client("tenant")
    assert client.get(where).status_code == 404
    assert len(client.get(f"{where}/history").json()["items"]) == 2
    make = {"If-None-Match": "*"}
    refused = client.put(where, json={"guarantee_pps": 5, "tenant": "beta"}, headers=make)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "tenant")
    assert client.put(where, json=TERMS, headers=make).status_code == 201


def stream(client: TestClient[Litestar], path: str, last: str | None = None) -> str:
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        return "".join(answer.iter_text())


def test_streams_are_filtered_wherever_they_are_resumed(rig: Rig) -> None:
    for last in ("0", "1", "5"):
        text = stream(rig.client("tenant"), "/v1/events/stream", last)
        assert "acme-1" in text
        assert "beta" not in text
        assert "core" not in text
    assert "event: event" not in stream(rig.client("nothing"), "/v1/events/stream", "0")
    assert "event: event" not in stream(
        rig.client("tenant"), "/v1/events/stream?host=core-9&vr=beta-2", "0"
    )
    text = stream(rig.client("tenant"), "/v1/stream?host=core-9&host=edge-1")
    assert '"forwarded_pps":1000.0' in text
    assert "beta" not in text
    assert "core-9" not in text


def test_what_is_reached_can_be_changed_and_its_tenant_cannot(fresh: Rig) -> None:
    where = "/v1/hosts/edge-1/contracts/acme-1"
    for who in ("tenant", "router", "host"):
        client = fresh.client(who)
        tag = client.get(where).headers["etag"]
        kept = client.put(where, json=TERMS, headers={"If-Match": tag})
        assert kept.status_code == 200, kept.text
        for tenant in ("beta", None):
            moved = client.put(
                where,
                json={"guarantee_pps": 1_000, "tenant": tenant},
                headers={"If-Match": kept.headers["etag"]},
            )
            assert moved.status_code == 422
            assert moved.json()["errors"][0]["field"] == "tenant"
    assert fresh.store.contracts.get("edge-1", "acme-1").value.tenant == "acme"


@pytest.mark.parametrize(
    ("who", "method", "status"),
    [("tenant", "PUT", 404), ("tenant", "DELETE", 404), ("host", "PUT", 422)],
)
def test_a_guessed_version_does_not_overtake_an_operator(
    fresh: Rig, monkeypatch: pytest.MonkeyPatch, who: str, method: str, status: int
) -> None:
    """An operator gives the router to another tenant just after the token saw its contract."""
    get = ReachedContracts.get

    def overtaken(table: ReachedContracts, host: str, vr: str) -> Stored[Contract]:
        seen = get(table, host, vr)
        fresh.store.contracts.put("edge-1", "acme-1", BETA, 2, BOSS)
        return seen

    where, guessed = "/v1/hosts/edge-1/contracts/acme-1", {"If-Match": '"v3"'}
    body = TERMS if method == "PUT" else None
    with monkeypatch.context() as patch:
        patch.setattr(ReachedContracts, "get", overtaken)
        answer = fresh.client(who).request(method, where, json=body, headers=guessed)
    assert answer.status_code == status, answer.text
    assert fresh.store.contracts.get("edge-1", "acme-1").value == BETA


def test_a_new_contract_keeps_the_tenant_that_an_operator_gave_just_before(
    fresh: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = ReachedContracts._hidden_classes

    def overtaken(table: ReachedContracts, contract: Contract) -> list[Problem]:
        fresh.store.contracts.put("edge-1", "acme-2", BETA, None, BOSS)
        fresh.store.contracts.remove("edge-1", "acme-2", 3, BOSS)
        return hidden(table, contract)

    where, make = "/v1/hosts/edge-1/contracts/acme-2", {"If-None-Match": "*"}
    monkeypatch.setattr(ReachedContracts, "_hidden_classes", overtaken)
    assert fresh.client("tenant").put(where, json=TERMS, headers=make).status_code == 404


def test_what_a_host_has_promised_to_others_is_not_said(fresh: Rig) -> None:
    where = "/v1/hosts/edge-1/contracts/acme-1"
    too_much = {"guarantee_pps": 200_000, "ceiling_pps": 100, "tenant": "acme"}
    refused = fresh.client("tenant").put(where, json=too_much, headers={"If-Match": '"v2"'})
    assert refused.status_code == 422
    fields = {one["field"]: one["problem"] for one in refused.json()["errors"]}
    assert "100 is below the guarantee of 200000" in fields["ceiling_pps"]
    assert not re.search(r"\d", fields["guarantee_pps"])
    whole = fresh.client("host").put(where, json=too_much, headers={"If-Match": '"v2"'})
    assert "123457" in whole.text


def test_new_contracts_are_made_for_routers_that_are_there(fresh: Rig) -> None:
    make, of_nobody = {"If-None-Match": "*"}, {"guarantee_pps": 10}
    path = "/v1/hosts/edge-1/contracts/{}"
    of_router = fresh.client("router")
    assert of_router.put(path.format("acme-9"), json=of_nobody, headers=make).status_code == 404
    fresh.show(fresh.fleet.host("edge-1").host, report("acme-9", 1.0))
    made = of_router.put(path.format("acme-9"), json=of_nobody, headers=make)
    assert made.status_code == 201
    assert made.json()["changed_by"].startswith("router (")
    assert of_router.get(path.format("acme-9")).json()["changed_by"].startswith("router (")
    by_host = fresh.client("host").put(path.format("planned-1"), json=of_nobody, headers=make)
    assert by_host.status_code == 201
    taken = fresh.client("host").put(path.format("planned-1"), json=of_nobody, headers=make)
    assert taken.status_code == 409
    for who in ("tenant", "both"):
        given = fresh.client(who).put(path.format("acme-8"), json=TERMS, headers=make)
        assert given.status_code == 404


def test_a_key_does_not_answer_with_what_a_wider_reach_was_told(fresh: Rig) -> None:
    """As when an issuer takes groups from a person, who then repeats what was done before."""
    body = {"host": "edge-1", "vr": "other-2", "contract": {"guarantee_pps": 1}}
    key = {"Idempotency-Key": "once"}
    row, secret = fresh.store.tokens.add("shrinks", ["operate"], None, "test")
    client = fresh.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.post("/v1/contracts", json=body, headers=key).status_code == 201
    assert client.post("/v1/contracts", json=body, headers=key).status_code == 201
    with fresh.store._database.write() as connection:
        connection.exec_driver_sql(
            f"""UPDATE tokens SET reach = '{{"tenants":["acme"]}}' WHERE id = '{row.id}'"""
        )
    fresh.wait(10.0)
    repeated = client.post("/v1/contracts", json=body, headers=key)
    assert (repeated.status_code, "other-2" in repeated.text) == (422, False)
    assert repeated.json()["type"].endswith("key-reused")
    again = client.post("/v1/contracts", json=body, headers={"Idempotency-Key": "twice"})
    assert again.status_code == 404


def test_a_pardon_is_for_what_is_reached(fresh: Rig) -> None:
    path = "/v1/hosts/edge-1/routers/{}/pardon"
    client = fresh.client("tenant")
    assert client.post(path.format("acme-1")).status_code == 202
    hidden, missing = (client.post(path.format(vr)) for vr in ("beta-1", "none-1"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    assert [pardon.vr for pardon in fresh.inbox.take_all()] == ["acme-1"]


def test_a_check_shows_the_hosts_sums_and_takes_the_whole_host(rig: Rig) -> None:
    body = {"host": "edge-1", "vr": "acme-1", "contract": {"guarantee_pps": 1, "tenant": "acme"}}
    assert rig.client("host").post("/v1/contracts/check", json=body).json()["admissible"]
    assert rig.client("tenant").post("/v1/contracts/check", json=body).status_code == 404


def test_tokens_say_what_they_are(rig: Rig) -> None:
    who = rig.client("both").get("/v1/token").json()
    assert (who["name"], who["scopes"], who["expires_at"]) == ("both", ["operate"], None)
    assert who["reach"] == {"hosts": ["edge-*"], "routers": [], "tenants": ["acme", "gone"]}
    assert who["address"] == "testclient"
    assert rig.client("admin").get("/v1/token").json()["reach"]["hosts"] == []


@pytest.mark.parametrize("scope", ["read", "operate", "admin"])
def test_a_token_learns_what_it_may_do(rig: Rig, scope: str) -> None:
    assert rig.client(scope).get("/v1/token").json()["scopes"][-1] == scope


def test_tokens_are_made_with_limits_by_who_has_none(fresh: Rig) -> None:
    client = fresh.client("admin")
    reach = {"hosts": ["edge-*"], "tenants": ["acme"]}
    made = client.post("/v1/tokens", json={"name": "n", "scope": "read", "reach": reach})
    assert made.status_code == 201
    assert made.json()["token"]["reach"] == {**reach, "routers": []}
    listed = client.get(f"/v1/tokens/{made.json()['token']['id']}").json()
    assert listed["reach"] == {**reach, "routers": []}
    admin = client.post("/v1/tokens", json={"name": "n", "scope": "admin", "reach": reach})
    assert (admin.status_code, admin.json()["errors"][0]["field"]) == (422, "scope")
    wrong = client.post(
        "/v1/tokens", json={"name": "n", "scope": "read", "reach": {"hosts": ["[ab]"]}}
    )
    assert wrong.json()["errors"][0]["field"] == "reach.hosts[0]"
    assert "regex" not in wrong.text


def test_an_administrator_by_mistake_is_still_limited(fresh: Rig) -> None:
    """The store makes no such token; the guard does not count on that."""
    row, secret = fresh.store.tokens.add("odd", ["admin"], None, "test")
    with fresh.store._database.write() as connection:
        connection.exec_driver_sql(
            f"""UPDATE tokens SET reach = '{{"hosts":["*"]}}' WHERE id = '{row.id}'"""
        )
    client = fresh.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.post("/v1/tokens", json={"name": "n", "scope": "admin"}).status_code == 403
    assert client.get("/v1/audit").status_code == 403
    assert client.delete("/v1/hosts/edge-1", headers={"If-Match": "*"}).status_code == 403


def test_a_reach_that_cannot_be_read_lets_nobody_in(fresh: Rig) -> None:
    row, secret = fresh.store.tokens.add("torn", ["read"], None, "test", Reach(hosts=("a",)))
    with fresh.store._database.write() as connection:
        connection.exec_driver_sql(f"UPDATE tokens SET reach = '{{}}x' WHERE id = '{row.id}'")
    client = fresh.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.get("/v1/contracts").status_code == 503


def test_unlimited_tokens_move_contracts_between_tenants(fresh: Rig) -> None:
    where = "/v1/hosts/edge-1/contracts/acme-1"
    moved = fresh.client("operate").put(
        where, json={"guarantee_pps": 1, "tenant": "beta"}, headers={"If-Match": '"v2"'}
    )
    assert moved.status_code == 200
    assert fresh.client("tenant").get(where).status_code == 404


def test_health_and_the_page_are_open_to_all() -> None:
    assert OPEN not in {handler.opt["scope"] for handler in handlers()}
    assert Contract(guarantee_pps=0).tenant is None
    assert ACME.tenant == "acme"

"""The fleet as one document over REST: planned, applied by id and ETag, bounded, and guarded."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from rest_rig import GOLD, PROMISE, Rig, filled, opened, report

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.rest.handlers import plans
from policer.rest.handlers.plans import MAX_BODY

OTHER = {
    "requests": "tcp://192.0.2.9:7077",
    "telemetry": "tcp://192.0.2.9:7078",
    "server_key": 40 * "A",
    "capacity_pps": 1e5,
}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_per_s=1e6, rate_burst=1e6) as rig:
        filled(rig)
        yield rig


def make(
    client: TestClient[Litestar], fleet: dict[str, Any], *, keep: bool = False, status: int = 201
) -> Any:
    answer = client.post("/v1/plans", json={"fleet": {"version": 1, **fleet}, "keep": keep})
    assert answer.status_code == status, answer.text
    return answer


def contracts(**by_router: Any) -> dict[str, Any]:
    """Return contracts of the host gold, whose entry stays."""
    return {"hosts": {"gold": {"contracts": by_router}}}


def test_the_fleet_is_one_document_without_any_secret(rig: Rig) -> None:
    rig.store.contracts.put(ANYWHERE, "r7", Contract(), None, "test")
    answer = rig.client("read").get("/v1/fleet")
    fleet = answer.json()
    assert fleet["hosts"]["gold"]["contracts"]["r1"]["guarantee_pps"] == PROMISE.guarantee_pps
    assert list(fleet["contracts"]) == ["r7"]
    assert set(fleet) == {"version", "tenants", "classes", "hosts", "contracts"}
    for secret in rig.secrets.values():
        assert secret not in answer.text
        assert secret.split("_")[1] not in answer.text
    assert make(rig.client(), fleet).json()["changes"] == []


def test_a_plan_is_made_read_and_applied_under_its_etag(rig: Rig) -> None:
    client = rig.client("operate")
    made = make(client, contracts(r1={"guarantee_pps": 30e3}, r2={}), keep=True)
    plan, path = made.json(), made.headers["location"]
    assert path == f"/v1/plans/{plan['id']}"
    assert (made.headers["etag"], plan["version"], plan["admissible"]) == ('"v1"', 1, True)
    assert plan["needs"] == "operate"
    assert [(one["action"], one["name"]) for one in plan["changes"]] == [
        ("change", "r1"),
        ("add", "r2"),
    ]
    assert plan["hosts"] == [
        {
            "host": "gold",
            "capacity_pps": GOLD.capacity_pps,
            "promised_pps": 30e3,
            "before_pps": 20e3,
            "overcommit": False,
        }
    ]
    assert rig.client("read").get(path).json() == plan
    assert rig.store.contracts.get("gold", "r1").value == PROMISE
    assert client.post(f"{path}/apply").status_code == 428
    for wrong in ('"v3"', "nonsense", '"v2"'):
        assert client.post(f"{path}/apply", headers={"If-Match": wrong}).status_code == 412
    done = client.post(f"{path}/apply", headers={"If-Match": '"v1"'})
    assert (done.status_code, done.headers["etag"]) == (200, '"v2"')
    assert done.json() == plan | {
        "version": 2,
        "applied_at": done.json()["applied_at"],
        "applied_by": done.json()["applied_by"],
    }
    assert rig.store.contracts.get("gold", "r1").value == Contract(guarantee_pps=30e3)
    for again in ('"v1"', '"v2"', "*"):
        repeated = client.post(f"{path}/apply", headers={"If-Match": again})
        assert (repeated.status_code, repeated.json()) == (200, done.json())
    assert rig.store.contracts.get("gold", "r1").version.number == 2


def test_a_plan_is_stale_once_the_fleet_has_changed(rig: Rig) -> None:
    client = rig.client()
    path = make(client, contracts(r1={})).headers["location"]
    rig.store.contracts.put("gold", "r2", Contract(), None, "eve")
    answer = client.post(f"{path}/apply", headers={"If-Match": '"v1"'})
    assert (answer.status_code, answer.json()["type"]) == (412, "urn:xtc:problem:stale")
    assert "plan again" in answer.json()["detail"]
    assert client.get(path).json()["applied_at"] is None


def test_a_plan_tells_all_its_problems_and_is_then_refused(rig: Rig) -> None:
    client = rig.client()
    fleet = contracts(r1={"guarantee_pps": 2e5}, r2={"class": "none"}, r3={"tenant": "acme"})
    made = make(client, fleet, keep=True)
    assert made.json()["admissible"] is False
    assert [one["field"] for one in made.json()["problems"]] == [
        "hosts.gold.contracts.r2.class",
        "hosts.gold.contracts.r3.tenant",
        "hosts.gold.capacity_pps",
    ]
    path = made.headers["location"]
    refused = client.post(f"{path}/apply", headers={"If-Match": '"v1"'})
    assert refused.status_code == 422
    assert refused.json()["errors"] == made.json()["problems"]


@pytest.mark.parametrize(
    ("fleet", "keep"),
    [
        ({"hosts": {"new": OTHER}}, True),
        ({"hosts": {"gold": {}}}, False),
        ({"hosts": {"gold": OTHER}}, True),
    ],
)
def test_hosts_and_where_they_are_reached_are_administrators_matter(
    rig: Rig, fleet: dict[str, Any], keep: bool
) -> None:
    """Who plans needs not be who applies: an operator plans, an administrator looks and applies."""
    made = make(rig.client("operate"), fleet, keep=keep)
    assert made.json()["needs"] == "admin"
    path, tag = f"{made.headers['location']}/apply", {"If-Match": '"v1"'}
    before = rig.store.plans.fleet()
    assert rig.client("read").post(path, headers=tag).status_code == 403
    refused = rig.client("operate").post(path, headers=tag)
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:xtc:problem:forbidden")
    assert rig.store.plans.fleet() == before
    assert rig.client("admin").post(path, headers=tag).status_code == 200
    assert rig.client("read").post("/v1/plans", json={}).status_code == 403


def test_plans_that_there_are_not_are_not_found(rig: Rig) -> None:
    client, tag = rig.client(), {"If-Match": '"v1"'}
    for plan, status in ((32 * "0", 404), ("..", 404), (32 * "g", 422), ("0", 422)):
        assert client.get(f"/v1/plans/{plan}").status_code == status
        if status == 404 and plan != "..":
            assert client.post(f"/v1/plans/{plan}/apply", headers=tag).status_code == 404


def test_a_followed_router_counts_on_the_host_that_alone_reports_it(rig: Rig) -> None:
    rig.show(GOLD, report("r1", 1.0), report("r5", 1.0))
    made = make(rig.client(), {"contracts": {"r5": {"guarantee_pps": 90e3}}}, keep=True)
    assert [one["field"] for one in made.json()["problems"]] == ["hosts.gold.capacity_pps"]
    both = make(rig.client(), {"contracts": {"r1": {"guarantee_pps": 90e3}}}, keep=True)
    assert [one["field"] for one in both.json()["problems"]] == ["contracts.r1"]
    assert "gold, silver" in both.json()["problems"][0]["problem"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"fleet": {}}, "fleet"),
        ({"fleet": {"version": 2}}, "fleet.version"),
        ({"fleet": {"version": 1, "tokens": {}}}, "fleet"),
        ({"fleet": {"version": 1, "hosts": {"a b": {}}}}, "hosts"),
        ({"fleet": {"version": 1, "hosts": {"a": {"capacity_pps": "1kpps"}}}}, "capacity_pps"),
        ({"fleet": {"version": 1}, "keep": 1}, "keep"),
        ({"fleet": {"version": 1}, "kept": True}, "body"),
    ],
)
def test_a_document_of_the_wrong_form_is_refused(rig: Rig, body: Any, field: str) -> None:
    answer = rig.client().post("/v1/plans", json=body)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:xtc:problem:invalid")
    assert field in answer.text


def test_markup_in_names_and_texts_stays_text(rig: Rig) -> None:
    script = "<script>alert(1)</script>"
    made = make(rig.client(), {"tenants": {"acme": {"description": script}}}, keep=True)
    assert made.headers["content-type"].startswith("application/json")
    assert made.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert made.json()["changes"][0]["fields"][0]["after"] == script
    for kind in ("tenants", "classes", "hosts", "contracts"):
        make(rig.client(), {kind: {script: {}}}, status=422)


# --- bounds


def test_a_body_may_be_large_here_and_no_larger(rig: Rig) -> None:
    client, headers = rig.client(), {"Content-Type": "application/json"}
    for size, status in ((MAX_BODY - 100, 201), (MAX_BODY + 1, 413)):
        raw = json.dumps({"fleet": {"version": 1}, "keep": True}).ljust(size)
        assert client.post("/v1/plans", content=raw, headers=headers).status_code == status
    elsewhere = client.put("/v1/tenants/acme", content=b" " * (1 << 17), headers=headers)
    assert elsewhere.status_code == 413


def test_a_token_has_so_many_plans_made(rig: Rig) -> None:
    client = rig.client()
    for _ in range(10):
        make(client, {}, keep=True)
    refused = make(client, {}, keep=True, status=429)
    assert refused.headers["retry-after"] == "5"
    make(rig.client("operate"), {}, keep=True)
    rig.wait(5.0)
    make(client, {}, keep=True)
    assert client.options("/v1/plans").status_code == 204


def test_no_more_is_worked_out_at_once_than_can_be(rig: Rig) -> None:
    client = rig.client()
    path = make(client, {}, keep=True).headers["location"]
    held = [plans._working.acquire(blocking=False) for _ in range(2)]
    try:
        assert held == [True, True]
        for answer in (
            client.get("/v1/fleet"),
            make(client, {}, status=503),
            client.post(f"{path}/apply", headers={"If-Match": '"v1"'}),
        ):
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    finally:
        for _ in held:
            plans._working.release()
    assert client.get("/v1/fleet").status_code == 200


# --- tenants


def test_tenants_are_entered_changed_listed_and_removed(rig: Rig) -> None:
    client, path = rig.client("operate"), "/v1/tenants/acme"
    assert client.put(path, json={}).status_code == 428
    made = client.put(path, json={"description": "Acme"}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["location"]) == (201, path)
    assert client.put(path, json={}, headers={"If-None-Match": "*"}).status_code == 409
    changed = client.put(path, json={"description": "Acme Ltd."}, headers={"If-Match": '"v1"'})
    assert changed.json()["entry"] == {"description": "Acme Ltd."}
    assert client.get(path).headers["etag"] == '"v2"'
    contract = {"host": "gold", "vr": "r2", "contract": {"tenant": "acme"}}
    assert client.post("/v1/contracts", json=contract).status_code == 201
    assert client.delete(path, headers={"If-Match": '"v2"'}).status_code == 422
    rig.store.tenants.put("zed", rig.store.tenants.get("acme").value, None, "test")
    first = client.get("/v1/tenants?limit=1").json()
    assert [one["name"] for one in first["items"]] == ["acme"]
    rest = client.get("/v1/tenants", params={"after": first["next"]}).json()
    assert ([one["name"] for one in rest["items"]], rest["next"]) == (["zed"], None)
    assert client.delete("/v1/tenants/zed", headers={"If-Match": '"v1"'}).status_code == 204
    assert client.get("/v1/tenants/zed").status_code == 404
    assert rig.client("read").put(path, json={}).status_code == 403

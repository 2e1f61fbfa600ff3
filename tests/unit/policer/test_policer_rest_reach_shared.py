"""Limited tokens and what is not of one host: contracts that follow routers, classes, overrides."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from following_rig import UUID
from reach_rig import ACME, BETA, BOSS, CORE, EDGE, scene
from rest_rig import Rig, report

from policer.contracts.contract import Contract
from policer.contracts.overrides import standing
from policer.contracts.promised import ANYWHERE
from policer.contracts.reach import Reach
from policer.store.database.records import now

ROAM = "/v1/routers/roam-1/contract"
OF_CLASS = Contract(class_name="gold-1", tenant="acme")
KEPT = {"class": "gold-1", "tenant": "acme"}
MAKE = {"If-None-Match": "*"}
TAKES = {"If-Match": "*"}
SEVERAL = ["host", "router", "tenant", "both"]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """The fleet of the other tests, and a contract of acme's that follows a router on edge-1."""
    with scene(tmp_path) as rig:
        rig.store.classes.put("gold-1", Contract(guarantee_pps=100), None, BOSS)
        rig.store.contracts.put(ANYWHERE, "roam-1", OF_CLASS, None, BOSS, seen_on="edge-1")
        stays(rig, "edge-1")
        yield rig


def stays(rig: Rig, host: str | None) -> None:
    """Let the router acme-roams, whose contract follows it, be on a host."""
    for one, own in ((EDGE, {"acme-1": ACME}), (CORE, {"beta-2": BETA})):
        here = one.name == host
        came = {"acme-roams": ACME} if here else {}
        rig.show(
            one,
            *(report(vr, 1.0) for vr in (*own, *came)),
            contracts={**own, **came},
            follows=dict.fromkeys(came, "roam-1"),
            here=frozenset({"roam-1"} if here else ()),
        )


def names(rig: Rig, who: str, path: str = "/v1/contracts") -> list[str]:
    """Return what is listed, in pages of one."""
    client, found, after = rig.client(who), list[str](), None
    while True:
        asked = {"limit": 1} | ({} if after is None else {"after": after})
        page = client.get(path, params=asked).json()
        found += [item.get("vr", item.get("name")) for item in page["items"]]
        after = page["next"]
        if after is None:
            return found


def refused(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    return [(one["field"], one["problem"]) for one in answer.json()["errors"]]


@pytest.mark.parametrize("who", SEVERAL)
def test_a_contract_that_follows_is_seen_where_its_router_is_reached(rig: Rig, who: str) -> None:
    read = rig.client(who).get(ROAM)
    assert (read.status_code, read.json()["seen_on"]) == (200, "edge-1")
    assert read.json()["changed_by"] == "operator"
    assert read.json()["terms"]["guarantee_pps"] == 100
    assert names(rig, who)[0] == "roam-1"
    history = rig.client(who).get(f"{ROAM}/history").json()["items"]
    assert [one["by"] for one in history] == ["operator"]
    assert rig.client(who).get("/v1/hosts/edge-1/routers/acme-roams").json()["follows"] == "roam-1"


@pytest.mark.parametrize("where", ["core-9", None])
def test_a_contract_whose_router_went_away_is_its_tenants_alone(
    rig: Rig, where: str | None
) -> None:
    stays(rig, where)
    for who in ("host", "router", "both", "nothing"):
        assert "roam-1" not in names(rig, who)
        for path in (ROAM, f"{ROAM}/history"):
            hidden = rig.client(who).get(path)
            missing = rig.client(who).get(path.replace("roam-1", "none-1"))
            assert hidden.status_code == missing.status_code == 404
            assert hidden.json()["detail"].replace("roam-1", "none-1") == missing.json()["detail"]
        assert rig.client(who).delete(ROAM, headers=TAKES).status_code == 404
        assert rig.client(who).put(ROAM, json=KEPT, headers=TAKES).status_code == 404
    read = rig.client("tenant").get(ROAM)
    assert (read.status_code, read.json()["seen_on"]) == (200, where)
    assert names(rig, "tenant") == ["roam-1", "acme-1"]
    assert names(rig, "admin")[:4] == ["away-9", "lost-9", "roam-1", "roaming-9"]


@pytest.mark.parametrize("who", SEVERAL)
def test_what_is_reached_is_changed_and_removed_and_keeps_its_tenant(rig: Rig, who: str) -> None:
    client = rig.client(who)
    changed = client.put(ROAM, json={"guarantee_pps": 50, "tenant": "acme"}, headers=TAKES)
    assert changed.status_code == 200, changed.text
    for tenant in ("beta", None):
        given = {"guarantee_pps": 50, "tenant": tenant}
        assert refused(client.put(ROAM, json=given, headers=TAKES))[0][0] == "tenant"
    assert client.delete(ROAM, headers=TAKES).status_code == 204


@pytest.mark.parametrize("who", [*SEVERAL, "nothing"])
def test_none_is_made_that_follows_a_router(rig: Rig, who: str) -> None:
    client = rig.client(who)
    for router in ("roam-1", "lost-9", "new-1", "acme-1"):
        path = ROAM.replace("roam-1", router)
        assert client.put(path, json=KEPT, headers=MAKE).status_code == 403
        body = {"vr": router, "contract": {"guarantee_pps": 1, "tenant": "acme"}}
        assert client.post("/v1/contracts", json=body).status_code == 403
        assert client.post("/v1/contracts/check", json=body).status_code == 403
    assert len(rig.store.contracts.all()[ANYWHERE]) == 4


def test_what_is_too_much_for_a_host_is_said_without_sums(rig: Rig) -> None:
    for where in ("edge-1", "core-9"):
        stays(rig, where)
        rig.store.homes.set({"roam-1": where}, 0)
        given = {"guarantee_pps": 9e6, "tenant": "acme"}
        answer = rig.client("tenant").put(ROAM, json=given, headers=TAKES)
        assert "cannot keep that" in dict(refused(answer))["guarantee_pps"]
        assert not {"edge-1", "core-9", "123457", "765433"} & set(answer.text.split())


def test_a_contract_that_follows_gives_its_tenant_to_one_that_comes_before_it(rig: Rig) -> None:
    rig.show(
        EDGE,
        report("acme-roams", 1.0),
        contracts={"acme-roams": BETA},
        follows={"acme-roams": "roam-2"},
    )
    where = "/v1/hosts/edge-1/contracts/acme-roams"
    nobodys, acmes = {"guarantee_pps": 1}, {"guarantee_pps": 1, "tenant": "acme"}
    for who in ("tenant", "both"):
        assert rig.client(who).put(where, json=acmes, headers=MAKE).status_code == 404
    for who in ("router", "host"):
        for given in (nobodys, acmes):
            assert refused(rig.client(who).put(where, json=given, headers=MAKE))[0][0] == "tenant"


def test_no_contract_is_made_for_a_router_that_one_may_follow_under_a_name_not_known_yet(
    rig: Rig,
) -> None:
    """As after a start of the policer, until the host of another tenant's router is heard."""
    betas = Contract(guarantee_pps=1, tenant="beta")
    rig.store.contracts.put(ANYWHERE, UUID, betas, None, BOSS, seen_on="edge-1")
    where, acmes = "/v1/hosts/edge-1/contracts/acme-2", {"guarantee_pps": 1, "tenant": "acme"}
    its_own = msgspec.structs.replace(report("free-1", 1.0), uuid=UUID)
    for live in (None, [report("acme-1", 1.0)], [its_own]):
        if live is None:
            rig.fleet.put_all({})
        else:
            rig.show(EDGE, *live, unnamed=frozenset({UUID}))
        for who in ("tenant", "both", "router", "host"):
            assert rig.client(who).put(where, json=acmes, headers=MAKE).status_code == 404
    of_host = rig.client("host")
    free = where.replace("acme-2", "free-1")
    assert of_host.put(free, json={"guarantee_pps": 1}, headers=MAKE).status_code == 404
    rig.show(EDGE, report("free-1", 1.0), unnamed=frozenset({UUID}))
    assert of_host.put(free, json={"guarantee_pps": 1}, headers=MAKE).status_code == 201
    rig.show(EDGE, report("acme-1", 1.0))
    assert rig.client("tenant").put(where, json=acmes, headers=MAKE).status_code == 201


def test_a_router_whose_contract_does_not_hold_now_stays_its_tenants(rig: Rig) -> None:
    rig.show(EDGE, report("acme-1", 1.0), report("beta-1", 1.0), tenants={"acme-1": "acme"})
    routers = rig.client("tenant").get("/v1/routers").json()["items"]
    assert [one["vr"] for one in routers] == ["acme-1"]


@pytest.mark.parametrize("who", SEVERAL)
def test_classes_are_seen_that_contracts_name_and_none_is_changed(rig: Rig, who: str) -> None:
    client = rig.client(who)
    assert names(rig, who, "/v1/classes") == ["gold-1"]
    read = client.get("/v1/classes/gold-1").json()
    assert (read["terms"]["guarantee_pps"], read["changed_by"]) == (100, "operator")
    hidden, missing = (client.get(f"/v1/classes/{name}") for name in ("velvet-9", "none-9"))
    assert (hidden.status_code, missing.status_code) == (404, 404)
    for name in ("gold-1", "velvet-9", "new-1"):
        path = f"/v1/classes/{name}"
        assert client.put(path, json={"guarantee_pps": 1}, headers=TAKES).status_code == 403
        assert client.put(path, json={"guarantee_pps": 1}, headers=MAKE).status_code == 403
        assert client.delete(path, headers=TAKES).status_code == 403
    assert rig.client("nothing").get("/v1/classes").json()["items"] == []


@pytest.mark.parametrize("who", SEVERAL)
def test_contracts_name_the_classes_that_are_seen_alone(rig: Rig, who: str) -> None:
    where = "/v1/hosts/edge-1/contracts/acme-1"
    client = rig.client(who)
    for name in ("velvet-9", "idle-9", "none-9"):
        for given in (
            {"class": name},
            {"hours": [{"start": "08:00", "end": "18:00", "class": name}]},
        ):
            answer = client.put(where, json={**given, "tenant": "acme"}, headers=TAKES)
            assert refused(answer) == [("class", f"there is no class {name!r}")]
    kept = client.put(where, json=KEPT, headers=TAKES)
    assert kept.status_code == 200, kept.text


def test_a_check_says_nothing_of_classes_that_are_hidden(rig: Rig) -> None:
    found = []
    for name in ("velvet-9", "none-9"):
        contract = {"class": name, "tenant": "acme"}
        body = {"host": "edge-1", "vr": "acme-1", "contract": contract}
        found.append(rig.client("host").post("/v1/contracts/check", json=body).json())
    assert [one["admissible"] for one in found] == [False, False]
    assert found[0]["promised_pps"] == found[1]["promised_pps"]
    assert found[0]["errors"][0]["fix"] == found[1]["errors"][0]["fix"]


def overridden(rig: Rig, who: str) -> list[tuple[str, str, str | None, str, str]]:
    items = rig.client(who).get("/v1/overrides").json()["items"]
    return [(o["kind"], o["host"], o["vr"], o["reason"], o["set_by"]) for o in items]


def test_overrides_are_seen_of_what_is_reached_without_their_reasons(rig: Rig) -> None:
    acmes = ("exemption", "edge-1", "acme-1", "", "operator")
    for who in ("tenant", "router", "both"):
        assert overridden(rig, who) == [acmes]
        assert rig.client(who).get("/v1/hosts/edge-1/suspension").status_code == 404
    assert overridden(rig, "nothing") == []
    assert overridden(rig, "host") == [
        acmes,
        ("exemption", "edge-1", "beta-1", "", "operator"),
        ("suspension", "edge-1", None, "", "operator"),
    ]
    shown = rig.client("tenant").get("/v1/hosts/edge-1/routers/acme-1").json()["exemption"]
    assert (shown["reason"], shown["set_by"]) == ("", "operator")
    suspended = rig.client("host").get("/v1/hosts/edge-1").json()["live"]["suspension"]
    assert (suspended["reason"], suspended["set_by"]) == ("", "operator")


def test_a_host_that_is_reached_as_a_whole_is_suspended_and_resumed(rig: Rig) -> None:
    where, given = "/v1/hosts/{}/suspension", {"until": None, "reason": "my own"}
    mine = rig.client("host")
    assert mine.delete(where.format("edge-1"), headers=TAKES).status_code == 204
    made = mine.put(where.format("edge-1"), json=given, headers=MAKE)
    assert (made.status_code, made.json()["reason"]) == (201, "my own")
    assert mine.get(where.format("edge-1")).json()["reason"] == "my own"
    rig.fleet.overrides = standing(rig.store.overrides.all(), now())
    assert mine.get("/v1/hosts/edge-1").json()["live"]["suspension"]["reason"] == "my own"
    for host in ("core-9", "none-9"):
        assert mine.put(where.format(host), json=given, headers=MAKE).status_code == 404
        assert mine.delete(where.format(host), headers=TAKES).status_code == 404
    for who in ("tenant", "router", "both", "nothing"):
        part = rig.client(who)
        assert part.put(where.format("edge-1"), json=given, headers=MAKE).status_code == 404
        assert part.put(where.format("edge-1"), json=given, headers=TAKES).status_code == 404
        assert part.delete(where.format("edge-1"), headers=TAKES).status_code == 404


def test_reads_alone_suspend_nothing(rig: Rig) -> None:
    row, secret = rig.store.tokens.add("looks", ["read"], None, BOSS, Reach(hosts=("edge-1",)))
    del row
    client = rig.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.get("/v1/hosts/edge-1/suspension").status_code == 200
    assert client.delete("/v1/hosts/edge-1/suspension", headers=TAKES).status_code == 403


@pytest.mark.parametrize("who", [*SEVERAL, "nothing"])
def test_the_brake_the_epoch_and_exemptions_are_not_for_limited_tokens(rig: Rig, who: str) -> None:
    client = rig.client(who)
    exempt = "/v1/hosts/edge-1/routers/acme-1/exemption"
    assert client.get("/v1/brake").status_code == 403
    assert client.put("/v1/brake", json={"mode": "off"}, headers=TAKES).status_code == 403
    assert client.post("/v1/leadership/epoch", json={"above": 5}).status_code == 403
    assert client.put(exempt, json={"until": "2031-01-01T00:00:00Z"}).status_code == 403
    assert client.delete(exempt, headers=TAKES).status_code == 403

"""Contracts over REST, punishments and their pardon, tokens, and the audit log."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rest_rig import GOLD, PROMISE, Rig, filled, opened

from policer.contracts.ladder import Punishment, Step
from policer.decide.state import HostState, RouterState
from policer.fleet.live import Leadership
from policer.store import PunishmentRow

PATH = "/v1/hosts/gold/contracts/r5"
TERMS: dict[str, Any] = {"guarantee_pps": 10_000, "measures": ["warn", "lower"]}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path) as rig:
        filled(rig)
        yield rig


def test_a_contract_is_made_replaced_and_removed_and_its_history_stays(rig: Rig) -> None:
    client = rig.client("operate")
    made = client.put(PATH, json=TERMS, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.headers["location"] == PATH
    again = client.put(PATH, json=TERMS, headers={"If-None-Match": "*"})
    assert again.status_code == 409
    more = TERMS | {"guarantee_pps": 12_000}
    replaced = client.put(PATH, json=more, headers={"If-Match": '"v1"'})
    assert (replaced.status_code, replaced.headers["etag"]) == (200, '"v2"')
    assert client.put(PATH, json=more, headers={"If-Match": '"v1"'}).status_code == 412
    assert client.get(PATH).json()["contract"]["guarantee_pps"] == 12_000
    assert client.delete(PATH).status_code == 428
    assert client.delete(PATH, headers={"If-Match": '"v2"'}).status_code == 204
    assert client.get(PATH).status_code == 404
    history = client.get(PATH + "/history").json()["items"]
    assert [one["version"] for one in history] == [3, 2, 1]
    assert history[0]["contract"] is None
    assert history[2]["contract"]["guarantee_pps"] == 10_000


def test_a_time_zone_that_is_none_is_told_at_its_field(rig: Rig) -> None:
    terms = TERMS | {"zone": "Mars/Olympus", "hours": [{"start": "08:00", "end": "18:00"}]}
    client = rig.client("operate")
    put = client.put(PATH, json=terms, headers={"If-None-Match": "*"})
    assert put.status_code == 422, put.text
    assert put.json()["errors"][0]["field"] == "zone"
    body = {"host": "gold", "vr": "r5", "contract": terms}
    checked = client.post("/v1/contracts/check", json=body).json()
    assert [error["field"] for error in checked["errors"]] == ["zone"]
    assert checked["promised_pps"] == PROMISE.guarantee_pps


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 428),
        ({"If-None-Match": '"v1"'}, 422),
        ({"If-None-Match": "*", "If-Match": '"v1"'}, 422),
    ],
)
def test_a_put_says_whether_it_makes_or_replaces(
    rig: Rig, headers: dict[str, str], status: int
) -> None:
    answer = rig.client().put(PATH, json=TERMS, headers=headers)
    assert answer.status_code == status
    assert "If-None-Match: *" in answer.text
    assert "r5" not in rig.store.contracts.all()["gold"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"guarantee_pps": 90_000}, "guarantee_pps"),
        ({"ceiling_pps": 5}, "ceiling_pps"),
        ({"guarantee_pps": "10"}, "guarantee_pps"),
        ({"guarantee_pps": -1}, "guarantee_pps"),
        ({"guarantee_pps": True}, "guarantee_pps"),
        ({"weight": 0}, "weight"),
        ({"measures": ["warn", "shoot"]}, "measures[1]"),
        ({"measures": ["lower", "warn"]}, "measures"),
        ({"burst": 0}, "burst"),
        ({"burst": -1}, "burst"),
        ({"burst": 0.5}, "burst"),
        ({"burst": 600_001}, "burst"),
        ({"burst": "4000"}, "burst"),
        ({"guarantee_pps": 0, "burst": 100}, "burst"),
        ({"mystery": 1}, "body"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(rig: Rig, change: Any, field: str) -> None:
    answer = rig.client().put(PATH, json=TERMS | change, headers={"If-None-Match": "*"})
    assert answer.status_code == 422
    errors = answer.json()["errors"]
    assert field in [error["field"] for error in errors], errors
    assert all(error["problem"] and error["fix"] for error in errors)


def test_a_burst_is_kept_replaced_and_taken_away(rig: Rig) -> None:
    client = rig.client("operate")
    body = {"host": "gold", "vr": "r5", "contract": TERMS | {"burst": 4000}}
    made = client.post("/v1/contracts", json=body)
    assert made.json()["contract"]["burst"] == 4000
    more = client.put(
        PATH, json=TERMS | {"burst": 5000}, headers={"If-Match": made.headers["etag"]}
    )
    assert (more.status_code, more.headers["etag"]) == (200, '"v2"')
    client.put(PATH, json=TERMS, headers={"If-Match": '"v2"'})
    assert client.get(PATH).json()["contract"]["burst"] is None
    history = client.get(PATH + "/history").json()["items"]
    assert [one["contract"]["burst"] for one in history] == [None, 5000, 4000]
    changes = rig.client("admin").get("/v1/audit").json()["items"][:2]
    assert [(one["before"]["burst"], one["after"]["burst"]) for one in changes] == [
        (5000, None),
        (4000, 5000),
    ]


def test_the_document_says_what_a_burst_may_be(rig: Rig) -> None:
    document = rig.client("read").get("/v1/openapi.json").json()
    burst = document["components"]["schemas"]["Contract"]["properties"]["burst"]
    assert burst["default"] is None
    (number, _) = burst["anyOf"]
    assert number["description"].startswith("packets: 1 or more, and at most 60 s of the guarantee")


def test_a_contract_can_be_posted_and_lists_by_host_and_router(rig: Rig) -> None:
    body = {"host": "gold", "vr": "r5", "contract": TERMS}
    made = rig.client("operate").post("/v1/contracts", json=body)
    assert (made.status_code, made.headers["location"]) == (201, PATH)
    listed = rig.client("read").get("/v1/contracts").json()["items"]
    assert [(one["host"], one["vr"]) for one in listed] == [
        ("gold", "r1"),
        ("gold", "r5"),
        ("silver", "r1"),
    ]
    unknown = rig.client("operate").post("/v1/contracts", json=body | {"host": "lead"})
    assert unknown.status_code == 404


def test_a_check_says_what_would_be_and_writes_nothing(rig: Rig) -> None:
    before = rig.store.generation()
    body: dict[str, Any] = {"host": "gold", "vr": "r5", "contract": TERMS}
    good = rig.client("read").post("/v1/contracts/check", json=body)
    assert good.status_code == 200
    assert good.json() == {
        "admissible": True,
        "errors": [],
        "promised_pps": 30_000.0,
        "capacity_pps": 100_000.0,
        "host": "gold",
    }
    body["contract"] = TERMS | {"guarantee_pps": 90_000, "burst_packets": 5}
    bad = rig.client("read").post("/v1/contracts/check", json=body).json()
    assert bad["admissible"] is False
    assert {error["field"] for error in bad["errors"]} == {"guarantee_pps", "burst_packets"}
    assert rig.store.generation() == before


def test_a_check_of_a_contract_that_is_there_counts_it_once(rig: Rig) -> None:
    more = msgspec.to_builtins(PROMISE) | {"guarantee_pps": 25_000}
    body = {"host": "gold", "vr": "r1", "contract": more}
    answer = rig.client("read").post("/v1/contracts/check", json=body).json()
    assert answer["promised_pps"] == 25_000.0


def test_punishments_are_listed_as_the_store_has_them(rig: Rig) -> None:
    since = datetime.now(UTC) - timedelta(seconds=5)
    row = PunishmentRow("gold", "r1", 2, guilty=True, since=since, step="lower")
    rig.store.punishments.set([row], [])
    items = rig.client("read").get("/v1/punishments").json()["items"]
    assert [(one["vr"], one["step"], one["height"]) for one in items] == [("r1", "lower", 2)]
    assert items[0]["evidence"] == [True, True, None, True, True]
    assert rig.client("read").get("/v1/punishments?host=silver").json()["items"] == []


def test_what_is_only_reported_is_listed_as_such(rig: Rig) -> None:
    standing = Punishment(3, rig.clock.now() - 7.0, guilty=True, step=Step.LIMIT, dry=True)
    state = HostState(at=rig.clock.now(), routers={"r1": RouterState(punishment=standing)})
    rig.show(GOLD, state=state, contracts={"r1": PROMISE})
    (item,) = rig.client("read").get("/v1/punishments").json()["items"]
    assert (item["vr"], item["step"], item["height"]) == ("r1", "limit", 3)
    assert item["only_reported"] is True
    age = datetime.now(UTC) - datetime.fromisoformat(item["since"])
    assert age == pytest.approx(timedelta(seconds=7), abs=timedelta(seconds=3))


def test_a_pardon_reaches_the_policer_once(rig: Rig) -> None:
    for _ in range(2):
        answer = rig.client("operate").post("/v1/hosts/gold/routers/r1/pardon")
        assert answer.status_code == 202
        assert answer.json()["pardoned_from"] == "lower"
    (pardon,) = rig.inbox.take_all()
    assert (pardon.host, pardon.vr) == ("gold", "r1")
    assert pardon.actor.startswith("operate (")
    assert rig.inbox.take_all() == ()


def test_who_is_not_punished_cannot_be_pardoned(rig: Rig) -> None:
    for path in ("gold/routers/r2", "gold/routers/r9", "lead/routers/r1"):
        assert rig.client("operate").post(f"/v1/hosts/{path}/pardon").status_code == 404
    assert rig.inbox.take_all() == ()


def test_a_policer_that_does_not_lead_pardons_nobody(rig: Rig) -> None:
    rig.fleet.leadership = Leadership(epoch=8, holder="elsewhere")
    answer = rig.client("operate").post("/v1/hosts/gold/routers/r1/pardon")
    assert answer.status_code == 503
    assert answer.json()["type"] == "urn:xtc:problem:not-leading"
    assert "elsewhere" in answer.json()["detail"]
    assert rig.inbox.take_all() == ()


def test_a_token_is_made_used_and_revoked_at_once(rig: Rig) -> None:
    made = rig.client().post("/v1/tokens", json={"name": "page", "scope": "read"})
    assert made.status_code == 201
    secret, row = made.json()["secret"], made.json()["token"]
    client = rig.client(None)
    client.headers["Authorization"] = f"Bearer {secret}"
    assert client.get("/v1/hosts").status_code == 200
    assert client.get("/v1/tokens").status_code == 403
    listed = rig.client().get("/v1/tokens")
    assert row["id"] in [one["id"] for one in listed.json()["items"]]
    assert secret not in listed.text
    assert rig.client().delete(made.headers["location"]).status_code == 204
    assert client.get("/v1/hosts").status_code == 401
    assert rig.client().delete("/v1/tokens/0123456789ab").status_code == 404


def test_a_token_must_end_in_the_future(rig: Rig) -> None:
    body = {"name": "late", "scope": "read", "expires_at": "2001-01-01T00:00:00Z"}
    answer = rig.client().post("/v1/tokens", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "expires_at"


def test_every_change_is_in_the_audit_log_with_who_made_it(rig: Rig) -> None:
    rig.client("operate").put(PATH, json=TERMS, headers={"If-None-Match": "*"})
    row = rig.client().get("/v1/audit?limit=1").json()["items"][0]
    assert (row["action"], row["target"]) == ("put", "contract gold/r5")
    token = rig.secrets["operate"].split("_")[1]
    assert (row["actor"], row["actor_id"], row["address"]) == ("operate", token, "testclient")
    assert row["before"] is None
    assert row["after"]["guarantee_pps"] == 10_000


def test_the_host_is_as_it_was_entered(rig: Rig) -> None:
    entry = rig.client("read").get("/v1/hosts/gold").json()["entry"]
    assert msgspec.convert(entry, type(GOLD)) == GOLD

"""Over REST: classes, contracts that follow their routers, and contracts of dates and hours."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rest_rig import GOLD, PROMISE, SILVER, Rig, filled, opened, report

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours

CLASS = "/v1/classes/silver"
TERMS: dict[str, Any] = {"guarantee_pps": 10_000, "measures": ["warn", "lower"]}
OF_CLASS = {"class": "silver"}
UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
FOLLOWED = f"/v1/routers/{UUID}/contract"
MAKE = {"If-None-Match": "*"}
TOMORROW = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path) as rig:
        filled(rig)
        yield rig


def fields(answer: Any) -> list[str]:
    return [error["field"] for error in answer.json()["errors"]]


def show(rig: Rig, name: str, host: Any, *vrs: str, uuid: str = "") -> None:
    """Let a host report routers, one of which may be a domain of that UUID."""
    reports = [report(vr, 1_000.0) for vr in vrs]
    if uuid:
        reports[0] = msgspec.structs.replace(reports[0], uuid=uuid)
    rig.show(host, *reports, contracts={"r1": PROMISE})
    assert rig.fleet.get(name) is not None


# Classes.


def test_a_class_is_made_changed_and_removed(rig: Rig) -> None:
    client = rig.client("operate")
    made = client.put(CLASS, json=TERMS, headers=MAKE)
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.headers["location"] == CLASS
    assert made.json()["name"] == "silver"
    assert made.json()["terms"]["guarantee_pps"] == 10_000
    assert client.put(CLASS, json=TERMS, headers=MAKE).status_code == 409
    assert client.put(CLASS, json=TERMS).status_code == 428
    changed = client.put(CLASS, json=TERMS | {"weight": 3}, headers={"If-Match": '"v1"'})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"v2"')
    assert client.put(CLASS, json=TERMS, headers={"If-Match": '"v1"'}).status_code == 412
    read = client.get(CLASS)
    assert (read.json()["terms"]["weight"], read.headers["etag"]) == (3, '"v2"')
    assert client.delete(CLASS).status_code == 428
    assert client.delete(CLASS, headers={"If-Match": '"v2"'}).status_code == 204
    assert client.get(CLASS).status_code == 404
    assert client.delete(CLASS, headers={"If-Match": '"v2"'}).status_code == 404


def test_any_version_of_a_class_will_do_where_it_is_said(rig: Rig) -> None:
    client = rig.client("operate")
    client.put(CLASS, json=TERMS, headers=MAKE)
    assert client.put(CLASS, json=TERMS, headers={"If-Match": "*"}).status_code == 200


def test_who_may_only_read_changes_no_class(rig: Rig) -> None:
    rig.client("operate").put(CLASS, json=TERMS, headers=MAKE)
    client = rig.client("read")
    assert client.get(CLASS).status_code == 200
    assert client.put(CLASS, json=TERMS, headers={"If-Match": "*"}).status_code == 403
    assert client.delete(CLASS, headers={"If-Match": "*"}).status_code == 403


def test_classes_are_listed_in_pages(rig: Rig) -> None:
    for name in ("b", "a", "c.1", "B"):
        rig.store.classes.put(name, PROMISE, None, "test")
    found, after = [], ""
    for _ in range(4):
        page = rig.client("read").get(f"/v1/classes?limit=1{after}").json()
        found += [one["name"] for one in page["items"]]
        after = f"&after={page['next']}"
    assert found == ["B", "a", "b", "c.1"]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"ceiling_pps": 5}, "ceiling_pps"),
        ({"class": "gold"}, "class"),
        ({"hours": [{"start": "08:00", "end": "09:00"}]}, "hours"),
        ({"valid_from": "2030-01-01T00:00:00Z"}, "valid_from"),
        ({"zone": "Europe/Berlin"}, "zone"),
        ({"class_name": "gold"}, "body"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_class_is_said_at_its_field(
    rig: Rig, change: dict[str, Any], field: str
) -> None:
    answer = rig.client().put(CLASS, json=TERMS | change, headers=MAKE)
    assert answer.status_code == 422
    assert field in fields(answer)


def test_a_class_is_not_removed_while_contracts_name_it(rig: Rig) -> None:
    rig.client().put(CLASS, json=TERMS, headers=MAKE)
    rig.client().put(FOLLOWED, json=OF_CLASS, headers=MAKE)
    refused = rig.client().delete(CLASS, headers={"If-Match": '"v1"'})
    assert refused.status_code == 422
    assert UUID in refused.text


def test_a_class_is_not_made_more_than_its_hosts_can_keep(rig: Rig) -> None:
    rig.client().put(CLASS, json=TERMS, headers=MAKE)
    rig.client().put("/v1/hosts/silver/contracts/r5", json=OF_CLASS, headers=MAKE)
    more = TERMS | {"guarantee_pps": 30_001}
    refused = rig.client().put(CLASS, json=more, headers={"If-Match": '"v1"'})
    assert refused.status_code == 422
    assert "on silver, " in refused.text


# Contracts of classes, dates and hours.


def test_a_contract_shows_what_was_entered_and_what_holds_now(rig: Rig) -> None:
    client = rig.client("operate")
    client.put(CLASS, json=TERMS, headers=MAKE)
    path = "/v1/hosts/gold/contracts/r5"
    made = client.put(path, json=OF_CLASS, headers=MAKE).json()
    assert made["contract"]["class"] == "silver"
    assert made["contract"]["guarantee_pps"] == 0
    assert made["terms"]["guarantee_pps"] == 10_000
    later = TERMS | {"valid_from": TOMORROW.isoformat()}
    changed = client.put(path, json=later, headers={"If-Match": '"v1"'}).json()
    assert changed["terms"] is None
    assert datetime.fromisoformat(changed["contract"]["valid_from"]) == TOMORROW
    hours = [{"start": "00:00", "end": "00:00", "class": "silver"}]
    always = client.put(path, json={"hours": hours}, headers={"If-Match": '"v2"'}).json()
    assert always["terms"]["guarantee_pps"] == 10_000
    assert always["contract"]["hours"][0]["days"] == [
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (OF_CLASS, "class"),
        (TERMS | {"hours": [{"start": "08:00", "end": "09:00", "class": "iron"}]}, "class"),
        (TERMS | {"zone": "Mars/Phobos"}, "zone"),
        (TERMS | {"hours": [{"start": "8:00", "end": "09:00"}]}, "hours[0].start"),
        (TERMS | {"hours": [{"start": "24:00", "end": "09:00"}]}, "hours[0].start"),
        (TERMS | {"hours": [{"start": "08:00", "end": "9", "days": ["mon"]}]}, "hours[0].end"),
        (
            TERMS | {"hours": [{"start": "08:00", "end": "09:00", "days": ["mo"]}]},
            "hours[0].days[0]",
        ),
        (TERMS | {"hours": [{"start": "08:00", "end": "09:00", "days": []}]}, "hours"),
        (TERMS | {"hours": [{"start": "08:00", "end": "09:00"}] * 17}, "hours"),
        (TERMS | {"valid_from": "2030-01-01"}, "valid_from"),
        (TERMS | {"valid_from": "2030-01-01T00:00:00"}, "valid_from"),
        (TERMS | {"valid_from": "1999-01-01T00:00:00Z"}, "valid_from"),
        (TERMS | {"valid_until": "9999-12-31T23:59:59-12:00"}, "valid_until"),
        (
            TERMS | {"valid_from": "2030-01-02T00:00:00Z", "valid_until": "2030-01-01T00:00:00Z"},
            "valid_until",
        ),
    ],
    ids=range(14),
)
def test_what_makes_no_sense_is_said_at_its_field_and_in_a_check_too(
    rig: Rig, body: dict[str, Any], field: str
) -> None:
    answer = rig.client().put("/v1/hosts/gold/contracts/r5", json=body, headers=MAKE)
    assert answer.status_code == 422, answer.text
    assert field in fields(answer)
    check = {"host": "gold", "vr": "r5", "contract": body}
    checked = rig.client().post("/v1/contracts/check", json=check)
    assert checked.status_code in {200, 422}
    assert field in [name.removeprefix("contract.") for name in fields(checked)]


def test_a_contract_of_a_class_that_gives_terms_of_its_own_is_refused(rig: Rig) -> None:
    rig.client().put(CLASS, json=TERMS, headers=MAKE)
    answer = rig.client().put(FOLLOWED, json=OF_CLASS | {"weight": 2}, headers=MAKE)
    assert answer.status_code == 422
    assert fields(answer) == ["class"]
    assert "weight" in answer.text


def test_a_check_counts_by_the_hour(rig: Rig) -> None:
    day = TERMS | {"guarantee_pps": 80_000, "hours": [{"start": "06:00", "end": "22:00"}]}
    night = day | {"hours": [{"start": "22:00", "end": "06:00"}]}
    rig.client().put("/v1/hosts/gold/contracts/day", json=day, headers=MAKE)
    for terms, admissible in ((night, True), (day, False)):
        body = {"host": "gold", "vr": "r9", "contract": terms}
        checked = rig.client("read").post("/v1/contracts/check", json=body).json()
        assert checked["admissible"] is admissible
        assert checked["promised_pps"] == (100_000 if admissible else 180_000)


# Contracts that follow.


def test_a_contract_that_follows_is_made_replaced_and_removed_and_its_history_stays(
    rig: Rig,
) -> None:
    client = rig.client("operate")
    made = client.put(FOLLOWED, json=TERMS, headers=MAKE)
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert made.headers["location"] == FOLLOWED
    assert (made.json()["host"], made.json()["vr"]) == (None, UUID)
    assert made.json()["seen_on"] is None
    assert client.put(FOLLOWED, json=TERMS, headers=MAKE).status_code == 409
    more = TERMS | {"guarantee_pps": 12_000}
    replaced = client.put(FOLLOWED, json=more, headers={"If-Match": '"v1"'})
    assert (replaced.status_code, replaced.headers["etag"]) == (200, '"v2"')
    assert client.put(FOLLOWED, json=more, headers={"If-Match": '"v1"'}).status_code == 412
    assert client.delete(FOLLOWED).status_code == 428
    assert client.delete(FOLLOWED, headers={"If-Match": '"v2"'}).status_code == 204
    assert client.get(FOLLOWED).status_code == 404
    history = client.get(FOLLOWED + "/history").json()["items"]
    assert [one["version"] for one in history] == [3, 2, 1]
    assert history[0]["contract"] is None
    assert client.get(f"/v1/hosts/gold/contracts/{UUID}").status_code == 404
    target = rig.client().get("/v1/audit?limit=1").json()["items"][0]["target"]
    assert target == f"contract {UUID}"


def test_a_contract_is_posted_without_a_host_once(rig: Rig) -> None:
    body = {"vr": UUID, "contract": TERMS}
    key = {"Idempotency-Key": "once"}
    made = rig.client("operate").post("/v1/contracts", json=body, headers=key)
    assert (made.status_code, made.headers["location"]) == (201, FOLLOWED)
    again = rig.client("operate").post("/v1/contracts", json=body, headers=key)
    assert (again.status_code, again.content) == (201, made.content)
    assert rig.client("operate").post("/v1/contracts", json=body).status_code == 409


def test_both_kinds_are_listed_in_order_in_pages(rig: Rig) -> None:
    for vr in ("zz", UUID):
        rig.store.contracts.put(ANYWHERE, vr, PROMISE, None, "test")
    found: list[tuple[str | None, str]] = []
    after = ""
    for _ in range(4):
        page = rig.client("read").get(f"/v1/contracts?limit=1{after}").json()
        found += [(one["host"], one["vr"]) for one in page["items"]]
        after = f"&after={page['next']}"
    assert found == [(None, UUID), (None, "zz"), ("gold", "r1"), ("silver", "r1")]
    assert page["next"] is None
    of_gold = rig.client("read").get("/v1/contracts?host=gold").json()["items"]
    assert [(one["host"], one["vr"]) for one in of_gold] == [("gold", "r1")]


def test_a_uuid_is_given_in_small_letters(rig: Rig) -> None:
    path = f"/v1/routers/{UUID.upper()}/contract"
    refused = rig.client().put(path, json=TERMS, headers=MAKE)
    assert (refused.status_code, fields(refused)) == (422, ["vr"])
    assert UUID in refused.json()["errors"][0]["fix"]
    body = {"vr": UUID.upper(), "contract": TERMS}
    assert rig.client().post("/v1/contracts", json=body).status_code == 422
    checked = rig.client().post("/v1/contracts/check", json=body).json()
    assert (checked["admissible"], checked["errors"][0]["field"]) == (False, "vr")
    assert rig.client().get(path).status_code == 404


def test_a_name_that_several_hosts_have_is_refused_for_a_new_contract(rig: Rig) -> None:
    """Nobody can tell which of the routers it would follow."""
    path = "/v1/routers/twin/contract"
    show(rig, "gold", GOLD, "twin", "r1")
    show(rig, "silver", SILVER, "twin", "r1")
    refused = rig.client().put(path, json=TERMS, headers=MAKE)
    assert (refused.status_code, fields(refused)) == (422, ["vr"])
    assert "gold, silver" in refused.text
    assert "UUID" in refused.json()["errors"][0]["fix"]
    body = {"vr": "twin", "contract": TERMS}
    assert rig.client().post("/v1/contracts", json=body).status_code == 422
    checked = rig.client().post("/v1/contracts/check", json=body).json()
    assert (checked["admissible"], checked["errors"][0]["field"]) == (False, "vr")
    assert rig.client().post("/v1/contracts", json=body | {"host": "gold"}).status_code == 201


def test_a_contract_that_is_there_may_be_changed_though_another_host_takes_its_name(
    rig: Rig,
) -> None:
    """Else a host that lies would keep operators from their contracts."""
    path = "/v1/routers/twin/contract"
    rig.client().put(path, json=TERMS, headers=MAKE)
    show(rig, "gold", GOLD, "twin")
    show(rig, "silver", SILVER, "twin")
    assert rig.client().put(path, json=TERMS, headers={"If-Match": '"v1"'}).status_code == 200
    body = {"vr": "twin", "contract": TERMS}
    assert rig.client().post("/v1/contracts/check", json=body).json()["admissible"] is True
    assert rig.client().delete(path, headers={"If-Match": '"v2"'}).status_code == 204


def test_a_uuid_may_be_on_two_hosts_while_its_domain_migrates(rig: Rig) -> None:
    for name, one in (("gold", GOLD), ("silver", SILVER)):
        show(rig, name, one, "domain", uuid=UUID)
    assert rig.client().put(FOLLOWED, json=TERMS, headers=MAKE).status_code == 201


def test_where_its_router_is_seen_a_contract_is_checked_and_counted(rig: Rig) -> None:
    show(rig, "silver", SILVER, "domain", uuid=UUID.upper())
    much = TERMS | {"guarantee_pps": 40_000}
    refused = rig.client().put(FOLLOWED, json=much, headers=MAKE)
    assert (refused.status_code, fields(refused)) == (422, ["guarantee_pps"])
    checked = rig.client().post("/v1/contracts/check", json={"vr": UUID, "contract": TERMS}).json()
    assert checked == {
        "admissible": True,
        "errors": [],
        "promised_pps": 30_000,
        "capacity_pps": 50_000,
        "host": "silver",
    }
    assert rig.client().put(FOLLOWED, json=TERMS, headers=MAKE).status_code == 201
    other = rig.client().put(
        "/v1/hosts/silver/contracts/r5",
        json=TERMS | {"guarantee_pps": 25_000},
        headers=MAKE,
    )
    assert other.status_code == 422  # it counts from the first moment


def test_where_nobody_knows_a_router_nothing_is_counted(rig: Rig) -> None:
    checked = rig.client().post("/v1/contracts/check", json={"vr": UUID, "contract": TERMS}).json()
    assert (checked["host"], checked["capacity_pps"]) == (None, None)
    assert checked["promised_pps"] == 10_000


def test_a_router_shows_the_contract_that_followed_it(rig: Rig) -> None:
    rig.store.contracts.put(ANYWHERE, UUID, PROMISE, None, "test")
    rig.show(
        SILVER,
        report("domain", 1_000.0),
        contracts={"domain": PROMISE},
        follows={"domain": UUID},
        here=frozenset({UUID}),
    )
    router = rig.client("read").get("/v1/hosts/silver/routers/domain").json()
    assert (router["follows"], router["contract_version"]) == (UUID, 1)
    assert router["contract"]["guarantee_pps"] == 20_000
    assert rig.client("read").get(FOLLOWED).json()["seen_on"] == "silver"
    listed = rig.client("read").get("/v1/contracts").json()["items"]
    assert listed[0]["seen_on"] == "silver"
    assert listed[1]["seen_on"] is None
    rig.store.contracts.remove(ANYWHERE, UUID, 1, "test")
    gone = rig.client("read").get("/v1/hosts/silver/routers/domain").json()
    assert gone["contract"] is None


def test_what_is_left_to_promise_is_left_at_any_hour(rig: Rig) -> None:
    """Not only now: else `fit` would name hosts that then refuse."""
    window = Hours("00:00", "00:00")
    later = Contract(60_000, hours=(window,), valid_from=TOMORROW)
    rig.show(GOLD, contracts={"r1": PROMISE}, entered=(PROMISE, later))
    live = rig.client("read").get("/v1/hosts/gold").json()["live"]
    assert (live["guaranteed_pps"], live["promised_pps"]) == (20_000, 80_000)
    capacity = rig.client("read").get("/v1/capacity").json()["hosts"][0]
    assert (capacity["promised_pps"], capacity["free_pps"]) == (80_000, 20_000)


def test_a_host_that_promises_too_much_says_so(rig: Rig) -> None:
    rig.show(SILVER, contracts={"r1": PROMISE, "r2": PROMISE, "r3": PROMISE})
    assert rig.client("read").get("/v1/hosts/silver").json()["live"]["overpromised"] is True
    assert rig.client("read").get("/v1/hosts/gold").json()["live"]["overpromised"] is False


def test_the_document_has_classes_and_contracts_that_follow(rig: Rig) -> None:
    document = rig.client("read").get("/v1/openapi.json").json()
    names = {
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    }
    assert {"listClasses", "putClass", "putFollowing", "readFollowingHistory"} <= names
    contract = document["components"]["schemas"]["Contract"]["properties"]
    assert {"class", "valid_from", "valid_until", "hours", "zone"} <= contract.keys()

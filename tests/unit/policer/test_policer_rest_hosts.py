"""Hosts over REST: entered, changed under ETags, removed, and shown as they stand."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rest_rig import GOLD, PROMISE, Rig, filled, opened, report

from policer.decide.state import Order
from policer.fleet.compliance import Counted, Kept
from policer.rest.openapi import EXAMPLES

NEW = {**EXAMPLES["addHost"], "name": "bronze"}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path) as rig:
        yield rig


def test_a_host_is_entered_read_changed_and_removed(rig: Rig) -> None:
    client = rig.client()
    made = client.post("/v1/hosts", json=NEW)
    assert made.status_code == 201
    assert made.headers["location"] == "/v1/hosts/bronze"
    read = client.get(made.headers["location"])
    assert read.headers["etag"] == made.headers["etag"] == '"v1"'
    entry = read.json()["entry"] | {"capacity_pps": 90_000}
    path, tag = "/v1/hosts/bronze", read.headers["etag"]
    changed = client.put(path, json=entry, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["entry"]["capacity_pps"] == 90_000
    assert re.fullmatch(r"admin \([0-9a-f]{12} from testclient\)", changed.json()["changed_by"])
    assert client.delete(path, headers={"If-Match": tag}).status_code == 412
    assert client.delete(path, headers={"If-Match": changed.headers["etag"]}).status_code == 204
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 428),
        ({"If-Match": '"v2"'}, 412),
        ({"If-Match": "nonsense"}, 412),
        ({"If-Match": '"v99999999999999999999999999"'}, 412),
        ({"If-Match": '"v1"'}, 200),
    ],
)
def test_a_change_takes_the_etag_that_was_read(
    rig: Rig, headers: dict[str, str], status: int
) -> None:
    filled(rig)
    entry = rig.client().get("/v1/hosts/gold").json()["entry"]
    answer = rig.client().put("/v1/hosts/gold", json=entry, headers=headers)
    assert answer.status_code == status, answer.text
    assert rig.store.hosts.get("gold").version.number == (2 if status == 200 else 1)


def test_if_match_takes_any_version_that_there_is(rig: Rig) -> None:
    """RFC 9110, section 13.1.1."""
    filled(rig)
    client, any_ = rig.client(), {"If-Match": "*"}
    entry = client.get("/v1/hosts/gold").json()["entry"]
    for capacity in (2e5, 3e5):
        changed = client.put(
            "/v1/hosts/gold", json=entry | {"capacity_pps": capacity}, headers=any_
        )
        assert changed.status_code == 200
    contract = "/v1/hosts/gold/contracts/r1"
    assert client.put(contract, json={"guarantee_pps": 1.0}, headers=any_).status_code == 200
    assert client.delete(contract, headers=any_).status_code == 204
    assert client.delete(contract, headers=any_).status_code == 404
    assert client.delete("/v1/hosts/gold", headers=any_).status_code == 204


def test_an_etag_without_its_quotes_is_said_to_be_none(rig: Rig) -> None:
    filled(rig)
    answer = rig.client().delete("/v1/hosts/gold", headers={"If-Match": "v1"})
    assert answer.json()["type"] == "urn:xtc:problem:stale"
    assert "with its quotes" in answer.json()["detail"]


def test_a_capacity_below_what_was_promised_is_refused_at_its_field(rig: Rig) -> None:
    filled(rig)
    entry = rig.client().get("/v1/hosts/gold").json()["entry"] | {"capacity_pps": 10}
    answer = rig.client().put("/v1/hosts/gold", json=entry, headers={"If-Match": '"v1"'})
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["capacity_pps"]
    assert "overcommit" in answer.json()["errors"][0]["fix"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("requests", "ipc:///run/elsewhere"),
        ("telemetry", "ipc:///run/elsewhere"),
        ("server_key", "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"),
    ],
)
def test_where_a_host_is_reached_is_for_administrators_to_say(
    rig: Rig, field: str, value: str
) -> None:
    """Who redirects a host takes it off its daemon, and can have any port tried."""
    filled(rig)
    entry = rig.client("operate").get("/v1/hosts/gold").json()["entry"]
    tag = {"If-Match": '"v1"'}
    moved = rig.client("operate").put("/v1/hosts/gold", json=entry | {field: value}, headers=tag)
    assert moved.status_code == 403
    assert rig.store.hosts.get("gold").version.number == 1
    larger = entry | {"capacity_pps": 2e5}
    assert rig.client("operate").put("/v1/hosts/gold", json=larger, headers=tag).is_success
    tag = {"If-Match": '"v2"'}
    assert rig.client().put("/v1/hosts/gold", json=larger | {field: value}, headers=tag).is_success


def test_a_guessed_version_does_not_undo_what_an_administrator_redirects(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(rig)
    entry = rig.client("operate").get("/v1/hosts/gold").json()["entry"]
    elsewhere = msgspec.structs.replace(GOLD, requests="ipc:///run/elsewhere")
    replaces = rig.store.hosts.replace

    def overtaken(*given: Any, **options: Any) -> Any:
        replaces(elsewhere, 1, "admin")
        return replaces(*given, **options)

    monkeypatch.setattr(rig.store.hosts, "replace", overtaken)
    guessed = {"If-Match": '"v2"'}
    answer = rig.client("operate").put("/v1/hosts/gold", json=entry, headers=guessed)
    assert answer.status_code == 403
    assert rig.store.hosts.get("gold").value == elsewhere


@pytest.mark.parametrize("field", ["requests", "telemetry", "server_key"])
def test_one_daemon_is_one_host(rig: Rig, field: str) -> None:
    other = {
        "name": "other",
        "requests": "tcp://192.0.2.9:7077",
        "telemetry": "tcp://192.0.2.9:7078",
        "server_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "capacity_pps": 1e5,
    }
    client = rig.client()
    assert client.post("/v1/hosts", json=NEW).status_code == 201
    refused = client.post("/v1/hosts", json=other | {field: NEW[field]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == field
    assert "bronze has the same" in refused.json()["errors"][0]["problem"]
    assert client.post("/v1/hosts", json=other).status_code == 201
    tag = {"If-Match": '"v1"'}
    moved = client.put("/v1/hosts/other", json=other | {field: NEW[field]}, headers=tag)
    assert moved.status_code == 422


def test_a_host_keeps_its_name(rig: Rig) -> None:
    filled(rig)
    answer = rig.client().put("/v1/hosts/gold", json=NEW, headers={"If-Match": '"v1"'})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "name"


def test_a_host_with_contracts_is_not_removed(rig: Rig) -> None:
    filled(rig)
    answer = rig.client().delete("/v1/hosts/gold", headers={"If-Match": '"v1"'})
    assert answer.status_code == 422
    assert rig.store.hosts.get("gold").value == GOLD


def test_a_second_host_of_the_name_is_refused(rig: Rig) -> None:
    assert rig.client().post("/v1/hosts", json=NEW).status_code == 201
    answer = rig.client().post("/v1/hosts", json=NEW)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:xtc:problem:taken"


def test_a_host_is_shown_as_it_stands(rig: Rig) -> None:
    filled(rig)
    rig.wait(2.0)
    live = rig.client("read").get("/v1/hosts/gold").json()["live"]
    assert live["reachable"] is True
    assert live["heard_s_ago"] == 2.0
    assert live["forwarded_pps"] == live["offered_pps"] == 40_000
    assert live["promised_pps"] == 20_000
    assert (live["routers"], live["contracts"], live["punished"]) == (2, 1, 1)


def test_a_host_that_is_silent_is_shown_as_gone(rig: Rig) -> None:
    filled(rig)
    rig.wait(60.0)
    live = rig.client("read").get("/v1/hosts/gold").json()["live"]
    assert live["reachable"] is False
    assert live["forwarded_pps"] == 0.0
    router = rig.client("read").get("/v1/hosts/gold/routers/r1").json()
    assert router["report"] is None
    assert router["contract"]["guarantee_pps"] == PROMISE.guarantee_pps


def test_a_host_that_the_policer_has_not_taken_up_yet_is_shown(rig: Rig) -> None:
    rig.store.hosts.add(GOLD, "test")
    rig.store.contracts.put("gold", "r9", PROMISE, None, "test")
    assert rig.client("read").get("/v1/hosts/gold").json()["live"]["heard_s_ago"] is None
    router = rig.client("read").get("/v1/hosts/gold/routers/r9").json()
    assert router["contract_version"] == 1
    assert rig.client("read").get("/v1/hosts/gold/routers").json()["items"] == []


def test_a_router_says_all_that_is_known_of_it(rig: Rig) -> None:
    filled(rig)
    router = rig.client("read").get("/v1/hosts/gold/routers/r1").json()
    assert router["report"]["throughput_pps"] == 30_000.0
    assert router["order"] == {
        "setpoint_pps": 20_000.0,
        "punishment": True,
        "limit_pps": 22_000.0,
        "burst": None,
        "setpoint_bps": None,
    }
    assert router["kept"] is None
    assert router["punishment"]["step"] == "lower"
    assert router["punishment"]["evidence"] == [True, True, None, True, True]
    assert router["misbehaving"] is True
    assert router["saved_burst_packets"] == 100.0
    assert rig.client("read").get("/v1/hosts/gold/routers/r7").status_code == 404
    assert rig.client("read").get("/v1/hosts/none/routers/r1").status_code == 404


def test_a_router_tells_how_well_it_was_held_and_with_what_burst(rig: Rig) -> None:
    sums = Kept(rig.clock.now() - 60.0, Counted(700, 80, 9), Counted(300, 20, 1.5))
    orders = {"r1": Order(20_000.0, burst=4_000.0)}
    rig.show(GOLD, report("r1", 30_000.0, 20_000.0), kept={"r1": sums}, orders=orders)
    rig.store.hosts.add(GOLD, "test")
    client = rig.client("read")
    router = client.get("/v1/hosts/gold/routers/r1").json()
    since = datetime.fromisoformat(router["kept"].pop("since"))
    assert timedelta(seconds=59) < datetime.now(UTC) - since < timedelta(seconds=120)
    assert router["kept"] == {
        "over_promise_packets": 300,
        "under_promise_packets": 20,
        "breach_seconds": 1.5,
        "over_promise_bits": 0,
        "under_promise_bits": 0,
    }
    assert client.get("/v1/setpoints").json()["items"][0]["burst"] == 4_000


def test_routers_can_be_filtered(rig: Rig) -> None:
    filled(rig)
    client = rig.client("read")

    def names(query: str) -> list[str]:
        items = client.get(f"/v1/routers{query}").json()["items"]
        return [f"{item['host']}/{item['vr']}" for item in items]

    assert names("") == ["gold/r1", "gold/r2", "silver/r1"]
    assert names("?host=silver") == ["silver/r1"]
    assert names("?misbehaving=true") == ["gold/r1"]
    assert names("?misbehaving=false") == ["gold/r2", "silver/r1"]
    for query in ("?misbehaving=null", "?misbehaving=1", "?host=gold&host=silver"):
        assert client.get(f"/v1/routers{query}").status_code == 422
    wrong = client.get("/v1/routers?hots=silver")
    assert wrong.status_code == 422
    assert wrong.json()["errors"] == [
        {"field": "hots", "problem": "there is no such parameter", "fix": "did you mean host?"}
    ]


def test_a_capacity_is_added_up(rig: Rig) -> None:
    filled(rig)
    answer = rig.client("read").get("/v1/capacity").json()
    assert (answer["capacity_pps"], answer["promised_pps"]) == (150_000.0, 40_000.0)
    assert answer["free_pps"] == 110_000.0
    assert [host["host"] for host in answer["hosts"]] == ["gold", "silver"]


def test_setpoints_say_what_each_router_is_told(rig: Rig) -> None:
    filled(rig)
    items = rig.client("read").get("/v1/setpoints?host=gold").json()["items"]
    assert [(item["vr"], item["setpoint_pps"]) for item in items] == [
        ("r1", 20_000.0),
        ("r2", None),
    ]
    assert items[0]["confirmed_pps"] == 20_000.0


def test_names_that_cannot_be_are_refused(rig: Rig) -> None:
    filled(rig)
    for path in ("/v1/hosts/a%20b", "/v1/hosts/gold%0a", "/v1/hosts/gold/routers/%00"):
        answer = rig.client("read").get(path)
        assert answer.status_code in {404, 422}, path


def test_the_leader_is_named(rig: Rig) -> None:
    answer = rig.client("read").get("/v1/leadership").json()
    assert answer == {
        "leading": True,
        "epoch": 7,
        "holder": "here",
        "problem": "",
        "braked": False,
        "braked_hosts": [],
        "brake": "automatic",
    }

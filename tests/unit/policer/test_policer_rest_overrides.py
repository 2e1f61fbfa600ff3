"""Overrides over REST: set, changed under ETags and removed; shown where they act."""

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rest_rig import PROMISE, Rig, Today, filled, opened

from policer.contracts.overrides import standing
from policer.contracts.promised import ANYWHERE
from policer.decide.telemetry import HostTelemetry
from xtc.lease import highest_possible

BRAKE = "/v1/brake"
SUSPENSION = "/v1/hosts/gold/suspension"
EXEMPTION = "/v1/hosts/gold/routers/r1/exemption"
NEW = {"If-None-Match": "*"}


@pytest.fixture
def today() -> Today:
    return Today()


@pytest.fixture
def rig(tmp_path: Path, today: Today) -> Iterator[Rig]:
    with opened(tmp_path, today=today) as rig:
        filled(rig)
        yield rig


def follow(rig: Rig, today: Today) -> None:
    """Do what the service does: show what stands."""
    rig.fleet.overrides = standing(rig.store.overrides.all(), today())


def items(rig: Rig, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        rig.client("read").get("/v1/overrides", params=query).json()["items"]
    )
    return found


def test_the_brake_is_read_changed_and_released(rig: Rig, today: Today) -> None:
    client = rig.client("operate")
    read = client.get(BRAKE)
    assert (read.json()["mode"], read.headers["etag"]) == ("automatic", '"v1"')
    body = {"mode": "on", "until": today.after(hours=2), "reason": "a new model"}
    on = client.put(BRAKE, json=body, headers={"If-Match": '"v1"'})
    assert on.status_code == 200, on.text
    assert on.json()["set_by"].startswith("operate (")
    assert on.json()["set_at"] == "2026-03-01T12:00:00Z"
    assert on.json()["reason"] == "a new model"
    assert client.get(BRAKE).json() == on.json()
    assert client.get(BRAKE).headers["etag"] == on.headers["etag"] == '"v2"'
    assert client.put(BRAKE, json=body, headers={"If-Match": '"v1"'}).status_code == 412
    assert client.put(BRAKE, json=body).status_code == 428
    released = client.put(BRAKE, json={"mode": "automatic"}, headers={"If-Match": '"v2"'})
    assert (released.json()["mode"], released.json()["version"]) == ("automatic", 3)
    assert items(rig) == []


def test_what_the_brake_does_is_shown_beside_what_it_is_to_do(rig: Rig, today: Today) -> None:
    rig.fleet.counted = {"": today.now, "gold": today.now}
    rig.fleet.braked, rig.fleet.braked_hosts = True, frozenset({"gold"})
    found = rig.client("read").get(BRAKE).json()
    since = "2026-03-01T12:00:00Z"
    assert found["counted"] == [{"host": None, "since": since}, {"host": "gold", "since": since}]
    assert (found["braked"], found["braked_hosts"], found["leading"]) == (True, ["gold"], True)


def test_control_of_a_host_is_suspended_and_resumed(rig: Rig, today: Today) -> None:
    client = rig.client("operate")
    assert client.get(SUSPENSION).status_code == 404
    made = client.put(SUSPENSION, json={"reason": "an update"}, headers=NEW)
    assert (made.status_code, made.headers["etag"]) == (201, '"v1"')
    assert client.put(SUSPENSION, json={}, headers=NEW).status_code == 409
    body = {"until": today.after(hours=1)}
    changed = client.put(SUSPENSION, json=body, headers={"If-Match": '"v1"'})
    assert (changed.status_code, changed.json()["until"]) == (200, "2026-03-01T13:00:00Z")
    follow(rig, today)
    live = client.get("/v1/hosts/gold").json()["live"]
    assert live["suspension"] == changed.json() == client.get(SUSPENSION).json()
    assert client.get("/v1/hosts/silver").json()["live"]["suspension"] is None
    assert client.delete(SUSPENSION).status_code == 428
    assert client.delete(SUSPENSION, headers={"If-Match": '"v2"'}).status_code == 204
    assert client.delete(SUSPENSION, headers={"If-Match": "*"}).status_code == 404


def test_a_router_is_exempt_until_its_time_is_over(rig: Rig, today: Today) -> None:
    client = rig.client("operate")
    body = {"until": today.after(days=1), "reason": "a load test"}
    made = client.put(EXEMPTION, json=body, headers=NEW)
    assert made.status_code == 201, made.text
    follow(rig, today)
    router = client.get("/v1/hosts/gold/routers/r1").json()
    assert router["exemption"] == made.json()
    assert router["contract"]["punish"] == "when_harming"  # its contract is as it was
    for path in ("/v1/routers", "/v1/hosts/gold/routers"):
        listed = client.get(path, params={"limit": 1}).json()["items"]
        assert listed[0]["exemption"] == made.json()
    assert client.get("/v1/hosts/silver/routers/r1").json()["exemption"] is None
    today.now += timedelta(days=1)
    assert client.get(EXEMPTION).status_code == 404
    assert items(rig) == []
    assert client.put(EXEMPTION, json=body, headers={"If-Match": '"v1"'}).status_code == 422
    later = {"until": today.after(days=1)}
    assert client.put(EXEMPTION, json=later, headers={"If-Match": '"v1"'}).status_code == 412
    assert client.put(EXEMPTION, json=later, headers=NEW).json()["version"] == 3


def test_an_exemption_of_a_router_that_its_contract_follows_goes_along(
    rig: Rig, today: Today
) -> None:
    rig.store.contracts.put(ANYWHERE, "uuid-2", PROMISE, None, "test")
    live = rig.fleet.host("gold")
    rig.fleet.put(dataclasses.replace(live, follows={"r2": "uuid-2"}))
    client, path = rig.client("operate"), "/v1/hosts/gold/routers/r2/exemption"
    made = client.put(path, json={"until": today.after(hours=1)}, headers=NEW)
    assert (made.status_code, made.json()["host"], made.json()["vr"]) == (201, None, "uuid-2")
    follow(rig, today)
    shown = client.get("/v1/hosts/gold/routers", params={"limit": 9}).json()["items"]
    assert {one["vr"]: one["exemption"] for one in shown}["r2"] == made.json()
    moved = dataclasses.replace(rig.fleet.host("silver"), follows={"r1": "uuid-2"})
    rig.fleet.put(moved)
    there = "/v1/hosts/silver/routers/r1/exemption"
    assert client.get(there).json() == made.json()
    assert client.delete(there, headers={"If-Match": made.headers["etag"]}).status_code == 204
    assert items(rig) == []


def test_all_that_stands_is_listed_in_pages(rig: Rig, today: Today) -> None:
    client = rig.client("admin")
    client.put(SUSPENSION, json={}, headers=NEW)
    client.put(EXEMPTION, json={"until": today.after(hours=1)}, headers=NEW)
    client.put(BRAKE, json={"mode": "off"}, headers={"If-Match": "*"})
    client.post("/v1/leadership/epoch", json={"above": 1_790_000_000})
    kinds = [one["kind"] for one in items(rig)]
    assert kinds == ["brake", "epoch", "exemption", "suspension"]
    assert [one["kind"] for one in items(rig, host="gold")] == kinds[2:]
    assert items(rig, host="silver") == []
    first = client.get("/v1/overrides", params={"limit": 3}).json()
    rest = client.get("/v1/overrides", params={"after": first["next"]}).json()
    assert [one["kind"] for one in first["items"] + rest["items"]] == kinds
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (EXEMPTION, {}, "body"),
        (EXEMPTION, {"until": None}, "until"),
        (EXEMPTION, {"until": "2026-03-02T12:00:00"}, "until"),
        (EXEMPTION, {"until": "tomorrow"}, "until"),
        (EXEMPTION, {"until": "2026-03-01T11:00:00Z"}, "until"),
        (EXEMPTION, {"until": "2026-05-01T12:00:00Z"}, "until"),
        (EXEMPTION, {"until": "9999-12-31T23:59:59-12:00"}, "until"),
        (SUSPENSION, {"until": "2027-05-01T12:00:00Z"}, "until"),
        (SUSPENSION, {"reason": "two\nlines"}, "reason"),
        (SUSPENSION, {"reason": "x" * 201}, "reason"),
        (SUSPENSION, {"why": "no such field"}, "body"),
    ],
)
def test_a_mistake_is_told_at_its_field(
    rig: Rig, path: str, body: dict[str, Any], field: str
) -> None:
    answer = rig.client("operate").put(path, json=body, headers=NEW)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert error["fix"]


@pytest.mark.parametrize("body", [{"mode": "loose"}, {}, {"mode": "automatic", "until": "?"}])
def test_a_brake_has_three_modes(rig: Rig, body: dict[str, Any]) -> None:
    answer = rig.client("operate").put(BRAKE, json=body, headers={"If-Match": "*"})
    assert answer.status_code == 422


def test_what_is_not_there_is_not_overridden(rig: Rig, today: Today) -> None:
    client, body = rig.client("operate"), {"until": today.after(hours=1)}
    unknown = client.put("/v1/hosts/iron/suspension", json=body, headers=NEW)
    assert (unknown.status_code, unknown.json()["detail"][:12]) == (404, "no host iron")
    plain = client.put("/v1/hosts/gold/routers/r2/exemption", json=body, headers=NEW)
    assert plain.status_code == 404
    assert "never punished" in plain.json()["detail"]


def test_an_epoch_is_raised_within_what_daemons_obey_and_by_admin_alone(
    rig: Rig, today: Today
) -> None:
    where, above = "/v1/leadership/epoch", 1_800_000_000
    assert rig.client("operate").post(where, json={"above": above}).status_code == 403
    client = rig.client("admin")
    asked = client.post(where, json={"above": above, "reason": "a typo"})
    assert asked.status_code == 202
    assert (asked.json()["above"], asked.json()["reason"]) == (above, "a typo")
    most = highest_possible(today.now.timestamp())
    far = client.post(where, json={"above": most})
    assert far.status_code == 422
    assert far.json()["errors"][0]["field"] == "above"
    assert f"daemons refuse an epoch above {most}" in far.json()["detail"]
    assert "xtc epoch reset" in far.json()["detail"]


def test_the_epoch_that_a_daemon_obeys_is_shown(rig: Rig) -> None:
    live = rig.fleet.host("gold")
    telemetry = HostTelemetry(rig.clock.now(), routers=live.telemetry.routers, highest_epoch=99)
    rig.show(live.host)
    assert rig.client("read").get("/v1/hosts/gold").json()["live"]["highest_epoch"] is None
    rig.fleet.put(type(live)(live.host, telemetry=telemetry))
    assert rig.client("read").get("/v1/hosts/gold").json()["live"]["highest_epoch"] == 99


def test_a_policer_that_follows_takes_overrides_for_the_leader(rig: Rig) -> None:
    rig.fleet.leadership = type(rig.fleet.leadership)(leading=False, epoch=7, holder="other")
    made = rig.client("operate").put(SUSPENSION, json={}, headers=NEW)
    assert made.status_code == 201
    assert rig.client("read").get(BRAKE).json()["leading"] is False

"""A store with all that contracts carry: exported and planned again, nothing would change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from rest_rig import GOLD, Rig, filled, opened

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours
from policer.contracts.tenant import Tenant
from policer.fleetfile.document import bare
from policer.fleetfile.reading import read_text
from policer.fleetfile.writing import json_of, toml_of

UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
CET = timezone(timedelta(hours=1))
NIGHT = Hours("22:00", "06:00", ("fri", "sat"), "silver")
IN_BITS = Contract(guarantee_bps=50e6, ceiling_bps=1.5e9, packet_bytes=1500, burst=200.0)
EACH = {
    ("gold", "of-class"): Contract(class_name="silver", tenant="acme"),
    ("gold", "dated"): Contract(
        guarantee_pps=1e3,
        valid_from=datetime(2031, 1, 1, tzinfo=CET),
        valid_until=datetime(2031, 2, 1, 12, 30, 0, 250_000, tzinfo=UTC),
    ),
    ("gold", "hours"): Contract(
        guarantee_pps=2e3, hours=(NIGHT, Hours("08:00", "18:00")), zone="Europe/Berlin"
    ),
    ("gold", "bits"): IN_BITS,
    ("gold", "mixed"): Contract(guarantee_pps=100.0, ceiling_bps=12_345_678.9),
    ("silver", "punished"): Contract(
        ceiling_pps=1.5e3,
        burst_packets=10.0,
        measures=(Step.WARN, Step.LIMIT),
        punish="always",
        dry_run=True,
        cost=2.5,
        weight=0.1,
        burst=99.5,
    ),
    (ANYWHERE, UUID): Contract(class_name="silver", punish="when_harming"),
    (ANYWHERE, "by-name"): msgspec.structs.replace(IN_BITS, hours=(NIGHT,), tenant="acme"),
    (ANYWHERE, "plain"): Contract(punish="never"),
}
"""What contracts carry, each in at least one of them."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_burst=1e6) as rig:
        filled(rig)
        store = rig.store
        store.tenants.put("acme", Tenant("Acme Ltd."), None, "test")
        store.classes.put("silver", Contract(guarantee_bps=1e6, punish="always"), None, "test")
        for (host, vr), contract in EACH.items():
            store.contracts.put(host, vr, contract, None, "test")
        moved = msgspec.structs.replace(GOLD, overcommit=True, capacity_source="model")
        store.hosts.replace(moved, 1, "test")
        yield rig


def test_every_field_of_a_contract_is_in_one_of_these() -> None:
    fields = {name for contract in EACH.values() for name in bare(contract)}
    assert fields == {field.encode_name for field in msgspec.structs.fields(Contract)}


def test_what_was_entered_one_by_one_is_exported_and_changes_nothing(rig: Rig) -> None:
    before = rig.store.generation()
    exported = rig.store.plans.fleet()
    for text in (toml_of(exported), json_of(exported)):
        read = read_text(text).file
        assert read == exported
        body = {"fleet": bare(read), "keep": False}
        made = rig.client().post("/v1/plans", json=msgspec.to_builtins(body)).json()
        assert (made["changes"], made["problems"], made["hosts"]) == ([], [], [])
        path = f"/v1/plans/{made['id']}/apply"
        assert rig.client().post(path, headers={"If-Match": '"v1"'}).status_code == 200
    assert rig.store.generation() == before
    for (host, vr), contract in EACH.items():
        assert rig.store.contracts.get(host, vr).value == contract


def test_the_answer_of_the_service_is_such_a_document_too(rig: Rig) -> None:
    fleet = rig.client("read").get("/v1/fleet").json()
    made = rig.client().post("/v1/plans", json={"fleet": fleet}).json()
    assert (made["changes"], made["problems"]) == ([], [])


def test_entered_again_in_an_empty_store_it_is_the_same_fleet(rig: Rig, tmp_path: Path) -> None:
    exported = toml_of(rig.store.plans.fleet())
    (tmp_path / "other").mkdir()
    with opened(tmp_path / "other") as other:
        row = other.store.plans.make(
            read_text(exported).file, keep=False, actor="ann", maker="t", seen=lambda _: {}
        )
        assert row.planned.problems == ()
        other.store.plans.apply(row.id, 1, "ann", "admin")
        assert toml_of(other.store.plans.fleet()) == exported
        for (host, vr), contract in EACH.items():
            assert other.store.contracts.get(host, vr).value == contract

"""A database brought up from an older version, and down again: contracts stay what they were."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from store_values import host, promise

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.errors import StoreOutdated, Unknown
from policer.store import Entered, Store
from policer.store.database.schema import Schema

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

NEWEST = Schema().newest
PLAIN, BURSTY = promise(20e3, ceiling_pps=40e3), promise(10e3, ceiling_pps=30e3, burst=4e3)
OF_0001 = (
    '{"guarantee_pps":20000.0,"ceiling_pps":40000.0,"weight":1.0,"burst_packets":0.0,'
    '"measures":["warn","lower","limit"],"dry_run":false,"cost":1.0}'
)
"""A contract as version 0001 wrote it."""


def contracts_in(backend: "Backend") -> list[str]:
    """Return every contract that is stored, those of the history included."""
    aside = backend.aside()
    rows = [
        row
        for table in ("contracts", "revisions")
        for row in aside.execute(f"SELECT contract FROM {table}").fetchall()
    ]
    return [text for (text,) in rows if text is not None]


def classes_in(backend: "Backend") -> list[str]:
    rows = backend.aside().execute("SELECT entry FROM classes").fetchall()
    return [text for (text,) in rows if text is not None]


@pytest.fixture
def filled(store: Store) -> Store:
    store.hosts.add(host(), "ann")
    store.contracts.put("gold", "r1", PLAIN, None, "ann")
    store.contracts.put("gold", "r2", BURSTY, None, "ann")
    store.contracts.put("gold", "r3", BURSTY, None, "ann")
    store.contracts.remove("gold", "r3", 1, "ann")
    return store


def test_contracts_of_the_older_version_are_read_and_can_be_given_a_burst(
    backend: "Backend", filled: Store
) -> None:
    filled.bring_down("0001")
    for table in ("contracts", "revisions"):
        backend.aside().execute(f"UPDATE {table} SET contract = '{OF_0001}' WHERE vr = 'r1'")
    with pytest.raises(StoreOutdated, match=rf"version 0001.*{NEWEST}.*policer db upgrade"):
        backend.open()
    upgraded = backend.open(upgrade=True)
    assert upgraded.version == NEWEST
    assert upgraded.contracts.get("gold", "r1").value == PLAIN
    changed = promise(20e3, ceiling_pps=40e3, burst=5e3)
    upgraded.contracts.put("gold", "r1", changed, 1, "ben")
    history = upgraded.contracts.history("gold", "r1")
    assert [revision.contract for revision in history] == [changed, PLAIN]


def test_brought_down_no_contract_has_a_term_that_the_older_program_does_not_know(
    backend: "Backend", filled: Store
) -> None:
    filled.bring_down("0001")
    texts = contracts_in(backend)
    assert len(texts) == 5
    assert [text for text in texts if '"burst"' in text] == []
    again = backend.open(upgrade=True)
    assert again.contracts.get("gold", "r1").value == PLAIN
    assert again.contracts.get("gold", "r2").value == promise(10e3, ceiling_pps=30e3)
    assert [one.contract is None for one in again.contracts.history("gold", "r3")] == [True, False]


def test_brought_down_one_step_contracts_do_not_say_when_to_punish(
    backend: "Backend", filled: Store
) -> None:
    filled.contracts.put("gold", "r1", promise(20e3, punish="always"), 1, "ann")
    filled.bring_down("0002")
    texts = contracts_in(backend)
    assert [text for text in texts if '"punish"' in text] == []
    assert [text for text in texts if '"burst"' in text] == texts
    again = backend.open(upgrade=True)
    assert again.contracts.get("gold", "r1").value.punish == "when_harming"


def test_brought_down_a_step_no_contract_needs_what_the_older_program_does_not_know(
    backend: "Backend", filled: Store
) -> None:
    filled.classes.put("silver", promise(5e3), None, "ann")
    filled.contracts.put("gold", "r4", Contract(class_name="silver"), None, "ann")
    filled.contracts.put(ANYWHERE, "r5", promise(1e3), None, "ann")
    until = backend.clock() + timedelta(days=1)
    filled.contracts.put("gold", "r6", promise(1e3, valid_until=until), None, "ann")
    filled.bring_down("0003")
    assert [text for text in contracts_in(backend) if '"valid_until"' in text] == []
    again = backend.open(upgrade=True)
    assert sorted(again.contracts.all()["gold"]) == ["r1", "r2", "r6"]
    assert ANYWHERE not in again.contracts.all()
    assert again.contracts.get("gold", "r6").value == promise(1e3)
    again.contracts.put(ANYWHERE, "r5", promise(1e3), None, "ann")


def test_brought_down_rates_in_bits_become_packets_of_the_size_sold(
    backend: "Backend", filled: Store
) -> None:
    sold = Contract(guarantee_bps=56e6, ceiling_bps=112e6, packet_bytes=700, burst=4e3)
    filled.contracts.put("gold", "r1", sold, 1, "ann")
    filled.contracts.put("gold", "r1", promise(1e3), 2, "ann")
    filled.classes.put("silver", Contract(ceiling_bps=2.8e6), None, "ann")
    filled.contracts.put("gold", "r4", Contract(guarantee_bps=28e6), None, "ann")
    filled.bring_down("0004")
    terms = [*contracts_in(backend), *classes_in(backend)]
    assert [text for text in terms if "_bps" in text or "packet_bytes" in text] == []
    again = backend.open(upgrade=True)
    history = [one.contract for one in again.contracts.history("gold", "r1")]
    assert history == [promise(1e3), promise(10e3, ceiling_pps=20e3, burst=4e3), PLAIN]
    assert again.contracts.get("gold", "r4").value == promise(10e3)
    assert again.classes.get("silver").value == Contract(ceiling_pps=1e3)


def test_brought_down_no_contract_names_a_tenant(backend: "Backend", filled: Store) -> None:
    filled.tenants.put("acme", Tenant("Acme Ltd."), None, "ann")
    filled.contracts.put("gold", "r4", promise(1e3, tenant="acme"), None, "ann")
    filled.classes.put("silver", promise(1e3), None, "ann")
    filled.bring_down("0010")
    texts = [*contracts_in(backend), *classes_in(backend)]
    assert [text for text in texts if '"tenant"' in text] == []
    again = backend.open(upgrade=True)
    assert again.contracts.get("gold", "r4").value == promise(1e3)
    assert again.tenants.all() == {}
    assert again.audit.page(None, 9)[0].plan is None


def test_tenants_that_contracts_name_are_entered_by_the_upgrade(
    backend: "Backend", filled: Store
) -> None:
    filled.tenants.put("acme", Tenant("Acme Ltd."), None, "ann")
    filled.contracts.put("gold", "r4", promise(1e3, tenant="acme"), None, "ann")
    filled.bring_down("0011")
    again = backend.open(upgrade=True)
    assert again.contracts.get("gold", "r4").value.tenant == "acme"
    assert again.tenants.get("acme").value == Tenant()
    again.contracts.put("gold", "r4", promise(2e3, tenant="acme"), 1, "ann")
    again.tenants.put("acme", Tenant("Acme Ltd."), 1, "ann")


@pytest.mark.parametrize("version", [NEWEST, "9999", "", "base", "-1"])
def test_a_database_is_brought_down_to_a_known_older_version_alone(
    filled: Store, version: str
) -> None:
    with pytest.raises(Unknown, match="one of 0001, 0002, 0003"):
        filled.bring_down(version)
    filled.check()


def test_a_store_that_was_brought_down_says_so(filled: Store) -> None:
    filled.bring_down("0001")
    with pytest.raises(StoreOutdated, match="policer db upgrade"):
        filled.check()
    with pytest.raises(StoreOutdated):
        filled.bring_down("0001")


def test_brought_down_and_up_again_what_is_changed_is_read_again(
    filled: Store, backend: "Backend"
) -> None:
    filled.bring_down("0003")
    again = backend.open(upgrade=True)
    before = again.changes.since(Entered())
    assert set(before.contracts["gold"]) == {"r1", "r2"}
    again.contracts.put("gold", "r3", BURSTY, None, "ann")
    assert set(again.changes.since(before).contracts["gold"]) == {"r1", "r2", "r3"}

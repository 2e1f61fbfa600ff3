"""Tenants in the store, on both databases: none goes while contracts name it."""

import pytest
from store_values import host, promise

from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.errors import Invalid, Stale, Taken, Unknown
from policer.store import Store

pytest_plugins = ["store_rig"]

ACME, OTHER = Tenant("Acme Ltd."), Tenant("Other Ltd.")


def test_the_life_of_a_tenant(store: Store) -> None:
    assert store.tenants.put("acme", ACME, None, "ann").version.number == 1
    with pytest.raises(Taken):
        store.tenants.put("acme", ACME, None, "ann")
    with pytest.raises(Stale):
        store.tenants.put("acme", OTHER, 2, "ann")
    assert store.tenants.put("acme", OTHER, 1, "ben").version.changed_by == "ben"
    assert {name: one.value for name, one in store.tenants.all().items()} == {"acme": OTHER}
    with pytest.raises(Stale):
        store.tenants.remove("acme", 1, "ann")
    store.tenants.remove("acme", 2, "ann")
    assert store.tenants.all() == {}
    for call in (lambda: store.tenants.get("acme"), lambda: store.tenants.remove("acme", 3, "ann")):
        with pytest.raises(Unknown, match="policer tenant list"):
            call()
    with pytest.raises(Stale):
        store.tenants.put("acme", ACME, 3, "ann")
    assert store.tenants.put("acme", ACME, None, "ann").version.number == 4
    seen = [(row.action, row.target) for row in store.audit.page(None, 9)]
    assert seen == [(action, "tenant acme") for action in ("put", "remove", "put", "put")]


def test_a_tenant_that_cannot_be_is_refused(store: Store) -> None:
    for name in ("", "a/b", "a b", "x" * 65, "acme\n"):
        with pytest.raises(Invalid, match="name"):
            store.tenants.put(name, ACME, None, "ann")
    with pytest.raises(Invalid, match="description"):
        store.tenants.put("acme", Tenant("x" * 257), None, "ann")
    assert store.tenants.put("acme", Tenant("a\0b\u202e"), None, "ann").value.description[0] == "a"
    assert store.tenants.get("acme").value == Tenant("a\0b\u202e")


def test_a_contract_names_a_tenant_that_is_there(store: Store) -> None:
    store.hosts.add(host(), "ann")
    of_acme = promise(1e3, tenant="acme")
    with pytest.raises(
        Invalid, match=r"tenant: there is no tenant 'acme'.*policer tenant set acme"
    ):
        store.contracts.put("gold", "r1", of_acme, None, "ann")
    assert store.contracts.check("gold", "r1", of_acme).problems[0].field == "tenant"
    store.tenants.put("acme", ACME, None, "ann")
    assert store.contracts.check("gold", "r1", of_acme).problems == ()
    store.contracts.put("gold", "r1", of_acme, None, "ann")
    store.contracts.put(ANYWHERE, "r2", of_acme, None, "ann")
    with pytest.raises(Invalid, match="contracts name it: gold/r1, r2"):
        store.tenants.remove("acme", 1, "ann")
    store.contracts.remove("gold", "r1", 1, "ann")
    store.contracts.put(ANYWHERE, "r2", promise(1e3), 1, "ann")
    store.tenants.remove("acme", 1, "ann")


def test_a_class_has_no_tenant(store: Store) -> None:
    store.tenants.put("acme", ACME, None, "ann")
    with pytest.raises(Invalid, match="tenant: a class has terms alone"):
        store.classes.put("silver", promise(1e3, tenant="acme"), None, "ann")

"""Reach and actors in the store, on both databases; the way up and down between versions."""

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from store_values import host, promise

from policer.actor import Actor
from policer.contracts.reach import UNLIMITED, Reach
from policer.contracts.tenant import Tenant
from policer.errors import Invalid, StoreGone
from policer.store import Event, Store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

HOSTS = ("gold", "Gold", "gold-2", "g.ld")
ROUTERS = ("r1", "R1", "r_1", "r-1", "r:1", "r")
TENANTS = (None, "acme", "Acme", "acme_2")
REACHES = [
    UNLIMITED,
    Reach(hosts=("gold",)),
    Reach(hosts=("gold*", "g.ld")),
    Reach(hosts=("g?ld",)),
    Reach(routers=("gold/r_1",)),
    Reach(routers=("*/r?1", "gold-2/r")),
    Reach(routers=("gold/*",), hosts=("Gold", "gold")),
    Reach(tenants=("acme",)),
    Reach(tenants=("acme_2", "Acme"), hosts=("gold*",)),
    Reach(tenants=("acme",), routers=("*/R*",)),
]
BOSS = Actor("boss", "0123456789ab", "198.51.100.7")


@pytest.fixture
def filled(store: Store) -> Store:
    """Return a store with contracts of every kind of name."""
    for name in HOSTS:
        store.hosts.add(host(name), "test")
    for tenant in filter(None, TENANTS):
        store.tenants.put(tenant, Tenant(), None, "test")
    tenants = itertools.cycle(TENANTS)
    for where, vr in itertools.product(HOSTS, ROUTERS):
        store.contracts.put(where, vr, promise(1.0, tenant=next(tenants)), None, "test")
        next(tenants) if vr == "R1" else None
    return store


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_the_database_and_the_reach_agree_on_contracts(filled: Store, reach: Reach) -> None:
    every = filled.contracts.page(None, 500)
    seen = [(h, vr) for h, vr, one in every if reach.may_see(h, vr, one.value.tenant)]
    found = filled.contracts.page(None, 500, reach=reach)
    assert [(h, vr) for h, vr, _ in found] == seen
    assert 0 < len(seen) <= len(every)
    assert [row[:2] for row in filled.contracts.page(seen[0], 500, reach=reach)] == seen[1:]


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_the_database_and_the_reach_agree_on_events(filled: Store, reach: Reach) -> None:
    rows = [
        Event(h, "kind", f"{h} {vr} {tenant}", vr, tenant=tenant)
        for h, vr, tenant in itertools.product(("", *HOSTS), (None, *ROUTERS), TENANTS)
    ]
    filled.events.add(rows)

    def sees(row: Event) -> bool:
        if not reach.limited:
            return True
        if not row.host:
            return False
        if row.vr is None:
            return reach.may_see_host(row.host)
        return reach.may_see(row.host, row.vr, row.tenant)

    wanted = [row.words for row in rows if sees(row)]
    assert [row.words for row in filled.events.since(0, 500, reach=reach)] == wanted
    assert [row.words for row in filled.events.page(None, 500, reach=reach)] == wanted[::-1]


def test_a_token_keeps_its_limits(backend: "Backend", store: Store) -> None:
    reach = Reach(hosts=("edge-*",), routers=("*/r1",), tenants=("acme",))
    row, secret = store.tokens.add("ann", ["operate"], None, BOSS, reach)
    assert row.reach == reach
    known = backend.open().tokens.by_secret(secret)
    assert known is not None
    assert known.reach == reach
    assert store.tokens.all()[0].reach == reach


@pytest.mark.parametrize("bad", [Reach(hosts=("[a]",)), Reach(tenants=("a*",))], ids=str)
def test_a_limit_that_is_none_is_refused(store: Store, bad: Reach) -> None:
    with pytest.raises(Invalid):
        store.tokens.add("ann", ["read"], None, "root", bad)
    assert store.tokens.all() == []


def test_an_administrator_cannot_be_limited(store: Store) -> None:
    with pytest.raises(Invalid, match="administrator"):
        store.tokens.add("ann", ["admin"], None, "root", Reach(hosts=("*",)))


def test_a_reach_that_was_damaged_is_no_reach_at_all(backend: "Backend", store: Store) -> None:
    _, secret = store.tokens.add("ann", ["read"], None, "root", Reach(hosts=("a",)))
    for damage in ("", "null", '{"hosts": ["a"], "more": 1}', '{"hosts": "a"}'):
        backend.aside().execute(f"UPDATE tokens SET reach = '{damage}'")
        with pytest.raises(StoreGone):
            store.tokens.by_secret(secret)


def test_the_audit_log_has_ids_and_addresses_of_their_own(store: Store) -> None:
    store.hosts.add(host(), BOSS)
    store.contracts.put("gold", "r1", promise(1.0), None, BOSS)
    store.tokens.add("ann", ["read"], None, "root")
    rows = store.audit.page(None, 9)[::-1]
    assert [(row.actor, row.actor_id, row.address) for row in rows] == [
        ("boss", "0123456789ab", "198.51.100.7"),
        ("boss", "0123456789ab", "198.51.100.7"),
        ("root", "", ""),
    ]
    changed_by = store.contracts.get("gold", "r1").version.changed_by
    assert changed_by == "boss (0123456789ab from 198.51.100.7)"


def test_two_of_one_name_are_told_apart_and_a_name_cannot_pretend(store: Store) -> None:
    store.hosts.add(host(), Actor("boss (0123456789ab from 198.51.100.7)", "ffffffffffff", "::1"))
    row = store.audit.page(None, 1)[0]
    assert (row.actor_id, row.address) == ("ffffffffffff", "::1")


def texts(backend: "Backend", query: str) -> list[Any]:
    return [one for (one,) in backend.aside().execute(query).fetchall()]


def test_an_older_program_limits_nobody_and_so_knows_no_limited_token(
    backend: "Backend", filled: Store
) -> None:
    plain, _ = filled.tokens.add("plain", ["read"], None, "root")
    limited, secret = filled.tokens.add("limited", ["read"], None, "root", Reach(hosts=("gold",)))
    filled.contracts.remove("gold", "r1", 1, "test")
    filled.bring_down("0003")
    in_force = texts(backend, "SELECT id FROM tokens WHERE revoked_at IS NULL")
    assert in_force == [plain.id]
    stored = texts(backend, "SELECT contract FROM contracts WHERE contract IS NOT NULL")
    stored += texts(backend, "SELECT contract FROM revisions WHERE contract IS NOT NULL")
    assert len(stored) == 2 * len(HOSTS) * len(ROUTERS) - 1
    assert [one for one in stored if "tenant" in one] == []
    again = backend.open(upgrade=True)
    assert again.tokens.by_secret(secret) is None
    assert {row.id: row.reach for row in again.tokens.all()} == {
        plain.id: UNLIMITED,
        limited.id: UNLIMITED,
    }
    assert again.contracts.get("gold", "R1").value == promise(1.0)
    assert again.audit.page(None, 1)[0].actor_id == ""

"""Plans in the store, on both databases: all or nothing, once, and only while they fit."""

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from store_values import host, promise

from policer.contracts.contract import Contract
from policer.contracts.overrides import Override
from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.errors import Forbidden, Invalid, PolicerError, Stale, StoreGone, Unknown
from policer.fleetfile.document import Entered, FleetFile, file_of
from policer.store import PlanRow, PunishmentRow, Store
from policer.store.inventory import plans
from policer.store.inventory.changes import Entered as Read

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

FLEET = Entered(
    {"acme": Tenant("Acme Ltd.")},
    {"silver": promise(20e3)},
    {"gold": host(), "iron": host("iron")},
    {
        ("gold", "r1"): Contract(class_name="silver", tenant="acme"),
        ("gold", "r2"): promise(80e3),
        (ANYWHERE, "r9"): promise(1e3),
    },
)
EMPTY = FleetFile(version=1)
ENTERED = Read()


def make(store: Store, goal: Entered | FleetFile, **options: Any) -> PlanRow:
    file = file_of(goal) if isinstance(goal, Entered) else goal
    how = {"keep": False, "actor": "ann", "maker": "token", "seen": lambda _: {}, **options}
    return store.plans.make(file, **how)


def apply(store: Store, plan: PlanRow, version: int = 1, actor: str = "ben") -> PlanRow:
    return store.plans.apply(plan.id, version, actor, "admin")


@pytest.fixture
def filled(store: Store) -> Store:
    apply(store, make(store, FLEET))
    return store


def test_a_plan_changes_nothing_until_it_is_applied(backend: "Backend", store: Store) -> None:
    generation = store.generation()
    plan = make(store, FLEET)
    assert (plan.version, plan.made_by, plan.applied_at) == (1, "ann", None)
    assert store.plans.get(plan.id) == plan
    assert store.plans.fleet() == EMPTY
    assert store.generation() == generation
    backend.clock.forward(minutes=1)
    done = apply(store, plan)
    assert (done.version, done.applied_by, done.applied_at) == (2, "ben", backend.clock.now)
    assert store.plans.get(plan.id) == done
    assert store.plans.fleet() == file_of(FLEET)
    assert store.generation() == generation + 1


def test_each_change_is_in_the_audit_log_with_the_plan(store: Store) -> None:
    plan = make(store, FLEET)
    apply(store, plan)
    rows = store.audit.page(None, 99)[::-1]
    assert [(row.action, row.target) for row in rows] == [
        ("put", "tenant acme"),
        ("put", "class silver"),
        ("add", "host gold"),
        ("add", "host iron"),
        ("put", "contract r9"),
        ("put", "contract gold/r1"),
        ("put", "contract gold/r2"),
    ]
    assert {(row.plan, row.actor) for row in rows} == {(plan.id, "ben")}
    assert rows[-1].after["guarantee_pps"] == 80e3
    store.tenants.put("t2", Tenant(), None, "ann")
    assert store.audit.page(None, 1)[0].plan is None


def test_things_are_as_if_each_had_been_entered_alone(store: Store) -> None:
    store.hosts.add(host("gold", 1.0), "old")
    store.contracts.put("gold", "r2", promise(1.0), None, "old")
    store.contracts.remove("gold", "r2", 1, "old")
    store.hosts.remove("gold", 1, "old")
    apply(store, make(store, FLEET))
    assert store.hosts.get("gold").version.number == 3
    assert store.hosts.get("gold").version.changed_by == "ben"
    assert store.contracts.get("gold", "r2").version.number == 3
    history = store.contracts.history("gold", "r2")
    assert [one.contract for one in history] == [promise(80e3), None, promise(1.0)]
    store.contracts.put("gold", "r2", promise(70e3), 3, "ann")
    store.classes.put("silver", promise(30e3), 1, "ann")
    with pytest.raises(Invalid, match="promise at most 70000"):
        store.contracts.put("gold", "r2", promise(80e3), 4, "ann")


def test_what_a_file_does_not_name_goes_or_is_kept(filled: Store) -> None:
    named = FLEET._replace(
        hosts={"gold": host()}, contracts={("gold", "r3"): promise(0.0)}, tenants={}
    )
    kept = make(filled, named, keep=True)
    assert [change.name for change in kept.planned.changes] == ["r3"]
    apply(filled, kept)
    assert set(filled.contracts.all()["gold"]) == {"r1", "r2", "r3"}
    apply(filled, make(filled, named))
    assert filled.plans.fleet() == file_of(named)
    assert filled.contracts.history("gold", "r1")[0].contract is None


def test_policers_read_again_what_a_plan_changed_and_no_more(filled: Store) -> None:
    before = filled.changes.since(ENTERED)
    more = {**FLEET.contracts, ("gold", "r1"): promise(5.0)}
    apply(filled, make(filled, FLEET._replace(contracts=more)))
    now = filled.changes.since(before)
    assert now.changed(before) == {"gold"}
    assert now.contracts["gold"]["r1"] == promise(5.0)
    assert now.contracts["gold"]["r2"] is before.contracts["gold"]["r2"]
    apply(filled, make(filled, FLEET._replace(hosts={"gold": host()}, contracts={})))
    last = filled.changes.since(now)
    assert last.changed(now) == {"gold", "iron", ANYWHERE}
    assert (set(last.hosts), last.contracts) == ({"gold"}, {})


def test_what_is_overridden_on_a_host_that_goes_ends_with_an_event(filled: Store) -> None:
    suspended = Override("suspension", "suspended", "iron", reason="an update")
    filled.overrides.put(suspended, None, "ann")
    apply(filled, make(filled, FLEET._replace(hosts={"gold": host()})))
    assert [one.host for one in filled.overrides.all()] == []
    event = filled.events.page(None, 1)[0]
    assert (event.kind, event.host, event.actor) == ("override_cleared", "iron", "ben")


def test_who_loses_a_contract_is_exempt_no_longer(backend: "Backend", filled: Store) -> None:
    """Its next contract may be another customer's."""
    until = backend.clock.now + timedelta(days=1)
    for where, vr in (("gold", "r1"), ("gold", "r2"), (ANYWHERE, "r9")):
        filled.overrides.put(Override("exemption", "exempt", where, vr, until=until), None, "ann")
    apply(filled, make(filled, FLEET._replace(contracts={("gold", "r2"): promise(1e3)})))
    standing = [(one.host, one.vr) for one in filled.overrides.all() if one.kind == "exemption"]
    assert standing == [("gold", "r2")]
    events = [(row.kind, row.host, row.vr) for row in filled.events.page(None, 2)]
    assert sorted(events) == [
        ("override_cleared", "", "r9"),
        ("override_cleared", "gold", "r1"),
    ]


def test_who_was_punished_on_a_host_that_goes_is_forgotten(
    backend: "Backend", filled: Store
) -> None:
    lead = filled.leadership("here")
    epoch = lead.acquire()
    assert epoch is not None
    row = PunishmentRow("iron", "r1", 1, guilty=True, since=backend.clock.now, step="warn")
    filled.punishments.set([row], [], epoch)
    filled.homes.set({"r9": "iron"}, epoch)
    apply(filled, make(filled, FLEET._replace(hosts={"gold": host()})))
    assert (filled.punishments.all(), filled.homes.all()) == ({}, {})


# --- once, and only while it fits


def test_applied_again_a_plan_changes_nothing(filled: Store) -> None:
    plan = make(filled, EMPTY)
    first = apply(filled, plan)
    generation = filled.generation()
    filled.tenants.put("acme", Tenant("another"), None, "ann")
    for version in (1, 2):
        assert apply(filled, plan, version, "eve") == first
    assert filled.tenants.get("acme").value == Tenant("another")
    assert filled.generation() == generation + 1
    with pytest.raises(Stale, match="version 2"):
        apply(filled, plan, 3)


def test_a_plan_that_does_nothing_is_no_change(filled: Store) -> None:
    generation = filled.generation()
    plan = make(filled, FLEET)
    assert plan.planned.changes == ()
    assert apply(filled, plan).version == 2
    assert filled.generation() == generation


def _contract(store: Store) -> None:
    store.contracts.put("gold", "r7", promise(0.0), None, "eve")


def _class(store: Store) -> None:
    store.classes.put("silver", promise(10e3), 1, "eve")


def _host(store: Store) -> None:
    store.hosts.replace(host("gold", 200e3), 1, "eve")


def _tenant(store: Store) -> None:
    store.tenants.put("acme", Tenant("Evil Ltd."), 1, "eve")


@pytest.mark.parametrize("change", [_contract, _class, _host, _tenant])
def test_a_plan_is_stale_once_what_it_rests_on_has_changed(
    filled: Store, change: Callable[[Store], None]
) -> None:
    renamed = {("gold", "r1"): Contract(class_name="silver", weight=1.0, tenant=None)}
    goal = FLEET._replace(tenants={}, contracts={**FLEET.contracts, **renamed})
    plan = make(filled, goal)
    change(filled)
    before = filled.plans.fleet()
    with pytest.raises(Stale, match="has changed since it was made"):
        apply(filled, plan)
    assert filled.plans.fleet() == before
    assert filled.plans.get(plan.id).applied_at is None


def test_changes_that_do_not_matter_to_a_plan_leave_it_as_it_is(filled: Store) -> None:
    named = Entered(contracts={(ANYWHERE, "r8"): promise(1.0)})
    plan = make(filled, named, keep=True)
    for change in (_contract, _class, _host, _tenant):
        change(filled)
    filled.tokens.add("new", ["read"], None, "root")
    assert apply(filled, plan).version == 2


def test_a_plan_with_problems_is_not_applied(store: Store) -> None:
    plan = make(store, FLEET._replace(classes={}))
    assert [problem.field for problem in plan.planned.problems] == ["hosts.gold.contracts.r1.class"]
    with pytest.raises(Invalid, match="no class 'silver'"):
        apply(store, plan)
    assert store.plans.fleet() == EMPTY


def test_hosts_take_an_administrator(store: Store) -> None:
    plan = make(store, FLEET)
    with pytest.raises(Forbidden, match="admin"):
        store.plans.apply(plan.id, 1, "ben", "operate")
    apply(store, plan)
    small = make(store, FLEET._replace(hosts={**FLEET.hosts, "gold": host("gold", 120e3)}))
    assert small.planned.needs == "operate"
    assert store.plans.apply(small.id, 1, "ben", "operate").version == 2


def test_a_router_that_is_seen_counts_on_its_host(filled: Store) -> None:
    seen: list[set[str]] = []

    def look(routers: Any) -> dict[str, list[str]]:
        seen.append(set(routers))
        return {"r7": ["iron", "gold"], "r8": ["gold"]}

    new = {(ANYWHERE, "r7"): promise(0.0), (ANYWHERE, "r8"): promise(1.0)}
    plan = make(filled, Entered(contracts=new), keep=True, seen=look)
    assert seen == [{"r7", "r8"}]
    assert [one.field for one in plan.planned.problems] == [
        "contracts.r7",
        "hosts.gold.capacity_pps",
    ]


def test_a_router_that_is_seen_is_at_home_there_from_then_on(filled: Store) -> None:
    def look(routers: Any) -> dict[str, list[str]]:
        return {router: ["iron"] for router in routers}

    more = {**FLEET.contracts, (ANYWHERE, "r8"): promise(90e3)}
    apply(filled, make(filled, FLEET._replace(contracts=more), seen=look))
    assert filled.homes.all() == {"r8": "iron"}
    with pytest.raises(Invalid, match="has promised 90000"):
        filled.contracts.put("iron", "r1", promise(20e3), None, "ann")
    apply(filled, make(filled, FLEET))
    assert "r8" not in filled.homes.all()


def test_a_failure_half_way_leaves_nothing(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make(store, FLEET)
    generation = store.generation()

    def fail(*_: object, **__: object) -> None:
        raise StoreGone("the disk is full")

    monkeypatch.setattr("policer.store.inventory.fleet.record_all", fail)
    with pytest.raises(StoreGone):
        apply(store, plan)
    monkeypatch.undo()
    assert (store.plans.fleet(), store.generation()) == (EMPTY, generation)
    again = backend.open()
    assert apply(again, plan).version == 2
    assert store.plans.fleet() == file_of(FLEET)


def test_a_plan_of_500_hosts_with_20_contracts_each_is_one_change(store: Store) -> None:
    names = [f"host-{n}" for n in range(500)]
    contract = promise(5e3, ceiling_pps=10e3)
    goal = Entered(
        hosts={name: host(name) for name in names},
        contracts={(name, f"r{n}"): contract for name in names for n in range(20)},
    )
    generation = store.generation()
    plan = make(store, goal)
    assert (len(plan.planned.changes), plan.planned.problems) == (10_500, ())
    apply(store, plan)
    assert store.plans.fleet() == file_of(goal)
    assert store.generation() == generation + 1
    assert make(store, goal).planned.changes == ()


# --- kept, and bounded


def test_another_policer_applies_a_plan(backend: "Backend", store: Store) -> None:
    plan = make(store, FLEET)
    assert apply(backend.open(), plan).version == 2
    assert store.plans.get(plan.id).applied_by == "ben"


def test_a_plan_is_gone_after_a_day(backend: "Backend", store: Store) -> None:
    plan = make(store, FLEET)
    backend.clock.forward(hours=23, minutes=59)
    assert store.plans.prune() == 0
    store.plans.get(plan.id)
    backend.clock.forward(minutes=2)
    for call in (lambda: store.plans.get(plan.id), lambda: apply(store, plan)):
        with pytest.raises(Unknown, match="plan again"):
            call()
    assert store.prune(90, 730)["plans"] == 1


def test_plans_are_bounded_by_maker_number_and_size(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(maker: str) -> str:
        backend.clock.forward(seconds=1)
        return make(store, EMPTY, maker=maker).id

    def left(ids: list[str]) -> list[bool]:
        return [_is_there(store, plan) for plan in ids]

    monkeypatch.setattr(plans, "MOST_EACH", 2)
    monkeypatch.setattr(plans, "MOST", 4)
    other = [made("other")]
    mine = [made("me") for _ in range(3)]
    assert left(mine) == [False, True, True]
    assert left(other) == [True]
    many = [made(f"m{n}") for n in range(3)]
    assert left(other + mine + many) == [False, False, False, True, True, True, True]
    monkeypatch.setattr(plans, "MOST_BYTES", 1)
    last = made("m9")
    assert left([*many, last]) == [False, False, False, True]


def test_a_plan_that_was_just_made_stays_though_the_clock_fell(
    backend: "Backend", store: Store
) -> None:
    for _ in range(plans.MOST_EACH + 1):
        make(store, EMPTY)
    backend.clock.forward(hours=-1)
    assert _is_there(store, make(store, EMPTY).id)


def _is_there(store: Store, plan: str) -> bool:
    try:
        store.plans.get(plan)
    except Unknown:
        return False
    return True


def test_a_damaged_plan_is_said_to_be_one(backend: "Backend", store: Store) -> None:
    plan = make(store, FLEET)
    backend.aside().execute("UPDATE plans SET planned = fleet")
    with pytest.raises(StoreGone, match=f"plan {plan.id} cannot be read"):
        store.plans.get(plan.id)


# --- at the same time


def test_of_two_plans_for_the_same_only_one_is_applied(backend: "Backend", store: Store) -> None:
    apply(store, make(store, FLEET))
    goals = [
        FLEET._replace(contracts={**FLEET.contracts, ("iron", f"r{n}"): promise(60e3)})
        for n in range(2)
    ]
    stores = [backend.open(busy_s=20.0) for _ in goals]
    made = [make(one, goal) for one, goal in zip(stores, goals, strict=True)]
    ends = together(lambda n: apply(stores[n], made[n]), 2)
    assert sorted(type(end).__name__ for end in ends) == ["PlanRow", "PlanStale"]
    assert len(store.contracts.all()["iron"]) == 1


def test_the_same_plan_applied_by_two_at_once_is_applied_once(
    backend: "Backend", store: Store
) -> None:
    plan = make(store, FLEET)
    stores = [backend.open(busy_s=20.0) for _ in range(2)]
    ends = together(lambda n: apply(stores[n], plan, actor=f"actor {n}"), 2)
    assert ends[0] == ends[1]
    assert len(store.audit.page(None, 99)) == 7


def test_plans_and_single_changes_do_not_promise_the_same_twice(
    backend: "Backend", store: Store
) -> None:
    """The second is refused, whichever that is."""
    apply(store, make(store, FLEET._replace(contracts={})))
    stores = [backend.open(busy_s=20.0) for _ in range(2)]
    goal = Entered(contracts={("gold", "r1"): promise(70e3)})
    plan = make(stores[0], FLEET._replace(contracts=goal.contracts))

    def one(number: int) -> object:
        if number == 0:
            return apply(stores[0], plan)
        return stores[1].contracts.put("gold", "r2", promise(70e3), None, "eve")

    ends = together(one, 2)
    assert len([end for end in ends if isinstance(end, PolicerError)]) == 1
    assert len(store.contracts.all()["gold"]) == 1


def together(call: Callable[[int], object], number: int) -> list[object]:
    """Call from several threads; return what each gives or raises."""
    ends: list[object] = [None] * number

    def run(which: int) -> None:
        try:
            ends[which] = call(which)
        except PolicerError as error:
            ends[which] = error

    threads = [Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends

"""What the fleet's file would change: who may, whether hosts could keep it, what it rests on."""

from typing import Any

import msgspec
import pytest
from fleet_values import NOW
from store_values import host, promise

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours
from policer.contracts.tenant import Tenant
from policer.decide.telemetry import MOST_ROUTERS
from policer.errors import Problem
from policer.fleetfile.capacity import STEPS_OF_A_PLAN
from policer.fleetfile.checks import MOST_KNOWN
from policer.fleetfile.document import Entered, FleetFile, HostEntry, bare, file_of
from policer.fleetfile.edits import edits, needed, shown
from policer.fleetfile.plan import MOST_PROBLEMS, Planned, draft, planned
from policer.fleetfile.reading import read_text

UUID = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"


def fleet(*hosts: Host, **contracts: Contract) -> Entered:
    """Return a fleet; contracts are by host and router, with a double underscore between."""
    keys = {name: (*name.split("__"),) if "__" in name else (ANYWHERE, name) for name in contracts}
    promised = {keys[name]: one for name, one in contracts.items()}
    return Entered(hosts={one.name: one for one in hosts}, contracts=promised)


def judged(goal: Entered, current: Entered, homes: dict[str, str] | None = None) -> Planned:
    file = file_of(goal)
    return planned(file, draft(file, current, homes or {}, keep=False), {}, NOW)


def problems(goal: Entered, current: Entered, homes: dict[str, str] | None = None) -> list[str]:
    return [f"{p.field}: {p.problem} ({p.fix})" for p in judged(goal, current, homes).problems]


# --- what would change


def test_changes_are_shown_field_by_field() -> None:
    before = Entered(
        {"acme": Tenant("old")},
        {},
        {"gold": host(), "iron": host("iron")},
        {("gold", "r1"): promise(1e3, ceiling_pps=2e3), ("gold", "r2"): promise(1e3)},
    )
    after = Entered(
        {"acme": Tenant("new")},
        {},
        {"gold": host(overcommit=True), "lead": host("lead", 5e3)},
        {("gold", "r1"): promise(1e3, weight=2.0), (ANYWHERE, "r2"): promise(1e3)},
    )
    found = msgspec.json.decode(msgspec.json.encode(list(map(shown, edits(before, after)))))
    assert [(one["action"], one["kind"], one["host"], one["name"]) for one in found] == [
        ("change", "tenant", None, "acme"),
        ("change", "host", None, "gold"),
        ("remove", "host", None, "iron"),
        ("add", "host", None, "lead"),
        ("add", "contract", None, "r2"),
        ("change", "contract", "gold", "r1"),
        ("remove", "contract", "gold", "r2"),
    ]
    assert found[1]["fields"] == [{"field": "overcommit", "before": False, "after": True}]
    assert found[3]["fields"][-1] == {"field": "capacity_pps", "before": None, "after": 5e3}
    assert found[5]["fields"] == [
        {"field": "ceiling_pps", "before": 2e3, "after": None},
        {"field": "weight", "before": 1.0, "after": 2.0},
    ]
    assert found[6]["fields"] == [{"field": "guarantee_pps", "before": 1e3, "after": 0.0}]


def test_what_takes_an_administrator() -> None:
    gold = host()
    moved = msgspec.structs.replace(gold, telemetry="ipc:///run/elsewhere")
    larger = msgspec.structs.replace(gold, capacity_pps=2e5, overcommit=True)
    for before, after, scope in (
        ((), (gold,), "admin"),
        ((gold,), (), "admin"),
        ((gold,), (moved,), "admin"),
        ((gold,), (larger,), "operate"),
        ((), (), "operate"),
    ):
        assert needed(edits(fleet(*before, r1=promise(1.0)), fleet(*after))) == scope


def test_a_host_without_an_entry_of_its_own_stays_as_it_is() -> None:
    file = read_text("version = 1\n[hosts.gold.contracts.r1]\nguarantee_pps = 1\n").file
    made = draft(file, fleet(host()), {}, keep=False)
    assert [edit.target for edit in made.edits] == ["contract gold/r1"]
    assert planned(file, made, {}, NOW).problems == ()
    alone = draft(file, Entered(), {}, keep=False)
    assert planned(file, alone, {}, NOW).problems[0] == Problem(
        "hosts.gold",
        "there is no such host, and this is no entry",
        "add requests, telemetry, capacity_pps",
    )


def test_half_an_entry_of_a_host_is_refused() -> None:
    file = read_text('version = 1\n[hosts.gold]\ncapacity_pps = "1kpps"\n').file
    found = planned(file, draft(file, fleet(host()), {}, keep=True), {}, NOW)
    assert [problem.field for problem in found.problems] == [
        "hosts.gold.requests",
        "hosts.gold.telemetry",
    ]
    assert found.changes == ()


# --- what is wrong


def test_things_are_judged_by_their_fields() -> None:
    tcp = msgspec.structs.replace(host(), requests="tcp://10.0.0.7:7077")
    goal = fleet(tcp, gold__r1=promise(2.0, ceiling_pps=1.0), **{UUID.upper(): promise(1.0)})
    goal = goal._replace(classes={"silver": Contract(tenant="acme")})
    found = problems(goal, Entered())
    assert [line.partition(": ")[0] for line in found] == [
        "classes.silver.tenant",
        "hosts.gold.server_key",
        f"contracts.{UUID.upper()}",
        "hosts.gold.contracts.r1.ceiling_pps",
    ]
    assert found[2].endswith(f"a UUID is written in small letters (write {UUID})")


def test_names_of_what_is_not_there_are_told_with_what_may_be_meant() -> None:
    window = Hours("08:00", "18:00", class_name="sliver")
    contract = promise(1.0, hours=(window,), tenant="acem")
    goal = fleet(host(), gold__r1=contract)
    goal = goal._replace(classes={"silver": promise(1.0)}, tenants={"acme": Tenant()})
    assert problems(goal, Entered()) == [
        (
            "hosts.gold.contracts.r1.class: there is no class 'sliver'"
            " (did you mean silver? Else add [classes.sliver])"
        ),
        (
            "hosts.gold.contracts.r1.tenant: there is no tenant 'acem'"
            " (did you mean acme? Else add [tenants.acem])"
        ),
    ]


def test_among_very_many_names_none_is_looked_for_that_is_alike() -> None:
    known = {f"tenant-{n}": Tenant() for n in range(MOST_KNOWN + 1)}
    goal = fleet(host(), gold__r1=promise(1.0, tenant="tenant-x"))._replace(tenants=known)
    assert "did you mean" not in problems(goal, Entered())[0]
    known.popitem()
    assert "did you mean" in problems(goal._replace(tenants=known), Entered())[0]


def test_a_class_that_is_named_does_not_go() -> None:
    current = fleet(host(), gold__r1=Contract(class_name="silver"))
    current = current._replace(classes={"silver": promise(1.0)})
    found = problems(current._replace(classes={}), current)
    assert found == [
        "hosts.gold.contracts.r1.class: there is no class 'silver' (add [classes.silver])"
    ]


def test_one_daemon_is_one_host_across_the_whole_plan() -> None:
    twin = msgspec.structs.replace(host("twin"), telemetry=host().telemetry)
    assert problems(fleet(host(), twin), Entered()) == [
        f"hosts.{name}.telemetry: {other} has the same"
        " (each daemon is one host: change or remove one)"
        for name, other in (("gold", "twin"), ("twin", "gold"))
    ]
    # Two hosts may change places, and a daemon may go from one that is removed to another.
    gold, iron = host(), host("iron")
    swapped = fleet(
        msgspec.structs.replace(gold, name="iron"), msgspec.structs.replace(iron, name="gold")
    )
    assert problems(swapped, fleet(gold, iron)) == []
    renamed = fleet(msgspec.structs.replace(gold, name="lead"))
    assert problems(renamed, fleet(gold)) == []


def test_thousands_of_hosts_of_one_daemon_are_told_soon() -> None:
    twins = [msgspec.structs.replace(host(), name=f"h{n}") for n in range(5000)]
    assert len(problems(fleet(*twins), Entered())) == MOST_PROBLEMS


def test_full_hosts_may_swap_their_guarantees() -> None:
    hosts = host("a", 100.0), host("b", 100.0)
    before = fleet(*hosts, a__r1=promise(100.0), b__r1=promise(60.0), b__r2=promise(40.0))
    after = fleet(*hosts, b__r1=promise(100.0), a__r1=promise(60.0), a__r2=promise(40.0))
    found = judged(after, before)
    assert found.problems == ()
    assert [(one.host, one.before_pps, one.promised_pps) for one in found.hosts] == [
        ("a", 100.0, 100.0),
        ("b", 100.0, 100.0),
    ]


def test_all_hosts_that_would_promise_too_much_are_told() -> None:
    hosts = host("a", 100.0), host("b", 100.0), host("c", 100.0, overcommit=True)
    goal = fleet(*hosts, a__r1=promise(101.0), b__r1=promise(60.0, cost=2.0), c__r=promise(900.0))
    assert problems(goal, fleet(*hosts)) == [
        (
            "hosts.a.capacity_pps: 100 is less than the 101 packets/s that would be promised"
            " (promise 1 less, or let the host overcommit)"
        ),
        (
            "hosts.b.capacity_pps: 100 is less than the 120 packets/s that would be promised"
            " (promise 20 less, or let the host overcommit)"
        ),
    ]


def test_a_class_that_grows_is_judged_on_every_host_that_has_it() -> None:
    silver = Contract(class_name="silver")
    before = fleet(host("a", 100.0), host("b", 100.0), a__r1=silver, a__r2=silver, r3=silver)
    before = before._replace(classes={"silver": promise(50.0)})
    found = problems(before._replace(classes={"silver": promise(51.0)}), before, {"r3": "b"})
    assert [line.partition(":")[0] for line in found] == ["hosts.a.capacity_pps"]
    found = judged(before._replace(classes={"silver": promise(40.0)}), before, {"r3": "b"})
    assert [(one.host, one.promised_pps) for one in found.hosts] == [("a", 80.0), ("b", 40.0)]


def test_contracts_of_different_hours_share_a_capacity() -> None:
    day, night = Hours("08:00", "20:00"), Hours("20:00", "08:00")
    goal = fleet(
        host("a", 100.0), a__r1=promise(100.0, hours=(day,)), a__r2=promise(100.0, hours=(night,))
    )
    assert problems(goal, Entered()) == []


def test_very_many_hours_are_added_up_instead() -> None:
    """What one plan looks at is bounded, however the contracts are made."""
    names = [f"h{n}" for n in range(STEPS_OF_A_PLAN // 1000)]
    windows = (Hours("08:00", "20:00"), Hours("20:00", "08:00"))
    hosts = {name: host(name, 100.0) for name in names}
    promised = {
        (name, f"r{n}"): promise(99.0, hours=(window,))
        for name in names
        for n, window in enumerate(windows)
    }
    small = Entered(hosts=hosts, contracts=promised)
    assert judged(small, Entered()).problems == ()
    more = {
        (name, f"r{n}-{m}"): promise(0.001, hours=(Hours(f"08:{m:02}", "09:00"),))
        for name in names[:30]
        for n in range(3)
        for m in range(30)
    }
    added = judged(small._replace(contracts=promised | more), Entered())
    assert len(added.problems) == 30


def test_a_host_that_routers_have_overfilled_may_be_relieved_bit_by_bit() -> None:
    full = fleet(host("a", 100.0), a__r1=promise(60.0), r2=promise(60.0), r3=promise(30.0))
    homes = {"r2": "a", "r3": "a"}
    less = full._replace(contracts={**full.contracts, ("a", "r1"): promise(50.0)})
    assert problems(less, full, homes) == []
    more = full._replace(contracts={**full.contracts, ("a", "r1"): promise(61.0)})
    assert len(problems(more, full, homes)) == 1
    smaller = full._replace(hosts={"a": host("a", 99.0)})
    assert len(problems(smaller, full, homes)) == 1
    elsewhere = full._replace(hosts={**full.hosts, "b": host("b")})
    assert problems(elsewhere, full, homes) == []


def test_what_holds_on_a_host_and_what_follows_a_router_there_both_count() -> None:
    goal = fleet(host("a", 100.0), a__r1=promise(70.0), r1=promise(20.0))
    found = judged(goal, Entered(), {"r1": "a"})
    assert (found.hosts[0].promised_pps, found.problems) == (90.0, ())


def test_a_new_contract_follows_no_name_that_several_hosts_report() -> None:
    goal = fleet(host(), r1=promise(1.0), r2=promise(1.0), **{UUID: promise(1.0)})
    file, having = file_of(goal), {"r1": ["a", "b"], "r2": ["a"], UUID: ["a", "b"]}
    made = draft(file, Entered(), {}, keep=False)
    assert planned(file, made, having, NOW).problems == (
        Problem(
            "contracts.r1",
            "several hosts have a router of this name: a, b",
            "give the router's UUID, or make the contract on one host",
        ),
    )
    again = draft(file, goal._replace(hosts={}), {}, keep=False)
    assert planned(file, again, having, NOW).problems == ()


def test_a_host_has_no_more_contracts_than_routers() -> None:
    full = {("a", f"r{n}"): promise(0.0) for n in range(MOST_ROUTERS)}
    goal = fleet(host("a"))._replace(contracts=full)
    assert problems(goal, Entered()) == []
    one_more = goal._replace(contracts={**full, ("a", "more"): promise(0.0)})
    assert problems(one_more, goal) == [
        f"hosts.a.contracts: there would be {MOST_ROUTERS + 1} (there may be {MOST_ROUTERS})"
    ]
    instead = goal._replace(contracts={**dict([*full.items()][1:]), ("a", "more"): promise(0.0)})
    assert problems(instead, goal) == []


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../UTC", "Europe", ""])
def test_hours_of_an_unknown_zone_are_refused_at_their_field(zone: str) -> None:
    goal = fleet(host(), gold__r1=promise(1.0, hours=(Hours("08:00", "18:00"),), zone=zone))
    assert [line.partition(": ")[0] for line in problems(goal, fleet(host()))] == [
        "hosts.gold.contracts.r1.zone"
    ]


def test_guarantees_in_bits_take_packets_of_the_size_sold() -> None:
    sold = Contract(guarantee_bps=8e6, packet_bytes=100)
    found = judged(fleet(host(), gold__r1=sold), fleet(host()))
    assert (found.hosts[0].promised_pps, found.problems) == (10e3, ())


# --- what it rests on


def test_a_plan_rests_on_the_hosts_classes_and_daemons_that_matter_to_it() -> None:
    current = fleet(host("a"), host("b"), a__r1=promise(1.0), b__r1=promise(1.0), r3=promise(1.0))
    current = current._replace(classes={"silver": promise(1.0), "iron": promise(1.0)})
    file = FleetFile(
        version=1, hosts={"a": HostEntry(contracts={"r9": Contract(class_name="silver")})}
    )

    def basis(was: Entered, homes: dict[str, str] | None = None) -> str:
        return draft(file, was, homes or {}, keep=True).basis

    def with_contract(host: str, vr: str, contract: Contract) -> Entered:
        return current._replace(contracts={**current.contracts, (host, vr): contract})

    same = basis(current)
    assert basis(with_contract("b", "r1", promise(2.0))) == same
    assert basis(with_contract("b", "r2", promise(2.0))) == same
    assert basis(current._replace(classes={**current.classes, "iron": promise(2.0)})) == same
    assert basis(current._replace(hosts={**current.hosts, "b": host("b", 1.0)})) == same
    assert basis(current, {"r3": "b"}) == same
    assert basis(with_contract("a", "r1", promise(2.0))) != same
    assert basis(with_contract("a", "r9", promise(2.0))) != same
    assert basis(current._replace(classes={**current.classes, "silver": promise(2.0)})) != same
    assert basis(current._replace(classes={})) != same
    assert basis(current._replace(hosts={**current.hosts, "a": host("a", 1.0)})) != same
    assert basis(current, {"r3": "a"}) != same


def test_a_plan_that_enters_a_host_rests_on_how_all_others_are_reached() -> None:
    file = FleetFile(version=1, hosts={"c": HostEntry(**bare_entry(host("c")))})
    one = draft(file, fleet(host("a")), {}, keep=True).basis
    moved = msgspec.structs.replace(host("a"), telemetry=host("c").telemetry)
    assert draft(file, fleet(moved), {}, keep=True).basis != one


def bare_entry(entry: Host) -> dict[str, Any]:
    return {name: value for name, value in bare(entry).items() if name != "name"}

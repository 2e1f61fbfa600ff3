"""What a limited token reaches: names, patterns, tenants; and what becomes of words and sums."""

import msgspec
import pytest
from reach_rig import ACME, BETA, EDGE
from rest_rig import report

from policer.contracts.reach import MOST, UNLIMITED, Reach, in_words
from policer.decide.engagement import EngagementState
from policer.decide.state import HostState
from policer.decide.telemetry import HostTelemetry
from policer.errors import OutOfReach
from policer.fleet.limited import HIDDEN, ReachedFleet, reached
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.store.history.events import Events
from policer.store.history.punishments import Punishments
from policer.store.inventory.classes import Classes
from policer.store.inventory.contracts import Contracts
from policer.store.inventory.hosts import Hosts
from policer.store.inventory.overrides import OverrideTable
from policer.store.limited.classes import ReachedClasses
from policer.store.limited.contracts import ReachedContracts
from policer.store.limited.overrides import ReachedOverrides
from policer.store.limited.store import (
    ReachedEvents,
    ReachedHosts,
    ReachedPunishments,
    ReachedStore,
)


def test_no_limits_reach_everything() -> None:
    assert not UNLIMITED.limited
    assert UNLIMITED.may_see("any", "router", None)
    assert UNLIMITED.may_see_host("any")


def test_each_kind_of_limit_narrows() -> None:
    reach = Reach(hosts=("edge-*",), routers=("*/a?",), tenants=("acme",))
    assert reach.may_see("edge-1", "a1", "acme")
    assert not reach.may_see("core-1", "a1", "acme")
    assert not reach.may_see("edge-1", "a11", "acme")
    assert not reach.may_see("edge-1", "a1", "beta")
    assert not reach.may_see("edge-1", "a1", None)
    assert not reach.may_see_host("edge-1")


def test_hosts_alone_are_reached_as_a_whole() -> None:
    reach = Reach(hosts=("edge-1", "edge-2?"))
    assert [reach.may_see_host(name) for name in ("edge-1", "edge-20", "edge-10", "Edge-1")] == [
        True,
        True,
        False,
        False,
    ]
    assert reach.may_see("edge-1", "whatever", None)


@pytest.mark.parametrize(
    ("pattern", "host", "vr", "fits"),
    [
        ("gold/r1", "gold", "r1", True),
        ("gold/r1", "gold", "r11", False),
        ("gold/r1", "gold", "xr1", False),
        ("gold/r1", "gold", "R1", False),
        ("gold/*", "gold", "r1", True),
        ("gold/*", "goldx", "r1", False),
        ("g?ld/r.", "gold", "r1", False),
        ("*/r_1", "gold", "r-1", False),
        ("*/*", "gold", "r1", True),
    ],
)
def test_a_pattern_catches_what_it_says_and_no_more(
    pattern: str, host: str, vr: str, *, fits: bool
) -> None:
    assert Reach(routers=(pattern,)).may_see(host, vr, None) is fits


@pytest.mark.parametrize(
    "wrong",
    [
        {"hosts": ["edge-[12]"]},
        {"hosts": ["edge 1"]},
        {"hosts": [""]},
        {"hosts": ["edge\n"]},
        {"hosts": ["a" * 65]},
        {"hosts": ["edge-1/r1"]},
        {"routers": ["r1"]},
        {"routers": ["gold/r1/r2"]},
        {"routers": ["/r1"]},
        {"routers": ["gold/"]},
        {"routers": ["gold/[a-z]"]},
        {"tenants": ["acme*"]},
        {"tenants": ["a/b"]},
        {"tenants": [f"t{number}" for number in range(MOST + 1)]},
        {"tenant": ["acme"]},
    ],
)
def test_what_is_no_limit_is_refused(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Reach)


def test_reaches_are_said_in_a_line() -> None:
    assert in_words(UNLIMITED) == "all"
    assert in_words(Reach(hosts=("a", "b*"), tenants=("t",))) == "hosts a, b*; tenants t"


def live() -> HostLive:
    wordy = msgspec.structs.replace(report("a", 10.0), problem="b stands in its way")
    return HostLive(
        EDGE,
        {"a": ACME, "b": BETA},
        follows={"a": "roams", "b": "roams-too"},
        tenants={"a": "acme", "b": "beta", "c": "beta"},
        unnamed=frozenset({"4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"}),
        telemetry=HostTelemetry(
            heard_at=1.0, routers={"a": wordy, "b": report("b", 5.0)}, distrust="b lies"
        ),
        state=HostState(
            standing=EngagementState(engaged=True, harmed=("a", "b"), lacks={"b": 1.0})
        ),
        link_problem="tcp://10.0.0.1: gone",
        unread=3,
        rounds_failed=4,
        refusals={"a": "b has it", "b": "no"},
    )


def test_of_a_host_in_part_nothing_of_others_is_seen() -> None:
    seen = reached(live(), Reach(tenants=("acme",)))
    assert seen is not None
    assert seen.contracts == {"a": ACME}
    assert (seen.follows, seen.tenants, seen.unnamed) == ({"a": "roams"}, {}, frozenset())
    assert list(seen.telemetry.routers) == ["a"]
    assert seen.telemetry.routers["a"].problem == HIDDEN
    assert (seen.telemetry.distrust, seen.link_problem) == ("", "")
    assert seen.refusals == {"a": HIDDEN}
    assert seen.state.standing.harmed == ("a",)
    assert seen.state.standing.engaged
    assert seen.state.standing.lacks == {}
    assert (seen.host.name, seen.host.capacity_pps, seen.host.requests) == ("edge-1", 0.0, "")
    assert (seen.unread, seen.rounds_failed) == (0, 0)


def test_a_host_is_seen_as_a_whole_or_not_at_all() -> None:
    whole = live()
    assert reached(whole, Reach(hosts=("edge-*",))) is whole
    assert reached(whole, Reach(hosts=("core-*",))) is None
    assert reached(whole, Reach(routers=("*/c",))) is None


def test_a_fleet_in_part_has_the_hosts_that_are_seen() -> None:
    fleet = Fleet()
    fleet.put(live())
    fleet.leadership = Leadership(leading=True, epoch=3, holder="machine-7", problem="db at x")
    fleet.braked_hosts = frozenset({"edge-1"})
    part = ReachedFleet(fleet, Reach(tenants=("acme",)))
    assert [(one.host.name, vr) for one, vr in part.routers()] == [("edge-1", "a")]
    assert part.host("edge-1").contracts == {"a": ACME}
    assert part.leadership == Leadership(leading=True, epoch=3)
    assert part.braked_hosts == frozenset()
    none = ReachedFleet(fleet, Reach(tenants=("none",)))
    assert (none.hosts, none.get("edge-1"), none.get("x")) == ({}, None, None)
    with pytest.raises(KeyError):
        none.host("edge-1")


def test_a_table_that_nobody_limited_is_closed() -> None:
    limited = ReachedStore.__new__(ReachedStore)
    for name in ("tokens", "audit", "what_comes_next"):
        with pytest.raises(OutOfReach):
            getattr(limited, name)


UNFILTERED = {
    # What `ReachedContracts` itself goes by; and terms of classes, by contracts that are seen.
    (Contracts, "following"),
    (Contracts, "owner"),
    (Classes, "named_by"),
    # The number of the latest event alone.
    (Events, "newest"),
}


@pytest.mark.parametrize(
    ("reached_table", "table"),
    [
        (ReachedHosts, Hosts),
        (ReachedContracts, Contracts),
        (ReachedClasses, Classes),
        (ReachedOverrides, OverrideTable),
        (ReachedEvents, Events),
        (ReachedPunishments, Punishments),
    ],
)
def test_a_limited_table_has_its_own_of_all_that_a_table_can(
    reached_table: type, table: type
) -> None:
    public = {name for name in vars(table) if not name.startswith("_")}
    own = {*vars(reached_table)} | {name for of, name in UNFILTERED if of is table}
    assert public - own == set()

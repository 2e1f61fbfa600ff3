"""Contracts that follow their routers, and begin and end in time, as the service sees to it."""

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from following_rig import NOON, UUID, Policer, follow, punished
from policer_plant import report_of
from store_values import host, promise
from support.stores import with_tables

from policer.contracts.contract import Contract
from policer.contracts.location import RETURN_S, SILENT_S
from policer.contracts.promised import ANYWHERE
from policer.contracts.schedule import Hours
from policer.contracts.tenant import Tenant
from policer.errors import StoreError
from policer.fleet.inbox import Pardon
from policer.fleet.live import HostLive
from policer.service.following import MANY, TWICE_AFTER_S
from policer.store import Store, open_store
from xtc.wire import Report

pytestmark = pytest.mark.anyio
TERMS = promise(20e3)


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return with_tables(tmp_path / "policer.db")


@pytest.fixture
def store(url: str) -> Store:
    made = open_store(url, clock=lambda: NOON)
    for name in ("h0", "h1", "h2"):
        made.hosts.add(host(name), "test")
    return made


@pytest.fixture
async def policer(store: Store) -> AsyncIterator[Policer]:
    made = Policer(store)
    yield made
    await made.end()


def domain(vr: str, **changed: object) -> Report:
    return report_of(vr, uuid=UUID, **changed)


# Moves.


async def test_a_router_that_moves_keeps_its_contract_and_its_place_on_the_ladder(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r")], [])
    await policer.look()
    await policer.hear("h0", "r")
    assert (policer.contracts("h0"), policer.heights("h0")) == ({"r": TERMS}, {"r": 2})
    await policer.hear("h0", "other")
    assert policer.heights("h0") == {"r": 2}  # it may come back
    await policer.hear("h1", "r")
    assert (policer.contracts("h0"), policer.heights("h0")) == ({}, {})
    assert (policer.contracts("h1"), policer.heights("h1")) == ({"r": TERMS}, {"r": 2})
    policer.service.writer.flush()
    assert [*store.punishments.all()] == [("h1", "r")]
    assert store.homes.all() == {"r": "h1"}
    assert policer.kinds("moved") == [("moved", "h1", "r")]
    assert "came from h0" in policer.events[-1].words


async def test_a_step_that_was_taken_goes_on_where_it_was(store: Store, policer: Policer) -> None:
    """Its time does not begin again, and its evidence stands."""
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r")], [])
    await policer.look()
    await policer.hear("h0", "r")
    before = policer.loop("h0")._state.routers["r"]
    policer.wait(20.0)
    await policer.hear("h0")
    policer.tell("h1", "r")
    after = policer.loop("h1")._state.routers["r"]
    assert after.punishment == before.punishment
    assert after.evidence == before.evidence


def counted(over: float, vr: str = "r", **changed: object) -> Report:
    promised = {"under_promise_packets": 0.0, "breach_seconds": 0.0}
    return report_of(vr, over_promise_packets=over, **promised, **changed)


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_what_its_daemons_counted_is_one_sum(
    store: Store, policer: Policer, tenant: str | None
) -> None:
    store.tenants.put("acme", Tenant(), None, "test")
    follow(store, "r", promise(20e3, tenant=tenant), "h0")
    await policer.look()
    for over in (10.0, 15.0):
        await policer.hear("h0", counted(over))
    since = policer.live("h0").kept["r"].since
    await policer.hear("h0")
    for over in (900.0, 907.0):  # what the other daemon counted of a copy is no part of it
        await policer.hear("h1", counted(over))
    kept = policer.live("h1").kept["r"]
    assert (kept.total.over_packets, kept.since) == (12.0, since)
    assert "r" not in policer.live("h0").kept


async def test_a_router_that_gets_another_name_keeps_its_sums(
    store: Store, policer: Policer
) -> None:
    store.tenants.put("acme", Tenant(), None, "test")
    follow(store, UUID, promise(20e3, tenant="acme"), "h0")
    await policer.look()
    for over, name in ((10.0, "gold"), (15.0, "gold"), (20.0, "shiny"), (22.0, "shiny")):
        await policer.hear("h0", counted(over, name, uuid=UUID))
    assert policer.live("h0").kept["shiny"].total.over_packets == 7.0


async def test_what_was_counted_for_a_tenant_does_not_move_to_another(
    store: Store, policer: Policer
) -> None:
    for tenant in ("acme", "beta"):
        store.tenants.put(tenant, Tenant(), None, "test")
    follow(store, "r", promise(20e3, tenant="acme"), "h0")
    store.contracts.put("h1", "r", promise(10e3, tenant="beta"), None, "test")
    await policer.look()
    for over in (10.0, 15.0):
        await policer.hear("h0", counted(over))
    await policer.hear("h0")
    await policer.hear("h1", counted(900.0))
    assert policer.live("h1").kept["r"].total.over_packets == 0.0


async def test_a_router_by_uuid_keeps_all_though_it_is_called_otherwise_there(
    store: Store, policer: Policer
) -> None:
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    await policer.look()
    await policer.hear("h0", domain("gold"))
    assert (policer.contracts("h0"), policer.heights("h0")) == ({"gold": TERMS}, {"gold": 2})
    await policer.hear("h0")
    await policer.hear("h1", domain("customer"))
    assert policer.contracts("h1") == {"customer": TERMS}
    assert policer.heights("h1") == {"customer": 2}
    assert policer.live("h1").follows == {"customer": UUID}
    assert UUID in policer.events[-1].words


async def test_a_router_that_gets_another_name_does_not_leave_its_ladder(
    store: Store, policer: Policer
) -> None:
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    await policer.look()
    await policer.hear("h0", domain("gold"))
    await policer.hear("h0", domain("shiny"))
    assert (policer.contracts("h0"), policer.heights("h0")) == ({"shiny": TERMS}, {"shiny": 2})
    policer.service.writer.flush()
    assert [*store.punishments.all()] == [("h0", "shiny")]
    assert policer.events[-1].words == "it was called gold before"


async def test_two_routers_that_swap_their_names_swap_nothing_else(
    store: Store, policer: Policer
) -> None:
    other = UUID.replace("4", "5", 1)
    follow(store, UUID, TERMS, "h0")
    follow(store, other, promise(1e3), "h0")
    store.punishments.set([punished("h0", "a")], [])
    await policer.look()
    await policer.hear("h0", domain("a"), report_of("b", uuid=other))
    await policer.hear("h0", domain("b"), report_of("a", uuid=other))
    assert policer.heights("h0") == {"b": 2}
    assert policer.contracts("h0") == {"b": TERMS, "a": promise(1e3)}


async def test_what_was_promised_on_a_host_alone_comes_first_there(
    store: Store, policer: Policer
) -> None:
    own = promise(5e3)
    store.contracts.put("h1", "r", own, None, "test")
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r"), punished("h1", "r", height=3, step="limit")], [])
    await policer.look()
    await policer.hear("h0", "r")
    await policer.hear("h0")
    await policer.hear("h1", "r")
    assert policer.contracts("h1") == {"r": own}
    assert policer.live("h1").follows == {}
    assert policer.heights("h1") == {"r": 3}  # what it did there counts


async def test_a_copy_that_was_left_behind_has_nothing(store: Store, policer: Policer) -> None:
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r")], [])
    await policer.look()
    await policer.hear("h0", "r")
    await policer.hear("h1", "r")
    assert (policer.contracts("h1"), policer.heights("h1")) == ({}, {})
    await policer.hear("h0")
    await policer.hear("h1", "r")
    policer.wait(RETURN_S)
    await policer.hear("h1", "r")
    await policer.hear("h0", "r")
    assert (policer.contracts("h0"), policer.heights("h0")) == ({}, {})
    assert policer.contracts("h1") == {"r": TERMS}


async def test_a_router_whose_host_was_removed_is_found_elsewhere(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    await policer.look()
    await policer.hear("h0", "r")
    await policer.hear("h1", "r")
    store.hosts.remove("h0", 1, "test")
    await policer.look()
    policer.wait(2 * TWICE_AFTER_S)
    policer.tick_over()  # nobody is its home now
    await policer.hear("h1", "r")
    assert policer.contracts("h1") == {"r": TERMS}
    assert "was found" in policer.events[-1].words
    policer.service.writer.flush()
    assert store.homes.all() == {"r": "h1"}


async def test_a_pardon_finds_a_router_that_has_just_moved(store: Store, policer: Policer) -> None:
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r"), punished("h0", "stays")], [])
    await policer.look()
    await policer.hear("h0", "r", "stays")
    await policer.hear("h0", "stays")
    await policer.hear("h1", "r")
    find = policer.service._following.now_at
    assert find("h0", "r") == ("h1", "r")
    assert find("h0", "stays") == ("h0", "stays")
    assert find("nowhere", "r") == ("nowhere", "r")
    policer.service.inbox.put(Pardon("h0", "r", "operator"))
    mail = policer.service._read_mail()
    with suppress(StopIteration):
        mail.send(None)
    mail.close()
    assert policer.heights("h1") == {}


# Who leads.


async def test_one_that_does_not_lead_follows_without_a_word(store: Store, url: str) -> None:
    follow(store, "r", TERMS, "h0")
    first, other = Policer(store), Policer(open_store(url), "other")
    await first.look()
    await other.look()
    for one in (first, other):
        await one.hear("h0", "r")
        await one.hear("h0")
        await one.hear("h1", "r")
    assert other.contracts("h1") == {"r": TERMS}
    assert other.events == []
    other.service.writer.flush()
    assert store.homes.all() == {"r": "h0"}  # the leader has not written it yet
    await first.end()
    await other.end()


async def test_a_move_that_the_leader_could_not_write_is_no_way_off_the_ladder(
    store: Store, url: str
) -> None:
    """It is lost between the move and the next write; the next leader has seen it move too."""
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    first, other = Policer(store), Policer(open_store(url), "other")
    await first.look()
    await other.look()
    for one in (first, other):
        await one.hear("h0", domain("gold"))
        await one.hear("h0")
        await one.hear("h1", domain("customer"))
    await first.end()
    await other.look()
    assert other.fleet.leadership.leading
    assert (other.heights("h0"), other.heights("h1")) == ({}, {"customer": 2})
    other.service.writer.flush()
    assert [*store.punishments.all()] == [("h1", "customer")]
    assert store.homes.all() == {UUID: "h1"}
    await other.end()


async def test_a_leader_that_loses_and_wins_its_lead_forgets_no_move(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r")], [])
    await policer.look()
    await policer.hear("h0", "r")
    policer.service._lead._lock.release()
    await policer.service._lead.look()
    assert not policer.fleet.leadership.leading
    await policer.hear("h0")
    await policer.hear("h1", "r")
    assert policer.live("h1").state.routers == {}  # only a leader shows what it knows
    policer.service.writer.flush()
    await policer.look()
    assert policer.fleet.leadership.leading
    assert (policer.heights("h0"), policer.heights("h1")) == ({}, {"r": 2})
    policer.service.writer.flush()
    assert [*store.punishments.all()] == [("h1", "r")]
    assert store.homes.all() == {"r": "h1"}


async def test_a_new_leader_believes_the_store_of_what_it_does_not_see(
    store: Store, url: str
) -> None:
    """The one before heard h1, which this one does not hear."""
    follow(store, "r", TERMS, "h0")
    store.punishments.set([punished("h0", "r")], [])
    first, other = Policer(store), Policer(open_store(url), "other")
    await first.look()
    await other.look()
    await first.hear("h0")
    await first.hear("h1", "r")
    await other.hear("h0")
    assert other.contracts("h0") == {"r": TERMS}
    first.service.writer.flush()
    await first.end()
    await other.look()
    assert (other.contracts("h0"), other.contracts("h1")) == ({}, {"r": TERMS})
    assert other.heights("h1") == {"r": 2}
    other.service.writer.flush()
    assert store.homes.all() == {"r": "h1"}
    await other.end()


async def test_a_policer_that_starts_again_goes_on(store: Store, url: str) -> None:
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    first = Policer(store)
    await first.look()
    await first.hear("h0", domain("gold"))
    first.service.writer.flush()
    await first.end()
    again = Policer(open_store(url), "again")
    await again.look()
    await again.hear("h1", domain("gold"))  # a copy, and its home has not reported yet
    assert again.contracts("h1") == {}
    await again.hear("h0", domain("gold"))
    assert (again.contracts("h0"), again.heights("h0")) == ({"gold": TERMS}, {"gold": 2})
    assert again.kinds("moved") == []
    await again.end()


async def test_a_router_that_moved_while_no_policer_was_there_does_not_leave_its_ladder(
    store: Store, policer: Policer
) -> None:
    """By its UUID: nobody knows what it was called, but most keep their names."""
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    await policer.look()
    await policer.hear("h0", "other")
    await policer.hear("h1", domain("gold"))
    assert (policer.heights("h0"), policer.heights("h1")) == ({}, {"gold": 2})


async def test_so_it_is_where_it_moved_before_the_lead_was_won(store: Store, url: str) -> None:
    follow(store, UUID, TERMS, "h0")
    store.punishments.set([punished("h0", "gold")], [])
    first, other = Policer(store), Policer(open_store(url), "other")
    await first.look()
    await other.look()
    await other.hear("h0", "other")
    await other.hear("h1", domain("gold"))
    await first.end()
    await other.look()
    assert (other.heights("h0"), other.heights("h1")) == ({}, {"gold": 2})
    await other.end()


async def test_another_router_of_that_name_keeps_what_it_did(
    store: Store, policer: Policer
) -> None:
    follow(store, UUID, TERMS, "h0")
    store.contracts.put("h0", "gold", promise(1e3), None, "test")
    store.punishments.set([punished("h0", "gold")], [])
    await policer.look()
    await policer.hear("h0", report_of("gold", uuid=UUID.replace("4", "5", 1)))
    await policer.hear("h1", domain("gold"))
    assert (policer.heights("h0"), policer.heights("h1")) == ({"gold": 2}, {})


# Events, and what hosts may bring about.


async def test_a_router_on_two_hosts_is_told_once_for_as_long_as_it_is(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    await policer.look()
    for _ in range(int(4 * TWICE_AFTER_S)):
        await policer.hear("h0", "r", seconds=0.5)
        await policer.hear("h1", "r", seconds=0.5)
        policer.tick_over()
    assert policer.kinds("twice", "moved") == [("twice", "h1", "r")]
    assert "h0 has it too: its contract stays there" in policer.events[-1].words


async def test_a_router_that_migrates_is_no_news_until_it_has_moved(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    await policer.look()
    for _ in range(int(TWICE_AFTER_S) - 5):
        await policer.hear("h0", "r", seconds=0.5)
        await policer.hear("h1", "r", seconds=0.5)
        policer.tick_over()
    assert policer.events == []
    await policer.hear("h0")
    await policer.hear("h1", "r")
    assert policer.kinds("moved", "twice") == [("moved", "h1", "r")]


async def test_a_claim_that_comes_and_goes_is_no_news_every_time(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", TERMS, "h0")
    await policer.look()
    for turn in range(2000):
        await policer.hear("h0", "r", seconds=0.5)
        await policer.hear("h1", *(["r"] if turn % 2 else []), seconds=0.5)
        policer.tick_over()
    assert policer.kinds("twice", "moved") == []


async def test_more_than_a_host_can_forward_is_told_once_until_it_is_less(
    store: Store, policer: Policer
) -> None:
    follow(store, "r", promise(60e3), "h0")
    store.contracts.put("h1", "s", promise(70e3), None, "test")
    await policer.look()
    await policer.hear("h0", "r")
    for _ in range(5):
        policer.tick_over()
    assert policer.kinds("overpromised") == []
    await policer.hear("h0")
    await policer.hear("h1", "r", "s")
    for _ in range(5):
        policer.tick_over()
    assert policer.kinds("overpromised") == [("overpromised", "h1", None)]
    assert "130000" in policer.events[-1].words
    await policer.hear("h1", "s")
    await policer.hear("h2", "r")
    policer.tick_over()
    await policer.hear("h2")
    await policer.hear("h1", "r", "s")
    policer.tick_over()
    assert policer.kinds("overpromised") == [("overpromised", "h1", None)] * 2


async def test_a_host_that_may_overcommit_promises_as_it_likes(
    store: Store, policer: Policer
) -> None:
    entry = store.hosts.get("h1").value
    store.hosts.replace(msgspec.structs.replace(entry, overcommit=True), 1, "test")
    follow(store, "r", promise(60e3), "h0")
    store.contracts.put("h1", "s", promise(70e3), None, "test")
    await policer.look()
    await policer.hear("h0")
    await policer.hear("h1", "r", "s")
    policer.tick_over()
    assert policer.kinds("overpromised") == []


async def test_a_host_that_takes_thousands_of_routers_costs_little(
    store: Store, policer: Policer
) -> None:
    """All routers of a host that is gone, claimed at once, and back again: time, events, writes."""
    names = [f"r{number}" for number in range(4000)]
    follow(store, "r0", promise(1.0), "h0")
    await policer.look()
    following = policer.service._following
    contracts = dict.fromkeys(names, promise(1.0))
    following.take({ANYWHERE: contracts}, {}, dict.fromkeys(names, "h0"))
    following.enter("h0")
    await policer.hear("h0", *names)
    before = time.process_time()
    for _ in range(10):
        policer.wait(SILENT_S)
        policer.tell("h1", *names)
        policer.wait(SILENT_S)
        policer.tell("h0", *names)
        policer.tick_over()
    assert time.process_time() - before < 20.0
    assert len(policer.kinds("moved")) <= 2 * MANY + 20
    assert len(policer.service.writer._homes) <= len(names)


async def test_a_host_that_renames_its_routers_all_the_time_grows_nothing(
    store: Store, policer: Policer
) -> None:
    follow(store, UUID, TERMS, "h0")
    await policer.look()
    for number in range(3000):
        policer.wait(1.0)
        policer.tell("h0", domain(f"name{number}"))
    assert policer.contracts("h0") == {"name2999": TERMS}
    assert len(policer.loop("h0")._state.routers) <= 1
    assert len(policer.live("h0").kept) <= 1
    assert len(policer.kinds("moved")) <= MANY + 3000 / 60 + 1


# Time.


async def test_a_contract_begins_and_ends_by_its_dates(store: Store, policer: Policer) -> None:
    hour = timedelta(hours=1)
    dated = promise(1e3, valid_from=NOON + hour, valid_until=NOON + 2 * hour)
    store.contracts.put("h0", "r", dated, None, "test")
    follow(store, "s", dated, "h0")
    await policer.look()
    await policer.hear("h0", "r", "s")
    found = []
    for _ in range(3):
        policer.tick_over()
        found.append(sorted(policer.contracts("h0")))
        policer.wait(3600.0)
    assert found == [[], ["r", "s"], []]


async def test_hours_give_a_router_other_terms(store: Store, policer: Policer) -> None:
    store.classes.put("night", promise(7e3), None, "test")
    hours = (Hours("22:00", "06:00", class_name="night"), Hours("06:00", "22:00"))
    store.contracts.put("h0", "r", promise(1e3, hours=hours), None, "test")
    await policer.look()
    assert policer.contracts("h0")["r"].guarantee_pps == 1e3
    policer.wait(10 * 3600.0)
    policer.tick_over()
    assert policer.contracts("h0")["r"].guarantee_pps == 7e3


async def test_a_clock_that_jumps_is_followed_both_ways(store: Store, policer: Policer) -> None:
    dated = promise(1e3, valid_until=NOON + timedelta(hours=1))
    store.contracts.put("h0", "r", dated, None, "test")
    await policer.look()
    for days, held in ((0, True), (400, False), (-400, True)):
        policer.today += timedelta(days=days)
        policer.tick_over()
        assert bool(policer.contracts("h0")) is held


async def test_contracts_begin_and_end_though_the_store_is_away(
    store: Store, policer: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> None:
        raise StoreError("away")

    dated = promise(1e3, valid_until=NOON + timedelta(hours=1))
    store.contracts.put("h0", "r", dated, None, "test")
    await policer.look()
    monkeypatch.setattr(store.changes, "since", away)
    policer.wait(3600.0)
    await policer.look()
    assert policer.service.store_problem == "away"
    assert policer.contracts("h0") == {}


async def test_more_than_a_host_can_forward_by_the_hour_is_told_when_it_comes(
    store: Store, policer: Policer
) -> None:
    """A router that moved brings its evening too, which the host was never asked about."""
    evening = promise(60e3, hours=(Hours("18:00", "20:00"),))
    follow(store, "r", evening, "h0")
    store.contracts.put("h1", "s", promise(70e3), None, "test")
    await policer.look()
    await policer.hear("h0")
    await policer.hear("h1", "r", "s")
    policer.tick_over()
    assert policer.kinds("overpromised") == []
    policer.wait(6.5 * 3600)
    policer.tick_over()
    assert policer.kinds("overpromised") == [("overpromised", "h1", None)]


async def test_a_time_zone_that_is_missing_is_told_once_and_stops_nothing(
    policer: Policer,
) -> None:
    odd = promise(1e3, hours=(Hours("00:00", "00:00"),), zone="Mars/Phobos")
    await policer.look()
    following = policer.service._following
    for _ in range(3):
        following.take({"h0": {"r": odd}, ANYWHERE: {"s": odd}}, {}, {})
        following.enter("h0")
        policer.tick_over()
    assert policer.contracts("h0") == {"r": odd}
    assert policer.kinds("unknown_zone") == [("unknown_zone", "", "s"), ("unknown_zone", "h0", "r")]


async def test_a_class_that_is_gone_promises_nothing_and_stops_nothing(
    policer: Policer,
) -> None:
    """It cannot be removed while contracts name it, but somebody may have the database in hand."""
    await policer.look()
    following = policer.service._following
    following.take({"h0": {"r": Contract(class_name="silver"), "s": TERMS}}, {}, {})
    following.enter("h0")
    await policer.hear("h0", "r", "s")
    assert policer.contracts("h0") == {"s": TERMS}


async def test_a_class_that_changes_changes_all_its_contracts(
    store: Store, policer: Policer
) -> None:
    store.classes.put("silver", promise(1e3), None, "test")
    store.contracts.put("h0", "r", Contract(class_name="silver"), None, "test")
    follow(store, "s", Contract(class_name="silver"), "h1")
    await policer.look()
    store.classes.put("silver", promise(2e3), 1, "test")
    await policer.look()
    held = {**policer.contracts("h0"), **policer.contracts("h1")}
    assert {vr: one.guarantee_pps for vr, one in held.items()} == {"r": 2e3, "s": 2e3}


async def test_a_class_that_changes_while_the_store_fails_changes_its_contracts_after_it(
    store: Store, policer: Policer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise StoreError("away")

    store.classes.put("silver", promise(1e3), None, "test")
    store.contracts.put("h0", "r", Contract(class_name="silver"), None, "test")
    await policer.look()
    store.classes.put("silver", promise(2e3), 1, "test")
    store.hosts.add(host("h3"), "test")
    with monkeypatch.context() as failing:
        failing.setattr(store.punishments, "all", away)
        await policer.look()
    assert policer.service.store_problem == "away"
    await policer.look()
    assert policer.service.store_problem == ""
    assert policer.contracts("h0")["r"].guarantee_pps == 2e3
    assert "h3" in policer.fleet.hosts


def test_what_is_shown_of_a_host_says_whether_it_promises_too_much() -> None:
    two = {"a": promise(60e3), "b": promise(60e3)}
    assert HostLive(host(), two).overpromised
    assert not HostLive(host(), {"a": promise(100e3)}).overpromised
    assert not HostLive(host(overcommit=True), two).overpromised

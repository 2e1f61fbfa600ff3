"""A host's loop: what it writes down, what it shows while another leads, and what it says once."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

import msgspec
import pytest
from hostloop_rig import CAPACITY, WALL, HostRig, Message
from policer_plant import held_report, report_of

from policer.contracts.contract import Contract
from policer.contracts.ladder import Escalation, Step
from policer.decide.round import KEPT_S
from policer.decide.state import HostState, Order, Policy
from policer.decide.telemetry import GONE_AFTER_S
from policer.errors import LinkError, LinkRefused
from policer.fleet.compliance import Counted
from policer.link.connection import AGAIN_S
from policer.service import host_loop as hostloop
from policer.service.event_limit import MANY, SOME_PER_S
from policer.service.host_loop import ENTERED_TWICE, LONGEST_WORDS, TWICE_S
from policer.store import PunishmentRow
from xtc.wire import Activate, Limit, Refusal, Report, highest_possible

pytestmark = pytest.mark.anyio

GOLD, SILVER = Contract(60e3), Contract(10e3, measures=tuple(Step))
ROUNDS = 60
"""Enough for a flood to climb the whole ladder."""


@pytest.fixture
def anyio_backend() -> str:
    """Run tests of coroutines by asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is the rig's: nothing is to be waited for between two rounds."""
    monkeypatch.setattr(hostloop, "SHORTEST_S", 0.0)


def row(vr: str, height: int, step: Step) -> PunishmentRow:
    return PunishmentRow("h0", vr, height, guilty=True, since=datetime.now(UTC), step=step)


def told(rig: HostRig, vr: str, offered: float) -> Report:
    """Return the report of a router that stands as it was ordered to."""
    setpoint = rig.live.orders.get(vr, Order()).setpoint_pps
    if setpoint is None:
        return report_of(vr, throughput_pps=min(offered, CAPACITY / 2), offered_pps=offered)
    throughput = min(offered, setpoint)
    return held_report(vr, setpoint, throughput_pps=throughput, offered_pps=offered)


async def flood(rig: HostRig, rounds: int = ROUNDS) -> None:
    """Let a router with a small guarantee be sent more than the host can forward."""
    for _ in range(rounds):
        await rig.round(told(rig, "gold", 60e3), told(rig, "silver", 300e3))


# --- what the next leader reads


async def test_a_dry_run_leaves_nothing_for_the_next_leader() -> None:
    policy = Policy(escalation=Escalation(climb_s=2.0), dry_run=True)
    rig = HostRig({"gold": GOLD, "silver": SILVER}, policy)
    await flood(rig)
    assert rig.live.state.routers["silver"].punishment.step is Step.STOP  # it is reported
    assert rig.kinds().count("punished") == len(Step)
    assert rig.written() == {"silver": None}


async def test_a_punishment_in_force_is_left_to_the_next_leader_with_its_epoch() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER}, Policy(escalation=Escalation(climb_s=2.0)))
    await flood(rig)
    kept = rig.written()["silver"]
    assert kept is not None
    assert (kept.step, kept.height) == ("stop", 5)
    assert {decided.epoch for decided in rig.writer._punished.values()} == {5}


async def test_who_is_forgotten_is_not_punished_in_the_store_either() -> None:
    rig = HostRig({"silver": SILVER})
    rig.loop.inherit({"silver": row("silver", 2, Step.LOWER)})
    other = report_of("b", throughput_pps=1e3, offered_pps=1e3)
    for _ in range(int(KEPT_S / 3) + 3):
        await rig.round(other, seconds=3.0)
    assert "silver" not in rig.live.state.routers
    assert rig.written() == {"silver": None}


# --- the lead, lost and won


async def test_one_that_does_not_lead_shows_nothing_of_its_last_round() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    rig.daemon.refuse = lambda _: Refusal("unknown", "vr", "it is not here")
    await flood(rig)
    assert rig.live.orders
    assert rig.live.refusals
    assert rig.live.state.standing.engaged
    rig.follow()
    await rig.round(told(rig, "gold", 60e3), told(rig, "silver", 300e3))
    assert (rig.live.orders, rig.live.refusals) == ({}, {})
    assert rig.live.state == HostState()
    assert set(rig.live.telemetry.routers) == {"gold", "silver"}  # it goes on looking


async def test_one_that_led_last_goes_on_with_all_it_knew() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    await flood(rig)
    before = rig.live.state
    rig.follow()
    await rig.round()
    rig.lead(6)
    rig.loop.inherit({"silver": row("silver", 1, Step.WARN)}, led_last=True)
    assert rig.live.state == before
    assert before.standing.engaged


async def test_after_another_leader_its_punishments_stand_and_nothing_else() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    await flood(rig)
    rig.follow()
    rig.lead(9)
    rig.loop.inherit({"gold": row("gold", 1, Step.WARN)})
    assert {vr: state.punishment.height for vr, state in rig.live.state.routers.items()} == {
        "gold": 1
    }
    assert not rig.live.state.standing.engaged


async def test_one_that_never_led_inherits_though_its_policer_led_last() -> None:
    """Its host was entered while nobody led."""
    rig = HostRig({"silver": SILVER})
    rig.loop._led = False
    rig.loop.inherit({"silver": row("silver", 2, Step.LOWER)}, led_last=True)
    assert rig.live.state.routers["silver"].punishment.height == 2


# --- events


async def silence(rig: HostRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loop hear nothing for as long as makes a host gone."""
    rig.loop._news.clear()
    with monkeypatch.context() as patch:
        patch.setattr(hostloop, "GONE_AFTER_S", 0)
        await rig.loop._turn()
    rig.now += GONE_AFTER_S


async def test_only_the_leader_notes_what_every_policer_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for leads in (True, False):
        rig = HostRig({"gold": GOLD})
        rig.hear(report_of("gold"))
        if not leads:
            rig.follow()
        await silence(rig, monkeypatch)
        rig.hear(report_of("gold"))
        rig.hear(report_of("gold"), report_of("gold"))
        rig.loop._trouble("h0", LinkError("it babbles"))
        expected = ["gone", "back", "distrusted", "link"] if leads else []
        assert rig.kinds() == expected
        assert rig.live.link_problem == "it babbles"


async def test_who_wins_the_lead_says_who_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = HostRig({"gold": GOLD})
    rig.hear(report_of("gold"))
    rig.follow()
    await silence(rig, monkeypatch)
    rig.lead(6)
    await silence(rig, monkeypatch)
    await silence(rig, monkeypatch)
    assert rig.kinds() == ["gone"]


def lie(number: int) -> Report:
    """Return another impossible report each time."""
    return report_of("gold", throughput_pps=9e8 + number)


async def test_a_host_that_lies_with_every_tick_is_noted_once_in_ten_minutes() -> None:
    rig = HostRig({"gold": GOLD})
    doubts = set()
    for number in range(600):  # every other tick can be believed
        rig.hear(lie(number) if number % 2 else report_of("gold"), seconds=0.1)
        doubts.add(rig.live.telemetry.distrust)
    assert len(doubts) > 200
    assert rig.kinds() == ["distrusted"]
    rig.hear(lie(0), seconds=AGAIN_S)
    assert rig.kinds() == ["distrusted"] * 2


async def test_a_daemon_that_refuses_in_other_words_each_time_does_not_fill_the_disk() -> None:
    many = {f"r{number}": Contract(1.0) for number in range(300)}
    rig = HostRig(many)
    words = count()
    rig.daemon.refuse = lambda _: Refusal("odd", "vr", f"{next(words)} " + 5000 * "x")
    for _ in range(120):
        await rig.round(*(report_of(vr, throughput_pps=330.0, offered_pps=2e3) for vr in many))
    assert next(words) > 600
    events = [event for event in rig.writer._events if event.kind == "refused"]
    assert 50 < len(events) <= MANY + 120 * SOME_PER_S + 1
    left_out = [" (" in event.words for event in events]
    assert left_out == sorted(left_out)  # the first hundred, then those that say how many were not
    assert max(len(event.words) for event in events) <= LONGEST_WORDS + 40
    assert rig.kinds().count("events_left_out") == 1
    rig.hear(report_of("r0"))
    assert rig.live.events_left_out > 150


async def test_an_overtaken_leader_says_so_once_in_each_epoch() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    rig.daemon.refuse = lambda _: Refusal("stale_epoch", "epoch", "5 is lower than 9")
    await flood(rig)
    assert len(rig.daemon.asked) > 10
    seen = Counter(rig.kinds())
    assert seen["overtaken"] == 1
    assert seen["refused"] == 2  # one of each router, though each is told again and again
    rig.lead(6)
    await flood(rig, 10)
    assert Counter(rig.kinds())["overtaken"] == 2


def overtaken(rig: HostRig, epoch: int) -> None:
    """Have the host obey another epoch, as it tells."""
    rig.highest_epoch = epoch
    rig.daemon.refuse = lambda _: Refusal("stale_epoch", "epoch", f"5 is lower than {epoch}")


async def test_a_leader_asks_for_an_epoch_above_the_one_that_refused_it() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    overtaken(rig, 9)
    await flood(rig)
    assert rig.raised == [9]
    assert rig.kinds().count("epoch_raised") == 1
    words = [event.words for event in rig.writer._events if event.kind == "overtaken"]
    assert words == ["the host obeys epoch 9, above 5"]
    rig.now += AGAIN_S
    await flood(rig, 10)
    assert rig.raised == [9, 9]


@pytest.mark.parametrize(("remaining_s", "raised"), [(10.0, []), (None, [9])])
async def test_another_policer_at_work_is_left_alone(
    remaining_s: float | None, raised: list[int]
) -> None:
    """Its leases run out and are renewed; a lease without end is of an operator's slip."""
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    overtaken(rig, 9)
    lease = {"epoch": 9, "lease_remaining_s": remaining_s}
    for _ in range(ROUNDS):
        reports = (told(rig, "gold", 60e3), told(rig, "silver", 300e3))
        await rig.round(*(msgspec.structs.replace(report, **lease) for report in reports))
    assert rig.raised == raised
    (words,) = [event.words for event in rig.writer._events if event.kind == "overtaken"]
    assert ("`policer epoch raise --above 9`" in words) is (not raised)


async def test_no_leader_follows_a_host_to_an_epoch_that_no_policer_can_have() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    overtaken(rig, 99_999_999_999)
    await flood(rig)
    assert rig.raised == []
    (words,) = [event.words for event in rig.writer._events if event.kind == "overtaken"]
    assert "`xtc epoch reset`" in words


@pytest.mark.parametrize(
    ("epoch", "command"),
    [
        (WALL + 2 * 86_400, "`policer epoch raise --above "),
        (highest_possible(WALL) - 1, "`policer epoch raise --above "),
        (highest_possible(WALL), "`xtc epoch reset`"),  # daemons refuse any above it
    ],
)
async def test_one_host_does_not_take_all_of_them_far_ahead_of_the_clock(
    epoch: int, command: str
) -> None:
    """Daemons whose clocks are a little behind would refuse every lease of such an epoch."""
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    overtaken(rig, epoch)
    await flood(rig)
    assert rig.raised == []
    (words,) = [event.words for event in rig.writer._events if event.kind == "overtaken"]
    assert command in words


async def test_a_leader_goes_above_an_epoch_a_little_ahead_of_its_clock() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    overtaken(rig, WALL + 60)
    await flood(rig)
    assert rig.raised == [WALL + 60]


@pytest.mark.parametrize("turns", range(6))
async def test_a_loop_that_is_cancelled_ends_though_it_hears_something_just_then(
    turns: int,
) -> None:
    """Else a service that is stopped hangs now and then."""
    rig = HostRig({"gold": GOLD})
    task = asyncio.create_task(rig.loop.run())
    for _ in range(3):
        await asyncio.sleep(0)
    rig.hear(report_of("gold"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


# --- what the daemon would not do, or could not be told


async def test_a_refusal_stays_until_it_is_taken_or_no_longer_wanted() -> None:
    """Between two sendings nothing is refused anew; the alert needs two minutes of it."""
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    refusal = Refusal("unknown", "vr", "it is not here")
    rig.daemon.refuse = lambda message: refusal if message.vr == "silver" else None
    await flood(rig, 5)
    for _ in range(30):
        await flood(rig, 1)
        assert rig.live.refusals == {"silver": "vr: it is not here"}
    rig.daemon.refuse = lambda _: None
    await flood(rig, 10)
    assert rig.live.refusals == {}


async def test_a_refusal_of_a_router_that_vanished_is_forgotten() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    refusal = Refusal("unknown", "vr", "it is not here")
    rig.daemon.refuse = lambda message: refusal if message.vr == "silver" else None
    await flood(rig, 5)
    assert set(rig.live.refusals) == {"silver"}
    await rig.round(told(rig, "gold", 60e3))
    assert rig.live.refusals == {}


async def test_no_harder_step_is_taken_because_a_milder_one_was_refused() -> None:
    policy = Policy(escalation=Escalation(climb_s=2.0))
    rig = HostRig({"gold": GOLD, "silver": SILVER}, policy)
    refusal = Refusal("no_interface", "vr", "silver has no interface at the moment")
    rig.daemon.refuse = lambda one: refusal if isinstance(one, Limit) and one.rate_pps else None
    await flood(rig)
    standing = rig.live.state.routers["silver"].punishment
    assert standing.step is Step.LIMIT
    assert rig.kinds().count("refused") == 1
    rig.daemon.refuse = lambda _: None
    await flood(rig)
    assert rig.live.state.routers["silver"].punishment.step is Step.STOP


async def test_a_host_that_fell_calm_has_nothing_left_to_be_told() -> None:
    rig = HostRig({"silver": Contract(10e3, ceiling_pps=20e3, measures=(Step.WARN,))})
    rig.daemon.away = True
    await rig.round(told(rig, "silver", 50e3))
    await rig.round(told(rig, "silver", 50e3), seconds=6.0)
    assert rig.live.link_problem == "it did not answer"
    await rig.round(told(rig, "silver", 50e3))
    assert rig.live.link_problem == "it did not answer"  # its order has not arrived
    rig.loop.enter(rig.loop.host, {"silver": SILVER})
    await rig.round(report_of("silver", throughput_pps=1e3, offered_pps=1e3))
    assert rig.live.orders == {"silver": Order()}
    assert rig.live.link_problem == ""


async def test_a_pardon_takes_back_what_the_store_has() -> None:
    rig = HostRig({"silver": SILVER})
    rig.loop.inherit({"silver": row("silver", 2, Step.LOWER)})
    rig.loop.pardon("silver", "anna")
    assert rig.written() == {"silver": None}
    await rig.round(report_of("silver"))
    assert rig.live.state.routers["silver"].punishment.height == 0


# --- what daemons count


async def test_what_a_daemon_counts_is_added_up_over_its_restarts() -> None:
    rig = HostRig({"gold": GOLD})

    def count(over: float) -> float:
        counted = {"over_promise_packets": over, "under_promise_packets": 0.0}
        rig.hear(report_of("gold", **counted, breach_seconds=0.0))
        return rig.live.kept["gold"].total.over_packets

    assert [count(over) for over in (100.0, 130.0)] == [0.0, 30.0]
    rig.ticks = iter(range(1000))
    assert [count(over) for over in (140.0, 145.0)] == [170.0, 175.0]
    rig.hear(report_of("gold", over_promise_packets=-1.0))
    assert "over_promise_packets of -1" in rig.live.telemetry.distrust


async def test_what_was_counted_for_a_tenant_is_not_shown_to_the_next() -> None:
    rig = HostRig({"gold": msgspec.structs.replace(GOLD, tenant="acme")})

    def over(packets: float) -> float:
        counted = {"over_promise_packets": packets, "under_promise_packets": 0.0}
        rig.hear(report_of("gold", **counted, breach_seconds=0.0))
        return rig.live.kept["gold"].total.over_packets

    assert [over(packets) for packets in (100.0, 130.0)] == [0.0, 30.0]
    acmes = msgspec.structs.replace(GOLD, tenant="acme", weight=2.0)
    rig.loop.enter(rig.loop.host, {"gold": acmes})
    assert over(140.0) == 40.0
    rig.loop.enter(rig.loop.host, {"gold": msgspec.structs.replace(acmes, tenant="beta")})
    kept = rig.live.kept["gold"]
    assert (kept.total, kept.since) == (Counted(), rig.now)
    assert over(145.0) == 5.0


# --- a daemon of an older version


BURSTY = {"gold": Contract(60e3, burst=9e3), "silver": SILVER}


def unread(messages: Sequence[Message]) -> None:
    """Refuse what a daemon that knows no bursts cannot read: the whole message."""
    if any(isinstance(message, Activate) and message.burst for message in messages):
        raise LinkRefused("bad_message", "$.request", "Object contains unknown field `burst`")


def bursts(rig: HostRig) -> list[float | None]:
    return [m.burst for m in rig.daemon.asked if isinstance(m, Activate) and m.vr == "gold"]


async def test_a_daemon_that_knows_bursts_is_told_them() -> None:
    rig = HostRig(BURSTY)
    await flood(rig, 10)
    assert set(bursts(rig)) == {9e3}
    assert rig.live.refusals == {}


async def test_one_that_does_not_holds_its_routers_all_the_same_and_is_shown() -> None:
    rig = HostRig(BURSTY)
    rig.daemon.unread = unread
    for _ in range(30):
        await flood(rig, 1)
    held = {message.vr for message in rig.daemon.asked if isinstance(message, Activate)}
    assert held == {"gold", "silver"}
    assert set(bursts(rig)) == {None}
    assert set(rig.live.refusals) == {"gold"}
    assert "update xtc on this host" in rig.live.refusals["gold"]
    assert rig.live.link_problem == ""
    assert rig.kinds().count("refused") == 1
    assert rig.daemon.unheard == 1  # the burst is not tried with each message


async def test_messages_that_go_again_without_bursts_have_numbers_of_their_own() -> None:
    """A part of them may have been carried out."""
    rig = HostRig(BURSTY)
    rig.daemon.unread = unread
    await flood(rig, 20)
    numbers = [message.sequence for message in rig.daemon.asked if isinstance(message, Activate)]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > 1


async def test_an_updated_daemon_is_told_bursts_with_the_next_renewal() -> None:
    rig = HostRig(BURSTY)
    rig.daemon.unread = unread
    await flood(rig, 5)
    rig.daemon.unread = lambda _: None
    rig.ticks = iter(range(1000))  # it was started anew
    await flood(rig, 8)
    assert bursts(rig)[-1] == 9e3
    assert rig.live.refusals == {}


async def test_bursts_are_tried_again_after_ten_minutes() -> None:
    """The daemon may have been updated while the policer did not hear it."""
    rig = HostRig(BURSTY)
    rig.daemon.unread = unread
    await flood(rig, 5)
    rig.now += AGAIN_S
    await flood(rig, 10)
    assert rig.daemon.unheard == 2


async def test_a_message_that_is_refused_without_bursts_too_is_a_trouble_of_the_link() -> None:
    rig = HostRig(BURSTY)

    def deaf(_: Sequence[Message]) -> None:
        raise LinkRefused("bad_message", "$", "no word of it")

    rig.daemon.unread = deaf
    await flood(rig, 5)
    assert rig.live.link_problem == "$: no word of it"
    assert rig.live.refusals == {}


# --- what one host may cause


def swinging(rig: HostRig, flooded: bool, count_: int = 60) -> list[Report]:
    """Return the reports of many routers that nobody promised anything, all flooded or none."""
    offered = 5e3 if flooded else 10.0
    return [told(rig, f"x{number}", offered) for number in range(count_)]


async def test_routers_that_are_flooded_in_turns_do_not_fill_the_disk() -> None:
    rig = HostRig({"gold": GOLD})
    for number in range(240):
        await rig.round(told(rig, "gold", 60e3), *swinging(rig, number // 6 % 2 == 0))
    found = Counter(rig.kinds())
    assert found["shielded"] + found["unshielded"] > MANY
    assert max(found.values()) <= MANY + 240 * SOME_PER_S + 1
    assert found["events_left_out"] == sum(number >= MANY for number in found.values())
    assert rig.live.events_left_out > 1000


async def test_a_punishment_is_noted_however_many_events_there_were() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    for number in range(120):
        await rig.round(told(rig, "gold", 60e3), *swinging(rig, number // 6 % 2 == 0))
    before = Counter(rig.kinds())
    await flood(rig)
    assert rig.live.state.routers["silver"].punishment.height == len(Step)
    assert Counter(rig.kinds())["punished"] == before["punished"] + len(Step)


async def test_a_daemon_that_obeys_another_entry_is_shown_until_it_does_so_no_more() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    await flood(rig, 3)
    own = max(m.sequence for m in rig.daemon.asked if isinstance(m, Activate))
    report = held_report("gold", 60e3, offered_pps=60e3)
    rig.hear(msgspec.structs.replace(report, epoch=5, sequence=own))
    rig.hear(msgspec.structs.replace(report, epoch=4, sequence=own + 100))
    assert rig.live.link_problem == ""
    for _ in range(3):
        rig.hear(msgspec.structs.replace(report, epoch=5, sequence=own + 1))
    rig.hear(msgspec.structs.replace(report, epoch=5, sequence=own))
    assert rig.live.link_problem == ENTERED_TWICE
    assert rig.kinds().count("entered_twice") == 1
    rig.hear(report, seconds=TWICE_S)
    assert rig.live.link_problem == ""


async def test_leases_of_the_loop_before_are_not_taken_for_another_entrys() -> None:
    """A host that is reached another way has a new loop, in the same epoch."""
    rig = HostRig({"gold": GOLD})
    rig.hear(msgspec.structs.replace(held_report("gold", 60e3), epoch=5, sequence=7))
    assert rig.live.link_problem == ""


async def test_one_that_does_not_lead_knows_nothing_of_other_entries() -> None:
    rig = HostRig({"gold": GOLD, "silver": SILVER})
    await flood(rig, 3)
    rig.follow()
    rig.hear(msgspec.structs.replace(held_report("gold", 60e3), epoch=5, sequence=10**6))
    assert rig.live.link_problem == ""

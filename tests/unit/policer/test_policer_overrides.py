"""Overrides by themselves: what stands when, what may be set, and what an exemption changes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from round_rig import ALWAYS, GOLD, LADDER, Context, flood, full

from policer.contracts.contract import Contract
from policer.contracts.ladder import Step
from policer.contracts.overrides import (
    BrakeMode,
    Kind,
    Override,
    Overrides,
    end_words,
    excused,
    moment,
    problems,
    standing,
    stops_ladders,
    words_of,
)
from policer.contracts.promised import ANYWHERE
from policer.decide.state import UNPROMISED
from xtc.lease import highest_possible

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def exemption(until: datetime | None = NOW + HOUR, vr: str = "b", reason: str = "") -> Override:
    return Override("exemption", "exempt", "gold", vr, until, reason)


def epoch(above: int | None) -> Override:
    return Override("epoch", "above", above=above)


def fields(override: Override) -> list[str]:
    return [problem.field for problem in problems(override, NOW)]


# --- what stands


def test_without_overrides_nothing_is_overridden() -> None:
    assert standing([], NOW) == Overrides()
    assert Overrides().brake_mode == "automatic"
    assert set(Overrides().count().values()) == {0}


def test_each_kind_is_found_where_it_acts() -> None:
    brake = Override("brake", "off", until=NOW + 3 * HOUR)
    host = Override("suspension", "suspended", "gold")
    found = standing([brake, epoch(9), exemption(), exemption(vr="c"), host], NOW)
    assert found.brake_mode == "off"
    assert found.suspended == {"gold": host}
    assert set(found.exempt_on("gold", {})) == {"b", "c"}
    assert found.exempt_on("iron", {}) == {}
    assert found.epoch == epoch(9)
    assert found.until == NOW + HOUR
    assert found.count() == {"brake": 1, "epoch": 1, "exemption": 2, "suspension": 1}


def test_an_exemption_of_a_contract_that_follows_follows_it() -> None:
    moving = Override("exemption", "exempt", ANYWHERE, "uuid-7", NOW + HOUR)
    found = standing([exemption(), moving], NOW)
    assert found.exempt_on("gold", {"r7": "uuid-7"}) == {"r7": moving, "b": exemption()}
    assert found.exempt_on("iron", {"x": "uuid-7", "y": "uuid-8"}) == {"x": moving}


def test_an_override_ends_at_its_instant_in_whatever_zone() -> None:
    end = (NOW + HOUR).astimezone(timezone(timedelta(hours=-9)))
    override = exemption(until=end)
    assert standing([override], NOW + HOUR - timedelta(microseconds=1)).exempt
    assert not standing([override], NOW + HOUR).exempt
    assert not exemption(until=None).ended(datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("mode", "stopped"),
    [("automatic", (False, True)), ("on", (True, True)), ("off", (False, False))],
)
def test_the_brake_goes_by_operators_first(mode: BrakeMode, stopped: tuple[bool, bool]) -> None:
    assert tuple(stops_ladders(mode, counted=counted) for counted in (False, True)) == stopped


# --- what may be set


@pytest.mark.parametrize(("kind", "days"), [("brake", 366), ("exemption", 30), ("suspension", 366)])
def test_an_end_is_in_the_future_and_not_too_far(kind: Kind, days: int) -> None:
    mode = {"brake": "on", "exemption": "exempt", "suspension": "suspended"}[kind]

    def ending(until: datetime) -> list[str]:
        return fields(Override(kind, mode, until=until))  # type: ignore[arg-type]  # one of its

    assert ending(NOW) == ["until"]
    assert ending(NOW + timedelta(seconds=1)) == []
    assert ending(NOW + timedelta(days=days)) == []
    assert ending(NOW + timedelta(days=days, seconds=1)) == ["until"]
    assert ending(NOW.replace(tzinfo=None)) == ["until"]
    for hours in (-23, 23):
        zone = timezone(timedelta(hours=hours))
        assert ending(datetime.min.replace(tzinfo=zone)) == ["until"]
        assert ending(datetime.max.replace(tzinfo=zone)) == ["until"]


def test_an_exemption_has_an_end_and_what_is_automatic_has_none() -> None:
    assert fields(exemption(until=None)) == ["until"]
    assert fields(Override("brake", "automatic", until=NOW + HOUR)) == ["until"]
    assert fields(Override("brake", "on")) == []
    assert fields(Override("suspension", "suspended", "gold")) == []


@pytest.mark.parametrize("reason", ["x" * 201, "a\nb", "a\n", "\x1b[31m", "\x7f"])
def test_a_reason_is_one_short_line(reason: str) -> None:
    assert fields(exemption(reason=reason)) == ["reason"]
    assert fields(exemption(reason="x" * 200)) == []


def test_an_epoch_is_one_that_daemons_obey() -> None:
    most = highest_possible(NOW.timestamp())
    assert fields(epoch(0)) == []
    assert fields(epoch(most - 1)) == []
    for above in (most, 99_999_999_999, -1, None):
        assert fields(epoch(above)) == ["above"]
    (problem,) = problems(epoch(99_999_999_999), NOW)
    assert str(most) in problem.problem
    assert "`xtc epoch reset`" in problem.fix


def test_words_say_what_until_when_and_why() -> None:
    words = words_of(exemption(reason="a load test"))
    assert "no measure is in force" in words
    assert words.endswith(", until 2026-03-01T13:00:00Z: a load test")
    assert moment(NOW.astimezone(timezone(HOUR))) == "2026-03-01T12:00:00Z"
    assert len({end_words(kind) for kind in ("brake", "epoch", "exemption", "suspension")}) == 4


# --- an exemption in a round


def test_an_exempt_router_climbs_nothing_and_the_rest_of_its_contract_goes_on() -> None:
    context = Context(**excused({"a": GOLD, "b": LADDER}, {"b": exemption()}))
    played = context.decide_round(full(), flood(), rounds=40)
    state = played.state.routers["b"]
    assert (state.punishment.height, played.convicted) == (0, ())
    assert state.evidence.guilty
    assert state.shield.up  # what it would drop itself is dropped earlier, which is no punishment
    order = played.orders["b"]
    assert not order.punishment
    assert order.setpoint_pps is not None
    assert order.setpoint_pps >= LADDER.guarantee_pps


def test_an_exemption_lifts_every_step_at_once_and_says_so() -> None:
    context = Context(a=GOLD, b=ALWAYS)
    context.decide_round(full(), flood(), rounds=40)
    assert context.height("b") > 2
    plain = context.contracts
    context.contracts = excused(plain, {"b": exemption()})
    played = context.decide_round(full(), flood())
    assert context.height("b") == 0
    assert not played.orders["b"].punishment
    assert [note.words for note in played.notes if note.kind == "pardoned"] == [
        "its contract or an operator allows no measure now"
    ]
    context.contracts = plain
    played = context.decide_round(full(), flood(), rounds=2)
    assert context.height("b") == 1  # it still misbehaves: from the first step
    assert played.state.routers["b"].punishment.step is Step.WARN


def test_only_the_contracts_of_exempt_routers_change() -> None:
    contracts = {"a": GOLD, "b": ALWAYS}
    assert excused(contracts, {}) is contracts
    changed = excused(contracts, {"b": exemption(), "unknown": exemption()})
    assert changed["a"] is GOLD
    assert changed["b"] == Contract(ALWAYS.guarantee_pps, measures=tuple(Step), punish="never")
    assert set(changed) == {"a", "b"}
    assert UNPROMISED not in changed.values()

"""Overrides, for any of them and any instant: what stands is what was set and is not over."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from policer.contracts.contract import Contract
from policer.contracts.overrides import (
    FLEET,
    BrakeMode,
    Override,
    braked,
    excused,
    problems,
    standing,
    stops_ladders,
    words_of,
)
from policer.decide.state import ladder_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
instants = st.integers(-(10**6), 10**6).map(lambda seconds: NOW + timedelta(seconds=seconds))
names = st.sampled_from(["a", "b", "c"])
ends = st.none() | instants
overrides = st.one_of(
    st.builds(Override, st.just("brake"), st.sampled_from(["on", "off"]), until=ends),
    st.builds(Override, st.just("suspension"), st.just("suspended"), names, until=ends),
    st.builds(Override, st.just("exemption"), st.just("exempt"), names, names, until=ends),
    st.builds(Override, st.just("epoch"), st.just("above"), above=st.integers(0, 2**62)),
)
rows = st.lists(overrides, max_size=9, unique_by=lambda one: (one.kind, one.host, one.vr))
"""What the table can hold: one of each kind, host and router."""
modes = st.sampled_from(["automatic", "off", "on"])


@given(rows, instants)
def test_what_stands_is_all_that_is_not_over(found: list[Override], now: datetime) -> None:
    stands = standing(found, now)
    kept = [one for one in found if one.until is None or one.until > now]
    assert sum(stands.count().values()) == len(kept)
    shown = [
        *([stands.brake] if stands.brake else []),
        *([stands.epoch] if stands.epoch else []),
        *stands.suspended.values(),
        *(one for routers in stands.exempt.values() for one in routers.values()),
    ]
    assert sorted(map(id, shown)) == sorted(map(id, kept))
    assert stands.until == min((one.until for one in kept if one.until), default=None)


@given(rows, instants, st.integers(0, 10**6))
def test_nothing_comes_to_stand_as_time_passes_and_nothing_ends_before_it_is_said_to(
    found: list[Override], now: datetime, seconds: int
) -> None:
    later = now + timedelta(seconds=seconds)
    before, after = standing(found, now), standing(found, later)
    assert all(after.count()[kind] <= before.count()[kind] for kind in before.count())
    if before.until is None or later < before.until:
        assert after == before


@given(modes, st.frozensets(st.sampled_from([FLEET, "a", "b"])))
def test_the_brake_that_is_shown_is_the_one_that_stops(
    mode: BrakeMode, counted: frozenset[str]
) -> None:
    everywhere, hosts = braked(mode, counted)
    for host in ("a", "b"):
        stopped = stops_ladders(mode, counted=bool(counted & {FLEET, host}))
        assert stopped is (everywhere or host in hosts)


@given(st.sampled_from(["never", "when_harming", "always"]), st.booleans())
def test_an_exempt_router_has_no_ladder_and_all_else_of_its_contract(
    punish: str, exempt: bool
) -> None:
    contract = Contract(1e3, ceiling_pps=2e3, punish=punish)  # type: ignore[arg-type]  # one of its
    override = Override("exemption", "exempt", "gold", "a", NOW)
    terms = excused({"a": contract}, {"a": override} if exempt else {})["a"]
    assert (ladder_of(terms) == ()) is (exempt or punish == "never")
    assert (terms.guarantee_pps, terms.ceiling_pps) == (1e3, 2e3)


@given(overrides, st.text(max_size=300), instants)
def test_any_override_is_judged_and_put_into_words(
    override: Override, reason: str, now: datetime
) -> None:
    given_ = Override(
        override.kind,
        override.mode,
        override.host,
        override.vr,
        override.until,
        reason,
        override.above,
    )
    assert all(problem.fix for problem in problems(given_, now))
    assert words_of(given_)

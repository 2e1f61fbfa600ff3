"""Engagement, number by number: every threshold from both sides, every term where it matters."""

import math
from collections.abc import Mapping

import pytest

from policer.decide.allocation import Claim
from policer.decide.engagement import EngagementRules, EngagementState, decide

CAPACITY = 100e3
ENGAGEMENT = EngagementRules()


def after(
    claims: list[Claim],
    forwarded: Mapping[str, float] | None = None,
    last: EngagementState | None = None,
    *,
    wasted: float = 0.0,
    engagement: EngagementRules = ENGAGEMENT,
) -> EngagementState:
    seen = {c.vr: c.useful for c in claims} if forwarded is None else forwarded
    return decide(claims, seen, CAPACITY, last or EngagementState(), engagement, wasted=wasted)


def plain(a: float, b: float) -> list[Claim]:
    return [Claim("a", a), Claim("b", b)]


def promised(a: float = 20e3, b: float = 10e3, **more: float) -> list[Claim]:
    """Return a router with a guarantee that it could use, beside another."""
    return [Claim("a", a, **{"guarantee": 20e3, **more}), Claim("b", b)]


HELD = EngagementState(engaged=True)
BUSY = plain(1e6, 1e6)


def test_the_habits_are_these() -> None:
    assert EngagementRules() == EngagementRules(
        engage=0.85,
        calm=0.7,
        calm_rounds=30,
        suffering=0.95,
        lack=0.4,
        same=0.03,
        target=0.95,
        squeeze=0.85,
        relax=1.02,
        margin=0.97,
        forget=1.0005,
        least=0.3,
    )


# ---- engaged and released ---------------------------------------------------------------------


def test_two_routers_are_engaged_above_85_percent() -> None:
    assert not after(plain(40e3, 45e3)).engaged
    assert after(plain(40e3, 45.001e3)).engaged


def test_a_load_counts_by_its_cost_and_only_as_far_as_it_can_be_used() -> None:
    dear = [Claim("a", 20e3, cost=2.0), Claim("b", 45.001e3)]
    assert after(dear).engaged
    capped = [Claim("a", 60e3, ceiling=40e3), Claim("b", 45e3)]
    assert not after(capped).engaged


def test_rounds_below_70_percent_are_calm() -> None:
    assert after(plain(30e3, 39.9e3)).calm == 1
    assert after(plain(30e3, 39.9e3), last=EngagementState(calm=7)).calm == 8
    assert after(plain(30e3, 40e3), last=EngagementState(calm=7)).calm == 0


def test_a_round_in_which_somebody_is_harmed_is_not_calm() -> None:
    assert after(promised(), {"a": 5e3, "b": 10e3}, EngagementState(calm=7)).calm == 0


def test_thirty_calm_rounds_let_go() -> None:
    quiet = plain(30e3, 30e3)
    assert after(quiet, last=EngagementState(engaged=True, calm=28)).engaged
    assert not after(quiet, last=EngagementState(engaged=True, calm=29)).engaged
    assert not after(quiet, last=EngagementState(engaged=False, calm=3)).engaged


def test_a_busy_host_stays_engaged_however_long_it_was_calm() -> None:
    assert after(plain(45e3, 45e3), last=EngagementState(engaged=True, calm=100)).engaged


def test_one_router_alone_is_engaged_only_if_its_guarantee_suffers() -> None:
    alone = [Claim("a", 90e3, guarantee=20e3)]
    assert not after(alone).engaged
    assert after(alone, {"a": 5e3}).engaged


# ---- what is lacking -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forwarded", "lack", "harmed"),
    [
        (19e3, None, False),  # a twentieth is leeway
        (18e3, 0.05, False),
        (11.001e3, 0.39995, False),
        (10.99e3, 0.4005, True),
        (5e3, 0.45, True),  # no more is remembered than a round of it
        (0.0, 0.45, True),
        (25e3, None, False),
    ],
)
def test_a_lack_is_what_is_missed_beyond_a_twentieth(
    forwarded: float, lack: float | None, harmed: bool
) -> None:
    found = after(promised(), {"a": forwarded, "b": 10e3})
    assert found.lacks.get("a") == (None if lack is None else pytest.approx(lack))
    assert found.harmed == (("a",) if harmed else ())
    assert found.engaged is harmed


def test_a_lack_of_just_the_threshold_is_no_suffering() -> None:
    engagement = EngagementRules(suffering=0.75, lack=0.5)
    assert after(promised(), {"a": 5e3, "b": 10e3}, engagement=engagement).harmed == ()
    assert after(promised(), {"a": 4.9e3, "b": 10e3}, engagement=engagement).harmed == ("a",)


def test_lacks_add_up_and_fade_by_a_twentieth_a_round() -> None:
    last = EngagementState(lacks={"a": 0.3, "b": 0.3})
    assert after(promised(), {"a": 18e3, "b": 10e3}, last).lacks == pytest.approx(
        {"a": 0.35, "b": 0.25}
    )
    assert after(promised(), {"a": 20e3}, last).lacks == pytest.approx({"a": 0.25, "b": 0.25})
    assert after(promised(), {}, last).lacks["a"] == pytest.approx(0.25)


def test_who_was_harmed_is_so_until_nothing_lacks() -> None:
    fading = EngagementState(engaged=True, harmed=("a",), lacks={"a": 0.2, "b": 0.2})
    found = after(promised(), last=fading)
    assert found.harmed == ("a",)
    recovered = EngagementState(engaged=True, harmed=("a",), lacks={"a": 0.05})
    assert after(promised(), last=recovered).harmed == ()


@pytest.mark.parametrize(
    ("claim", "forwarded", "lack"),
    [
        (Claim("a", 20e3, guarantee=10e3), 8e3, 0.15),  # the guarantee is due
        (Claim("a", 20e3, guarantee=30e3, ceiling=10e3), 8e3, 0.15),  # or the ceiling
        (Claim("a", 10e3, guarantee=30e3), 8e3, 0.15),  # or what is sent
        (Claim("a", 20e3, guarantee=30e3, sent=10e3), 8e3, 0.15),  # for certain
        (Claim("a", 20e3, guarantee=30e3, ceiling=10e3, sent=20e3), 8e3, 0.15),
        (Claim("a", 20e3, guarantee=1.0), 0.0, 0.45),
        (Claim("a", 20e3), 8e3, None),  # nothing was promised
        (Claim("a", 0.0, guarantee=10e3), 0.0, None),
    ],
)
def test_a_lack_is_of_what_is_due(claim: Claim, forwarded: float, lack: float | None) -> None:
    found = after([claim], {"a": forwarded})
    assert found.lacks.get("a") == (None if lack is None else pytest.approx(lack))


def test_a_router_that_drops_by_itself_lacks_what_it_would_let_through() -> None:
    last = EngagementState(yields={"a": 0.5})
    assert after(promised(), {"a": 8e3, "b": 10e3}, last).lacks == pytest.approx({"a": 0.15})
    assert after(promised(), {"a": 10e3, "b": 10e3}, last).lacks == {}


# ---- what is lent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "shared", "harmful"),
    [
        (EngagementState(), 1.0, 1.0),  # routers that were not held get a round to answer
        (EngagementState(shared=0.5), 0.5, 0.5),
        (HELD, 0.85, 1.0),
        (EngagementState(engaged=True, shared=0.5), 0.425, 0.5),
        (EngagementState(engaged=True, shared=0.34), 0.3, 0.34),
        (EngagementState(engaged=True, shared=0.3, harmed=("a",), harmful=0.9), 0.3, 0.9),
        (EngagementState(engaged=True, shared=0.5, harmed=("b",), harmful=0.9), 0.425, 0.9),
    ],
)
def test_while_a_guarantee_suffers_less_is_lent(
    last: EngagementState, shared: float, harmful: float
) -> None:
    found = after(promised(), {"a": 5e3, "b": 10e3}, last)
    assert (found.shared, found.harmful) == pytest.approx((shared, harmful))


@pytest.mark.parametrize(
    ("shared", "harmful", "expected"),
    [
        (0.5, math.inf, 0.51),
        (0.99, math.inf, 1.0),
        (1.0, math.inf, 1.0),
        (0.58, 0.6, 0.97 * 0.6003),
        (0.57, 0.6, 0.5814),
        (0.7, 0.6, 0.97 * 0.6003),
        (0.99, 1.04, 1.0),
    ],
)
def test_while_none_suffers_more_is_lent_up_to_where_it_hurt(
    shared: float, harmful: float, expected: float
) -> None:
    found = after(
        plain(1e3, 1e3), last=EngagementState(engaged=True, shared=shared, harmful=harmful)
    )
    assert found.shared == pytest.approx(expected)
    assert found.harmful == pytest.approx(1.0005 * harmful)


# ---- what cannot be helped -------------------------------------------------------------------

IN_VAIN = EngagementState(engaged=True, shared=0.3, harmed=("a",), lacks={"a": 0.45})


def test_what_lending_less_did_not_help_is_taken_to_drop_by_itself() -> None:
    assert after(promised(), {"a": 5e3, "b": 10e3}, IN_VAIN).yields == {"a": 0.25}


@pytest.mark.parametrize(
    "last",
    [
        EngagementState(engaged=True, shared=0.301, harmed=("a",), lacks={"a": 0.45}),
        EngagementState(engaged=False, shared=0.3, harmed=("a",), lacks={"a": 0.45}),
    ],
)
def test_but_not_before_lending_less_was_tried(last: EngagementState) -> None:
    assert after(promised(), {"a": 5e3, "b": 10e3}, last).yields == {}


def test_nor_is_one_that_lacks_little() -> None:
    assert after(promised(), {"a": 18e3, "b": 2e3}, EngagementState(True, shared=0.3)).yields == {}


def test_what_a_router_lets_through_is_of_what_was_sent_for_certain() -> None:
    claims = promised(40e3, sent=20e3)
    assert after(claims, {"a": 5e3, "b": 10e3}, IN_VAIN).yields == {"a": 0.25}


@pytest.mark.parametrize(
    ("forwarded", "expected"),
    [
        ({"a": 10e3}, {"a": 0.5}),  # as before
        ({"a": 16e3}, {"a": 0.8}),  # it forwards more again
        ({"a": 18.99e3}, {"a": 0.9495}),
        ({"a": 19e3}, {}),  # nearly all
        ({"a": 4e3}, {"a": 0.5}),  # less may be the host's fault
        ({}, {"a": 0.5}),
    ],
)
def test_it_is_remembered_until_it_forwards_more(
    forwarded: Mapping[str, float], expected: Mapping[str, float]
) -> None:
    found = after(promised(), forwarded, EngagementState(engaged=True, yields={"a": 0.5}))
    assert found.yields == pytest.approx(expected)


def test_a_router_to_which_nothing_is_sent_is_remembered_as_it_was() -> None:
    last = EngagementState(engaged=True, yields={"a": 0.5})
    assert after(promised(0.0), {"a": 0.0, "b": 10e3}, last).yields == {"a": 0.5}


# ---- setpoints -------------------------------------------------------------------------------


def test_95_percent_are_shared_out_less_what_is_wasted() -> None:
    assert after(BUSY).setpoints == pytest.approx({"a": 47.5e3, "b": 47.5e3})
    assert after(BUSY, wasted=10e3).setpoints == pytest.approx({"a": 42.5e3, "b": 42.5e3})


def test_a_share_of_what_is_beyond_guarantees_is_lent() -> None:
    claims = promised(1e6, 1e6)
    found = after(claims, last=EngagementState(engaged=True, shared=0.5))
    lent = 0.51 * 75e3
    assert found.setpoints == pytest.approx({"a": 20e3 + lent / 2, "b": lent / 2})


def test_guarantees_beyond_what_is_shared_out_are_met_up_to_the_capacity() -> None:
    nearly = [Claim("a", 1e6, guarantee=98e3), Claim("b", 1e6)]
    assert after(nearly, {}).setpoints == pytest.approx({"a": 98e3, "b": 0.0})
    over = [Claim("a", 1e6, guarantee=150e3), Claim("b", 1e6)]
    assert after(over, {}).setpoints["a"] == pytest.approx(100e3)


def test_waste_takes_nothing_from_a_guarantee() -> None:
    found = after([Claim("a", 1e6, guarantee=60e3), Claim("b", 1e6)], {}, wasted=50e3)
    assert found.setpoints == pytest.approx({"a": 60e3, "b": 0.0})


@pytest.mark.parametrize(
    ("before", "now"),
    [(46.2e3, 46.2e3), (46e3, 47.5e3), (48.9e3, 48.9e3), (49e3, 47.5e3)],
)
def test_a_setpoint_stays_that_would_change_by_3_percent_or_less(before: float, now: float) -> None:
    last = EngagementState(engaged=True, setpoints={"a": before, "b": 47.5e3})
    assert after(BUSY, last=last).setpoints["a"] == pytest.approx(now)


def test_it_moves_if_its_guarantee_or_its_ceiling_is_beyond_it() -> None:
    last = EngagementState(engaged=True, setpoints={"a": 49e3, "b": 46e3})
    claims = [Claim("a", 1e6, guarantee=50e3), Claim("b", 1e6)]
    raised = after(claims, {}, last)
    assert raised.setpoints["a"] >= 50e3
    lowered = after([Claim("a", 1e6, ceiling=48e3), Claim("b", 1e6)], {}, last)
    assert lowered.setpoints["a"] == pytest.approx(47.5e3)


def test_setpoints_that_together_exceed_the_capacity_are_not_kept() -> None:
    claims = [Claim("a", 1e6, guarantee=49.5e3), Claim("b", 1e6, guarantee=49.5e3)]
    kept = EngagementState(engaged=True, setpoints={"a": 50.4e3, "b": 49.5e3})
    assert after(claims, {}, kept).setpoints == pytest.approx({"a": 50.4e3, "b": 49.5e3})
    beyond = EngagementState(engaged=True, setpoints={"a": 50.9e3, "b": 50.9e3})
    assert after(claims, {}, beyond).setpoints == pytest.approx({"a": 49.5e3, "b": 49.5e3})


@pytest.mark.parametrize(
    ("wanted", "held", "setpoints"),
    [
        (10e3, False, {}),
        (10.001e3, False, {"a": 10e3}),
        (7.001e3, True, {"a": 10e3}),
        (7e3, True, {}),
    ],
)
def test_on_a_host_with_room_only_who_would_pass_its_ceiling_is_held(
    wanted: float, held: bool, setpoints: Mapping[str, float]
) -> None:
    last = EngagementState(setpoints={"a": 10e3} if held else {})
    claims = [Claim("a", wanted, ceiling=10e3), Claim("b", 1e3)]
    assert after(claims, last=last).setpoints == setpoints

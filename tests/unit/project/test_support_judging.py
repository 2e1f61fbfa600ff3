"""How tests judge rates: what is too much, what is too little, and what tells nothing."""

from dataclasses import replace

import msgspec
import pytest
from support.cpu import Used, check_used
from support.holding import check_held, is_near, is_telling
from support.inconclusive import Inconclusive
from support.limits import Passed, check_limited, check_unlimited
from support.rates import Rate, Reading, between

from xtc.modes import Finding, Mode
from xtc.wire import Report, Telemetry

SETPOINT = 1000.0


def exactly(rate: float) -> Rate:
    return Rate(rate, rate, 10.0)


def report(
    throughput: float | None,
    *,
    binding: bool | None = True,
    offered: float = 5000.0,
    used: float | None = 0.1,
) -> Report:
    return Report(
        vr="a",
        active=True,
        mode=Mode.CLOSED_LOOP,
        finding=Finding.NONE,
        setpoint_pps=SETPOINT,
        throughput_pps=throughput,
        offered_pps=offered,
        cap=0.1,
        used=used,
        binding=binding,
        lease_remaining_s=None,
        sample_age_s=0.0,
        interfaces=(),
    )


def ticks(*reports: Report) -> list[Telemetry]:
    return [Telemetry(float(n), n, (one,)) for n, one in enumerate(reports)]


def test_behind_a_shield_a_cap_that_is_not_used_excuses_nothing() -> None:
    less = msgspec.structs.replace(report(919, used=0.08), shield_pps=SETPOINT)
    with pytest.raises(AssertionError, match="919 of 1000"):
        check_held(ticks(*[less] * 4), {"a": exactly(919)}, 0.08, a=SETPOINT)


def test_a_rate_is_bounded_by_what_the_clock_readings_leave_open() -> None:
    rate = between(Reading(100, after=1.0, before=2.0), Reading(700, after=5.0, before=7.0))
    assert (rate.least, rate.most, rate.seconds) == (100.0, 200.0, 6.0)


@pytest.mark.parametrize("rate", [920.0, 1000.0, 1080.0])
def test_a_router_within_the_tolerance_is_held(rate: float) -> None:
    check_held(ticks(*[report(rate)] * 4), {"a": exactly(rate)}, 0.08, a=SETPOINT)


def test_more_than_the_setpoint_is_wrong_whatever_bound() -> None:
    seen = ticks(*[report(1081, binding=False)] * 4)
    with pytest.raises(AssertionError, match="forwarded"):
        check_held(seen, {"a": exactly(1081)}, 0.08, a=SETPOINT)


def test_a_rate_that_may_have_been_within_the_tolerance_is_not_too_much() -> None:
    check_held(ticks(*[report(1000)] * 4), {"a": Rate(1079, 2000, 10.0)}, 0.08, a=SETPOINT)


def test_less_than_the_setpoint_is_wrong_where_the_cap_bound() -> None:
    with pytest.raises(AssertionError, match="919 of 1000"):
        check_held(ticks(*[report(919)] * 4), {"a": exactly(919)}, 0.08, a=SETPOINT)


@pytest.mark.parametrize(
    ("used", "rate", "enough"),
    [(0.08, 721, True), (0.08, 719, False), (0.2, 919, False), (None, 919, False)],
)
def test_a_router_that_got_less_cpu_than_its_cap_is_judged_by_what_it_got(
    used: float | None, rate: float, *, enough: bool
) -> None:
    """At four fifths of its cap 1000 become 800, of which 8 % of the setpoint may lack."""
    seen = ticks(*[report(rate, used=used)] * 4)
    if enough:
        check_held(seen, {"a": exactly(rate)}, 0.08, a=SETPOINT)
    else:
        with pytest.raises(AssertionError, match=f"{rate} of"):
            check_held(seen, {"a": exactly(rate)}, 0.08, a=SETPOINT)


def test_cpu_that_a_router_did_not_need_does_not_excuse_it() -> None:
    seen = ticks(*[report(700, binding=False, offered=900, used=0.01)] * 4)
    with pytest.raises(AssertionError, match="700 of 900"):
        check_held(seen, {"a": exactly(700)}, 0.08, a=SETPOINT)


def test_less_than_what_was_offered_is_wrong_too() -> None:
    seen = ticks(*[report(700, binding=False, offered=900)] * 4)
    with pytest.raises(AssertionError, match="700 of 900"):
        check_held(seen, {"a": exactly(700)}, 0.08, a=SETPOINT)


@pytest.mark.parametrize(("short", "known"), [(2, True), (3, False)])
def test_a_router_short_of_cpu_in_more_than_half_of_the_ticks_is_not_judged(
    short: int, known: bool
) -> None:
    starved, held = report(300, binding=False), report(1000)
    seen = ticks(*[starved] * short, *[held] * (4 - short))
    if known:
        check_held(seen, {"a": exactly(650)}, 0.08, a=SETPOINT)
    else:
        with pytest.raises(Inconclusive, match="in most of 4 ticks no cap is known to have bound"):
            check_held(seen, {"a": exactly(475)}, 0.08, a=SETPOINT)


def test_a_blind_tick_tells_nothing() -> None:
    assert not is_telling(report(None), SETPOINT)
    assert is_telling(report(1.0), SETPOINT)


@pytest.mark.parametrize(
    ("rates", "near"),
    [
        ([801, 801, 801, 801], True),
        ([1199, 1199, 1199, 1199], True),
        ([799, 799, 799, 799], False),
        ([1201, 1201, 1201, 1201], False),
        ([1000, 1000, 1000], False),
        ([0, 0, 1000, 1000, 1000, 1000], True),
        ([1000, None, 1000, 1000], False),
    ],
)
def test_near_is_a_mean_of_the_last_four_samples(rates: list[float | None], near: bool) -> None:
    assert is_near([report(rate) for rate in rates]) is near


def used(share: float, bound: float = 1.0) -> Used:
    return Used(share, share, 10.0, bound)


@pytest.mark.parametrize("share", [0.095, 0.105])
def test_a_cap_that_was_used_is_right(share: float) -> None:
    check_used(used(share), 0.1, 0.1)


def test_more_cpu_than_the_cap_is_wrong_whatever_bound() -> None:
    with pytest.raises(AssertionError, match="more than its cap"):
        check_used(used(0.108, bound=0.0), 0.1, 0.1)


def test_what_a_group_overdrew_while_its_cpu_stood_still_may_not_be_paid_back_yet() -> None:
    with pytest.raises(Inconclusive, match="stood still"):
        check_used(replace(used(0.108), stalled=0.05), 0.1, 0.1)
    check_used(replace(used(0.105), stalled=0.05), 0.1, 0.1)
    with pytest.raises(AssertionError, match="more than its cap"):
        check_used(replace(used(0.113), stalled=0.05), 0.1, 0.1)


def test_less_cpu_than_the_periods_that_were_throttled_is_wrong() -> None:
    with pytest.raises(AssertionError, match="less"):
        check_used(used(0.092), 0.1, 0.1)
    check_used(used(0.048, bound=0.5), 0.1, 0.1)
    with pytest.raises(AssertionError, match="less"):
        check_used(used(0.044, bound=0.5), 0.1, 0.1)


def test_a_group_that_its_quota_hardly_ever_stopped_is_not_judged() -> None:
    with pytest.raises(Inconclusive, match="too few periods"):
        check_used(used(0.02, bound=0.24), 0.1, 0.1)


def passed(arrived: float, punctual: float = 1.0) -> Passed:
    return Passed(exactly(arrived), exactly(20e3), punctual)


@pytest.mark.parametrize(("arrived", "punctual"), [(4500, 1.0), (5500, 1.0), (2700, 0.6)])
def test_a_limit_lets_its_rate_through_while_something_is_sent(
    arrived: float, punctual: float
) -> None:
    check_limited(passed(arrived, punctual), 5000)


@pytest.mark.parametrize(("arrived", "punctual"), [(5501, 0.0), (4499, 1.0), (2699, 0.6)])
def test_a_limit_that_lets_through_another_rate_is_wrong(arrived: float, punctual: float) -> None:
    with pytest.raises(AssertionError):
        check_limited(passed(arrived, punctual), 5000)


def test_a_limit_behind_a_sender_that_stood_still_is_not_judged() -> None:
    with pytest.raises(Inconclusive, match="stood still"):
        check_limited(passed(2000, 0.49), 5000)


@pytest.mark.parametrize(("arrived", "all_of_it"), [(18e3, True), (17.9e3, False), (22.1e3, False)])
def test_without_a_limit_what_arrives_is_what_was_sent(arrived: float, all_of_it: bool) -> None:
    if all_of_it:
        check_unlimited(passed(arrived))
    else:
        with pytest.raises(AssertionError):
            check_unlimited(passed(arrived))

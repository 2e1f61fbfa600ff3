"""Demand: what a router could use, whether its sender is deaf or listens to loss."""

import pytest
from policer_plant import held_report, report_of

from policer.decide.demand import LEAVES, MORE, held_pps, is_held, leased_pps, wanted_pps
from xtc.modes import Finding, Mode


def test_a_free_router_wants_what_is_offered() -> None:
    assert wanted_pps(report_of(throughput_pps=9e3, offered_pps=12e3)) == 12e3
    assert wanted_pps(report_of(throughput_pps=9e3, offered_pps=None)) == 9e3


def test_a_flood_wants_all_that_it_sends() -> None:
    assert wanted_pps(held_report(setpoint=1e4, offered_pps=2e5)) == 2e5


def test_a_flow_that_fills_its_setpoint_wants_more() -> None:
    assert wanted_pps(held_report(setpoint=1e4, throughput_pps=9.6e3)) == MORE * 1e4


def test_one_that_nearly_fills_it_wants_to_keep_it() -> None:
    report = held_report(setpoint=1e4, throughput_pps=9e3, offered_pps=9e3)
    assert wanted_pps(report) == 1e4


def test_one_that_leaves_room_wants_what_it_has() -> None:
    used = (LEAVES - 0.01) * 1e4
    assert wanted_pps(held_report(setpoint=1e4, throughput_pps=used, offered_pps=used)) == used


def test_a_router_that_cannot_be_seen_is_not_idle() -> None:
    assert wanted_pps(held_report(throughput_pps=None, offered_pps=None)) is None


def test_a_router_without_interfaces_is() -> None:
    gone = held_report(throughput_pps=None, offered_pps=None, interfaces=())
    assert wanted_pps(gone) == 0


@pytest.mark.parametrize(
    "over",
    [
        {"mode": Mode.RELEASED, "finding": Finding.LEASE_ENDED, "lease_remaining_s": 0.0},
        {"active": False, "setpoint_pps": None},
    ],
)
def test_a_lease_that_has_ended_holds_nobody(over: dict[str, object]) -> None:
    """A daemon goes on showing it."""
    report = held_report("a", 1e4, **({"throughput_pps": 9.9e3, "offered_pps": 9.9e3} | over))
    assert (leased_pps(report), held_pps(report)) == (None, None)
    assert wanted_pps(report) == 9.9e3


def test_a_router_that_its_daemon_gave_up_to_hold_is_leased_but_not_held() -> None:
    report = held_report(setpoint=1e4, mode=Mode.RELEASED, finding=Finding.UNRESPONSIVE)
    assert leased_pps(report) == 1e4
    assert held_pps(report) is None


def test_a_lease_without_end_holds() -> None:
    assert held_pps(held_report(setpoint=1e4, lease_remaining_s=None)) == 1e4


def test_a_setpoint_in_bits_holds_and_is_no_rate_in_packets() -> None:
    report = held_report(setpoint=1e4, setpoint_pps=None, setpoint_bps=50e6)
    assert (leased_pps(report), held_pps(report), is_held(report)) == (None, None, True)
    assert wanted_pps(report) == 1e4  # what was sent to it, and no more


@pytest.mark.parametrize("unit", ["setpoint_pps", "setpoint_bps"])
@pytest.mark.parametrize(
    "over", [{"mode": Mode.RELEASED}, {"active": False}, {"lease_remaining_s": 0.0}]
)
def test_nothing_holds_a_router_without_a_lease(unit: str, over: dict[str, object]) -> None:
    held = {"setpoint_pps": None, unit: 1e4}
    assert is_held(held_report(**held))
    assert not is_held(held_report(**(held | over)))

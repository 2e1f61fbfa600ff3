"""Demand, number by number: every constant from both sides."""

import pytest
from msgspec.structs import replace
from policer_plant import held_report, report_of

from policer.decide.demand import held_pps, leased_pps, sent_pps, wanted_pps, wasted_pps
from xtc.modes import Mode


@pytest.mark.parametrize(
    ("throughput", "offered", "wanted"),
    [
        (9.5e3, 9.5e3, 11.5e3),  # fills it, and is taken to want 1.15 times as much
        (9.499e3, 9.499e3, 10e3),
        (8e3, 8e3, 10e3),
        (7.999e3, 7.999e3, 7.999e3),  # leaves a fifth
        (9.5e3, 11.4e3, 11.5e3),
        (9.5e3, 11.6e3, 11.6e3),
        (9e3, 12e3, 12e3),
        (5e3, 12e3, 12e3),
        (9e3, 3e3, 10e3),
        (5e3, None, 5e3),
    ],
)
def test_what_a_held_router_wants(throughput: float, offered: float | None, wanted: float) -> None:
    report = held_report("a", 10e3, throughput_pps=throughput, offered_pps=offered)
    assert wanted_pps(report) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("throughput", "offered", "sent"),
    [(3.0, 5.0, 5.0), (5.0, 3.0, 5.0), (None, 5.0, 5.0), (5.0, None, 5.0), (None, None, 0.0)],
)
def test_what_was_sent_for_certain(
    throughput: float | None, offered: float | None, sent: float
) -> None:
    assert sent_pps(report_of("a", throughput_pps=throughput, offered_pps=offered)) == sent


@pytest.mark.parametrize(
    ("changed", "wasted"),
    [
        ({}, 4e3),  # half of what is dropped
        ({"offered_pps": None}, 0.0),
        ({"throughput_pps": None}, 10e3),
        ({"offered_pps": 10e3}, 0.0),
        ({"limit_pps": 8e3}, 2e3),  # on each of two interfaces
        ({"limit_pps": 14e3, "interfaces": ()}, 1e3),
        ({"limit_pps": 14e3, "interfaces": ("x",)}, 1e3),
        ({"limit_pps": 50e3}, 4e3),
    ],
)
def test_what_a_host_wastes_on_drops(changed: dict[str, object], wasted: float) -> None:
    report = report_of("a", throughput_pps=12e3, offered_pps=20e3, interfaces=("x", "y"))
    assert wasted_pps(replace(report, **changed)) == pytest.approx(wasted)


@pytest.mark.parametrize(
    ("changed", "leased", "held"),
    [
        ({}, 10e3, 10e3),
        ({"lease_remaining_s": 0.001}, 10e3, 10e3),
        ({"lease_remaining_s": 0.0}, None, None),
        ({"lease_remaining_s": -1.0}, None, None),
        ({"lease_remaining_s": None}, 10e3, 10e3),
        ({"active": False}, None, None),
        ({"mode": Mode.RELEASED}, 10e3, None),
        ({"mode": Mode.HOLD}, 10e3, 10e3),
    ],
)
def test_a_setpoint_holds_while_its_lease_lasts(
    changed: dict[str, object], leased: float | None, held: float | None
) -> None:
    report = held_report("a", 10e3, **changed)
    assert (leased_pps(report), held_pps(report)) == (leased, held)

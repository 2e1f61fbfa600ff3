"""What excuses a wrong rate on an emulator: unsteady or starved CPUs, and nothing else."""

from typing import Any

import pytest
from support.inconclusive import Inconclusive
from system.xen.boot import Findings
from system.xen.judgement import check_calm, excuse, judging
from system.xen.samples import Host

STEADY = (200, 220, 240, 210, 190, 230, 205, 215)
UNSTEADY = (200, 60, 240, 70, 190, 80, 205, 50)


def samples(*costs: float, dom0: float = 0.1, guests: float = 0.1) -> list[dict[str, Any]]:
    """Return samples of one router: packets for each second of its CPU, and who waited."""
    return [
        {"vr": "gold", "packets_per_cpu_s": cost, "dom0_waited": dom0, "guests_waited": guests}
        for cost in costs
    ]


def test_a_steady_emulator_is_no_excuse() -> None:
    assert not excuse(samples(*STEADY))
    assert not excuse(samples(*UNSTEADY, guests=0.15)), "caps change what a packet costs, too"
    with pytest.raises(AssertionError, match="wrong"), judging("hold", samples(*STEADY)):
        raise AssertionError("wrong")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (samples(*UNSTEADY, guests=0.16), "gold's CPU forwarded 62 to 204 packets"),
        (samples(*STEADY, dom0=0.31), "CPU of dom0 waited for 31%"),
        (samples(*STEADY, guests=0.8), "CPU of guests waited for 80%"),
    ],
)
def test_what_is_wrong_on_an_unsteady_emulator_is_inconclusive(
    found: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(Inconclusive, match=reason), judging("hold", found):
        raise AssertionError("wrong")


def test_what_is_right_is_right_on_any_emulator() -> None:
    with judging("hold", samples(*UNSTEADY, dom0=0.9)):
        pass


def test_too_few_samples_are_no_excuse() -> None:
    assert not excuse(samples(*UNSTEADY[:3], guests=0.2))


def test_a_cpu_waited_for_its_part_of_the_time_in_which_it_was_to_run() -> None:
    notes = [
        {"wall": float(second), "guests": {"ran_s": 0.3 * second, "waited_s": 0.1 * second}}
        for second in range(10)
    ]
    assert Host(notes).waited("guests", 2.0, 4.0) == pytest.approx(0.25)
    assert Host(notes).waited("dom0", 2.0, 4.0) == 0.0
    assert Host([]).waited("guests", 2.0, 4.0) is None


CAPS_OF_A_SWING = (0.29, 0.06, 0.42, 0.42, 0.05, 0.18, 0.18, 0.97, 0.03, 0.19)
CAPS_OF_A_CALM_LOOP = (0.24, 0.24, 0.25, 0.25, None, 0.29, 0.28, 0.29, 0.3, 0.29)
"""Both as seen in one window, before caps that came late were understood and beside it."""
COSTS = (262, 186, 136, 159, 103, 245, 155, 183, 233, 215)


def held(caps: tuple[float | None, ...]) -> list[dict[str, Any]]:
    return [{"cap": cap, "packets_per_cpu_s": cost} for cap, cost in zip(caps, COSTS, strict=True)]


def test_a_loop_that_swings_is_wrong_on_any_emulator() -> None:
    with pytest.raises(AssertionError, match=r"cap moves by 1\.55 .* packet by 0\.34"):
        check_calm(held(CAPS_OF_A_SWING))


def test_a_loop_that_follows_the_emulator_is_calm() -> None:
    check_calm(held(CAPS_OF_A_CALM_LOOP))


def test_a_failure_in_dom0_is_shown_in_a_line_and_in_full() -> None:
    failed = "Traceback (most recent call last):\nRuntimeError: late\n"
    report = {"flood": {"took_s": 1.0}, "hold": {"failed": failed, "took_s": 2.0}}
    found = Findings(report, [], "the console")
    assert found.of("flood") == {"took_s": 1.0}
    assert not found.failure("flood")
    assert found.failure("hold") == f"in dom0: RuntimeError: late\n{failed}"
    with pytest.raises(AssertionError, match="dom0 did not get to pause\nthe console"):
        found.of("pause")

"""What excuses a wrong rate on an emulator: unsteady or starved CPUs, and nothing else."""

from typing import Any

import pytest
from support.inconclusive import Inconclusive
from xen.samples import Host
from xen.verdict import excuse, judging

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
    with pytest.raises(AssertionError, match="wrong"), judging("hold", samples(*STEADY)):
        raise AssertionError("wrong")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (samples(*UNSTEADY), "gold's CPU forwarded 62 to 204 packets"),
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
    assert not excuse(samples(*UNSTEADY[:3]))


def test_a_cpu_waited_for_its_part_of_the_time_in_which_it_was_to_run() -> None:
    notes = [
        {"wall": float(second), "guests": {"ran_s": 0.3 * second, "waited_s": 0.1 * second}}
        for second in range(10)
    ]
    assert Host(notes).waited("guests", 2.0, 4.0) == pytest.approx(0.25)
    assert Host(notes).waited("dom0", 2.0, 4.0) == 0.0
    assert Host([]).waited("guests", 2.0, 4.0) is None

"""Caps to each hypervisor's parameters and back, by table; and who can cap at all."""

import pytest
from fake_guest import UNLIMITED

from common.units import CapFraction
from xtc.errors import Unsupported
from xtc.libvirt.drivers import Way, check_scheduler, way_of

XEN = way_of("vr", "Xen", "vcpu")
VCPU = way_of("vr", "QEMU", "vcpu")
MACHINE = way_of("vr", "QEMU", "machine")
LXC = way_of("vr", "LXC", "vcpu")
SHORT, LONG = 10_000, 100_000


@pytest.mark.parametrize(
    ("way", "cap", "vcpus", "period", "expected"),
    [
        (XEN, 0.35, 1, 0, {"cap": 35}),
        (XEN, 0.354, 1, 0, {"cap": 35}),
        (XEN, 0.001, 1, 0, {"cap": 1}),
        (XEN, 2.5, 4, 0, {"cap": 250}),
        (XEN, 9.0, 2, 0, {"cap": 200}),
        (VCPU, 0.3, 1, SHORT, {"vcpu_period": SHORT, "vcpu_quota": 3000}),
        (VCPU, 0.6, 2, SHORT, {"vcpu_period": SHORT, "vcpu_quota": 3000}),
        (VCPU, 0.3, 1, 0, {"vcpu_period": SHORT, "vcpu_quota": 3000}),
        (MACHINE, 0.3, 2, SHORT, {"global_period": SHORT, "global_quota": 3000}),
        (LXC, 0.02, 8, LONG, {"vcpu_period": LONG, "vcpu_quota": 2000}),
        (LXC, 0.001, 1, LONG, {"vcpu_period": 1_000_000, "vcpu_quota": 1000}),
    ],
)
def test_a_cap_in_each_hypervisors_words(
    way: Way, cap: float, vcpus: int, period: int, expected: dict[str, int]
) -> None:
    standing = {"vcpu_period": period, "global_period": period}
    assert way.parameters(CapFraction(cap), vcpus, standing) == expected


@pytest.mark.parametrize(
    ("way", "parameters", "vcpus", "expected"),
    [
        (XEN, {"weight": 256, "cap": 0}, 1, None),
        (XEN, {"weight": 256, "cap": 1}, 1, 0.01),
        (XEN, {"weight": 256, "cap": 150}, 2, 1.5),
        (VCPU, {"vcpu_period": LONG, "vcpu_quota": -1}, 2, None),
        (VCPU, {"vcpu_period": LONG, "vcpu_quota": -5}, 2, None),
        (VCPU, {"vcpu_period": LONG, "vcpu_quota": 0}, 2, None),
        (VCPU, {"vcpu_period": 0, "vcpu_quota": 0}, 2, None),
        (VCPU, {"vcpu_period": LONG, "vcpu_quota": 50_000}, 2, 1.0),
        (MACHINE, {"global_period": LONG, "global_quota": 50_000, "vcpu_quota": -1}, 2, 0.5),
        (LXC, {"vcpu_period": LONG, "vcpu_quota": 50_000, "cpu_shares": 1024}, 2, 0.5),
    ],
)
def test_what_stands_there_as_a_cap(
    way: Way, parameters: dict[str, int], vcpus: int, expected: float | None
) -> None:
    assert way.cap(parameters, vcpus) == expected


@pytest.mark.parametrize(
    ("way", "parameters", "expected"),
    [
        (XEN, {"weight": 256, "cap": 40}, {"cap": 40}),
        (XEN, {"weight": 256, "cap": 0}, {"cap": 0}),
        (
            VCPU,
            {"vcpu_period": LONG, "vcpu_quota": -5, "global_quota": 7, "cpu_shares": 9},
            {"vcpu_period": LONG, "vcpu_quota": -1},
        ),
        (
            MACHINE,
            {"global_period": LONG, "global_quota": 2000, "vcpu_quota": 1},
            {"global_period": LONG, "global_quota": 2000},
        ),
        (
            LXC,
            {"vcpu_period": SHORT, "vcpu_quota": 4000, "cpu_shares": 9},
            {"vcpu_period": SHORT, "vcpu_quota": 4000},
        ),
    ],
)
def test_release_puts_back_what_is_ours_alone(
    way: Way, parameters: dict[str, int], expected: dict[str, int]
) -> None:
    assert way.original(parameters) == expected


@pytest.mark.parametrize("way", [VCPU, LXC])
@pytest.mark.parametrize("unlimited", [UNLIMITED, ((1 << 64) - 1) // 1000])
def test_cgroup_v2_uncapped_is_no_cap(way: Way, unlimited: int) -> None:
    read = {"vcpu_period": LONG, "vcpu_quota": unlimited}
    assert way.cap(read, 4) is None
    assert way.original(read) == {"vcpu_period": LONG, "vcpu_quota": -1}


def test_cgroup_v2_uncapped_machine_is_no_cap() -> None:
    read = {"global_period": LONG, "global_quota": UNLIMITED}
    assert MACHINE.cap(read, 4) is None
    assert MACHINE.original(read)["global_quota"] == -1


@pytest.mark.parametrize(
    ("way", "floor", "ceiling", "quantum"),
    [
        (XEN, 0.01, 4.0, 0.01),
        (VCPU, 0.004, 4.0, 0.0),
        (MACHINE, 0.001, 16.0, 0.0),
        (LXC, 0.001, 16.0, 0.0),
    ],
)
def test_limits(way: Way, floor: float, ceiling: float, quantum: float) -> None:
    limits = way.limits(4, 16)
    assert (limits.floor, limits.ceiling, limits.quantum) == (floor, ceiling, quantum)


@pytest.mark.parametrize(("way", "flags"), [(XEN, 0), (VCPU, 1), (MACHINE, 1), (LXC, 1)])
def test_xen_takes_no_flags_and_the_others_touch_nothing_but_the_run(way: Way, flags: int) -> None:
    assert way.flags == flags


def test_only_a_cap_on_the_vcpus_is_compared_with_their_time() -> None:
    assert [way.by_vcpu for way in (XEN, VCPU, MACHINE, LXC)] == [False, True, False, False]


@pytest.mark.parametrize("driver", ["Test", "VBOX", "ESX", ""])
def test_other_drivers_are_refused(driver: str) -> None:
    with pytest.raises(Unsupported, match="cannot cap"):
        way_of("vr", driver, "vcpu")


@pytest.mark.parametrize("scheduler", ["rtds", "null", "arinc653", ""])
def test_xen_schedulers_without_caps_are_refused_with_the_fix(scheduler: str) -> None:
    with pytest.raises(Unsupported) as caught:
        check_scheduler("vr", "Xen", scheduler)
    assert "sched=credit" in caught.value.fix


@pytest.mark.parametrize(
    ("driver", "scheduler"),
    [("Xen", "credit"), ("Xen", "credit2"), ("QEMU", "posix"), ("LXC", "posix")],
)
def test_what_caps_is_accepted(driver: str, scheduler: str) -> None:
    check_scheduler("vr", driver, scheduler)

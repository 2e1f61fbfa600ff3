"""The floor of a domain: ordered with its cap, marked, put back, and never in the cap's way."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_guest import Driver, FakeLibvirtError
from fake_libvirt import FakeHost
from libvirt_rig import LibvirtRig, plan
from virt_scenes import HALF, SET, THIRD, ActuatorScene

from xtc.control.floors import AUTO
from xtc.errors import Overtaken, Permanent, Transient, Unsupported
from xtc.libvirt import actuator as libvirt
from xtc.libvirt import pool
from xtc.libvirt.weights import scale_of
from xtc.manager.host_floors import LOOK_EVERY
from xtc.spec import CGROUP_V1, CGROUP_V2, XEN, LibvirtOriginal
from xtc.wire import Activate, Deactivate

URI_OF = "test:///default"
KEYS: dict[str, tuple[str, int]] = {
    "Xen": ("weight", 256),
    "QEMU": ("cpu_shares", 1024),
    "LXC": ("cpu_shares", 1024),
}


@pytest.fixture(autouse=True)
def v1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the host's groups on v1, as the fake guests have theirs."""
    monkeypatch.setattr(libvirt, "is_unified", lambda: False)


@pytest.fixture(params=["Xen", "QEMU", "LXC"])
def scene(request: pytest.FixtureRequest) -> ActuatorScene:
    return ActuatorScene(request.param)


def key(scene: ActuatorScene) -> str:
    return KEYS[scene.host.driver][0]


def standing(scene: ActuatorScene) -> int:
    return scene.gold.parameters[key(scene)]


def claimed(scene: ActuatorScene) -> LibvirtOriginal:
    return scene.actuator.weights.claim(scene.actuator.capture())


def weigh(scene: ActuatorScene, weight: int = 500) -> LibvirtOriginal:
    original = claimed(scene)
    scene.actuator.weights.write(weight)
    scene.work()
    assert scene.actuator.settle()
    return original


@pytest.mark.parametrize(
    ("driver", "unified", "scale"),
    [
        ("Xen", False, XEN),
        ("QEMU", False, replace(CGROUP_V1, parameter="cpu_shares")),
        ("LXC", True, replace(CGROUP_V2, parameter="cpu_shares")),
    ],
)
def test_the_scale_is_the_drivers_and_that_of_control_groups(
    driver: str, unified: bool, scale: object
) -> None:
    assert scale_of(driver, unified=unified) == scale


def test_a_weight_is_written_marked_and_put_back(scene: ActuatorScene) -> None:
    before = dict(scene.gold.parameters)
    original = weigh(scene)
    assert original.parameters[key(scene)] == before[key(scene)]
    assert standing(scene) == scene.actuator.weights.read() == 500
    assert scene.mark() == {key(scene): before[key(scene)]}
    assert scene.actuator.applied() is None
    while not scene.restored(original):
        scene.work()
    assert scene.gold.parameters == before
    assert scene.mark() is None


def test_a_weight_and_a_cap_of_one_tick_are_one_order(scene: ActuatorScene) -> None:
    claimed(scene)
    cap = scene.actuator.apply(THIRD)
    scene.actuator.weights.write(500)
    assert (scene.actuator.applied(), scene.actuator.weights.read()) == (cap, 500)
    scene.work()
    assert scene.actuator.settle()
    scene.look()
    assert (scene.actuator.applied(), standing(scene)) == (cap, 500)
    assert sum(call.name == SET for call in scene.host.calls) == 1


def test_a_cap_that_follows_takes_the_weight_along(scene: ActuatorScene) -> None:
    claimed(scene)
    scene.actuator.weights.write(500)
    cap = scene.actuator.apply(HALF)
    scene.work()
    assert scene.actuator.settle()
    scene.look()
    assert (scene.actuator.applied(), standing(scene)) == (cap, 500)


def test_a_weight_that_is_refused_leaves_the_cap_in_force(scene: ActuatorScene) -> None:
    before = standing(scene)
    claimed(scene)
    cap = scene.actuator.apply(THIRD)
    scene.actuator.weights.write(1_000_000)
    for _ in range(2):
        scene.work()
        scene.actuator.settle()
    scene.look()
    assert scene.actuator.settle()
    assert scene.actuator.applied() == cap
    assert standing(scene) == before
    with pytest.raises((Transient, Permanent)):
        scene.actuator.weights.read()
    assert scene.actuator.weights.read() == before


def test_a_weight_alone_that_fails_is_no_failure_of_the_cap(scene: ActuatorScene) -> None:
    claimed(scene)
    scene.host.fail("gold", SET, error=FakeLibvirtError(38, "no"), times=1)
    scene.actuator.weights.write(500)
    scene.work()
    assert scene.actuator.settle()
    with pytest.raises(Transient):
        scene.actuator.weights.read()


def test_a_weight_that_somebody_changed_just_now_is_not_written_over(scene: ActuatorScene) -> None:
    claimed(scene)
    scene.gold.parameters[key(scene)] = 77
    scene.actuator.weights.write(500)
    scene.work()
    assert scene.actuator.settle()
    assert standing(scene) == 77
    with pytest.raises(Overtaken):
        scene.actuator.weights.read()


def test_a_cap_that_came_while_only_the_weight_was_changed_stays(scene: ActuatorScene) -> None:
    original = weigh(scene)
    later = {"cap": 60} if scene.host.driver == "Xen" else {"vcpu_quota": 60_000}
    scene.gold.parameters |= later
    scene.look()
    while not scene.restored(original):
        scene.work()
    assert scene.gold.parameters.items() >= later.items()
    assert standing(scene) == KEYS[scene.host.driver][1]


def test_a_cap_changed_before_the_first_order_is_the_original_even_if_the_weight_goes_first(
    scene: ActuatorScene,
) -> None:
    outdated = {"cap": 60} if scene.host.driver == "Xen" else {"vcpu_quota": 60_000}
    before = dict(scene.gold.parameters)
    scene.gold.parameters |= outdated
    scene.look()
    weigh_and_free(scene, before)
    scene.actuator.apply(HALF)
    scene.work()
    with pytest.raises(Overtaken):
        scene.actuator.settle()
    scene.actuator = scene.open()
    original = scene.actuator.weights.claim(scene.capped())
    while not scene.restored(original):
        scene.work()
    assert scene.gold.parameters == before


def weigh_and_free(scene: ActuatorScene, free: dict[str, int]) -> None:
    """Have a weight written whose original was read before another process removed the cap."""
    claimed(scene)
    scene.gold.parameters |= free
    scene.actuator.weights.write(500)
    scene.work()
    assert scene.actuator.settle()


def test_an_original_with_a_weight_of_a_journal_is_put_back_by_another_process(
    scene: ActuatorScene,
) -> None:
    before = dict(scene.gold.parameters)
    original = weigh(scene)
    scene.look()
    scene.actuator = scene.open(original)
    while not scene.restored(original):
        scene.work()
    assert scene.gold.parameters == before


def test_a_weight_that_is_left_to_others_is_not_put_back(scene: ActuatorScene) -> None:
    original = scene.actuator.weights.disclaim(weigh(scene))
    assert key(scene) not in original.parameters
    assert scene.actuator.capture() == original


def test_who_contends_is_every_domain_that_runs_and_dom0(scene: ActuatorScene) -> None:
    scene.host.add("other")
    scene.host.add("off", running=False)
    scene.survey()
    found = dict(scene.actuator.weights.rivals(()))
    assert scene.actuator.weights.arena.member in found
    assert len(found) == 2 + (scene.host.driver == "Xen")
    assert set(found.values()) == {KEYS[scene.host.driver][1]}


def test_without_a_weight_there_is_no_floor_and_a_cap_all_the_same() -> None:
    scene = ActuatorScene("QEMU")
    del scene.gold.parameters["cpu_shares"]
    scene.look()
    with pytest.raises(Unsupported, match="cpu_shares"):
        claimed(scene)
    scene.capped()
    assert scene.actuator.applied() == pytest.approx(THIRD, abs=0.005)


@pytest.fixture(params=["Xen", "QEMU"])
def rig(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LibvirtRig]:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    driver: Driver = request.param
    host = FakeHost(driver)
    host.add("gold")
    for number in range(8):
        host.add(f"noisy{number}")
    held = replace(plan("gold", URI_OF), weight=AUTO)
    rig = LibvirtRig(tmp_path, {URI_OF: host}, {"gold": held})
    yield rig
    rig.end()


def test_a_held_domain_has_a_floor_until_it_is_released(rig: LibvirtRig) -> None:
    key, default = KEYS[rig.host("gold").driver]
    guest = rig.host("gold").guests["gold"]
    rig.ask(Activate("gold", 60e3))
    rig.tick(LOOK_EVERY + 2)
    held = guest.parameters[key]
    assert held > default
    assert rig.report("gold").weight == held
    assert rig.report("gold").floor_problem == ""
    rig.restart()
    rig.tick(LOOK_EVERY + 2)
    assert guest.parameters[key] == pytest.approx(held, rel=0.3)
    assert rig.report("gold").floor_problem == ""
    rig.ask(Deactivate("gold"))
    assert guest.parameters[key] == default

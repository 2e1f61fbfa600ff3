"""Releases of a domain: confirmed later, overtaken, failed, in vain, and never waited for twice."""

from collections.abc import Iterator

import pytest
from fake_guest import FakeLibvirtError
from fake_libvirt import FakeHost
from virt_rig import running, until
from virt_scenes import HALF, SET, THIRD, ActuatorScene

from common.clock import MonotonicClock
from common.units import Seconds
from xtc.errors import Denied, Permanent, Transient
from xtc.libvirt.actuator import LibvirtActuator
from xtc.libvirt.session import Session
from xtc.spec import LibvirtSpec, SimulatedOriginal


@pytest.fixture(params=[("Xen", "vcpu"), ("QEMU", "vcpu"), ("QEMU", "machine"), ("LXC", "vcpu")])
def any_scene(request: pytest.FixtureRequest) -> ActuatorScene:
    return ActuatorScene(*request.param)


@pytest.fixture
def scene() -> ActuatorScene:
    return ActuatorScene("Xen")


# Releases.


def test_a_release_is_ordered_and_confirmed_later(any_scene: ActuatorScene) -> None:
    original = any_scene.capped()
    assert not any_scene.restored(original)
    assert not any_scene.restored(original)
    any_scene.work()
    assert any_scene.host.made(SET) == 2
    assert any_scene.restored(original)
    assert any_scene.gold.parameters.items() >= original.parameters.items()
    assert any_scene.actuator.applied() is None
    assert any_scene.mark() is None


def test_a_release_that_was_overtaken_by_a_cap_is_ordered_anew(scene: ActuatorScene) -> None:
    original = scene.capped()
    assert not scene.restored(original)
    scene.actuator.apply(HALF)
    scene.work()
    assert scene.gold.parameters["cap"] == 50
    assert not scene.restored(original)
    scene.work()
    assert scene.restored(original)
    assert scene.gold.parameters["cap"] == 0


def test_a_release_that_failed_is_said_and_ordered_anew(scene: ActuatorScene) -> None:
    original = scene.capped()
    scene.host.fail("gold", SET, error=FakeLibvirtError(29, "no"), times=1)
    assert not scene.restored(original)
    scene.work()
    with pytest.raises(Denied):
        scene.actuator.restore(original)
    assert scene.gold.parameters["cap"] == 30
    assert not scene.restored(original)
    scene.work()
    assert scene.restored(original)


def test_a_domain_that_ends_while_it_is_released_is_released(scene: ActuatorScene) -> None:
    original = scene.capped()
    assert not scene.restored(original)
    scene.host.destroy("gold")
    scene.work()
    assert scene.restored(original)


def test_a_release_that_a_lost_connection_took_along_is_ordered_anew(scene: ActuatorScene) -> None:
    original = scene.capped()
    assert not scene.restored(original)
    scene.mailbox.lost(scene.link, Transient("xen", "the connection ended"))
    assert not scene.restored(original)
    scene.connect()
    scene.work()
    assert not scene.restored(original)
    scene.work()
    assert scene.restored(original)
    assert scene.gold.parameters["cap"] == 0
    assert scene.mark() is None


def test_the_original_of_another_actuator_is_refused(scene: ActuatorScene) -> None:
    with pytest.raises(Permanent):
        scene.actuator.restore(SimulatedOriginal(0.5))


# Waiting, with real threads and a real clock.


Many = tuple[FakeHost, list[LibvirtActuator], Session]


@pytest.fixture
def many() -> Iterator[Many]:
    """Twenty guests with their actuators, over a session with threads and a real clock."""
    host, clock = FakeHost("QEMU"), MonotonicClock()
    for number in range(20):
        host.add(f"vr{number}")
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: all(scene.known(name) for name in host.guests))
        actuators = [
            LibvirtActuator(LibvirtSpec(name), scene.session, scene.view(name), None)
            for name in host.guests
        ]
        be_patient(scene.session, 20.0)
        yield host, actuators, scene.session


def be_patient(session: Session, most: float) -> None:
    session.patience.most = Seconds(most)
    session.patience.refill()


def test_a_release_waits_for_its_confirmation(many: Many) -> None:
    host, actuators, _ = many
    for actuator in actuators:
        actuator.apply(THIRD)
    for actuator in actuators:
        actuator.restore(actuator.capture())
    assert {guest.parameters["vcpu_quota"] for guest in host.guests.values()} == {-1}


def test_a_hang_costs_the_patience_once_for_many_routers(many: Many) -> None:
    host, actuators, session = many
    originals = [actuator.capture() for actuator in actuators]
    host.freeze()
    be_patient(session, 0.3)
    begun = MonotonicClock().now()
    for actuator, original in zip(actuators, originals, strict=True):
        with pytest.raises(Transient, match="under way"):
            actuator.restore(original)
    took = MonotonicClock().now() - begun
    assert 0.25 <= took <= 3.0, "20 times the patience would be 6 s"
    host.thaw()
    be_patient(session, 20.0)
    for actuator, original in zip(actuators, originals, strict=True):
        actuator.restore(original)
    assert host.made(SET) == len(actuators)


def test_a_release_is_not_done_while_a_cap_that_was_given_up_may_still_land(
    scene: ActuatorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = scene.capped()
    monkeypatch.setattr(Session, "in_doubt", lambda _session, _uuid: True)
    assert not scene.restored(original)
    scene.work()
    assert not scene.restored(original)
    scene.gold.parameters["cap"] = 35  # it lands
    monkeypatch.setattr(Session, "in_doubt", lambda _session, _uuid: False)
    assert not scene.restored(original)
    scene.work()
    assert scene.restored(original)
    assert scene.gold.parameters["cap"] == 0

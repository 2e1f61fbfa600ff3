"""The actuator of a domain: originals, caps under way, lies, use, restarts, and no answer."""

import os

import pytest
from fake_guest import Driver, FakeLibvirtError
from virt_scenes import HALF, SET, THIRD, ActuatorScene

from common.units import CapFraction, Seconds
from xtc.errors import ActuatorError, Denied, Gone, Overtaken, Permanent, Transient, Unsupported
from xtc.libvirt.actuator import SLOW_S
from xtc.libvirt.domains import Order
from xtc.libvirt.metadata import URI, mark_of
from xtc.libvirt.session import STALE_S
from xtc.spec import LibvirtOriginal


@pytest.fixture(params=[("Xen", "vcpu"), ("QEMU", "vcpu"), ("QEMU", "machine"), ("LXC", "vcpu")])
def any_scene(request: pytest.FixtureRequest) -> ActuatorScene:
    return ActuatorScene(*request.param)


@pytest.fixture
def scene() -> ActuatorScene:
    return ActuatorScene("Xen")


def failure(scene: ActuatorScene) -> ActuatorError:
    with pytest.raises(ActuatorError) as caught:
        scene.actuator.settle()
    return caught.value


# Originals.


def test_the_original_is_what_stands_there(any_scene: ActuatorScene) -> None:
    part = "global" if any_scene.spec.scope == "machine" else "vcpu"
    quota = {f"{part}_period": 100_000, f"{part}_quota": -1}
    expected = {"cap": 0} if any_scene.host.driver == "Xen" else quota
    gold = any_scene.gold
    assert any_scene.actuator.capture() == LibvirtOriginal(gold.uuid, gold.domid, expected)


def test_an_operators_own_cap_is_the_original(scene: ActuatorScene) -> None:
    scene.gold.parameters["cap"] = 40
    scene.look()
    assert scene.actuator.applied() == 0.4
    assert scene.actuator.capture().parameters == {"cap": 40}


def test_the_journals_original_goes_before_the_mark_and_what_stands_there(
    scene: ActuatorScene,
) -> None:
    scene.gold.metadata[URI] = mark_of({"cap": 60})
    scene.gold.parameters["cap"] = 40
    scene.look()
    journal = LibvirtOriginal(scene.gold.uuid, scene.gold.domid, {"cap": 80})
    assert scene.open(journal).capture() is journal


def test_the_mark_goes_before_what_stands_there(scene: ActuatorScene) -> None:
    scene.gold.metadata[URI] = mark_of({"cap": 60})
    scene.gold.parameters["cap"] = 40
    scene.mailbox.note_change(scene.gold.uuid)
    scene.work()
    assert scene.actuator.capture().parameters == {"cap": 60}


def test_the_original_is_captured_once(scene: ActuatorScene) -> None:
    original = scene.capped()
    scene.look()
    assert scene.actuator.capture() == original
    assert original.parameters == {"cap": 0}


def test_a_parameter_that_the_hypervisor_does_not_tell_is_a_typed_error() -> None:
    scene = ActuatorScene("QEMU", "machine")
    for part in ("period", "quota"):
        del scene.gold.parameters[f"global_{part}"]
    scene.look()
    for call in (scene.actuator.capture, scene.actuator.applied):
        with pytest.raises(ActuatorError):
            call()
    with pytest.raises(ActuatorError):
        scene.actuator.apply(THIRD)


# Caps under way.


def test_a_cap_is_reported_from_its_order_on_and_written_later(any_scene: ActuatorScene) -> None:
    before = dict(any_scene.gold.parameters)
    ordered = any_scene.actuator.apply(THIRD)
    assert ordered == pytest.approx(THIRD, abs=0.005)
    assert any_scene.actuator.applied() == ordered
    assert any_scene.gold.parameters == before
    assert not any_scene.actuator.settle()
    any_scene.work()
    assert any_scene.actuator.applied() == ordered
    assert any_scene.actuator.settle()
    any_scene.look()
    assert any_scene.actuator.applied() == ordered


def test_a_cap_that_follows_one_that_was_overtaken_is_not_written_unless_it_is_read_again(
    any_scene: ActuatorScene,
) -> None:
    """A cap that alternates is set twice in a period, and its outcome is read once."""
    any_scene.actuator.capture()
    part = "global" if any_scene.spec.scope == "machine" else "vcpu"
    foreign = {"cap": 60} if any_scene.host.driver == "Xen" else {f"{part}_quota": 60_000}
    any_scene.gold.parameters |= foreign
    for cap in (HALF, THIRD):
        any_scene.actuator.apply(cap)
        any_scene.work()
    with pytest.raises(Overtaken):
        any_scene.actuator.settle()
    assert any_scene.gold.parameters.items() >= foreign.items()
    assert any_scene.mark() is None


def test_a_cap_is_marked_with_the_original(any_scene: ActuatorScene) -> None:
    assert any_scene.capped().parameters == any_scene.mark()


@pytest.mark.parametrize(("wanted", "got"), [(0.334, 0.33), (1e-6, 0.01), (2.0, 2.0), (50.0, 2.0)])
def test_a_cap_is_bounded_and_rounded_as_xen_takes_it(
    scene: ActuatorScene, wanted: float, got: float
) -> None:
    assert scene.actuator.apply(CapFraction(wanted)) == got
    scene.work()
    assert scene.actuator.applied() == got


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_cap_is_refused(scene: ActuatorScene, bad: float) -> None:
    with pytest.raises(Permanent):
        scene.actuator.apply(CapFraction(bad))
    scene.work()
    assert scene.gold.parameters["cap"] == 0


def test_a_vcpu_quota_is_shared_out() -> None:
    scene = ActuatorScene("QEMU", vcpus=4)
    scene.capped(CapFraction(1.0))
    ratio = scene.gold.parameters["vcpu_quota"] / scene.gold.parameters["vcpu_period"]
    assert ratio == pytest.approx(0.25)


def test_the_limits_are_those_of_the_way() -> None:
    assert ActuatorScene("Xen", vcpus=3).actuator.limits.ceiling == 3.0
    assert ActuatorScene("LXC", vcpus=3).actuator.limits.ceiling == os.cpu_count()


def test_the_latest_cap_wins(scene: ActuatorScene) -> None:
    scene.actuator.apply(THIRD)
    scene.actuator.apply(HALF)
    assert scene.actuator.applied() == HALF
    scene.work()
    assert scene.host.made(SET) == 1
    assert scene.actuator.settle()
    assert scene.gold.parameters["cap"] == 50


def test_a_cap_is_not_settled_by_what_became_of_the_one_before(scene: ActuatorScene) -> None:
    scene.capped()
    scene.actuator.apply(HALF)
    assert not scene.actuator.settle()
    scene.work()
    assert scene.actuator.settle()


def test_a_cap_that_lands_between_two_looks_is_no_foreign_change(
    scene: ActuatorScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = scene.actuator.apply(THIRD)
    real = scene.session.pending

    def pending(uuid: str) -> Order | None:
        scene.work()
        return real(uuid)

    monkeypatch.setattr(scene.session, "pending", pending)
    assert scene.actuator.applied() == ordered


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FakeLibvirtError(29, "read only"), Denied),
        (FakeLibvirtError(38, "Invalid argument"), Permanent),
        (FakeLibvirtError(1, "odd"), Transient),
        (FakeLibvirtError(84, "no"), Unsupported),
    ],
)
def test_settling_says_once_what_became_of_it(
    scene: ActuatorScene, error: Exception, kind: type[ActuatorError]
) -> None:
    scene.host.fail("gold", SET, error=error)
    scene.actuator.apply(THIRD)
    scene.work()
    assert type(failure(scene)) is kind
    assert scene.actuator.settle()
    assert scene.actuator.applied() is None


@pytest.mark.parametrize("lie", [{}, {"cap": 99}])
def test_a_lie_is_noticed(scene: ActuatorScene, lie: dict[str, int]) -> None:
    scene.host.fail("gold", SET, lie=lie)
    scene.actuator.apply(THIRD)
    scene.work()
    assert "read back" in str(failure(scene))
    assert scene.actuator.applied() == (0.99 if lie else None)


def test_a_slow_hypervisor_is_known_as_such(scene: ActuatorScene) -> None:
    assert not scene.actuator.slow
    scene.host.fail("gold", SET, slow=Seconds(SLOW_S * 1.5))
    scene.capped()
    assert scene.actuator.slow
    scene.host.thaw()
    scene.capped(HALF)
    assert not scene.actuator.slow


# Use.


@pytest.mark.parametrize(
    ("driver", "scope", "grain"),
    [
        ("Xen", "vcpu", 0.03),
        ("QEMU", "vcpu", 0.01),
        ("QEMU", "machine", 0.0),
        ("LXC", "vcpu", 0.0),
    ],
)
def test_use_is_told_with_the_instant_of_its_counting_and_its_steps(
    driver: Driver, scope: str, grain: float
) -> None:
    scene = ActuatorScene(driver, scope)
    scene.gold.cpu_ns = 3_000_000_000
    scene.look()
    scene.clock.sleep(Seconds(0.5))
    usage = scene.actuator.usage()
    assert (usage.used, usage.at, usage.grain) == (3.0, 100.0, grain)
    assert usage.throttled is None


def test_one_busy_vcpu_of_four_is_visible() -> None:
    scene = ActuatorScene("QEMU", vcpus=4)
    scene.gold.vcpu_ns = {0: 20_000_000, 1: 250_000_000, 2: 0, 3: 10_000_000}
    scene.look()
    usage = scene.actuator.usage()
    assert usage.parts == (0.02, 0.25, 0.0, 0.01)
    assert usage.used == pytest.approx(0.28)


@pytest.mark.parametrize(
    ("driver", "scope"), [("Xen", "vcpu"), ("QEMU", "machine"), ("LXC", "vcpu")]
)
def test_a_cap_that_is_common_to_all_vcpus_has_no_parts(driver: Driver, scope: str) -> None:
    scene = ActuatorScene(driver, scope, vcpus=4)
    scene.gold.cpu_ns = 1_000_000_000
    scene.look()
    usage = scene.actuator.usage()
    assert (usage.used, usage.parts) == (1.0, ())


def test_a_hot_plugged_vcpu_is_another_part() -> None:
    scene = ActuatorScene("QEMU", vcpus=2)
    scene.gold.vcpus, scene.gold.vcpu_ns = 3, {0: 1_000_000_000, 1: 0, 5: 10_000_000}
    scene.look()
    assert scene.actuator.usage().parts == (1.0, 0.0, 0.01)
    scene.gold.vcpus, scene.gold.vcpu_ns = 2, {0: 1_000_000_000, 5: 20_000_000}
    scene.look()
    assert scene.actuator.usage().parts == (1.0, 0.02)


# Another run, or none.


@pytest.mark.parametrize("call", ["applied", "usage", "capture", "apply"])
@pytest.mark.parametrize("how", ["destroy", "restart", "undefine"])
def test_after_its_run_it_is_gone(scene: ActuatorScene, call: str, how: str) -> None:
    scene.gold.persistent = how != "undefine"
    scene.host.restart("gold") if how == "restart" else scene.host.destroy("gold")
    scene.work()
    with pytest.raises(Gone):
        scene.actuator.apply(THIRD) if call == "apply" else getattr(scene.actuator, call)()


def test_a_cap_for_an_earlier_run_is_gone_with_it(scene: ActuatorScene) -> None:
    scene.actuator.apply(THIRD)
    scene.host.restart("gold")
    scene.work()
    assert isinstance(failure(scene), Gone)
    assert scene.gold.parameters["cap"] == 0
    assert scene.mark() is None


def test_to_restore_who_is_gone_is_done(scene: ActuatorScene) -> None:
    original = scene.capped()
    scene.host.restart("gold")
    scene.work()
    scene.actuator.restore(original)
    scene.work()
    assert scene.gold.parameters["cap"] == 0


# No answer.


def test_without_an_answer_nothing_is_known(scene: ActuatorScene) -> None:
    scene.session.ask()
    scene.clock.sleep(Seconds(STALE_S))
    assert scene.actuator.applied() is None
    scene.clock.sleep(Seconds(0.1))
    with pytest.raises(Transient, match="does not answer"):
        scene.actuator.applied()
    scene.work()
    assert scene.actuator.applied() is None


def test_without_a_connection_the_reason_is_told(scene: ActuatorScene) -> None:
    scene.mailbox.lost(scene.link, Transient("xen", "the connection ended"))
    for call in (scene.actuator.applied, scene.actuator.usage, scene.actuator.capture):
        with pytest.raises(Transient, match="the connection ended"):
            call()


def test_an_order_that_a_lost_connection_took_along_has_failed(scene: ActuatorScene) -> None:
    scene.actuator.apply(THIRD)
    scene.mailbox.lost(scene.link, Transient("xen", "the connection ended"))
    assert isinstance(failure(scene), Transient)


def test_nothing_is_ordered_before_the_domain_was_looked_at() -> None:
    scene = ActuatorScene("QEMU", vcpus=4)
    scene.mailbox.lost(scene.link, Transient("qemu", "the connection ended"))
    scene.connect()
    for call in (scene.actuator.applied, scene.actuator.usage, scene.actuator.capture):
        with pytest.raises(Transient):
            call()
    with pytest.raises(Transient):
        scene.actuator.apply(HALF)
    scene.work()
    assert scene.gold.parameters["vcpu_quota"] == -1
    assert scene.actuator.applied() is None


def test_the_problem_of_its_domain_is_its_own(scene: ActuatorScene) -> None:
    scene.host.fail("gold", "info", error=FakeLibvirtError(88, "polkit"))
    scene.look()
    with pytest.raises(Denied):
        scene.actuator.applied()

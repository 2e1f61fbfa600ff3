"""Operations to a domain without threads: the order of their calls, and another run of it."""

from dataclasses import replace

import pytest
from fake_guest import Driver, FakeLibvirtError
from virt_scenes import CAP, FREE, KINDS, WRITES, VisitScene, failed

from common.units import Seconds
from xtc.errors import Gone, Transient
from xtc.libvirt.domain_ops import survey
from xtc.libvirt.domains import Operation


@pytest.fixture(params=["Xen", "QEMU", "LXC"])
def any_scene(request: pytest.FixtureRequest) -> VisitScene:
    return VisitScene(request.param)


@pytest.fixture
def qemu() -> VisitScene:
    return VisitScene("QEMU")


def test_a_survey_tells_who_there_is(qemu: VisitScene) -> None:
    qemu.host.add("silver", running=False)
    found = {view.name: view for view in survey(qemu.link)}
    assert found.keys() == {"gold", "silver"}
    assert found["gold"].domid == qemu.gold.domid
    assert not found["silver"].active
    assert not found["gold"].visited


def test_the_domain_that_xtc_runs_in_is_no_router() -> None:
    scene = VisitScene("Xen")
    zero = scene.host.add("Domain-0")
    zero.uuid = "00000000-0000-0000-0000-000000000000"
    assert [view.name for view in survey(scene.link)] == ["gold"]


@pytest.mark.parametrize(
    ("driver", "interfaces"),
    [("Xen", ("vif1.0", "vif1.1")), ("QEMU", ("vnet1", "vnet2")), ("LXC", ("vnet2", "vnet4"))],
)
def test_a_first_look_tells_all(driver: Driver, interfaces: tuple[str, ...]) -> None:
    scene = VisitScene(driver)
    scene.gold.cpu_ns = 4_005_000_000
    view = scene.look()
    assert view.visited
    assert view.problem is None
    assert (view.vcpus, view.interfaces, view.mark) == (2, interfaces, None)
    assert view.parameters == scene.gold.parameters
    assert (view.used, view.seen_at) == (4.005, 50.0)
    assert view.used_by_vcpus == ((2.0, 2.0) if driver == "QEMU" else ())


def test_the_time_of_each_vcpu_is_told_by_its_number(qemu: VisitScene) -> None:
    qemu.gold.vcpu_ns = {2: 10_000_000, 0: 5_019_000_000}
    assert qemu.look().used_by_vcpus == (5.01, 0.01)


def test_a_reading_that_was_held_up_changes_neither_total_nor_parts(qemu: VisitScene) -> None:
    before = qemu.look()
    qemu.gold.cpu_ns = 4_000_000_000
    qemu.host.fail("gold", "vcpus", slow=Seconds(0.2))
    after = qemu.look(before)
    counted = [(v.used, v.used_by_vcpus, v.seen_at) for v in (before, after)]
    assert counted[0] == counted[1]


def test_later_looks_are_short(any_scene: VisitScene) -> None:
    view = any_scene.look()
    any_scene.host.calls.clear()
    any_scene.look(view)
    assert not any_scene.calls("XMLDesc", "metadata", "schedulerType")
    any_scene.host.plug("gold")
    described, _ = any_scene.perform(view, describe=True)
    assert any_scene.calls("XMLDesc")
    assert len(described.interfaces) == (2 if any_scene.host.driver == "Xen" else 3)


@pytest.mark.parametrize(("driver", "free", "cap", "flags"), KINDS)
def test_a_cap_comes_after_its_mark_and_before_its_read_back(
    driver: Driver, free: dict[str, int], cap: dict[str, int], flags: int
) -> None:
    scene = VisitScene(driver)
    view = scene.look()
    scene.host.calls.clear()
    view, outcome = scene.perform(view, scene.order(cap, flags, free))
    assert outcome is not None
    assert outcome.error is None
    order = scene.calls(*WRITES, "schedulerParametersFlags")
    assert order[:3] == [*WRITES, "schedulerParametersFlags"]
    assert scene.gold.parameters.items() >= cap.items()
    assert view.parameters == scene.gold.parameters
    assert view.mark == scene.mark() == free


def test_the_mark_stands_before_the_cap_takes_effect(any_scene: VisitScene) -> None:
    free, cap, flags = next(kind[1:] for kind in KINDS if kind[0] == any_scene.host.driver)
    seen = []
    any_scene.host.at_set = lambda _guest: seen.append(any_scene.mark())
    any_scene.perform(any_scene.look(), any_scene.order(cap, flags, free))
    assert seen == [free]


def test_the_mark_is_written_once(qemu: VisitScene) -> None:
    view, _ = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    qemu.perform(view, qemu.order(CAP | {"vcpu_quota": 4000}, 1, FREE, number=2))
    assert qemu.host.made("setMetadata") == 1


@pytest.mark.parametrize(("driver", "free", "cap", "flags"), KINDS)
def test_a_release_removes_the_mark_last(
    driver: Driver, free: dict[str, int], cap: dict[str, int], flags: int
) -> None:
    scene = VisitScene(driver)
    before = dict(scene.gold.parameters)
    view, _ = scene.perform(scene.look(), scene.order(cap, flags, free))
    scene.host.calls.clear()
    view, outcome = scene.perform(view, scene.order(free, flags, None, number=2))
    assert outcome is not None
    assert outcome.error is None
    assert scene.calls(*WRITES) == list(reversed(WRITES))
    assert {k: scene.gold.parameters[k] for k in free} == {k: before[k] for k in free}
    assert scene.mark() is view.mark is None


def test_a_release_removes_a_mark_that_a_call_given_up_has_left(qemu: VisitScene) -> None:
    before = qemu.look()
    qemu.perform(before, qemu.order(CAP, 1, FREE))
    unknown = replace(before, described=False)
    view, outcome = qemu.perform(unknown, qemu.order(FREE, 1, None, number=2))
    assert outcome is not None
    assert outcome.error is None
    assert qemu.mark() is view.mark is None


def test_a_release_that_is_refused_keeps_the_mark(qemu: VisitScene) -> None:
    view, _ = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    qemu.host.fail("gold", "setSchedulerParametersFlags", error=FakeLibvirtError(1, "busy"))
    view, outcome = qemu.perform(view, qemu.order(FREE, 1, None, number=2))
    assert isinstance(failed(outcome), Transient)
    assert view.mark == qemu.mark() == FREE


def test_uncapping_on_the_unified_hierarchy(qemu: VisitScene) -> None:
    qemu.host.unified = True
    view, _ = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    view, outcome = qemu.perform(view, qemu.order(FREE, 1, None, number=2))
    assert outcome is not None
    assert outcome.error is None
    assert view.parameters["vcpu_quota"] == -1


@pytest.mark.parametrize("driver", ["Xen", "QEMU", "LXC"])
def test_how_long_a_cap_took_is_told(driver: Driver) -> None:
    scene = VisitScene(driver)
    free, cap, flags = next(kind[1:] for kind in KINDS if kind[0] == driver)
    scene.host.fail("gold", "setSchedulerParametersFlags", slow=Seconds(0.25))
    _, outcome = scene.perform(scene.look(), scene.order(cap, flags, free))
    assert outcome is not None
    assert outcome.took == pytest.approx(0.25)


# The domain is not what it was.


def test_a_stopped_domain_is_gone(any_scene: VisitScene) -> None:
    view = any_scene.look()
    any_scene.host.destroy("gold")
    order = any_scene.order(CAP, 1, FREE)
    view, outcome = any_scene.perform(view, order)
    assert not view.active
    assert isinstance(view.problem, Gone)
    assert isinstance(failed(outcome), Gone)
    assert any_scene.link.alive


def test_a_stopped_container_is_never_asked_for_its_scheduler() -> None:
    scene = VisitScene("LXC")
    view = scene.look()
    scene.host.destroy("gold")
    scene.host.calls.clear()
    stopped = replace(scene.listed, domid=-1)
    for operation in (
        Operation(view),
        Operation(view, describe=True),
        Operation(stopped, describe=True),
    ):
        scene.executor.perform(operation)
    scene.perform(view, scene.order(CAP, 1, FREE))
    asked = scene.calls("schedulerType", "schedulerParametersFlags", WRITES[1])
    assert not asked
    assert scene.host.up


@pytest.mark.parametrize("driver", ["Xen", "QEMU", "LXC"])
def test_a_domain_that_was_undefined_is_gone(driver: Driver) -> None:
    scene = VisitScene(driver)
    scene.gold.persistent = False
    view = scene.look()
    scene.host.destroy("gold")
    view, _ = scene.perform(view)
    assert isinstance(view.problem, Gone)


def test_an_order_of_an_earlier_run_is_not_written_to_the_next(any_scene: VisitScene) -> None:
    free, cap, flags = next(kind[1:] for kind in KINDS if kind[0] == any_scene.host.driver)
    view, _ = any_scene.perform(any_scene.look(), any_scene.order(cap, flags, free))
    any_scene.host.silent = True
    any_scene.host.restart("gold")
    fresh = dict(any_scene.gold.parameters)
    view, outcome = any_scene.perform(view, any_scene.order(cap, flags, free, number=2))
    assert isinstance(failed(outcome), Gone)
    assert any_scene.gold.parameters == fresh
    assert any_scene.mark() is None


def test_an_order_of_an_earlier_run_touches_nothing(any_scene: VisitScene) -> None:
    free, cap, flags = next(kind[1:] for kind in KINDS if kind[0] == any_scene.host.driver)
    late = any_scene.order(cap, flags, free)
    any_scene.host.restart("gold")
    any_scene.connect()
    fresh = dict(any_scene.gold.parameters)
    view, outcome = any_scene.perform(any_scene.look(), late)
    assert isinstance(failed(outcome), Gone)
    assert any_scene.gold.parameters == fresh
    assert any_scene.mark() is None
    assert view.active

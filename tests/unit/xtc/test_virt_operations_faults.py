"""Operations to a domain without threads: refusals, lies, unreadable answers, dead connections."""

from dataclasses import replace

import pytest
from fake_guest import FakeLibvirtError
from virt_scenes import CAP, FREE, KINDS, WRITES, XEN_CAP, XEN_FREE, VisitScene, failed

from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, Unsupported
from xtc.libvirt.domains import Operation
from xtc.libvirt.metadata import URI, mark_of


@pytest.fixture(params=["Xen", "QEMU", "LXC"])
def any_scene(request: pytest.FixtureRequest) -> VisitScene:
    return VisitScene(request.param)


@pytest.fixture
def qemu() -> VisitScene:
    return VisitScene("QEMU")


# What the hypervisor refuses.


def test_a_cap_above_its_parent_is_refused_and_the_old_one_stays(qemu: VisitScene) -> None:
    qemu.gold.parameters |= {"global_period": 10_000, "global_quota": 2000}
    view, outcome = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    assert type(failed(outcome)) is Permanent
    assert qemu.gold.parameters["vcpu_quota"] == -1
    assert view.problem is None


def test_a_mark_before_a_refused_cap_is_known(qemu: VisitScene) -> None:
    view = qemu.look()
    qemu.host.fail("gold", "setSchedulerParametersFlags", error=FakeLibvirtError(38, "no"), times=1)
    view, outcome = qemu.perform(view, qemu.order(CAP, 1, FREE))
    assert isinstance(failed(outcome), Transient)
    qemu.perform(view, qemu.order(FREE, 1, None, number=2))
    assert qemu.mark() is None


def test_xen_refuses_more_than_its_vcpus_and_keeps_what_was() -> None:
    scene = VisitScene("Xen")
    _, outcome = scene.perform(scene.look(), scene.order({"cap": 201}, 0, XEN_FREE))
    assert isinstance(failed(outcome), Transient)
    assert scene.gold.parameters["cap"] == 0


def test_xen_refuses_flags() -> None:
    scene = VisitScene("Xen")
    _, outcome = scene.perform(scene.look(), scene.order(XEN_CAP, 1, XEN_FREE))
    assert isinstance(failed(outcome), Permanent)
    assert "unsupported flags" in str(failed(outcome))


def test_a_container_has_no_machine_quota() -> None:
    scene = VisitScene("LXC")
    machine = {"global_period": 10_000, "global_quota": 3000}
    _, outcome = scene.perform(scene.look(), scene.order(machine, 1, FREE))
    assert isinstance(failed(outcome), Unsupported)


@pytest.mark.parametrize("number", [1 << 70, 0.5])
def test_what_the_bindings_refuse_is_permanent(qemu: VisitScene, number: int) -> None:
    _, outcome = qemu.perform(qemu.look(), qemu.order(CAP | {"vcpu_quota": number}, 1, FREE))
    assert type(failed(outcome)) is Permanent


def test_who_may_only_read_is_denied(qemu: VisitScene) -> None:
    qemu.host.read_only = True
    _, outcome = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    assert isinstance(failed(outcome), Denied)


@pytest.mark.parametrize("code", [3, 84, 74])
def test_a_hypervisor_without_metadata_is_capped_all_the_same(qemu: VisitScene, code: int) -> None:
    for call in ("metadata", "setMetadata"):
        qemu.host.fail("gold", call, error=FakeLibvirtError(code, "not supported"))
    view, outcome = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    assert outcome is not None
    assert outcome.error is None
    assert qemu.gold.parameters.items() >= CAP.items()
    assert view.mark is None


def test_without_its_mark_there_is_no_cap(qemu: VisitScene) -> None:
    qemu.host.fail("gold", "setMetadata", error=FakeLibvirtError(68, "cannot acquire state lock"))
    _, outcome = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    assert isinstance(failed(outcome), Transient)
    assert qemu.gold.parameters["vcpu_quota"] == -1


# Lies.


@pytest.mark.parametrize("lie", [{}, {"vcpu_quota": 50_000}, {"vcpu_period": 20_000}])
def test_a_set_that_did_something_else_has_failed(qemu: VisitScene, lie: dict[str, int]) -> None:
    qemu.host.fail("gold", "setSchedulerParametersFlags", lie=lie)
    view, outcome = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    assert isinstance(failed(outcome), Transient)
    assert "read back" in str(failed(outcome))
    assert view.parameters == qemu.gold.parameters


def test_a_quota_of_zero_changes_nothing_and_is_noticed(qemu: VisitScene) -> None:
    _, outcome = qemu.perform(qemu.look(), qemu.order(CAP | {"vcpu_quota": 0}, 1, FREE))
    assert "read back" in str(failed(outcome))


# What cannot be looked at.


@pytest.mark.parametrize(
    ("call", "error", "kind"),
    [
        ("XMLDesc", FakeLibvirtError(1, "odd"), Transient),
        ("schedulerParametersFlags", FakeLibvirtError(88, "polkit"), Denied),
        ("info", FakeLibvirtError(3, "not supported"), Unsupported),
        ("metadata", FakeLibvirtError(68, "cannot acquire state lock"), Transient),
        ("lookupByUUIDString", FakeLibvirtError(42, "no domain"), Gone),
        ("info", FakeLibvirtError(55, "domain is not running"), Gone),
    ],
)
def test_what_goes_wrong_with_a_look_is_the_domains_problem(
    qemu: VisitScene, call: str, error: Exception, kind: type[ActuatorError]
) -> None:
    qemu.host.fail("gold" if call != "lookupByUUIDString" else "", call, error=error)
    view = qemu.look()
    assert type(view.problem) is kind
    assert view.active is not (kind is Gone)


def test_a_problem_passes_with_the_next_look(qemu: VisitScene) -> None:
    view = qemu.look()
    qemu.host.fail("gold", "info", error=FakeLibvirtError(1, "odd"), times=1)
    view = qemu.look(view)
    assert view.problem is not None
    assert qemu.look(view).problem is None


@pytest.mark.parametrize("call", ["XMLDesc", "schedulerType", "metadata"])
def test_a_description_that_failed_is_made_good_at_the_next_look(
    any_scene: VisitScene, call: str
) -> None:
    any_scene.gold.metadata[URI] = mark_of({"cap": 7})
    any_scene.host.fail("gold", call, error=FakeLibvirtError(68, "busy"), times=1)
    view = any_scene.look()
    assert view.problem is not None
    view = any_scene.look(view)
    assert view.problem is None
    assert view.mark == {"cap": 7}
    assert len(view.interfaces) == 2


def test_broken_xml_is_the_domains_problem(qemu: VisitScene) -> None:
    qemu.gold.xml = "<domain>"
    assert isinstance(qemu.look().problem, Transient)


@pytest.mark.parametrize("scheduler", ["rtds", "null"])
def test_a_xen_without_caps_is_told_so(scheduler: str) -> None:
    scene = VisitScene("Xen")
    scene.host.scheduler = scheduler
    assert isinstance(scene.look().problem, Unsupported)


def test_a_foreign_change_is_seen_at_the_next_look(qemu: VisitScene) -> None:
    view = qemu.look()
    qemu.gold.parameters["vcpu_quota"] = 7000
    assert qemu.look(view).parameters["vcpu_quota"] == 7000


def test_a_paused_domain_is_capped_like_any_other(any_scene: VisitScene) -> None:
    any_scene.gold.paused = True
    free, cap, flags = next(kind[1:] for kind in KINDS if kind[0] == any_scene.host.driver)
    _, outcome = any_scene.perform(any_scene.look(), any_scene.order(cap, flags, free))
    assert outcome is not None
    assert outcome.error is None


# The connection dies, or is not heard any more.

EVERY_CALL = [
    "lookupByUUIDString",
    "setMetadata",
    "setSchedulerParametersFlags",
    "schedulerParametersFlags",
    "XMLDesc",
    "schedulerType",
    "metadata",
    "info",
    "vcpus",
]


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.parametrize("call", EVERY_CALL)
def test_a_death_in_the_middle_of_any_call_ends_the_visit(
    qemu: VisitScene, call: str, drop: str
) -> None:
    if call == "metadata":
        qemu.gold.metadata[URI] = mark_of(FREE)  # the fault takes a call that finds something
    qemu.host.fail("*", call, drop=drop)
    with pytest.raises(Transient, match="connection"):
        qemu.perform(qemu.listed, qemu.order(CAP, 1, FREE))
    capped = qemu.gold.parameters["vcpu_quota"] > 0
    assert not capped or qemu.mark() == FREE


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.parametrize("call", WRITES)
def test_what_a_death_left_is_found_and_undone_over_the_next_connection(
    qemu: VisitScene, call: str, drop: str
) -> None:
    view, _ = qemu.perform(qemu.look(), qemu.order(CAP, 1, FREE))
    qemu.host.fail("gold", call, drop=drop)
    with pytest.raises(Transient):
        qemu.perform(view, qemu.order(FREE, 1, None, number=2))
    qemu.host.thaw()
    qemu.connect()
    qemu.perform(qemu.look(), qemu.order(FREE, 1, None, number=3))
    assert qemu.gold.parameters["vcpu_quota"] == -1
    assert qemu.mark() is None


@pytest.mark.parametrize(
    ("heard", "written"), [([], []), ([True], ["setMetadata"]), ([True, True], list(WRITES))]
)
def test_who_is_not_heard_any_more_writes_nothing_more(
    qemu: VisitScene, heard: list[bool], written: list[str]
) -> None:
    view, answers = qemu.look(), iter(heard)
    executor = replace(qemu.executor, is_heard=lambda: next(answers, False))
    _, outcome = executor.perform(Operation(view, qemu.order(CAP, 1, FREE)))
    assert qemu.calls(*WRITES) == written
    assert outcome is not None
    assert isinstance(outcome.error, Transient) is (len(heard) < 2)

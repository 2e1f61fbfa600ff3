"""The connections of a configuration: which domain is whose, what is gone, what may yet come."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from fake_libvirt import LIMIT_S, FakeHost
from virt_rig import idle_threads, quiet, until

from common.clock import FakeClock
from common.units import Seconds
from xtc.actuator.places import place_of
from xtc.errors import ActuatorError, Gone, Permanent, Transient, Unsupported
from xtc.libvirt import pool
from xtc.libvirt.api import Api
from xtc.libvirt.hypervisors import LEAST_LEAD_S, ConnectionState, Hypervisors
from xtc.libvirt.mailbox import Mailbox
from xtc.libvirt.metadata import URI, mark_of
from xtc.measure.collector import Binding
from xtc.spec import LibvirtOriginal, LibvirtSpec, SimulatedSpec

XEN, QEMU = "xen:///system", "qemu:///system"
GOLD, SILVER = LibvirtSpec("gold", XEN), LibvirtSpec("silver", XEN)
VM = LibvirtSpec("vm", QEMU)


class Scene:
    """Two hypervisors of one machine, and what follows them."""

    def __init__(self) -> None:
        self.clock = FakeClock(100.0)
        self.xen, self.qemu = FakeHost("Xen", self.clock), FakeHost("QEMU", self.clock)
        self.xen.add("gold", nics=2)
        self.xen.add("silver")
        self.qemu.add("vm")
        self.hypervisors = Hypervisors(self.clock, self.load)

    def load(self) -> Api:
        hosts = {XEN: self.xen, QEMU: self.qemu}
        return Api(lambda uri: hosts[str(uri)].open(uri), self.xen.load().failure)

    def use(self, *specs: LibvirtSpec) -> None:
        """Follow, and wait until all is known."""
        self.hypervisors.use(specs)
        self.hypervisors.settle(Seconds(LIMIT_S))
        for session in self.hypervisors._sessions.values():
            quiet(session)

    def mailbox(self, uri: str = XEN) -> Mailbox:
        return self.hypervisors._sessions[uri]._mailbox

    def until(self, holds: Callable[[], bool], uri: str = XEN) -> None:
        until(self.mailbox(uri), holds)

    def restart(self, name: str) -> None:
        before = self.xen.guests[name].domid
        self.xen.restart(name)
        view = self.hypervisors._sessions[XEN].view
        self.until(lambda: self.known(name) > before)
        assert view is not self.hypervisors._sessions[XEN].view

    def known(self, name: str) -> int:
        view = self.hypervisors._sessions[XEN].view.find(name)
        return view.domid if view is not None and view.visited else -1

    def refusal(self, spec: LibvirtSpec, original: LibvirtOriginal | None = None) -> ActuatorError:
        with pytest.raises(ActuatorError) as caught:
            self.hypervisors.open(spec, original)
        return caught.value


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    scene = Scene()
    yield scene
    boards = [session._mailbox for session in scene.hypervisors._sessions.values()]
    scene.xen.thaw()
    scene.qemu.thaw()
    scene.hypervisors.close()
    for mailbox in boards:
        until(mailbox, lambda: idle_threads() == 0)


def test_a_name_and_a_uuid_of_one_domain_are_one_place(scene: Scene) -> None:
    scene.use(GOLD, SILVER)
    by_uuid = place_of(LibvirtSpec(scene.xen.guests["gold"].uuid, XEN))
    assert by_uuid & place_of(GOLD, uuid_of=scene.hypervisors.uuid_of)
    assert not by_uuid & place_of(SILVER, uuid_of=scene.hypervisors.uuid_of)
    assert scene.hypervisors.uuid_of(LibvirtSpec("none", XEN)) is None
    assert scene.hypervisors.uuid_of(VM) is None


# Opening.


@pytest.mark.parametrize("name", ["gold", "uuid", "UUID"])
def test_a_domain_goes_by_its_name_or_uuid(scene: Scene, name: str) -> None:
    uuid = scene.xen.guests["gold"].uuid
    spec = LibvirtSpec({"gold": "gold", "uuid": uuid, "UUID": uuid.upper()}[name], XEN)
    scene.use(spec)
    actuator = scene.hypervisors.open(spec, None)
    assert actuator.applied() is None
    assert actuator.capture() == LibvirtOriginal(uuid, 1, {"cap": 0})


def test_each_domain_is_looked_for_at_its_own_hypervisor(scene: Scene) -> None:
    scene.use(GOLD, VM)
    assert scene.hypervisors.open(GOLD, None).limits.quantum == 0.01
    assert scene.hypervisors.open(VM, None).limits.quantum == 0.0
    assert type(scene.refusal(LibvirtSpec("vm", XEN))) is Gone


def test_before_anything_is_used_nothing_is_known(scene: Scene) -> None:
    assert type(scene.refusal(GOLD)) is Transient
    assert scene.hypervisors.binding(GOLD) == Binding()


def test_while_connecting_nothing_is_known(scene: Scene) -> None:
    scene.xen.freeze("*", "open")
    scene.hypervisors.use([GOLD])
    scene.xen.wait_for_hang()
    assert type(scene.refusal(GOLD)) is Transient


def test_a_domain_that_was_not_looked_at_yet_may_yet_come(scene: Scene) -> None:
    scene.xen.freeze("gold")
    scene.xen.freeze("*", "lookupByUUIDString")
    scene.hypervisors.use([GOLD])
    scene.xen.wait_for_hang()
    assert type(scene.refusal(GOLD)) is Transient


def test_without_libvirtd_it_may_yet_come(scene: Scene) -> None:
    scene.xen.crash()
    scene.hypervisors.use([GOLD])
    scene.until(lambda: scene.hypervisors._sessions[XEN].view.problem is not None)
    error = scene.refusal(GOLD)
    assert type(error) is Transient
    assert "No such file" in str(error)


def test_an_unknown_domain_is_gone(scene: Scene) -> None:
    bronze = LibvirtSpec("bronze", XEN)
    scene.use(bronze)
    error = scene.refusal(bronze)
    assert type(error) is Gone
    assert "xtc discover" in str(error)


def test_a_stopped_domain_is_gone(scene: Scene) -> None:
    scene.xen.add("bronze", running=False)
    bronze = LibvirtSpec("bronze", XEN)
    scene.use(bronze)
    assert type(scene.refusal(bronze)) is Gone


def test_another_domain_than_the_originals_and_another_run_are_gone(scene: Scene) -> None:
    scene.use(GOLD)
    other = LibvirtOriginal(str(uuid4()), 1, {"cap": 50})
    assert type(scene.refusal(GOLD, other)) is Gone
    earlier = LibvirtOriginal(scene.xen.guests["gold"].uuid, 7, {"cap": 50})
    assert type(scene.refusal(GOLD, earlier)) is Gone
    same = LibvirtOriginal(scene.xen.guests["gold"].uuid, 1, {"cap": 50})
    assert scene.hypervisors.open(GOLD, same).capture() is same


@pytest.mark.parametrize("capital", [False, True])
def test_one_domain_under_two_names_is_refused(scene: Scene, capital: bool) -> None:
    uuid = scene.xen.guests["gold"].uuid
    twin = LibvirtSpec(uuid.upper() if capital else uuid, XEN)
    scene.use(GOLD, twin)
    for spec in (GOLD, twin):
        error = scene.refusal(spec)
        assert type(error) is Permanent
        assert error.fix == "one router, one domain"


def test_what_cannot_be_capped_says_why(scene: Scene) -> None:
    scene.xen.scheduler = "null"
    scene.use(GOLD)
    assert type(scene.refusal(GOLD)) is Unsupported


def test_without_libvirt_python_it_is_not_supported(scene: Scene) -> None:
    def load() -> Api:
        raise Unsupported("libvirt", "libvirt-python cannot be used", "install it")

    scene.hypervisors = Hypervisors(scene.clock, load)
    scene.hypervisors.use([GOLD])
    scene.hypervisors.settle(Seconds(0.0))
    assert type(scene.refusal(GOLD)) is Unsupported
    assert scene.hypervisors.states() == (ConnectionState(XEN, up=False, given_up=0),)


# Interfaces.


def test_the_interfaces_of_a_domain_are_its_own(scene: Scene) -> None:
    scene.use(GOLD, VM)
    domid = scene.xen.guests["gold"].domid
    assert scene.hypervisors.binding(GOLD) == Binding((f"vif{domid}.0", f"vif{domid}.1"), domid)
    assert scene.hypervisors.binding(VM) == Binding(("vnet1",))


def test_they_are_followed_through_restarts(scene: Scene) -> None:
    scene.use(GOLD)
    scene.hypervisors.supervise()
    scene.restart("gold")
    domid = scene.xen.guests["gold"].domid
    assert scene.hypervisors.supervise()
    assert scene.hypervisors.binding(GOLD) == Binding((f"vif{domid}.0",), domid)
    quiet(scene.hypervisors._sessions[XEN])
    scene.hypervisors.supervise()
    assert not scene.hypervisors.supervise()


def test_a_domain_that_stopped_has_none(scene: Scene) -> None:
    scene.use(GOLD)
    assert scene.hypervisors.binding(GOLD).patterns
    scene.xen.destroy("gold")
    scene.until(lambda: scene.known("gold") == -1)
    assert scene.hypervisors.binding(GOLD) == Binding()


def test_while_libvirtd_is_away_they_are_what_they_were(scene: Scene) -> None:
    scene.use(GOLD)
    before = scene.hypervisors.binding(GOLD)
    scene.xen.crash()
    scene.until(lambda: not scene.hypervisors._sessions[XEN].view.surveyed)
    assert scene.hypervisors.binding(GOLD) == before


def test_the_uuid_of_a_domain_is_told_while_it_runs(scene: Scene) -> None:
    """By it, contracts follow a router: a copy that is defined and does not run is none."""
    by_uuid = LibvirtSpec(scene.xen.guests["silver"].uuid.upper(), XEN)
    assert scene.hypervisors.running_uuid(GOLD) == ""
    scene.use(GOLD, by_uuid)
    assert scene.hypervisors.running_uuid(GOLD) == scene.xen.guests["gold"].uuid
    assert scene.hypervisors.running_uuid(by_uuid) == scene.xen.guests["silver"].uuid
    assert scene.hypervisors.running_uuid(LibvirtSpec("none", XEN)) == ""
    assert scene.hypervisors.running_uuid(VM) == ""
    scene.xen.destroy("gold")
    scene.until(lambda: scene.known("gold") < 0)
    assert scene.hypervisors.running_uuid(GOLD) == ""


def test_while_libvirtd_is_away_the_uuid_is_what_it_was(scene: Scene) -> None:
    scene.use(GOLD)
    before = scene.hypervisors.running_uuid(GOLD)
    scene.xen.crash()
    scene.until(lambda: not scene.hypervisors._sessions[XEN].view.surveyed)
    assert scene.hypervisors.running_uuid(GOLD) == before != ""


def test_an_unknown_domain_has_none(scene: Scene) -> None:
    scene.use(GOLD)
    assert scene.hypervisors.binding(LibvirtSpec("bronze", XEN)) == Binding()


# Marks.


def test_a_marked_domain_is_known_as_such(scene: Scene) -> None:
    scene.xen.guests["gold"].metadata[URI] = mark_of({"cap": 0})
    scene.use(GOLD, SILVER)
    assert scene.hypervisors.is_marked(GOLD)
    assert not scene.hypervisors.is_marked(SILVER)
    assert not scene.hypervisors.is_marked(LibvirtSpec("gold", QEMU))
    assert not scene.hypervisors.is_marked(SimulatedSpec("gold"))


# Sessions.


def test_a_uri_that_is_used_no_more_is_let_go(scene: Scene) -> None:
    scene.use(GOLD, VM)
    old = scene.mailbox(QEMU)
    scene.use(GOLD)
    until(old, lambda: not [c for c in scene.qemu.connections if c.alive])
    assert [state.uri for state in scene.hypervisors.states()] == [XEN]


def test_what_earlier_routers_left_is_followed_too(scene: Scene) -> None:
    scene.hypervisors.use([GOLD], also=[VM, SimulatedSpec("x")])
    scene.hypervisors.settle(Seconds(LIMIT_S))
    assert scene.hypervisors.open(VM, None).capture().parameters["vcpu_quota"] == -1


def test_other_domains_are_not_asked_about(scene: Scene) -> None:
    scene.use(GOLD)
    scene.hypervisors.ask()
    quiet(scene.hypervisors._sessions[XEN])
    assert scene.xen.made("schedulerParametersFlags", "gold") == 2
    assert scene.xen.made("schedulerParametersFlags", "silver") == 0


def test_a_router_that_is_configured_later_is_found(scene: Scene) -> None:
    scene.use(GOLD)
    scene.use(GOLD, SILVER)
    assert scene.hypervisors.open(SILVER, None).applied() is None


def test_the_lead_grows_with_what_an_answer_takes(scene: Scene) -> None:
    assert scene.hypervisors.lead == LEAST_LEAD_S
    scene.use(GOLD)
    scene.xen.fail("gold", "schedulerParametersFlags", slow=Seconds(0.1))
    scene.hypervisors.ask()
    quiet(scene.hypervisors._sessions[XEN])
    assert scene.hypervisors.lead == pytest.approx(0.15 + LEAST_LEAD_S)


def test_each_period_has_its_patience(scene: Scene) -> None:
    scene.use(GOLD, VM)
    xen, qemu = (scene.hypervisors._sessions[uri].patience for uri in (XEN, QEMU))
    xen.spend(lambda _most: scene.clock.sleep(Seconds(1.0)))
    assert (xen.spent, qemu.spent) == (True, False)
    scene.hypervisors.supervise()
    assert not xen.spent


def test_states_for_metrics(scene: Scene) -> None:
    scene.use(GOLD, VM)
    scene.qemu.crash()
    scene.until(lambda: not scene.hypervisors._sessions[QEMU].view.surveyed, QEMU)
    assert set(scene.hypervisors.states()) == {
        ConnectionState(XEN, up=True, given_up=0),
        ConnectionState(QEMU, up=False, given_up=0),
    }

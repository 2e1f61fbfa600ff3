"""Small scenes of hypervisors for unit tests, without threads: an executor's, and an actuator's."""

from fake_guest import Driver
from fake_libvirt import FakeHost
from virt_rig import ByHand

from common.clock import FakeClock
from common.units import CapFraction
from xtc.errors import ActuatorError, Transient
from xtc.libvirt.actuator import LibvirtActuator
from xtc.libvirt.connection import Link
from xtc.libvirt.domain_ops import Executor, survey
from xtc.libvirt.domains import DomainView, Operation, Order, Outcome
from xtc.libvirt.metadata import URI, original_of
from xtc.spec import LibvirtOriginal, LibvirtSpec

XEN_FREE, XEN_CAP = {"cap": 0}, {"cap": 35}
FREE = {"vcpu_period": 100_000, "vcpu_quota": -1}
CAP = {"vcpu_period": 10_000, "vcpu_quota": 3000}
WRITES = ("setMetadata", "setSchedulerParametersFlags")
KINDS: list[tuple[Driver, dict[str, int], dict[str, int], int]] = [
    ("Xen", XEN_FREE, XEN_CAP, 0),
    ("QEMU", FREE, CAP, 1),
    ("LXC", FREE, CAP, 1),
]
THIRD, HALF = CapFraction(0.3), CapFraction(0.5)
SET = "setSchedulerParametersFlags"


class VisitScene:
    """One host with a guest called gold, and an executor of its operations."""

    def __init__(self, driver: Driver) -> None:
        self.clock = FakeClock(50.0)
        self.host = FakeHost(driver, self.clock)
        self.gold = self.host.add("gold", vcpus=2, nics=2)
        self.heard = True
        self.connect()

    def connect(self) -> None:
        self.link = Link(self.host.load(), None, lambda _uuid: None)
        self.executor = Executor(self.link, self.clock, lambda: self.heard)
        [self.listed] = survey(self.link)
        self.host.calls.clear()

    def perform(
        self, known: DomainView, order: Order | None = None, *, describe: bool = False
    ) -> tuple[DomainView, Outcome | None]:
        return self.executor.perform(Operation(known, order, describe=describe))

    def look(self, known: DomainView | None = None) -> DomainView:
        return self.perform(self.listed if known is None else known)[0]

    def order(
        self, parameters: dict[str, int], flags: int, mark: dict[str, int] | None, number: int = 1
    ) -> Order:
        return Order(number, self.gold.uuid, self.listed.domid, parameters, flags, mark)

    def mark(self) -> dict[str, int] | None:
        text = self.gold.metadata.get(URI)
        return None if text is None else original_of(text)

    def calls(self, *among: str) -> list[str]:
        return [call.name for call in self.host.calls if call.name in among]


class ActuatorScene(ByHand):
    """A host with one guest called gold, and its actuator; nothing happens until `work`."""

    def __init__(self, driver: Driver, scope: str = "vcpu", *, vcpus: int = 2) -> None:
        clock = FakeClock(100.0)
        host = FakeHost(driver, clock)
        self.gold = host.add("gold", vcpus=vcpus)
        self.spec = LibvirtSpec("gold", scope="machine" if scope == "machine" else "vcpu")
        super().__init__(host, clock)
        self.work()
        self.actuator = self.open()

    def open(self, original: LibvirtOriginal | None = None) -> LibvirtActuator:
        return LibvirtActuator(self.spec, self.session, self.view("gold"), original)

    def capped(self, cap: CapFraction = THIRD) -> LibvirtOriginal:
        """Have a cap carried out; return what stood there before."""
        original = self.actuator.capture()
        self.actuator.apply(cap)
        self.work()
        assert self.actuator.settle()
        return original

    def mark(self) -> dict[str, int] | None:
        text = self.gold.metadata.get(URI)
        return None if text is None else original_of(text)

    def restored(self, original: LibvirtOriginal) -> bool:
        """Restore once; whether it is confirmed."""
        try:
            self.actuator.restore(original)
        except Transient:
            return False
        return True


def failed(outcome: Outcome | None) -> ActuatorError:
    """Return why an order failed; it must have."""
    assert outcome is not None
    assert outcome.error is not None
    return outcome.error

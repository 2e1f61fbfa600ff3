"""A fake hypervisor behind the protocols of `xtc.libvirt.api`, as libvirt 9.0 was seen to behave.

Seen on Xen 4.17 (libxl), QEMU 7.2 and LXC; only `unified` (how an uncapped quota of a cgroup v2
reads) is from libvirt's source. It hangs, drops connections, lies and refuses where it is told to.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID, uuid5

from fake_guest import UNLIMITED, Driver, FakeLibvirtError, Guest, accepted, closed

from common.clock import FakeClock
from common.units import Seconds
from xtc.libvirt.api import AFFECT_LIVE, Api, EventId

LIMIT_S = 30.0
"""No wait of a test is longer, however busy the machine."""
_SEED = UUID("12345678-1234-5678-1234-567812345678")
_RUNNING, _PAUSED, _SHUTOFF = 1, 3, 5


class Call(NamedTuple):
    """One call that was made, by the thread that made it."""

    thread: int
    name: str
    guest: str


@dataclass
class Fault:
    """What happens to a call instead."""

    error: Exception | None = None
    drop: Literal["", "before", "after"] = ""
    """The connection dies in mid-call, before or after it took effect."""
    lie: Mapping[str, int] | None = None
    """A set that returns 0, and puts these values there instead."""
    slow: Seconds = Seconds(0.0)
    thawed: threading.Event | None = None
    """The call blocks until this is set."""
    times: int = 1_000_000


class FakeHost:
    """A host: its guests, its libvirtd, and what is wrong with it."""

    def __init__(self, driver: Driver = "QEMU", clock: FakeClock | None = None) -> None:
        self.driver, self.clock = driver, clock or FakeClock()
        self.guests: dict[str, Guest] = {}
        self.scheduler, self.read_only, self.unified = "credit", False, False
        self.up, self.silent = True, False
        """Whether libvirtd runs; whether it tells of no events."""
        self.calls: list[Call] = []
        self.connections: list[FakeConnection] = []
        self.faults: dict[tuple[str, str], Fault] = {}
        self.at_set: Callable[[Guest], None] = lambda _guest: None
        """Called right before each set takes effect."""
        self.hanging = 0
        self._changed = threading.Condition(threading.RLock())
        self._domids, self._vnets = 0, 0

    def load(self) -> Api:
        return Api(self.open, FakeLibvirtError)

    def open(self, _uri: str | None = None) -> "FakeConnection":
        connection = FakeConnection(self)
        with self.call(connection, "open"):
            if not self.up:
                raise FakeLibvirtError(38, "Failed to connect socket: No such file or directory")
            self.connections.append(connection)
            return connection

    # What an operator does.

    def add(self, name: str, *, vcpus: int = 1, nics: int = 1, running: bool = True) -> Guest:
        guest = Guest(name, str(uuid5(_SEED, name)), self.driver, vcpus)
        self.guests[name] = guest
        if running:
            self.start(name, nics=nics)
        return guest

    def start(self, name: str, *, nics: int = 1) -> None:
        with self._changed:
            self._domids += 1
            domid = self._domids + (4000 if self.driver == "LXC" else 0)
            self.guests[name].begin(domid, [self._target(domid, n) for n in range(nics)])
        self.tell(EventId.LIFECYCLE, name)

    def destroy(self, name: str) -> None:
        with self._changed:
            guest = self.guests[name]
            guest.end()
        self.tell(EventId.LIFECYCLE, name)
        if not guest.persistent:
            del self.guests[name]

    def restart(self, name: str) -> None:
        self.destroy(name)
        self.start(name)

    def plug(self, name: str) -> None:
        """Hot-plug an interface: Xen does not name it, and only QEMU tells of it."""
        guest = self.guests[name]
        guest.targets.append(
            None if self.driver == "Xen" else self._target(guest.domid, len(guest.targets))
        )
        if self.driver == "QEMU":
            self.tell(EventId.DEVICE_ADDED, name)

    def migrate(self, name: str, target: "FakeHost") -> Guest:
        """Move a guest: cap and live metadata travel, id and names of interfaces are new."""
        old = self.guests[name]
        new = target.add(name, vcpus=old.vcpus, running=False)
        parameters, metadata, nics = dict(old.parameters), dict(old.metadata), len(old.targets)
        self.destroy(name)
        target.start(name, nics=nics)
        new.parameters, new.metadata = parameters, metadata
        return new

    def _target(self, domid: int, number: int) -> str:
        if self.driver == "Xen":
            return f"vif{domid}.{number}"
        self._vnets += 2 if self.driver == "LXC" else 1
        return f"vnet{self._vnets}"

    def tell(self, event: EventId, name: str) -> None:
        """Deliver an event to every connection that listens, in this thread."""
        if self.silent:
            return
        for connection in [c for c in self.connections if c.alive]:
            for listened, callback, opaque in tuple(connection.listeners.values()):
                if listened == event:
                    callback(connection, FakeDomain(connection, self.guests[name]), 0, 0, opaque)

    # What goes wrong.

    def crash(self) -> None:
        """End libvirtd: guests run on, connections are dead for good."""
        self.up = False
        for connection in [c for c in self.connections if c.alive]:
            connection.die()

    def come_back(self) -> None:
        self.up = True

    def fail(self, guest: str, call: str, **fault: Any) -> Fault:
        """Lay out a fault for a call on a guest, in place of an earlier one; "*" is every one."""
        earlier = self.faults.get((guest, call))
        if earlier is not None and earlier.thawed is not None:
            earlier.thawed.set()
        self.faults[guest, call] = Fault(**fault)
        return self.faults[guest, call]

    def freeze(self, guest: str = "*", call: str = "*") -> None:
        self.fail(guest, call, thawed=threading.Event())

    def thaw(self) -> None:
        """End every fault, and let go of the calls that hang."""
        faults, self.faults = self.faults, {}
        for fault in faults.values():
            if fault.thawed is not None:
                fault.thawed.set()

    def wait_for_hang(self, calls: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.hanging >= calls, LIMIT_S)

    def living(self) -> int:
        """Return how many connections stand."""
        return sum(connection.alive for connection in self.connections)

    def made(self, name: str, guest: str = "") -> int:
        """Return how often a call was made."""
        return sum(call.name == name and guest in {"", call.guest} for call in self.calls)

    @contextmanager
    def call(self, connection: "FakeConnection", name: str, guest: str = "") -> Iterator[Fault]:
        """Be called; the body is what takes effect."""
        self.calls.append(Call(threading.get_ident(), name, guest))
        fault = self._fault(guest, name)
        self.clock.sleep(fault.slow)
        if fault.thawed is not None:
            self._hang(fault.thawed)
        if fault.drop == "before":
            connection.die()
        if not connection.alive:
            raise closed()
        if fault.error is not None:
            raise fault.error
        with self._changed:
            yield fault
        if fault.drop == "after":
            connection.die()
            raise closed()

    def _fault(self, guest: str, name: str) -> Fault:
        for key in ((guest, name), (guest, "*"), ("*", name), ("*", "*")):
            fault = self.faults.get(key)
            if fault is not None and fault.times > 0:
                fault.times -= 1
                return fault
        return Fault()

    def _hang(self, thawed: threading.Event) -> None:
        with self._changed:
            self.hanging += 1
            self._changed.notify_all()
        thawed.wait(2 * LIMIT_S)
        with self._changed:
            self.hanging -= 1


class FakeConnection:
    """`virConnect`."""

    def __init__(self, host: FakeHost) -> None:
        self.host, self.alive = host, True
        self.listeners: dict[int, tuple[int, Callable[..., None], object]] = {}
        """By the number that registering gave: event, callback and its own."""
        self.close_callbacks: list[tuple[Callable[..., None], object]] = []

    def die(self) -> None:
        """End, and tell so: the reason 1 is the end of the file."""
        self.alive = False
        for callback, opaque in self.close_callbacks:
            callback(self, 1, opaque)

    def getType(self) -> str:  # noqa: N802  here and below: libvirt's names
        with self.host.call(self, "getType"):
            return self.host.driver

    def listAllDomains(self, _flags: int = 0) -> "list[FakeDomain]":  # noqa: N802
        with self.host.call(self, "listAllDomains"):
            return [FakeDomain(self, guest) for guest in self.host.guests.values()]

    def lookupByUUIDString(self, uuid: str) -> "FakeDomain":  # noqa: N802
        with self.host.call(self, "lookupByUUIDString"):
            for guest in self.host.guests.values():
                if guest.uuid == str(UUID(uuid)):
                    return FakeDomain(self, guest)
            raise FakeLibvirtError(42, f"Domain not found: no domain with matching uuid '{uuid}'")

    def isAlive(self) -> int:  # noqa: N802
        return int(self.alive)

    def setKeepAlive(self, _interval: int, _count: int) -> int:  # noqa: N802
        with self.host.call(self, "setKeepAlive"):
            return 0

    def registerCloseCallback(self, callback: Callable[..., None], opaque: object) -> int:  # noqa: N802
        with self.host.call(self, "registerCloseCallback"):
            self.close_callbacks.append((callback, opaque))
            return 0

    def domainEventRegisterAny(  # noqa: N802
        self, _domain: object, event: int, callback: Callable[..., None], opaque: object
    ) -> int:
        with self.host.call(self, "domainEventRegisterAny"):
            self.listeners[len(self.listeners)] = (event, callback, opaque)
            return len(self.listeners) - 1

    def domainEventDeregisterAny(self, number: int) -> int:  # noqa: N802
        del self.listeners[number]  # the client forgets it first
        with self.host.call(self, "domainEventDeregisterAny"):
            return 0

    def unregisterCloseCallback(self) -> int:  # noqa: N802
        self.close_callbacks = []
        return 0

    def close(self) -> int:
        self.alive = False
        return 0


class FakeDomain:
    """`virDomain`: like the real one, it remembers the id with which it was looked up."""

    def __init__(self, connection: FakeConnection, guest: Guest) -> None:
        self._connection, self._host, self._guest = connection, connection.host, guest
        self._id = guest.domid

    @contextmanager
    def _call(self, name: str, *, running: bool = False) -> Iterator[Fault]:
        with self._host.call(self._connection, name, self._guest.name) as fault:
            if self._guest.name not in self._host.guests:
                raise FakeLibvirtError(42, "Domain not found")
            if running and self._guest.domid < 0:
                raise FakeLibvirtError(
                    55, "Requested operation is not valid: domain is not running"
                )
            yield fault

    def name(self) -> str:
        return self._guest.name

    def UUIDString(self) -> str:  # noqa: N802
        return self._guest.uuid

    def ID(self) -> int:  # noqa: N802
        return self._id

    def isActive(self) -> int:  # noqa: N802
        with self._call("isActive"):
            return int(self._guest.domid >= 0)

    def XMLDesc(self, _flags: int = 0) -> str:  # noqa: N802
        with self._call("XMLDesc"):
            return self._guest.describe()

    def info(self) -> Sequence[int]:
        with self._call("info"):
            running = _PAUSED if self._guest.paused else _RUNNING
            state = running if self._guest.domid >= 0 else _SHUTOFF
            used = self._guest.cpu_ns
            counted = _in_ticks(used) if self._host.driver == "QEMU" else used
            return [state, 262144, 262144, self._guest.vcpus, counted]

    def vcpus(self) -> tuple[list[tuple[int, int, int, int]], list[tuple[bool, ...]]]:
        with self._call("vcpus", running=True):
            if self._host.driver != "QEMU":
                raise FakeLibvirtError(3, "this function is not supported by the connection driver")
            times = self._guest.by_vcpu()
            return [(number, 1, _in_ticks(ns), 0) for number, ns in times.items()], []

    def getCPUStats(self, _total: bool, _flags: int = 0) -> list[dict[str, int]]:  # noqa: N802
        with self._call("getCPUStats", running=True):
            return [{"cpu_time": self._guest.cpu_ns}]

    def schedulerType(self) -> tuple[str, int]:  # noqa: N802
        with self._scheduler("schedulerType"):
            xen = self._host.driver == "Xen"
            return (self._host.scheduler if xen else "posix", len(self._guest.parameters))

    @contextmanager
    def _scheduler(self, name: str, flags: int = 0) -> Iterator[Fault]:
        if self._host.driver == "LXC" and self._guest.domid < 0:
            self._host.crash()  # libvirtd 9.0 does
        with self._call(name, running=self._host.driver == "Xen" or bool(flags)) as fault:
            if self._host.driver == "Xen" and flags:
                raise FakeLibvirtError(8, f"invalid argument: unsupported flags (0x{flags:x})")
            yield fault

    def schedulerParametersFlags(self, flags: int) -> dict[str, int]:  # noqa: N802
        with self._scheduler("schedulerParametersFlags", flags):
            unlimited = {k: UNLIMITED for k, v in self._guest.parameters.items() if v < 0}
            return self._guest.parameters | (unlimited if self._host.unified else {})

    def setSchedulerParametersFlags(self, parameters: Mapping[str, int], flags: int) -> int:  # noqa: N802
        with self._scheduler("setSchedulerParametersFlags", flags) as fault:
            if self._host.read_only:
                raise FakeLibvirtError(29, "operation forbidden: read only access prevents this")
            self._host.at_set(self._guest)
            wanted = accepted(self._guest, parameters)
            self._guest.parameters |= wanted if fault.lie is None else fault.lie
            return 0

    def metadata(self, _kind: int, uri: str, flags: int) -> str:
        with self._call("metadata", running=bool(flags & AFFECT_LIVE)):
            if uri not in self._guest.metadata:
                raise FakeLibvirtError(80, "metadata not found: Requested metadata element missing")
            return self._guest.metadata[uri]

    def setMetadata(  # noqa: N802
        self, _kind: int, metadata: str | None, _key: str, uri: str, flags: int
    ) -> int:
        with self._call("setMetadata", running=bool(flags & AFFECT_LIVE)):
            self._guest.metadata.pop(uri, None)
            if metadata is not None:
                self._guest.metadata[uri] = metadata
            return 0


def _in_ticks(ns: int) -> int:
    """Return a time as the kernel's clock ticks of 10 ms count it."""
    return ns - ns % 10_000_000

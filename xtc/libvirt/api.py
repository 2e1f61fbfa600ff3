"""The part of libvirt-python that xtc needs: its calls as protocols, constants, and the library."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, Final, Protocol

from xtc.errors import Unsupported

AFFECT_CURRENT: Final = 0
AFFECT_LIVE: Final = 1
METADATA_ELEMENT: Final = 2
PAUSED: Final = 3
"""`virDomainState`: the guest's vCPUs are stopped by an operator."""

_FIX: Final = "install it: apt install python3-libvirt, or pip install 'xtc[libvirt]'"


class Code(IntEnum):
    """`virErrorNumber`, as far as xtc distinguishes errors (libvirt/virterror.h)."""

    INTERNAL_ERROR = 1
    NO_SUPPORT = 3
    INVALID_ARG = 8
    OPERATION_DENIED = 29
    SYSTEM_ERROR = 38
    NO_DOMAIN = 42
    AUTH_FAILED = 45
    OPERATION_INVALID = 55
    CONFIG_UNSUPPORTED = 67
    ARGUMENT_UNSUPPORTED = 74
    AUTH_CANCELLED = 79
    NO_DOMAIN_METADATA = 80
    OPERATION_UNSUPPORTED = 84
    ACCESS_DENIED = 88


class EventId(IntEnum):
    """`virDomainEventID`: the events that xtc subscribes to."""

    LIFECYCLE = 0
    DEVICE_REMOVED = 15
    DEVICE_ADDED = 19


Parameters = Mapping[str, int]
"""Scheduler parameters by libvirt's names."""


class Domain(Protocol):
    """`virDomain`. Every call may block, and raises `Api.errors`."""

    def name(self) -> str:
        """Return its name, without asking the hypervisor."""
        ...

    def UUIDString(self) -> str:  # noqa: N802  libvirt's name
        """Return its UUID, without asking the hypervisor."""
        ...

    def ID(self) -> int:  # noqa: N802
        """Return the domid at the time of the look-up, -1 if it was not running."""
        ...

    def XMLDesc(self, flags: int = 0) -> str:  # noqa: N802
        """Return its live description."""
        ...

    def info(self) -> Sequence[int]:
        """Return state, memory, memory, vCPUs and CPU time in ns."""
        ...

    def vcpus(self) -> tuple[Sequence[Sequence[int]], Any]:
        """Return (number, state, CPU time in ns, CPU) for every vCPU, and their pinning."""
        ...

    def getCPUStats(self, total: bool, flags: int = 0) -> Sequence[Mapping[str, int]]:  # noqa: N802
        """Return the CPU time that its control group has used, in ns."""
        ...

    def schedulerType(self) -> Sequence[Any]:  # noqa: N802
        """Return the scheduler's name and its number of parameters."""
        ...

    def schedulerParametersFlags(self, flags: int) -> Parameters:  # noqa: N802
        """Return the scheduler's parameters."""
        ...

    def setSchedulerParametersFlags(self, parameters: Parameters, flags: int) -> int:  # noqa: N802
        """Set some of the scheduler's parameters."""
        ...

    def metadata(self, kind: int, uri: str, flags: int) -> str:
        """Return an element of its metadata."""
        ...

    def setMetadata(  # noqa: N802
        self, kind: int, metadata: str | None, key: str, uri: str, flags: int
    ) -> int:
        """Set an element of its metadata; None removes it."""
        ...


class Connection(Protocol):
    """`virConnect`."""

    def getType(self) -> str:  # noqa: N802
        """Return the driver's name: Xen, QEMU or LXC."""
        ...

    def listAllDomains(self, flags: int = 0) -> Sequence[Domain]:  # noqa: N802
        """Return every domain, running or not."""
        ...

    def lookupByUUIDString(self, uuid: str) -> Domain:  # noqa: N802
        """Return a domain as it is now."""
        ...

    def isAlive(self) -> int:  # noqa: N802
        """Return whether the connection is alive, as far as the client knows."""
        ...

    def setKeepAlive(self, interval: int, count: int) -> int:  # noqa: N802
        """Close the connection after this many unanswered probes, at this interval in seconds."""
        ...

    def registerCloseCallback(self, callback: Callable[..., None], opaque: object) -> int:  # noqa: N802
        """Register a callback for the end of the connection."""
        ...

    def domainEventRegisterAny(  # noqa: N802
        self, domain: Domain | None, event: int, callback: Callable[..., None], opaque: object
    ) -> int:
        """Register a callback with (connection, domain, ...) for every such event."""
        ...

    def unregisterCloseCallback(self) -> int:  # noqa: N802
        """Remove the callback for the end of the connection."""
        ...

    def domainEventDeregisterAny(self, number: int) -> int:  # noqa: N802
        """Remove the callback with this number."""
        ...

    def close(self) -> int:
        """Close the connection."""
        ...


@dataclass(frozen=True, slots=True)
class Api:
    """Access to libvirt, or to a substitute."""

    open: Callable[[str | None], Connection]
    failure: type[Exception]
    """`libvirtError`: it has `get_error_code()` and `get_error_message()`."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Everything that a call raises: libvirt-python itself refuses what it cannot convert."""
        return (self.failure, LookupError, OverflowError, TypeError)


@cache
def real_api() -> Api:
    """Load libvirt-python and start its event loop, once per process.

    The event loop is libvirt's own, in a thread: the daemon does not use asyncio (ADR 0001, 0014).
    It must run before the first connection is opened, otherwise keepalive and events do not work.

    Raises:
        Unsupported: libvirt-python is not installed.
    """
    try:
        import libvirt  # noqa: PLC0415  an extra: hosts without hypervisor do not have it
    except ImportError as error:
        raise Unsupported("libvirt", f"libvirt-python cannot be used: {error}", _FIX) from error
    libvirt.registerErrorHandler(_be_quiet, None)
    libvirt.virEventRegisterDefaultImpl()
    threading.Thread(
        target=_run_events, args=(libvirt,), name="xtc-libvirt-events", daemon=True
    ).start()
    return Api(libvirt.open, libvirt.libvirtError)


def _be_quiet(_opaque: object, _error: object) -> None:
    """Keep libvirt from writing errors to standard error that it also raises."""


def _run_events(libvirt: Any) -> None:
    while True:
        libvirt.virEventRunDefaultImpl()

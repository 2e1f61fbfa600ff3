"""Opens the actuator that a specification names, and probes which ones this host supports."""

import importlib
import platform
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar, assert_never

from msgspec.structs import replace

from xtc.actuator.base import Actuator
from xtc.actuator.cgroup import CgroupActuator
from xtc.actuator.containers import finder
from xtc.actuator.deadline import DeadlineActuator
from xtc.actuator.explain import explain_scheduling
from xtc.errors import Gone, Permanent, Unsupported
from xtc.kernel.files import lines_of
from xtc.kernel.quota import controller_mount, unified_mount
from xtc.kernel.scheduling import deadline_policy, set_policy
from xtc.spec import (
    ActuatorSpec,
    CgroupOriginal,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    LibvirtOriginal,
    LibvirtSpec,
    Original,
    SimulatedSpec,
)

_OLDEST: Final = (5, 14)  # threaded NAPI: 5.12; the cookie that identifies namespaces: 5.14

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class HostSupport:
    """Why a kind of actuator cannot work on this host; None where it can."""

    cgroup: str | None
    deadline: str | None
    libvirt: str | None


class Domains(Protocol):
    """Opens the actuators of a hypervisor's domains (`xtc.libvirt.hypervisors`)."""

    def open(self, spec: LibvirtSpec, original: LibvirtOriginal | None) -> Actuator:
        """Return the actuator of a domain."""
        ...


def open_actuator(
    spec: ActuatorSpec,
    original: Original | None = None,
    *,
    simulated: Callable[[str], Actuator] | None = None,
    domains: Domains | None = None,
    loop_s: float = 1.0,
) -> Actuator:
    """Return the actuator that a specification names.

    Args:
        spec: where the cap goes.
        original: the router's journal entry; ``capture`` then returns it, so that a cap left by an
            earlier xtc is never mistaken for the router's own. The group or namespace of that entry
            is opened, even if its name denotes another one by now.
        simulated: finds a router of the simulated plant by name.
        domains: opens the domains of hypervisors.
        loop_s: seconds between the samples of the loop that caps it.

    Raises:
        Gone: the router does not exist.
        Denied: the daemon lacks a privilege.
        Unsupported: this host, or this process, has no such actuator.
        Permanent: the original is of another kind than the specification.
    """
    match _located(spec, original):
        case CgroupSpec() as spec:
            found = _typed(original, CgroupOriginal, spec.path)
            return CgroupActuator(spec, found, loop_s=loop_s)
        case DeadlineSpec() as spec:
            return DeadlineActuator(spec, _typed(original, DeadlineOriginal, spec.netns))
        case SimulatedSpec() as spec:
            if simulated is None:
                raise Unsupported(spec.plant, "no simulated plant here", "use xtc simulate")
            return simulated(spec.plant)
        case LibvirtSpec() as spec:
            if domains is None:
                raise Unsupported(spec.domain, "no hypervisors here", "use xtc run")
            return domains.open(spec, _typed(original, LibvirtOriginal, spec.domain))
        case never:
            assert_never(never)


def release(
    spec: ActuatorSpec,
    original: Original,
    *,
    simulated: Callable[[str], Actuator] | None = None,
) -> None:
    """Restore the settings before xtc without any other part; a router that is gone is done.

    Raises:
        ActuatorError: they could not be restored.
    """
    try:
        actuator = open_actuator(spec, original, simulated=simulated)
    except Gone:
        return  # it is gone, and our settings with it
    actuator.restore(original)


def _located(spec: ActuatorSpec, original: Original | None) -> ActuatorSpec:
    """Return the specification with the path of its original, or its current path."""
    match spec, original:
        case CgroupSpec(), CgroupOriginal(path=path) if path:
            return replace(spec, path=path)
        case DeadlineSpec(), DeadlineOriginal(netns=netns) if netns and Path(netns).exists():
            return replace(spec, netns=netns)  # its first process ended, but others may be left
        case _:
            return finder.resolve(spec)


def _typed(original: Original | None, kind: type[_Kind], target: str) -> _Kind | None:
    if original is None or isinstance(original, kind):
        return original
    raise Permanent(
        target,
        f"the journal holds a {type(original).__name__} of it",
        "release it with the old configuration first",
    )


def probe() -> HostSupport:
    """Find out, once at the daemon's start, which actuators can work on this host."""
    return HostSupport(probe_cgroup(), probe_deadline(), probe_libvirt())


def probe_cgroup() -> str | None:
    """Return why no CPU quota can be set on this host, None where it can."""
    mounts = lines_of(Path("/proc/self/mounts"))
    if controller_mount(mounts, "cpu") is not None:
        return None
    unified = unified_mount(mounts)
    if unified and "cpu" in (Path(unified) / "cgroup.controllers").read_text().split():
        return None
    return "no cpu controller is mounted, neither cgroup v1 nor v2"


def probe_libvirt() -> str | None:
    """Return why hypervisors cannot be reached, None where libvirt-python is installed."""
    try:
        importlib.import_module("libvirt")
    except ImportError as error:
        return f"{error}: apt install python3-libvirt, or pip install 'xtc[libvirt]'"
    return None


def probe_deadline() -> str | None:
    """Return why SCHED_DEADLINE cannot cap on this host, None where it can.

    Tries it on a thread of this process that ends with the attempt.
    """
    release_number = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    if release_number < _OLDEST:
        return f"Linux {platform.release()} is older than {_OLDEST[0]}.{_OLDEST[1]}"
    refusals: list[OSError] = []
    thread = threading.Thread(target=_try_deadline, args=(refusals,), name="xtc-probe")
    thread.start()
    thread.join()
    return str(explain_scheduling("SCHED_DEADLINE", refusals[0])) if refusals else None


def _try_deadline(refusals: list[OSError]) -> None:
    try:
        set_policy(0, deadline_policy(runtime_ns=100_000, period_ns=100_000_000))
    except OSError as error:
        refusals.append(error)

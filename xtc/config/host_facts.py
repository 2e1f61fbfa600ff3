"""Facts of the host about the places in a configuration; read once, judged elsewhere."""

import errno
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from xtc.actuator.containers import finder
from xtc.actuator.explain import explain_namespace
from xtc.config.plan import RouterPlan
from xtc.config.schema import DaemonSection
from xtc.errors import ActuatorError, MeterError
from xtc.kernel.namespaces import in_namespace
from xtc.kernel.peer import other_ends, readable
from xtc.kernel.weights import Level, levels
from xtc.measure.meter import parse
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

_V1, _V2 = "cpu.cfs_quota_us", "cpu.max"
_ROOT = Path("/sys/fs/cgroup")
_MACHINES = _ROOT / "machine.slice"
"""Where systemd puts the domains of QEMU and LXC."""
OWN = "/proc/self/ns/net"
"""The namespace of this process, valid from any of its threads."""
AS_ROOT = "run it as root, as the daemon is"


@dataclass(frozen=True)
class Trouble:
    """Why a control group or namespace cannot be used, and the fix."""

    problem: str
    fix: str = ""


@dataclass(frozen=True)
class Inside:
    """A router's namespace: its interfaces, and the other end of each veth on this host."""

    ends: Mapping[str, str | None]
    """By interface; None where it is no veth, or its other end is elsewhere."""


@dataclass(frozen=True)
class HostFacts:
    """Facts of a host that matter for a configuration."""

    cpus: int
    present: frozenset[str] | None
    """The counted interfaces; None where they cannot be read."""
    groups: Mapping[str, Trouble | None] = field(default_factory=dict)
    """By path of a control group; None where there is no problem."""
    namespaces: Mapping[str, Inside | Trouble] = field(default_factory=dict)
    """By path."""
    levels: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    """The weights of a router's control group and of those above it among others, by router."""


def look(daemon: DaemonSection, plans: Iterable[RouterPlan]) -> HostFacts:
    """Inspect this host; the facts include what cannot be read."""
    plans = tuple(plans)
    specs = [plan.spec for plan in plans]
    simulated = frozenset(f"{spec.plant}.0" for spec in specs if isinstance(spec, SimulatedSpec))
    counted = Path(daemon.proc_net_dev)
    here = _namespace_of(counted)
    return HostFacts(
        cpus=os.cpu_count() or 1,
        present=simulated or _counted(counted),
        groups={spec.path: _group(spec) for spec in specs if isinstance(spec, CgroupSpec)},
        namespaces={
            spec.netns: _namespace(spec, here) for spec in specs if isinstance(spec, DeadlineSpec)
        },
        levels={plan.name: _levels(plan.spec) for plan in plans},
    )


def _levels(spec: ActuatorSpec) -> tuple[Level, ...]:
    """Return the levels at which a router contends; for domains, those of their common group."""
    if isinstance(spec, LibvirtSpec):
        return levels(_MACHINES) if _MACHINES.is_dir() and is_on_groups(spec) else ()
    try:
        found = finder.resolve(spec) if isinstance(spec, CgroupSpec) else None
    except ActuatorError:
        return ()
    return levels(Path(found.path)) if isinstance(found, CgroupSpec) else ()


def is_on_groups(spec: LibvirtSpec) -> bool:
    """Whether a hypervisor keeps its domains in control groups, according to its URI."""
    return spec.uri is not None and spec.uri.startswith(("qemu", "lxc"))


def _namespace_of(counted: Path) -> str | None:
    """Return the namespace with the interfaces that /proc/<pid>/net/dev counts; else None."""
    netns = counted.parent.parent / "ns/net"
    return str(netns) if netns.exists() else None


def _counted(file: Path) -> frozenset[str] | None:
    try:
        with file.open("rb") as stream:
            return frozenset(parse(stream.read()))
    except (OSError, MeterError):
        return None


def _group(spec: CgroupSpec) -> Trouble | None:
    try:
        found = finder.resolve(spec)
    except ActuatorError as error:
        return Trouble(error.problem, error.fix)
    assert isinstance(found, CgroupSpec)
    return _directory(Path(found.path))


def _directory(directory: Path) -> Trouble | None:
    if not directory.is_dir():
        return Trouble("the control group does not exist (yet)", _elsewhere(directory))
    for name in (_V1, _V2):
        if (directory / name).exists():
            writable = os.access(directory / name, os.W_OK)
            return None if writable else Trouble(f"{name} may not be written", AS_ROOT)
    fix = _elsewhere(directory) or "enable cpu in the parent's cgroup.subtree_control"
    return Trouble("the control group has no CPU controller", fix)


def _elsewhere(directory: Path) -> str:
    """Return the path of the group that was meant: on v1 below the cpu hierarchy."""
    if directory.is_relative_to(_ROOT):
        for controller in ("cpu", "cpu,cpuacct"):
            meant = _ROOT / controller / directory.relative_to(_ROOT)
            if meant.is_dir() and not directory.is_relative_to(_ROOT / controller):
                return f"did you mean {meant}?"
    return "" if _unified() else f"with cgroup v1 groups are below {_ROOT / 'cpu'}"


def _unified() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def _namespace(spec: DeadlineSpec, here: str | None) -> Inside | Trouble:
    try:
        found = finder.resolve(spec)
    except ActuatorError as error:
        return Trouble(error.problem, error.fix)
    assert isinstance(found, DeadlineSpec)
    return look_inside(found.netns, here)


def look_inside(netns: str, here: str | None = OWN) -> Inside | Trouble:
    """Return a namespace's interfaces with their other ends, or why it cannot be read."""
    try:
        ends = in_namespace(netns, partial(other_ends, here or OWN))
        names = in_namespace(here, _names) if here else {}
    except OSError as error:
        if error.errno == errno.EINVAL:
            return Trouble("is no network namespace", "name one, such as /run/netns/NAME")
        found = explain_namespace(netns, error)
        return Trouble(found.problem, found.fix)
    return Inside({name: names.get(index) for name, index in ends.items()})


def _names() -> dict[int, str]:
    return {index: readable(name) for index, name in socket.if_nameindex()}

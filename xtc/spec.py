"""Places and originals of caps: pure data, for configuration and journal."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec

CONTAINER = "container:"
"""Prefix that denotes the group or namespace of the container that has a name now."""
Path = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^(/|container:[^/\s]+(/[^/\s]+)?$)")]
InterfaceName = Annotated[str, msgspec.Meta(pattern=r"^[^\s/]{1,15}$")]


class CgroupSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="cgroup"
):
    """A CPU quota on a control group: for routers that forward in user space."""

    path: Path
    """The group's directory, such as /sys/fs/cgroup/routers/vr1; or container:NAME."""


class DeadlineSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="deadline"
):
    """SCHED_DEADLINE on threaded NAPI: for routers that forward in the host's kernel."""

    netns: Path
    """The router's network namespace, such as /run/netns/vr1; or container:NAME."""
    interfaces: Annotated[tuple[InterfaceName, ...], msgspec.Meta(min_length=1)]
    """The router's own interfaces, inside its namespace, with the receive path that forwards."""
    period_us: Annotated[int, msgspec.Meta(ge=100, le=1_000_000)] = 1000
    """The scheduling period; shorter is smoother and costs more switches."""


class SimulatedSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="simulated"
):
    """A model that behaves like a host: for trying xtc without root."""

    plant: Annotated[str, msgspec.Meta(min_length=1)]
    """The name of a router of the simulated plant in this process; its interface is NAME.0."""
    offered_pps: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """Offered load; default: that of the model."""
    stolen: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """Share of its CPU that another process in it takes ..."""
    stolen_after_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """... from this many seconds after the start on."""


class LibvirtSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="libvirt"
):
    """A domain of Xen, QEMU or LXC: for routers that are virtual machines or containers."""

    domain: Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]+$")]
    """Its name or its UUID."""
    uri: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z+]*:\S+$")] | None = None
    """The hypervisor, such as xen:///system; default: libvirt's own."""
    scope: Literal["vcpu", "machine"] = "vcpu"
    """QEMU: whether the cap applies to the vCPUs only, or also to emulator and vhost threads."""


ActuatorSpec = CgroupSpec | DeadlineSpec | LibvirtSpec | SimulatedSpec
"""Every kind of place for a cap."""


class CgroupOriginal(msgspec.Struct, frozen=True, tag_field="kind", tag="cgroup"):
    """The quota that a control group had; ``quota_us`` is None where it had none."""

    quota_us: int | None
    period_us: int
    path: str = ""
    """The directory of that group, even if its name denotes another later; empty where an older xtc
    captured it."""
    inode: int = 0
    """The group's inode, which is unique; 0 where an older xtc captured it."""
    weight: int | None = None
    """`cpu.weight` or `cpu.shares`; None where xtc did not change it."""


class ThreadPolicy(msgspec.Struct, frozen=True):
    """The scheduling policy that a thread had (sched_getattr(2))."""

    policy: int
    nice: int
    priority: int
    runtime_ns: int
    deadline_ns: int
    period_ns: int


class Joining(msgspec.Struct, frozen=True):
    """The largest packets that GRO makes on an interface, in bytes."""

    size: int
    ipv4_size: int | None
    """For IPv4; None before Linux 6.3, where one size holds for both."""


class InterfaceOriginal(msgspec.Struct, frozen=True):
    """Original settings of one interface: GRO, threaded NAPI, thread policy, peer's offloads."""

    interface: str
    gro: bool
    threaded: bool
    policy: ThreadPolicy | None
    """None where threaded NAPI was off, so that there was no thread."""
    peer_tso: tuple[str, ...] = ()
    """The TCP segmentation offloads that were on at the other end of a veth, by ethtool names."""
    joining: Joining | None = None
    """Packet sizes of GRO; None where the kernel does not report them (before Linux 5.19)."""
    peer_segments: int | None = None
    """How many segments a packet could have at the other end of a veth."""
    peer_uso: bool = True
    """Whether UDP segmentation offload was on there; defaults to on, as for a new veth, where an
    older xtc captured it."""
    gro_list: bool = False
    """Whether GRO chained packets; defaults to off, as for a new veth, where an older xtc captured
    it."""
    ifindex: int = 0
    """The interface's index, which survives renaming; 0 where an older xtc captured it."""


class DeadlineOriginal(msgspec.Struct, frozen=True, tag_field="kind", tag="deadline"):
    """Original settings of each of the router's interfaces."""

    interfaces: tuple[InterfaceOriginal, ...]
    netns: str = ""
    """Path of their namespace, even if its name denotes another later; empty where an older xtc
    captured it."""
    cookie: int = 0
    """The namespace's cookie, which is unique; 0 where an older xtc captured it."""


class SimulatedOriginal(msgspec.Struct, frozen=True, tag_field="kind", tag="simulated"):
    """The simulated cap that was in force; None means uncapped."""

    cap: float | None


class LibvirtOriginal(msgspec.Struct, frozen=True, tag_field="kind", tag="libvirt"):
    """The scheduler parameters that a domain had, by libvirt's names."""

    uuid: str
    domid: int
    """The run of the domain that had them: each run has another domid."""
    parameters: dict[str, int]


Original = CgroupOriginal | DeadlineOriginal | LibvirtOriginal | SimulatedOriginal
"""The settings that release restores."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The weights that a platform accepts."""

    parameter: str
    """Its name on the platform."""
    least: int
    most: int
    default: int


CGROUP_V2: Final = Scale("cpu.weight", 1, 10_000, 100)
"""Linux, cgroup-v2.rst."""
CGROUP_V1: Final = Scale("cpu.shares", 2, 262_144, 1024)
"""Linux, kernel/sched: MIN_SHARES, MAX_SHARES and the weight of nice 0."""
XEN: Final = Scale("weight", 1, 65_535, 256)
"""xl(1), sched-credit and sched-credit2."""

"""The XML of the lab's domains, as pure functions (libvirt.org/formatdomain.html)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args
from xml.sax.saxutils import escape, quoteattr

from lab.errors import BadRequestError
from lab.libvirt.cache import GuestCache
from lab.plan import Port, ports

GuestKind = Literal["lxc", "lxc-kernel", "qemu"]
"""A container with a forwarder, a container with forwarding in the host's kernel, or a machine."""

FIRST_INDEX: Final = 101
"""Routers under libvirt are numbered from here, separate from the lab's own."""
MEMORY_MIB: Final = {"lxc": 64, "lxc-kernel": 64, "qemu": 96}
_BOOT: Final = (
    "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off nokaslr audit=0 ipv6.disable=1 "
    "random.trust_cpu=on no_timer_check tsc=reliable"
)


def check_guest_kind(kind: str) -> GuestKind:
    """Return the kind of a router under libvirt.

    Raises:
        BadRequestError: there is no such kind.
    """
    for known in get_args(GuestKind):
        if kind == known:
            return known  # type: ignore[no-any-return]  # get_args is untyped
    raise BadRequestError("kind", kind, "one of: " + ", ".join(get_args(GuestKind)))


def driver(kind: GuestKind) -> Literal["lxc", "qemu"]:
    """Return the libvirt driver that runs a kind of router."""
    return "qemu" if kind == "qemu" else "lxc"


def bridge(port: Port) -> str:
    """Return the bridge in Dom0 of a router's port."""
    return f"br{port.router}.{port.side}"


def interface(name: str, mac: str, model: str = "") -> str:
    """Return an interface on a bridge; libvirt chooses the name of the host's end."""
    inner = f"<model type={quoteattr(model)}/>" if model else ""
    return (
        f"<interface type='bridge'><mac address={quoteattr(mac)}/>"
        f"<source bridge={quoteattr(name)}/>{inner}</interface>"
    )


@dataclass(frozen=True, slots=True)
class Domain:
    """What distinguishes one router's domain from another."""

    name: str
    kind: GuestKind
    index: int
    """The router's number, which determines its addresses (``lab.plan``)."""
    folder: Path
    """The router's own files."""


def domain(router: Domain, partition: str, cache: GuestCache) -> str:
    """Return the complete XML of a router with control groups below a partition."""
    parts = _machine(router, cache) if router.kind == "qemu" else _container(router)
    return f"""\
<domain type={quoteattr(driver(router.kind))}>
  <name>{escape(router.name)}</name>
  <memory unit='MiB'>{MEMORY_MIB[router.kind]}</memory>
  <vcpu>1</vcpu>
  <resource><partition>/{escape(partition)}</partition></resource>
  <on_poweroff>destroy</on_poweroff><on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>
{parts}</domain>
"""


def _machine(router: Domain, cache: GuestCache) -> str:
    near, far = ports(router.index)
    words = f"{_BOOT} router.N={router.index} router.FAR={far.nowhere_mac}"
    return f"""\
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>{escape(str(cache.vmlinux))}</kernel>
    <initrd>{escape(str(cache.initramfs))}</initrd>
    <cmdline>{escape(words)}</cmdline>
  </os>
  <features><acpi/><tcg><tb-cache unit='MiB'>32</tb-cache></tcg></features>
  <cpu mode='custom' match='exact'><model>qemu64</model></cpu>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    {interface(bridge(near), near.router_mac, "virtio")}
    {interface(bridge(far), far.router_mac, "virtio")}
    <serial type='file'><source path={quoteattr(str(router.folder / "console"))}/></serial>
    <memballoon model='none'/>
  </devices>
"""


def _container(router: Domain) -> str:
    near, far = ports(router.index)
    role = "kernel" if router.kind == "lxc-kernel" else "forward"
    words = [
        role,
        str(router.index),
        near.router_mac,
        near.host_mac,
        far.router_mac,
        far.nowhere_mac,
    ]
    arguments = "".join(f"<initarg>{escape(word)}</initarg>" for word in words)
    macs = [p.router_mac if role == "kernel" else p.idle_mac for p in (near, far)]
    return f"""\
  <os><type>exe</type><init>/sbin/init</init>{arguments}</os>
  <features><capabilities policy='default'><sys_admin state='on'/></capabilities></features>
  <devices>
    <emulator>/usr/lib/libvirt/libvirt_lxc</emulator>
    <filesystem type='mount' accessmode='passthrough'>
      <source dir={quoteattr(str(router.folder / "root"))}/><target dir='/'/>
    </filesystem>
    {interface(bridge(near), macs[0])}
    {interface(bridge(far), macs[1])}
    <console type='pty'/>
  </devices>
"""

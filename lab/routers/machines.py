"""Separate machines for sources and sinks, so that Dom0 carries packets like a real host.

In a plain lab, sources and sinks are programs in Dom0, and the sender of a packet does the work of
delivering it. Here the machine of sources is connected to Dom0's ``eth0``, that of sinks to
``eth1``; Dom0 has a bridge of ``eth0`` and every ``vifN.0``, and one of ``eth1`` and every
``vifN.1``, as on Xen hosts. The machines have the addresses that Dom0 has in a plain lab, with one
MAC address each.

One CPU does all of Dom0's packet processing (`lab.routers.receive`). A router in user space has no
NAPI, so the sending thread delivers its packets: Dom0's CPU pays for every packet that it sends
into a router, including those that the router then drops.
"""

from functools import partial
from typing import Any, Final

from lab.plan import (
    DOM0,
    MACHINES,
    PREFIX_LENGTH,
    Port,
    RouterKind,
    Uplink,
    namespace,
    ports,
    uplinks,
)
from lab.system import namespaces
from lab.system.links import (
    enter_neighbour,
    index_of,
    join,
    prepare_inner,
    set_up,
    turn_offloads_off,
)

_FDB_STATIC: Final = 0x40  # NUD_NOARP: an entry that never ages (bridge(8))
_FDB_MASTER: Final = 0x04  # NTF_MASTER


def build(prefix: str) -> None:
    """Create both machines and connect them to Dom0's bridges."""
    dom0 = namespace(prefix, DOM0)
    for uplink, machine in zip(uplinks(), machine_names(prefix), strict=True):
        namespaces.create(machine)
        namespaces.configure(dom0, partial(_make_uplink, uplink=uplink, machine=machine))
        namespaces.configure(machine, partial(_set_machine_up, uplink=uplink))
        turn_offloads_off(dom0, uplink.host_interface)
        turn_offloads_off(machine, uplink.machine_interface)


def machine_names(prefix: str) -> tuple[str, str]:
    """Return the namespaces of the machine of sources and of that of sinks."""
    return namespace(prefix, MACHINES[0]), namespace(prefix, MACHINES[1])


def connect(prefix: str, router: str, port: Port, kind: RouterKind) -> None:
    """Connect a router to a bridge of Dom0, and set its and the machine's addresses there."""
    dom0, uplink = namespace(prefix, DOM0), uplinks()[port.side]
    join(dom0, router, port)
    namespaces.configure(router, lambda ip: prepare_inner(ip, port, kind, uplink.machine_mac))
    namespaces.configure(dom0, lambda ip: _bridge_router(ip, port, uplink))
    machine = machine_names(prefix)[port.side]
    namespaces.configure(machine, lambda ip: _address_machine(ip, port, uplink))


def _make_uplink(ip: Any, uplink: Uplink, machine: str) -> None:
    ip.link("add", ifname=uplink.bridge, kind="bridge")
    ip.link("set", index=index_of(ip, uplink.bridge), state="up")
    peer = {"ifname": uplink.machine_interface, "net_ns_fd": machine}
    ip.link("add", ifname=uplink.host_interface, kind="veth", peer=peer)
    set_up(ip, uplink.host_interface, uplink.host_mac)
    _enslave(ip, uplink.host_interface, uplink)
    _expect(ip, uplink.host_interface, uplink.machine_mac)


def _bridge_router(ip: Any, port: Port, uplink: Uplink) -> None:
    set_up(ip, port.host_interface, port.host_mac)
    _enslave(ip, port.host_interface, uplink)
    _expect(ip, port.host_interface, port.router_mac)
    _expect(ip, uplink.host_interface, port.nowhere_mac)


def _enslave(ip: Any, interface: str, uplink: Uplink) -> None:
    """Put an interface on its bridge, with static addresses only."""
    index = index_of(ip, interface)
    ip.link("set", index=index, master=index_of(ip, uplink.bridge))
    ip.brport("set", index=index, learning=0, unicast_flood=0, mcast_flood=0, bcast_flood=0)


def _expect(ip: Any, interface: str, mac: str) -> None:
    index = index_of(ip, interface)
    ip.fdb("add", ifindex=index, lladdr=mac, state=_FDB_STATIC, flags=_FDB_MASTER)


def _set_machine_up(ip: Any, uplink: Uplink) -> None:
    ip.link("set", index=index_of(ip, "lo"), state="up")
    set_up(ip, uplink.machine_interface, uplink.machine_mac)


def _address_machine(ip: Any, port: Port, uplink: Uplink) -> None:
    """Give a machine its address of a router's link, and the route through that router."""
    index = index_of(ip, uplink.machine_interface)
    ip.addr("add", index=index, address=port.host_address, prefixlen=PREFIX_LENGTH)
    enter_neighbour(ip, index, port.router_address, port.router_mac)
    beyond = ports(port.router)[1 - port.side].network
    ip.route("add", dst=beyond, gateway=port.router_address, oif=index)

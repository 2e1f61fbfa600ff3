"""Joins a libvirt router to the lab's Dom0: a bridge for each of its ports, in place of a veth.

libvirt creates and names the host's end of each interface (``vnetN``) at every start, and puts it
on the bridge. The bridges and the sources that send through them stay.
"""

from typing import Any, Final

from pyroute2 import Ethtool

from lab.libvirt.domainxml import bridge
from lab.plan import PREFIX_LENGTH, Port
from lab.system import namespaces
from lab.system.links import OFFLOADS

_PERMANENT: Final = 0x80


def connect(dom0: str, near: Port, far: Port) -> None:
    """Create a router's bridges in Dom0, and the route to its far side.

    Offloads are off on the near bridge, so that a source's batches are split before they reach the
    host's end of the router's interface, and are counted there as packets.
    """
    namespaces.configure(dom0, lambda ip: _make(ip, near, far))
    namespaces.inside(dom0, lambda: _turn_offloads_off(bridge(near)))


def _make(ip: Any, near: Port, far: Port) -> None:
    for port in (near, far):
        _add(ip, port)
    index = _index(ip, bridge(near))
    ip.addr("add", index=index, address=near.host_address, prefixlen=PREFIX_LENGTH)
    gateway = near.router_address
    ip.neigh("replace", ifindex=index, dst=gateway, lladdr=near.router_mac, state=_PERMANENT)
    ip.route("add", dst=f"{far.nowhere_address}/32", gateway=gateway, oif=index)


def add(dom0: str, port: Port) -> None:
    """Create another bridge in Dom0, without addresses."""
    namespaces.configure(dom0, lambda ip: _add(ip, port))


def _add(ip: Any, port: Port) -> None:
    ip.link("add", ifname=bridge(port), kind="bridge")
    ip.link("set", index=_index(ip, bridge(port)), address=port.host_mac)
    ip.link("set", index=_index(ip, bridge(port)), state="up")


def _turn_offloads_off(interface: str) -> None:
    with Ethtool() as ethtool:
        for offload in OFFLOADS:
            ethtool.set_offload_flag(interface, offload, 0)


def members(dom0: str, *names: str) -> list[str]:
    """Return the interfaces on bridges, in the bridges' order; a missing bridge has none."""

    def read(ip: Any) -> list[str]:
        found = []
        for name in names:
            links = ip.get_links(master=_index(ip, name))
            found += sorted(link.get_attr("IFLA_IFNAME") for link in links)
        return found

    return namespaces.configure(dom0, read)


def _index(ip: Any, interface: str) -> int:
    index: int = ip.link_lookup(ifname=interface)[0]
    return index

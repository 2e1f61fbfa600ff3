"""Connects a router to the lab's Dom0: veth pairs, addresses, neighbours, routes and offloads.

TCP has both its ends in Dom0, and a host does not send to itself over the network: its ``local``
routing table short-circuits over loopback. Here that table comes after one rule for each of Dom0's
lab addresses, which sends packets that Dom0 itself generates from that address to the router (``iif
lo``; packets returning from the router still use ``local``). With ``accept_local``, Dom0 accepts
packets from the network with its own address as source (kernel document networking/ip-sysctl). A
namespace for the sink would need another veth pair behind ``vifN.1``, so that each packet would
cost Dom0 a second hop.
"""

from collections.abc import Sequence
from typing import Any, Final

from pyroute2 import Ethtool

from lab.plan import PREFIX_LENGTH, Port, RouterKind
from lab.system import namespaces

OFFLOADS: Final = (
    "generic-receive-offload",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "tx-checksumming",
    "scatter-gather",
)
"""Off on every interface of the lab, so that every packet crosses a veth alone, with its checksum.

Without checksumming the kernel also turns UDP segmentation off. Without receive offload a veth has
no NAPI; code that needs threaded NAPI turns it on again.
"""

_AF_INET: Final = 2
_TABLE_LOCAL: Final = 255
_LOCAL_RULE_PRIORITY: Final = 100
_LAB_RULE_PRIORITY: Final = 10
_ETH_P_IP: Final = 0x0800
_PERMANENT: Final = 0x80
_INGRESS: Final = 0xFFFFFFF2
_NEVER: Final = "0x0badcafe/0xffffffff+12"
"""Matches packets with the IPv4 source 11.173.202.254, which is unused in a lab."""
_ALWAYS: Final = "0x0/0x0+12"
_LONGEST: Final = 120
"""Maximum comparisons of one u32 filter here; the kernel accepts 255."""


def prepare_dom0(netns: str) -> None:
    """Prepare a new namespace as both source and sink of its routers' traffic."""
    sysctls = {"ipv4/conf/all/rp_filter": 0, "ipv4/conf/default/rp_filter": 0}
    sysctls |= {"ipv4/conf/all/accept_local": 1, "ipv4/conf/default/accept_local": 1}
    namespaces.write_sysctls(netns, sysctls | {"ipv4/ip_forward": 0})
    namespaces.configure(netns, _defer_local_table)


def _defer_local_table(ip: Any) -> None:
    ip.link("set", index=index_of(ip, "lo"), state="up")
    local = {"family": _AF_INET, "table": _TABLE_LOCAL}
    ip.rule("add", priority=_LOCAL_RULE_PRIORITY, **local)
    ip.rule("del", priority=0, **local)


def connect(dom0: str, router: str, port: Port, kind: RouterKind) -> None:
    """Connect Dom0 and a router with one veth pair, and configure both ends."""
    join(dom0, router, port)
    namespaces.configure(dom0, lambda ip: _address_dom0(ip, port))
    namespaces.configure(router, lambda ip: prepare_inner(ip, port, kind, port.host_mac))


def join(dom0: str, router: str, port: Port) -> None:
    """Create the veth pair between Dom0 and a router, both ends without offloads and down."""
    peer = {"ifname": port.inner_interface, "net_ns_fd": router}
    name = port.host_interface
    namespaces.configure(dom0, lambda ip: ip.link("add", ifname=name, kind="veth", peer=peer))
    turn_offloads_off(dom0, name)
    turn_offloads_off(router, port.inner_interface)


def prepare_inner(ip: Any, port: Port, kind: RouterKind, next_hop_mac: str) -> None:
    """Configure a router's end; the next hop has Dom0's address in a plain lab."""
    if kind == "kernel":
        set_up(ip, port.inner_interface, port.router_mac)
        _address_router(ip, port, next_hop_mac)
    else:
        set_up(ip, port.inner_interface, port.idle_mac)


def set_up(ip: Any, interface: str, mac: str) -> None:
    """Give an interface its MAC address and bring it up."""
    index = index_of(ip, interface)
    ip.link("set", index=index, address=mac)
    ip.link("set", index=index, state="up")


def _address_dom0(ip: Any, port: Port) -> None:
    set_up(ip, port.host_interface, port.host_mac)
    index = index_of(ip, port.host_interface)
    ip.addr("add", index=index, address=port.host_address, prefixlen=PREFIX_LENGTH)
    enter_neighbour(ip, index, port.router_address, port.router_mac)
    table = 1000 + 2 * port.router + port.side
    ip.route("add", dst="default", gateway=port.router_address, oif=index, table=table)
    ip.rule(
        "add",
        family=_AF_INET,
        priority=_LAB_RULE_PRIORITY,
        iifname="lo",
        src=port.host_address,
        src_len=32,
        table=table,
    )


def _address_router(ip: Any, port: Port, next_hop_mac: str) -> None:
    index = index_of(ip, port.inner_interface)
    ip.addr("add", index=index, address=port.router_address, prefixlen=PREFIX_LENGTH)
    enter_neighbour(ip, index, port.host_address, next_hop_mac)
    enter_neighbour(ip, index, port.nowhere_address, port.nowhere_mac)


def enter_neighbour(ip: Any, index: int, address: str, mac: str) -> None:
    """Enter a permanent neighbour, so that it is never resolved."""
    ip.neigh("replace", ifindex=index, dst=address, lladdr=mac, state=_PERMANENT)


def turn_offloads_off(netns: str, interface: str) -> None:
    """Turn off joining, splitting and checksum offload on an interface."""

    def turn_off() -> None:
        with Ethtool() as ethtool:
            for offload in OFFLOADS:
                ethtool.set_offload_flag(interface, offload, 0)

    namespaces.inside(netns, turn_off)


def set_filter_chain(netns: str, interface: str, filters: int) -> None:
    """Run every packet that the interface receives through this many filters that never match.

    They replace existing ones; 0 removes all (tc-u32(8), the clsact hook of tc(8)).

    Raises:
        NetlinkError: the kernel lacks clsact or u32.
    """
    namespaces.configure(netns, lambda ip: _replace_filters(ip, interface, [1] * filters))


def set_packet_cost(netns: str, interface: str, comparisons: int) -> None:
    """Compare every packet that the interface receives this often, without a match.

    Like `set_filter_chain`, which it replaces, but with few filters of many comparisons each: a
    chain that takes 10 us per packet is created in a tenth of a second.

    Raises:
        NetlinkError: the kernel lacks clsact or u32.
    """
    whole, rest = divmod(comparisons, _LONGEST)
    lengths = [_LONGEST] * whole + ([rest] if rest else [])
    namespaces.configure(netns, lambda ip: _replace_filters(ip, interface, lengths))


def _replace_filters(ip: Any, interface: str, lengths: Sequence[int]) -> None:
    """Create filters of these numbers of comparisons; the last one of each never matches."""
    index = index_of(ip, interface)
    has_hook = any(q.get_attr("TCA_KIND") == "clsact" for q in ip.get_qdiscs(index=index))
    if lengths and not has_hook:
        ip.tc("add", "clsact", index=index)
    place = {"index": index, "parent": _INGRESS, "protocol": _ETH_P_IP, "prio": 1, "target": 1}
    found = ip.get_filters(index=index, parent=_INGRESS) if has_hook else ()
    if any(one.get_attr("TCA_KIND") == "u32" for one in found):
        ip.tc("del-filter", "u32", keys=[_NEVER], **place)  # filters on the way out stay
    for length in lengths:
        keys = [*[_ALWAYS] * (length - 1), _NEVER]
        ip.tc("add-filter", "u32", keys=keys, **place)


def index_of(ip: Any, interface: str) -> int:
    """Return the index of an interface."""
    index: int = ip.link_lookup(ifname=interface)[0]
    return index

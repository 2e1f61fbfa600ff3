"""Wires a router to the lab's Dom0: veth pairs, addresses, neighbours, routes and offloads.

TCP has both its ends in Dom0, and a host does not send to itself over the network: its ``local``
routing table short-circuits over loopback. Here that table is consulted only after one rule for
each of Dom0's lab addresses, which sends what Dom0 itself generates from that address to the
router (``iif lo``; what comes back from the router still finds ``local``). With ``accept_local``
Dom0 takes packets from the network that bear its own address as source
(kernel document networking/ip-sysctl). A namespace for the sink would need another veth pair
behind ``vifN.1``, so that each packet would cost Dom0 a second hop.
"""

from typing import Any, Final

from pyroute2 import Ethtool

from lab import namespaces
from lab.plan import PREFIX_LENGTH, Port, RouterKind

OFFLOADS: Final = (
    "generic-receive-offload",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "tx-checksumming",
    "scatter-gather",
)
"""Off on every interface of the lab, so that what crosses a veth is one packet, checksum and all.

Without checksumming the kernel also turns UDP segmentation off. Without receive offload a veth has
no NAPI; who wants threaded NAPI turns it on again.
"""

_AF_INET: Final = 2
_TABLE_LOCAL: Final = 255
_LOCAL_RULE_PRIORITY: Final = 100
_LAB_RULE_PRIORITY: Final = 10
_ETH_P_IP: Final = 0x0800
_PERMANENT: Final = 0x80
_INGRESS: Final = 0xFFFFFFF2
_NEVER: Final = "0x0badcafe/0xffffffff+12"
"""Matches packets whose IPv4 source is 11.173.202.254: never seen in a lab."""


def prepare_dom0(netns: str) -> None:
    """Make a fresh namespace fit to be both source and sink of what its routers forward."""
    sysctls = {"ipv4/conf/all/rp_filter": 0, "ipv4/conf/default/rp_filter": 0}
    sysctls |= {"ipv4/conf/all/accept_local": 1, "ipv4/conf/default/accept_local": 1}
    namespaces.write_sysctls(netns, sysctls | {"ipv4/ip_forward": 0})
    namespaces.configure(netns, _defer_local_table)


def _defer_local_table(ip: Any) -> None:
    ip.link("set", index=_index(ip, "lo"), state="up")
    local = {"family": _AF_INET, "table": _TABLE_LOCAL}
    ip.rule("add", priority=_LOCAL_RULE_PRIORITY, **local)
    ip.rule("del", priority=0, **local)


def connect(dom0: str, router: str, port: Port, kind: RouterKind) -> None:
    """Join Dom0 and a router by one veth pair and give both ends what they need."""
    namespaces.configure(dom0, lambda ip: _make_pair(ip, router, port))
    namespaces.configure(router, lambda ip: _prepare_inner(ip, port, kind))
    _turn_offloads_off(dom0, port.host_interface)
    _turn_offloads_off(router, port.inner_interface)


def _make_pair(ip: Any, router: str, port: Port) -> None:
    peer = {"ifname": port.inner_interface, "net_ns_fd": router}
    ip.link("add", ifname=port.host_interface, kind="veth", peer=peer)
    _set_up(ip, port.host_interface, port.host_mac)
    _address_dom0(ip, port)


def _prepare_inner(ip: Any, port: Port, kind: RouterKind) -> None:
    if kind == "kernel":
        _set_up(ip, port.inner_interface, port.router_mac)
        _address_router(ip, port)
    else:
        _set_up(ip, port.inner_interface, port.idle_mac)


def _set_up(ip: Any, interface: str, mac: str) -> None:
    index = _index(ip, interface)
    ip.link("set", index=index, address=mac)
    ip.link("set", index=index, state="up")


def _address_dom0(ip: Any, port: Port) -> None:
    index = _index(ip, port.host_interface)
    ip.addr("add", index=index, address=port.host_address, prefixlen=PREFIX_LENGTH)
    _neighbour(ip, index, port.router_address, port.router_mac)
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


def _address_router(ip: Any, port: Port) -> None:
    index = _index(ip, port.inner_interface)
    ip.addr("add", index=index, address=port.router_address, prefixlen=PREFIX_LENGTH)
    _neighbour(ip, index, port.host_address, port.host_mac)
    _neighbour(ip, index, port.nowhere_address, port.nowhere_mac)


def _neighbour(ip: Any, index: int, address: str, mac: str) -> None:
    ip.neigh("replace", ifindex=index, dst=address, lladdr=mac, state=_PERMANENT)


def _turn_offloads_off(netns: str, interface: str) -> None:
    def turn_off() -> None:
        with Ethtool() as ethtool:
            for offload in OFFLOADS:
                ethtool.set_offload_flag(interface, offload, 0)

    namespaces.inside(netns, turn_off)


def set_filter_chain(netns: str, interface: str, filters: int) -> None:
    """Have every packet that the interface receives pass this many filters that never match.

    They replace those that stood there; 0 takes all away (tc-u32(8), the clsact hook of tc(8)).

    Raises:
        NetlinkError: the kernel lacks clsact or u32.
    """
    namespaces.configure(netns, lambda ip: _replace_filters(ip, interface, filters))


def _replace_filters(ip: Any, interface: str, filters: int) -> None:
    index = _index(ip, interface)
    if any(qdisc.get_attr("TCA_KIND") == "clsact" for qdisc in ip.get_qdiscs(index=index)):
        ip.tc("del", "clsact", index=index)
    if filters:
        ip.tc("add", "clsact", index=index)
    never = {"target": 1, "keys": [_NEVER], "protocol": _ETH_P_IP, "prio": 1}
    for _ in range(filters):
        ip.tc("add-filter", "u32", index=index, parent=_INGRESS, **never)


def _index(ip: Any, interface: str) -> int:
    index: int = ip.link_lookup(ifname=interface)[0]
    return index

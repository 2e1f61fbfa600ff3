"""Wires a fabric: switches with bridges, hosts behind them, shallow ports, and management.

Bridges learn nothing and flood nothing: addresses of ports and neighbours are static, so that every
packet on the wire was sent by a program.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from lab.errors import MissingRequirementError
from lab.fabric.plan import (
    BRIDGE,
    CONTROL_INTERFACE,
    CONTROL_PREFIX_LENGTH,
    CONTROLLER,
    CONTROLLER_ADDRESS,
    CONTROLLER_MAC,
    DATA_INTERFACE,
    DATA_PREFIX_LENGTH,
    FabricHost,
    FabricPlan,
)
from lab.plan import namespace
from lab.system import namespaces
from lab.system.links import enter_neighbour, index_of, set_up, turn_offloads_off

SMALLEST_BURST: Final = 3_100
"""Bytes: two full frames, and a little."""
TIMER_LATENESS_S: Final = 100e-6
"""A TBF whose burst covers this much loses no capacity to a timer that is late by this much."""
LINE_QUEUE_BYTES: Final = 3_000_000
"""Queue of a host's own interface: much more than its sockets use."""
_SHAPER: Final = 0x10000  # 1:
_FDB_STATIC: Final = 0x40  # NUD_NOARP: an entry that never ages (bridge(8))
_FDB_MASTER: Final = 0x04  # NTF_MASTER
HOST_SYSCTLS: Final = {
    # a connection must not learn from earlier ones
    "ipv4/tcp_no_metrics_save": 1,
    # thousands of short connections a second would use up all ports (networking/ip-sysctl)
    "ipv4/tcp_tw_reuse": 1,
    # after a lost fragment, the others wait: by default 30 s, until 4 MB are full
    "ipv4/ipfrag_high_thresh": 64 << 20,
    "ipv4/ipfrag_low_thresh": 48 << 20,
    "ipv4/ipfrag_time": 1,
}


def check() -> None:
    """Check that the kernel has what a fabric needs in addition to a lab.

    Raises:
        MissingRequirementError: something is missing; the error names it.
    """
    lacking = [sentence for probe, sentence in _PROBES if not _succeeds(probe)]
    if lacking:
        raise MissingRequirementError(lacking)


def build(prefix: str, plan: FabricPlan) -> None:
    """Create the switches, hosts and links of a plan, and join the hosts to the controller.

    Raises:
        NetlinkError: the kernel refuses.
    """
    _build_switches(prefix, plan)
    for host in plan.hosts:
        _build_host(prefix, plan, host)
    _enter_addresses(prefix, plan)
    for switch, port, link in plan.shallow_ports():
        assert link.buffer_bytes is not None  # a shallow port has a buffer
        shape(namespace(prefix, switch), port, link.capacity_bps, link.buffer_bytes)


def build_controller(prefix: str) -> None:
    """Create the controller's namespace, with the bridge for the hosts."""
    name = namespace(prefix, CONTROLLER)
    namespaces.create(name)
    namespaces.configure(name, _make_bridge)
    namespaces.configure(name, _address_controller)


def burst_bytes(rate_bps: int) -> int:
    """Return the burst of a shaper at this rate after a pause."""
    return max(SMALLEST_BURST, math.ceil(rate_bps * TIMER_LATENESS_S / 8))


def shape(netns: str, interface: str, rate_bps: int, queue_bytes: int) -> None:
    """Limit an interface to a rate, with a queue of this size (tc-tbf(8))."""
    namespaces.configure(netns, lambda ip: _replace_shaper(ip, interface, rate_bps, queue_bytes))


def admit(ip: Any, host: FabricHost, port: str) -> None:
    """Join a host's port to the controller's bridge, and enter the host as a neighbour."""
    _enslave(ip, port)
    _expect(ip, port, host.control_mac)
    enter_neighbour(ip, index_of(ip, BRIDGE), host.control_address, host.control_mac)


def unshape(netns: str, interface: str) -> None:
    """Remove the queueing discipline of an interface, if it has one."""
    namespaces.configure(netns, lambda ip: _remove_root(ip, interface))


def _succeeds(probe: Callable[[Any], None]) -> bool:
    def attempt() -> None:
        with IPRoute() as ip:
            probe(ip)

    try:
        namespaces.inside_new(attempt)
    except NetlinkError:  # the cause does not matter: the sentence has the fix
        return False
    return True


def _build_switches(prefix: str, plan: FabricPlan) -> None:
    for switch in plan.switches:
        namespaces.create(namespace(prefix, switch))
        namespaces.configure(namespace(prefix, switch), _make_bridge)
    for link in plan.links:
        if {link.a, link.b} <= set(plan.switches):
            left, right = (namespace(prefix, switch) for switch in (link.a, link.b))
            _join(left, link.b, right, link.a)
            namespaces.configure(left, partial(_enslave, port=link.b))
            namespaces.configure(right, partial(_enslave, port=link.a))


def _build_host(prefix: str, plan: FabricPlan, host: FabricHost) -> None:
    inside, switch = namespace(prefix, host.name), namespace(prefix, host.switch)
    controller = namespace(prefix, CONTROLLER)
    namespaces.create(inside)
    namespaces.write_sysctls(inside, HOST_SYSCTLS)
    _join(switch, host.name, inside, DATA_INTERFACE)
    _join(controller, host.name, inside, CONTROL_INTERFACE)
    namespaces.configure(inside, lambda ip: _address_host(ip, plan, host))
    namespaces.configure(switch, partial(_enslave, port=host.name))
    namespaces.configure(controller, lambda ip: admit(ip, host, host.name))


def _join(left: str, left_name: str, right: str, right_name: str) -> None:
    """Create a veth pair between two namespaces, both ends without offloads and down."""
    peer = {"ifname": right_name, "net_ns_fd": right}
    namespaces.configure(left, lambda ip: ip.link("add", ifname=left_name, kind="veth", peer=peer))
    turn_offloads_off(left, left_name)
    turn_offloads_off(right, right_name)


def _make_bridge(ip: Any) -> None:
    # snooping would send its own IGMP queries
    ip.link("add", ifname=BRIDGE, kind="bridge", br_mcast_snooping=0)
    ip.link("set", index=index_of(ip, "lo"), state="up")
    ip.link("set", index=index_of(ip, BRIDGE), state="up")


def _address_controller(ip: Any) -> None:
    index = index_of(ip, BRIDGE)
    ip.link("set", index=index, address=CONTROLLER_MAC)
    ip.addr("add", index=index, address=CONTROLLER_ADDRESS, prefixlen=CONTROL_PREFIX_LENGTH)


def _enslave(ip: Any, port: str) -> None:
    """Put a port on the bridge, with static addresses only."""
    index = index_of(ip, port)
    ip.link("set", index=index, state="up", master=index_of(ip, BRIDGE))
    ip.brport("set", index=index, learning=0, unicast_flood=0, mcast_flood=0, bcast_flood=0)


def _expect(ip: Any, port: str, mac: str) -> None:
    ip.fdb("add", ifindex=index_of(ip, port), lladdr=mac, state=_FDB_STATIC, flags=_FDB_MASTER)


def _address_host(ip: Any, plan: FabricPlan, host: FabricHost) -> None:
    ip.link("set", index=index_of(ip, "lo"), state="up")
    set_up(ip, CONTROL_INTERFACE, host.control_mac)
    control = index_of(ip, CONTROL_INTERFACE)
    ip.addr("add", index=control, address=host.control_address, prefixlen=CONTROL_PREFIX_LENGTH)
    enter_neighbour(ip, control, CONTROLLER_ADDRESS, CONTROLLER_MAC)
    set_up(ip, DATA_INTERFACE, host.mac)
    data = index_of(ip, DATA_INTERFACE)
    for address in host.addresses:
        ip.addr("add", index=data, address=address, prefixlen=DATA_PREFIX_LENGTH)
    for other in plan.hosts:
        for address in other.addresses if other is not host else ():
            enter_neighbour(ip, data, address, other.mac)


def _enter_addresses(prefix: str, plan: FabricPlan) -> None:
    def enter(ip: Any, switch: str) -> None:
        for host in plan.hosts:
            _expect(ip, plan.port_towards(switch, host), host.mac)

    for switch in plan.switches:
        namespaces.configure(namespace(prefix, switch), partial(enter, switch=switch))


def _replace_shaper(ip: Any, interface: str, rate_bps: int, queue_bytes: int) -> None:
    ip.tc(
        "replace",
        "tbf",
        index=index_of(ip, interface),
        handle=_SHAPER,
        rate=f"{rate_bps}bit",
        burst=burst_bytes(rate_bps),
        limit=queue_bytes,
    )


def _probe_shaper(ip: Any) -> None:
    _replace_shaper(ip, "lo", 1_000_000, LINE_QUEUE_BYTES)


def _remove_root(ip: Any, interface: str) -> None:
    index = index_of(ip, interface)
    kinds = [qdisc.get_attr("TCA_KIND") for qdisc in ip.get_qdiscs(index=index)]
    if any(kind != "noqueue" for kind in kinds):
        ip.tc("del", index=index, root=True)


_PROBES: Final[tuple[tuple[Callable[[Any], None], str], ...]] = (
    (_make_bridge, "There are no bridges: load the module with 'modprobe bridge'."),
    (_probe_shaper, "There is no TBF: load the module with 'modprobe sch_tbf'."),
)

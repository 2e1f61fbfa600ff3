"""Prepares the links of an incast for a switch that stops its senders instead of dropping.

Hosts are set up as containers on a switch of zovn are (docs/howto/zovn-veth.md), and their ports
are taken from the bridge and its shaper.
"""

from typing import Any, Final

from pyroute2 import Ethtool

from lab.fabric.links import unshape
from lab.fabric.plan import DATA_INTERFACE, FabricPlan
from lab.plan import namespace
from lab.system import namespaces
from lab.system.links import index_of

QUEUE_PACKETS: Final = 100_000
"""Above what all sockets of a host can send: the bound is their buffers."""


def prepare(prefix: str, plan: FabricPlan) -> None:
    """Prepare a built fabric with one switch; a program that takes its ports must then forward."""
    (switch,) = plan.switches
    for _, port, _ in plan.shallow_ports():
        unshape(namespace(prefix, switch), port)
    namespaces.configure(namespace(prefix, switch), lambda ip: _leave_bridge(ip, plan))
    for host in plan.hosts:
        inside = namespace(prefix, host.name)
        namespaces.inside(inside, _receive_through_a_ring)
        namespaces.configure(inside, _queue)


def _leave_bridge(ip: Any, plan: FabricPlan) -> None:
    for host in plan.hosts:
        ip.link("set", index=index_of(ip, host.name), master=0)


def _receive_through_a_ring() -> None:
    with Ethtool() as ethtool:
        ethtool.set_offload_flag(DATA_INTERFACE, "generic-receive-offload", 1)


def _queue(ip: Any) -> None:
    ip.tc("add", "pfifo", index=index_of(ip, DATA_INTERFACE), limit=QUEUE_PACKETS)

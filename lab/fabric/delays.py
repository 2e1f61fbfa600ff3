"""Delay wires between hosts and the controller's bridge, on kernels with or without netem.

Host N's port ``hN`` leaves the bridge, and the end ``dN`` of a veth pair takes its place; a program
passes frames between ``hN`` and the other end, ``wN``, in both directions, late.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from pyroute2.netlink.exceptions import NetlinkError

from lab.errors import BadRequestError
from lab.fabric import links
from lab.fabric.plan import CONTROLLER, FabricHost
from lab.plan import namespace
from lab.programs.processes import Place
from lab.system import namespaces
from lab.system.links import index_of, turn_offloads_off
from lab.traffic import roles
from lab.traffic.counts import Delayed
from lab.traffic.program import Traffic

LONGEST_S: Final = 1.0
_GONE: Final = 19  # ENODEV


def insert(prefix: str, hosts: Sequence[FabricHost], delay_s: float) -> Traffic[Delayed]:
    """Delay what hosts and the controller send to each other, by so many seconds one way.

    Raises:
        BadRequestError: the delay is not from 0 to 1 s.
        NetlinkError: the kernel refuses.
        ProgramError: the program ends.
    """
    if not 0 <= delay_s <= LONGEST_S:
        raise BadRequestError("delay_s", delay_s, f"from 0 to {LONGEST_S:g} s")
    name = namespace(prefix, CONTROLLER)
    for host in hosts:
        namespaces.configure(name, partial(_part, host=host))
        for end in _ends(host):
            turn_offloads_off(name, end)
        namespaces.configure(name, partial(_join, host=host))
    pairs = [(host.name, _ends(host)[0]) for host in hosts]
    return roles.delay(Place(namespaces.path(name)), pairs, delay_s=delay_s)


def remove(prefix: str, hosts: Sequence[FabricHost]) -> None:
    """Connect hosts directly again, those with a delay wire and those without."""
    for host in hosts:
        namespaces.configure(namespace(prefix, CONTROLLER), partial(_restore, host=host))


def _ends(host: FabricHost) -> tuple[str, str]:
    """Return the ends of the pair: the program's, and the bridge's."""
    return f"w{host.index}", f"d{host.index}"


def _part(ip: Any, host: FabricHost) -> None:
    ip.link("set", index=index_of(ip, host.name), master=0)
    wire, bridge = _ends(host)
    ip.link("add", ifname=wire, kind="veth", peer={"ifname": bridge})


def _join(ip: Any, host: FabricHost) -> None:
    wire, bridge = _ends(host)
    ip.link("set", index=index_of(ip, wire), state="up")
    links.admit(ip, host, bridge)


def _restore(ip: Any, host: FabricHost) -> None:
    try:
        ip.link("del", ifname=_ends(host)[1])
    except NetlinkError as error:
        if error.code != _GONE:
            raise
    else:
        links.admit(ip, host, host.name)

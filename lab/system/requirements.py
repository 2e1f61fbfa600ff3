"""Checks what this machine lacks for a lab, by trying each feature."""

import os
import socket
import sys
from collections.abc import Callable
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from lab.errors import MissingRequirementError
from lab.system import cgroups, namespaces


def missing() -> list[str]:
    """Return what is missing, each as a sentence with a fix; empty if ready."""
    if sys.platform != "linux":
        return ["This is not Linux: run the lab in a Linux machine or virtual machine."]
    if os.geteuid() != 0:
        return ["Root privileges are missing: run this with sudo."]
    return [sentence for probe, sentence in _PROBES if not probe()]


def check() -> None:
    """Check that this machine can hold a lab.

    Raises:
        MissingRequirementError: something is missing; the error names it.
    """
    if lacking := missing():
        raise MissingRequirementError(lacking)


def _has_namespaces() -> bool:
    return _succeeds(lambda: namespaces.inside_new(lambda: None))


def _has_veth() -> bool:
    return _succeeds(lambda: namespaces.inside_new(_make_veth))


def _make_veth() -> None:
    with IPRoute() as ip:
        ip.link("add", ifname="probe0", kind="veth", peer={"ifname": "probe1"})


def _has_packet_sockets() -> bool:
    return _succeeds(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close())


def _has_cpu_controller() -> bool:
    return cgroups.find_root() is not None


def _succeeds(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except (OSError, NetlinkError):  # the cause does not matter: the sentence has the fix
        return False
    return True


_PROBES: Final[tuple[tuple[Callable[[], bool], str], ...]] = (
    (_has_namespaces, "Network namespaces are refused: allow CAP_SYS_ADMIN (CONFIG_NET_NS)."),
    (_has_veth, "There are no veth interfaces: load the module with 'modprobe veth'."),
    (
        _has_packet_sockets,
        "There are no packet sockets: load the module with 'modprobe af_packet'.",
    ),
    (
        _has_cpu_controller,
        "There is no cgroup 'cpu' controller: mount cgroup2 (or cgroup with -o cpu) with it.",
    ),
)

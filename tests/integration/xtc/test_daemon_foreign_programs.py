"""BPF programs of other owners on a router's interfaces: left alone, reported, and yielded to."""

import shutil
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest
from conftest import Daemon, Host
from pyroute2 import IPRoute

from lab.routers.router import Router
from xtc.kernel import bpf, clsact
from xtc.kernel.clsact import Direction
from xtc.kernel.namespaces import in_namespace
from xtc.shield.filters import OBJECT

CLANG: Final = shutil.which("clang")
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(CLANG is None or not OBJECT.exists(), reason="needs clang and shield.bpf.o"),
]
TCX_EGRESS: Final = 47
SOURCE: Final = """
__attribute__((section("tc"), used)) int others_tcx(void *packet) { return -1; }
__attribute__((section("xdp"), used)) int others_xdp(void *packet) { return 2; }
char licence[] __attribute__((section("license"), used)) = "GPL";
"""
Result = TypeVar("Result")


def loaded(folder: Path, name: str) -> bpf.Program:
    """Return a program that passes everything on."""
    assert CLANG is not None
    (folder / "others.c").write_text(SOURCE)
    command = [CLANG, "-O2", "-target", "bpf", "-c", "others.c", "-o", "others.o"]
    subprocess.run(command, cwd=folder, check=True)
    return bpf.load(folder / "others.o", name)


def in_dom0(host: Host, work: Callable[[], Result]) -> Result:
    return in_namespace(host.lab.dom0_netns, work)


def flooded(host: Host) -> tuple[Router, str]:
    router = host.router("user", "user-space", 40e3)
    host.configure(period_s=0.25)
    return router, router.host_interfaces[1]


def held(host: Host) -> Daemon:
    daemon = host.start()
    daemon.hold(user=5e3)
    daemon.wait_until_held("user")
    return daemon


def attach_tcx(interface: str, program: bpf.Program) -> None:
    index = socket.if_nametoindex(interface)
    bpf.call("bpf_prog_attach", program.fd, index, TCX_EGRESS, 0)


def tcx_on(interface: str) -> int:
    return clsact.tcx_programs(socket.if_nametoindex(interface), Direction.EGRESS)


def set_xdp(interface: str, program: bpf.Program) -> None:
    bpf.call("bpf_xdp_attach", socket.if_nametoindex(interface), program.fd, 0, None)


def xdp_on(interface: str) -> int:
    with IPRoute() as route:
        (link,) = route.get_links(ifname=interface)
        return int(link.get_attr("IFLA_XDP").get_attr("IFLA_XDP_PROG_ID") or 0)


@pytest.mark.parametrize("first", [True, False], ids=["before xtc", "later"])
def test_a_tcx_program_is_reported_and_left_and_the_router_is_held(
    host: Host, *, first: bool
) -> None:
    _, interface = flooded(host)
    program = loaded(host.folder, "others_tcx")
    attach = partial(in_dom0, host, partial(attach_tcx, interface, program))
    if first:
        attach()
    daemon = held(host)
    if not first:
        attach()
    report = daemon.wait_for("user", lambda report: "a tcx program" in report.shield_problem)
    assert interface in report.shield_problem
    daemon.wait_until_held("user")
    daemon.stop()
    assert in_dom0(host, partial(tcx_on, interface)) == 1


def test_xdp_programs_are_left_alone_and_the_router_is_held(host: Host) -> None:
    _, interface = flooded(host)
    first, second = (loaded(host.folder, "others_xdp") for _ in range(2))
    in_dom0(host, partial(set_xdp, interface, first))
    daemon = held(host)
    assert in_dom0(host, partial(xdp_on, interface)) == first.id
    in_dom0(host, partial(set_xdp, interface, second))
    daemon.wait_until_held("user")
    assert daemon.report("user").shield_problem == ""
    daemon.stop()
    assert in_dom0(host, partial(xdp_on, interface)) == second.id

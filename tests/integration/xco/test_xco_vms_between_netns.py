"""Hosts on real packets share a link by what their VMs are promised, and by their weights."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from support.waiting import eventually
from xco_vms_rig import WEIGHTS

from benchmarks.xco.rig import LAB, Settings, Way, XcoRig, rig
from lab.fabric.fabric import Fabric
from lab.fabric.plan import DATA_INTERFACE, FabricHost
from lab.plan import namespace
from lab.programs.processes import Place
from lab.system import namespaces
from lab.traffic import roles
from xco.coordinator.status import status

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
LINK_BPS = 100_000_000
GUARANTEED_BPS = 40_000_000
TRICKLE_BPS = 2_000_000
GATEWAY = "169.254.0.1"
GUARANTEE = """
[vm.gold]
interface = "gold0"
guarantee = "40Mbps"
[vm.tin]
interface = "tin0"
weight = 4
"""
IDLE = """
[vm.gold]
interface = "gold0"
weight = 100
[vm.tin]
interface = "tin0"
"""
HEAVY = """
[vm.gold]
interface = "gold0"
weight = 100
[vm.tin]
interface = "tin0"
"""
WAYS: list[tuple[Way, dict[str, Any]]] = [
    ("rate", {"max_min": True}),
    ("gcc", {}),
    ("hygenicc", {}),
]


@contextmanager
def shared(way: Way, controller: dict[str, Any], tables: str) -> Iterator[XcoRig]:
    """Two hosts, a VM on each, and a receiver."""
    coordinator = {**LAB.coordinator, "pace": 0.98, "marks": "hide"}
    settings = Settings({**LAB.controller, **controller}, coordinator)
    with Fabric(f"vm{os.getpid()}") as fabric, ExitStack() as stack:
        fabric.incast(2, LINK_BPS, vms=2)
        for host, name in zip(fabric.senders, ("gold", "tin"), strict=True):
            stack.enter_context(machine(fabric, host, name))
        stack.enter_context(roles.sink_messages(fabric.place(fabric.receivers[0])))
        yield stack.enter_context(rig(fabric, settings, tables=tables)).go(way)


@pytest.mark.parametrize(("way", "controller"), WAYS, ids=[way for way, _ in WAYS])
def test_a_trickle_lends_its_weight_to_no_other(way: Way, controller: dict[str, Any]) -> None:
    """Gold's host floods beside it: with gold's whole weight the other host had a hundredth."""
    with shared(way, controller, IDLE) as xco, flooding(xco, "tin"), trickling(xco):

        def shared_alike() -> bool:
            gold, tin = opened(xco)
            return gold + tin > 0.85 * LINK_BPS and tin > 0.2 * LINK_BPS

        eventually(shared_alike)
        assert sum(shared_alike() for _ in paced(20)) > 10


def paced(count: int) -> Iterator[int]:
    """Count, for a twentieth of a second each: statistics are published ten times a second."""
    for number in range(count):
        time.sleep(0.05)
        yield number


@contextmanager
def trickling(xco: XcoRig) -> Iterator[None]:
    """Let gold send twenty datagrams a second to the receiver, and its host as many as it may."""
    to, size = xco.fabric.receivers[0].address, roles.DATAGRAM_BYTES
    gold = Place(namespaces.path(named(xco.fabric, "gold")))
    beside = xco.fabric.place(xco.fabric.senders[0])
    with (
        roles.send_messages(gold, to, size=size, rate_bps=160 * size),
        roles.send_messages(beside, to, size=size),
    ):
        yield


@contextmanager
def machine(fabric: Fabric, host: FabricHost, name: str) -> Iterator[None]:
    """A VM that its host routes for; it has the second address of its host."""
    outside, inside, address = (
        namespace(fabric.prefix, host.name),
        named(fabric, name),
        host.addresses[1],
    )
    namespaces.create(inside)
    ip(
        outside,
        f"address del {address}/16 dev {DATA_INTERFACE}",
        f"link add {name}0 type veth peer name v0 netns {inside}",
        f"link set {name}0 up",
        f"address add {GATEWAY}/32 dev {name}0",
        f"route add {address}/32 dev {name}0",
    )
    ip(
        inside,
        "link set v0 up",
        f"address add {address}/32 dev v0",
        f"route add {GATEWAY}/32 dev v0",
        f"route add default via {GATEWAY}",
    )
    namespaces.write_sysctls(outside, {"ipv4/ip_forward": 1})
    try:
        yield
    finally:
        namespaces.remove(inside)


def named(fabric: Fabric, name: str) -> str:
    return namespace(fabric.prefix, f"vm-{name}")


def ip(inside: str, *lines: str) -> None:
    command = ["ip", "-n", inside, "-batch", "-"]
    subprocess.run(command, input="\n".join(lines), text=True, check=True, capture_output=True)


@contextmanager
def flooding(xco: XcoRig, *names: str, rate_bps: int | None = None) -> Iterator[None]:
    """Let VMs send datagrams to the receiver, as many as they may or at a rate."""
    to, size = xco.fabric.receivers[0].address, roles.DATAGRAM_BYTES
    with ExitStack() as stack:
        for name in names:
            place = Place(namespaces.path(named(xco.fabric, name)))
            stack.enter_context(roles.send_messages(place, to, size=size, rate_bps=rate_bps))
        yield


def opened(xco: XcoRig) -> tuple[int, int]:
    """Return what the hosts may send to the receiver now, in bits/s."""
    gates = [
        sum(flow.open_bps for flow in status(xco.coordinator_config(host)).flows)
        for host in xco.fabric.senders
    ]
    return gates[0], gates[1]


@pytest.mark.parametrize(("way", "controller"), WAYS, ids=[way for way, _ in WAYS])
def test_hosts_share_a_link_by_the_weights_of_their_vms(
    way: Way, controller: dict[str, Any]
) -> None:
    with shared(way, controller, WEIGHTS) as xco, flooding(xco, "gold", "tin"):

        def weighted() -> bool:
            gold, tin = opened(xco)
            return gold + tin > 0.85 * LINK_BPS and 2.7 * tin < gold < 3.3 * tin

        eventually(weighted)


@pytest.mark.parametrize(("way", "controller"), WAYS, ids=[way for way, _ in WAYS])
def test_a_guarantee_comes_before_the_weights(way: Way, controller: dict[str, Any]) -> None:
    """By weight alone the guaranteed VM would have a fifth."""
    with shared(way, controller, GUARANTEE) as xco, flooding(xco, "gold", "tin"):

        def guaranteed() -> bool:
            gold, tin = opened(xco)
            return GUARANTEED_BPS <= gold < 0.6 * LINK_BPS and tin > 0.35 * LINK_BPS

        eventually(guaranteed)


@pytest.mark.parametrize(("way", "controller"), WAYS, ids=[way for way, _ in WAYS])
def test_a_vm_of_great_weight_that_sends_little_leaves_the_link_to_others(
    way: Way, controller: dict[str, Any]
) -> None:
    """Its host held 99 of 100 Mb/s for a trickle of 2."""
    with (
        shared(way, controller, HEAVY) as xco,
        flooding(xco, "tin"),
        flooding(xco, "gold", rate_bps=TRICKLE_BPS),
    ):
        eventually(lambda: opened(xco)[1] > 0.8 * LINK_BPS)

"""A backlog that really overflows: one packet, copied by the kernel more often than there is room.

The copies are made within one transmission, so that the CPU cannot empty its backlog meanwhile.
Nothing outside the test's own namespace is changed.
"""

import socket
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import pytest
from pyroute2 import IPRoute, netns

from common.units import Seconds
from xtc.kernel.namespaces import in_namespace
from xtc.measure.host_drops import HostWatch

pytestmark = pytest.mark.root

NAME: Final = "xtcact-drops"
EGRESS: Final = 0xFFFFFFF3
"""Where clsact keeps the filters for what is sent (linux/pkt_sched.h)."""
EVERY_PROTOCOL: Final = 3
STAGES: Final = 3
COPIES: Final = 12
"""At each stage; a filter may have some thirty actions, and copies may be nested four deep."""
ROOM = Path("/proc/sys/net/core/netdev_max_backlog")
PACKETS: Final = 20
Result = TypeVar("Result")


def inside(work: Callable[[], Result]) -> Result:
    return in_namespace(f"/run/netns/{NAME}", work)


@pytest.fixture
def flooded() -> Iterator[None]:
    """Four veths: what goes into the first goes twelve times into the second, and so on."""
    netns.create(NAME)
    try:
        inside(make)
        yield
    finally:
        netns.remove(NAME)


def make() -> None:
    with IPRoute() as route:
        indices = [make_veth(route, number) for number in range(STAGES + 1)]
        route.addr("add", index=indices[0], address="10.9.8.2", prefixlen=24)
        address = "02:00:00:00:09:08"
        route.neigh("add", dst="10.9.8.1", lladdr=address, ifindex=indices[0], state="permanent")
        for source, target in pairwise(indices):
            copy = {"kind": "mirred", "direction": "egress", "action": "mirror", "ifindex": target}
            route.tc("add", "clsact", source)
            route.tc(
                "add-filter",
                "u32",
                source,
                parent=EGRESS,
                prio=1,
                protocol=EVERY_PROTOCOL,
                target=0x10000,
                keys=["0x0/0x0+0"],
                action=[copy] * COPIES,
            )


def make_veth(route: IPRoute, number: int) -> int:
    route.link("add", ifname=f"v{number}", kind="veth", peer={"ifname": f"r{number}"})
    for name in (f"r{number}", f"v{number}"):
        index = int(route.link_lookup(ifname=name)[0])
        route.link("set", index=index, state="up")
    return index


def send() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        for _ in range(PACKETS):
            out.sendto(b"x", ("10.9.8.1", 9))


@pytest.mark.usefixtures("flooded")
def test_a_backlog_that_overflows_is_counted() -> None:
    over = COPIES**STAGES - int(ROOM.read_text())
    if over <= 0:
        pytest.skip(f"{ROOM} has room for {COPIES**STAGES} packets")
    watch, began = HostWatch(), time.monotonic()
    watch.look(Seconds(began), {}, ())
    inside(send)
    now = time.monotonic()
    lost = watch.look(Seconds(now), {}, ()).backlog
    assert lost is not None
    assert lost * (now - began) >= PACKETS * over

"""Ways to connect one aggregator and its workers: each a network with a shallow port to the former.

One entry in WAYS adds a way to `benchmarks.zovn.partition_aggregate`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Final

from benchmarks.zovn.partition_network import (
    Network,
    Request,
    fabric_of,
    losses_of,
    members_of,
)
from benchmarks.zovn.partition_switch import missing as switch_missing
from benchmarks.zovn.partition_switch import switched
from lab.fabric.fabric import Fabric
from lab.system import requirements


@contextmanager
def bridge(request: Request) -> Iterator[Network]:
    """Connect hosts by a Linux bridge with one shallow port, which drops when it is full."""
    with Fabric(request.name) as fabric:
        fabric_of(request, fabric)
        yield Network(
            fabric.place(fabric.receivers[0]),
            members_of(fabric),
            lambda: losses_of(fabric, fabric.drops()),
        )


WAYS: Final = MappingProxyType[str, Callable[[Request], AbstractContextManager[Network]]](
    {
        "zovn": partial(switched, lossy=False),
        "zovn-lossy": partial(switched, lossy=True),
        "bridge": bridge,
    }
)
"""`zovn` has no queue of a length: frames wait in the rings and sockets of their senders."""


def missing(ways: Iterable[str]) -> list[str]:
    """Return what this machine lacks for ways, each as a sentence with a fix; empty if ready."""
    lacking = requirements.missing()
    switches = [way for way in ways if way != "bridge"]
    return lacking or (switch_missing() if switches else [])

"""Ways to connect one aggregator and its workers: each a network with a shallow port to the former.

One entry in WAYS adds a way to `benchmarks.zovn.partition_aggregate`.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Final

from lab.fabric.fabric import Fabric
from lab.programs.processes import Place
from lab.traffic.partition import Member

FRAME_BYTES: Final = 1_514


@dataclass(frozen=True)
class Losses:
    """What was lost, and what TCP did about it."""

    dropped: int = 0
    """Packets, at the shallow port."""
    timeouts: int = 0
    """Of TCP, at all hosts but the aggregator's."""
    probes: int = 0
    """Tail loss probes, by the same; one waits up to 200 ms, as a timeout does."""
    retransmitted: int = 0
    """Segments of TCP, by the same."""

    def __add__(self, other: "Losses") -> "Losses":
        return Losses(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, other: "Losses") -> "Losses":
        return Losses(*map(operator.sub, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Network:
    """A running network."""

    top: Place
    """Of the aggregator."""
    hosts: Sequence[Member]
    """The others."""
    losses: Callable[[], Losses]
    """Counts since its start."""


@dataclass(frozen=True)
class Request:
    """What a way is to build."""

    name: str
    """Of its namespaces: 8 letters and digits at most."""
    hosts: int
    """Without the aggregator's."""
    queue: int
    """Full frames for which the port to the aggregator has room."""
    bottleneck: str
    """Rate of that port."""


@contextmanager
def bridge(request: Request) -> Iterator[Network]:
    """Connect hosts by a Linux bridge with one shallow port, which drops when it is full."""
    with Fabric(request.name) as fabric:
        fabric.incast(request.hosts, request.bottleneck, request.queue * FRAME_BYTES)
        members = [Member(fabric.place(host), host.address) for host in fabric.senders]

        def losses() -> Losses:
            probes = fabric.loss_probes()
            return Losses(fabric.drops(), fabric.timeouts(), probes, fabric.retransmitted())

        yield Network(fabric.place(fabric.receivers[0]), members, losses)


WAYS: Final = MappingProxyType[str, Callable[[Request], AbstractContextManager[Network]]](
    {"bridge": bridge}
)

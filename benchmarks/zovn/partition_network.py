"""What every way of partition-aggregate has: a request for a network, the network, its losses."""

import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass
from typing import Final

from lab.fabric.fabric import Fabric
from lab.programs.processes import Place
from lab.traffic.partition import Member

FRAME_BYTES: Final = 1_514


@dataclass(frozen=True)
class Losses:
    """What was lost, and what TCP did about it."""

    dropped: int = 0
    """Packets, at the shallow port; in a switch of zovn at any port."""
    timeouts: int = 0
    """Of TCP, at all hosts but the aggregator's."""
    probes: int = 0
    """Tail loss probes, by the same; one waits up to 200 ms, as a timeout does."""
    retransmitted: int = 0
    """Segments of TCP, by the same, probes included."""
    spurious: int = 0
    """Of these, those that had arrived before, as the aggregator's host reports (D-SACK)."""

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
    awake: Callable[[], AbstractContextManager[None]] = nullcontext
    """While queries are sent; at other times the network uses no CPU."""


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


def fabric_of(request: Request, fabric: Fabric) -> Fabric:
    """Build the hosts of a request around one switch."""
    return fabric.incast(request.hosts, request.bottleneck, request.queue * FRAME_BYTES)


def members_of(fabric: Fabric) -> list[Member]:
    """Return all hosts but the aggregator's."""
    return [Member(fabric.place(host), host.address) for host in fabric.senders]


def losses_of(fabric: Fabric, dropped: int) -> Losses:
    """Return the present losses of a fabric of which a switch has dropped so many packets."""
    return Losses(
        dropped=dropped,
        timeouts=fabric.timeouts(),
        probes=fabric.loss_probes(),
        retransmitted=fabric.retransmitted(),
        spurious=fabric.repeated(),
    )

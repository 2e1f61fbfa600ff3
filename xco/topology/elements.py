"""Elements of a topology: switches, hosts and the links between them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """A layer-2 switch, or a Linux bridge."""

    name: str


@dataclass(frozen=True, slots=True)
class Host:
    """A physical node; `addresses` are the IPv4 and IPv6 addresses of its VMs."""

    name: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex cable between two named nodes.

    `capacity_bps` holds for each direction; `buffer_bytes` is what a port at its end can queue,
    if known; `ports` are the interfaces' names at `a` and at `b`, "" where one is not known.
    """

    a: str
    b: str
    capacity_bps: int
    buffer_bytes: int | None = None
    ports: tuple[str, str] = ("", "")

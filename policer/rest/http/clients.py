"""Where a request comes from, as far as what proxies say can be believed; pure."""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

MOST_HOPS = 32
"""Addresses in X-Forwarded-For that are looked at, from the right."""
LONGEST = 64
"""Characters of an address, with a port."""
_CLIENT_BITS = 64
"""Of an IPv6 address: who has one has all that begin so (RFC 6177, section 2)."""


class Proxies:
    """Networks of proxies that append to X-Forwarded-For."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        """Take networks as people write them; raises ValueError where one is none."""
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))

    def __contains__(self, address: str) -> bool:
        """Whether an address is of a proxy."""
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)


def client_address(peer: str, forwarded: Sequence[str], trusted: Proxies) -> str:
    """Return who asks: the right-most address that is of no trusted proxy.

    Everything to the left of that was written by the client itself, or by nobody we know. What is
    no address is not believed: then it is the proxy that told it.

    Args:
        peer: who is connected.
        forwarded: the lines of X-Forwarded-For, in their order.
        trusted: the proxies that append to it.
    """
    client = peer
    hops = _hops(forwarded)
    while client in trusted:
        hop = next(hops, None)
        if hop is None:
            return client
        client = hop
    return client


def group_of(address: str) -> str:
    """Return whom an address stands for where clients are counted: IPv6's come by the network."""
    found = _address(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((int(found), _CLIENT_BITS), strict=False))
    return address if found is None else str(found)


def _hops(forwarded: Sequence[str]) -> Iterator[str]:
    """Yield the addresses from the right, up to the first that is none."""
    entries = [entry for line in forwarded for entry in line.split(",")]
    for entry in entries[: -MOST_HOPS - 1 : -1]:
        found = _address(_without_port(entry.strip()))
        if found is None:
            return
        yield str(found)


def _without_port(text: str) -> str:
    """Return the address in ``[v6]:port`` and ``v4:port``, which some proxies write."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, _ = text.partition(":")
    return host if colon and text.count(":") == 1 else text


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address; None where it is none, or names an interface of somebody's."""
    if len(text) > LONGEST or "%" in text:
        return None
    try:
        found = ip_address(text)
    except ValueError:
        return None
    inner = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if inner is None else inner

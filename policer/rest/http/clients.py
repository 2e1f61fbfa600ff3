"""Client address of a request, as far as proxies are trusted; pure."""

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
"""Limit of the examined addresses in X-Forwarded-For, from the right."""
LONGEST = 64
"""Characters of an address, with a port."""
_CLIENT_BITS = 64
"""Prefix length of an IPv6 client: it has all addresses with that prefix (RFC 6177, section 2)."""


class Proxies:
    """Networks of proxies that append to X-Forwarded-For."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        """Parse networks as people write them; raises ValueError for an invalid one."""
        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))

    def __contains__(self, address: str) -> bool:
        """Whether an address belongs to a proxy."""
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)


def client_address(peer: str, forwarded: Sequence[str], trusted: Proxies) -> str:
    """Return the client: the right-most address that belongs to no trusted proxy.

    Everything to the left of that comes from the client itself, or from an unknown source. An
    invalid address is ignored: then the client is the proxy that sent it.

    Args:
        peer: address of the connection.
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
    """Return the key of an address for counting clients: IPv6 addresses count by network."""
    found = _address(address)
    if isinstance(found, IPv6Address):
        return str(ip_network((int(found), _CLIENT_BITS), strict=False))
    return address if found is None else str(found)


def _hops(forwarded: Sequence[str]) -> Iterator[str]:
    """Yield the addresses from the right, up to the first invalid one."""
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
    """Return an address; None if it is invalid, or names an interface of another machine."""
    if len(text) > LONGEST or "%" in text:
        return None
    try:
        found = ip_address(text)
    except ValueError:
        return None
    inner = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if inner is None else inner

"""At which host each station is, as text for zovn's wires (docs/howto/zovn-wire.md). Pure."""

from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address
from typing import Final

from xco.topology.graph import Topology

MOST_HOSTS: Final = 64
MOST_STATIONS: Final = 65_536
"""A wire refuses a file with more of either."""
_GROUP: Final = 1 << 40
"""Bit of the addresses of several stations."""


def addresses(topology: Topology, host: int) -> dict[int, str | None]:
    """Return the first address of each other host by its number; None: it has no IPv4 address."""
    others = (number for number in range(len(topology.hosts)) if number != host)
    return {number: _ipv4(topology.hosts[number].addresses[:1]) for number in others}


def _ipv4(first: tuple[str, ...]) -> str | None:
    try:
        return str(IPv4Address(*first)) if first else None
    except AddressValueError:
        return None


def render(hosts: Mapping[int, str], stations: Mapping[int, int]) -> str:
    """Return the file's text.

    Args:
        hosts: addresses of hosts by number.
        stations: numbers of hosts by MAC address, which is a number, too. Those that a wire would
            refuse are left out: addresses of groups, and those at no host of `hosts`.
    """
    return "".join(f"{line}\n" for line in _lines(hosts, stations))


def _lines(hosts: Mapping[int, str], stations: Mapping[int, int]) -> Iterator[str]:
    yield from (f"host {address}" for address in hosts.values())
    known = [one for one in stations if stations[one] in hosts and not one & _GROUP]
    for station in sorted(known)[:MOST_STATIONS]:
        yield f"station {station.to_bytes(6, 'big').hex(':')} {hosts[stations[station]]}"

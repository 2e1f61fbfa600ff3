"""Packets that keep routing alive, and the configuration of further ones."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self

from common.errors import UnitError

DEFAULT: Final[tuple[str, ...]] = (
    "ethertype/0x0806",  # ARP
    "ethertype/0x8809",  # LACP and other slow protocols
    "ethertype/0x88cc",  # LLDP
    "llc/0xfefe",  # IS-IS
    "ip/2",  # IGMP
    "ip/89",  # OSPF
    "ip/103",  # PIM
    "ip/112",  # VRRP
    "icmpv6/130",  # MLD: query, report, done, version 2 report
    "icmpv6/131",
    "icmpv6/132",
    "icmpv6/143",
    "icmpv6/133",  # ND: router and neighbour solicitation and advertisement, redirect
    "icmpv6/134",
    "icmpv6/135",
    "icmpv6/136",
    "icmpv6/137",
    "tcp/179",  # BGP
    "tcp/646",  # LDP
    "udp/646",
    "udp/520",  # RIP, RIPng
    "udp/521",
    "udp/3784",  # BFD: single hop, echo, multihop
    "udp/3785",
    "udp/4784",
)
"""The protocols that a router speaks to its neighbours; TCP and UDP by either port."""

_LARGEST: Final = {
    "ethertype": 0xFFFF,
    "llc": 0xFFFF,
    "tcp": 0xFFFF,
    "udp": 0xFFFF,
    "ip": 0xFF,
    "icmpv6": 0xFF,
}
"""Each kind with its largest value; order and sizes (in bits) are those of the map's value."""
_SMALLEST_ETHERTYPE: Final = 0x600
_LOOKED_INTO: Final = frozenset({0x0800, 0x86DD, 0x8100, 0x88A8})
_PORTS: Final = frozenset({6, 17})
_ENTRY: Final = re.compile(r"([a-z0-9]+)/(0x[0-9a-fA-F]+|[0-9]+)")


@dataclass(frozen=True, slots=True)
class Exemptions:
    """A set of protocols; each entry is a kind and a value, such as ("udp", 3784)."""

    entries: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    @classmethod
    def parse(cls, words: Iterable[str], *, where: str = "exempt") -> Self:
        """Parse entries such as ``tcp/179``, ``ip/89``, ``icmpv6/135``, ``ethertype/0x88cc``.

        Raises:
            UnitError: an invalid entry, a value out of range, or one that would exempt nearly all
                traffic (IPv4, IPv6, TCP, UDP and VLAN tags as a whole).
        """
        return cls(frozenset(_entry(word, where) for word in words))

    def pack(self) -> bytes:
        """Return the value of the map: a bit for each value, in the order of the kinds."""
        return b"".join(_bits(self._of(kind), most) for kind, most in _LARGEST.items())

    def _of(self, kind: str) -> Iterable[int]:
        return (value for one, value in self.entries if one == kind)


def _entry(word: str, where: str) -> tuple[str, int]:
    match = _ENTRY.fullmatch(word)
    if match is None or match[1] not in _LARGEST:
        kinds = ", ".join(_LARGEST)
        raise UnitError(where, word, f"a protocol such as tcp/179 (kinds: {kinds})")
    kind, value = match[1], int(match[2], 0)
    least = _SMALLEST_ETHERTYPE if kind == "ethertype" else 0
    if not least <= value <= _LARGEST[kind]:
        raise UnitError(where, word, f"a value from {least} to {_LARGEST[kind]}")
    if (kind == "ethertype" and value in _LOOKED_INTO) or (kind == "ip" and value in _PORTS):
        raise UnitError(where, word, "narrow enough (name ports, such as udp/3784)")
    return kind, value


def _bits(values: Iterable[int], most: int) -> bytes:
    bits = bytearray(most // 8 + 1)
    for value in values:
        bits[value >> 3] |= 1 << (value & 7)
    return bytes(bits)

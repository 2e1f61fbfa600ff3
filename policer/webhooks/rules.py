"""What webhooks may do; an operator sets it."""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class Rules:
    """Where messages may go, and how often they are tried."""

    allow_http: bool = False
    """Whether they may go unencrypted."""
    networks: tuple[Network, ...] = ()
    """Networks that are not public, and may be reached."""
    timeout_s: float = 15.0
    """Seconds that an attempt may take."""
    attempts: int = 10
    """After so many a message is dead."""


def network_of(text: str) -> Network:
    """Read a network such as 10.0.0.0/8 or 192.0.2.7; raises ValueError."""
    return ip_network(text)

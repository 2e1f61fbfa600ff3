"""Where messages may go: an endpoint must not make the policer reach what others cannot; pure.

An address is checked when it is connected to, and that very address is used: what a name stood for
when it was entered says nothing about what it stands for now.
"""

import ipaddress
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from policer.errors import Problem
from policer.webhooks.rules import Rules

Address = IPv4Address | IPv6Address
LONGEST_URL: Final = 2048
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""Its last 32 bits are an IPv4 address (RFC 6052)."""
NEVER: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # a cloud's metadata, at an address that looks like any other
            "192.0.0.0/24",  # IETF protocol assignments (RFC 6890)
            "192.88.99.0/24",  # relays of 6to4 (RFC 7526)
            "fec0::/10",  # of a site, as fc00::/7 is; deprecated (RFC 3879), and still routed
        ),
    )
)
ALLOW: Final = "if it is meant, list its network in webhooks.allowed_networks"


def address_problem(text: str, rules: Rules) -> str:
    """Say why an address may not be connected to; "" where it may."""
    address = ipaddress.ip_address(text)
    plain = _embedded(address)
    if any(one in network for network in rules.networks for one in {address, plain}):
        return ""
    ordinary = plain.is_global and not (plain.is_multicast or plain.is_reserved)
    if ordinary and not any(plain in network for network in NEVER):
        return ""
    return f"{text} is no public address"


def url_problems(url: str, rules: Rules) -> Iterator[Problem]:
    """Say what is wrong with an endpoint's URL, as far as its text tells."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        yield Problem("url", f"it is no URL: {error}", "write https://host.example/path")
        return
    yield from _shape(url, parts, rules)
    if _is_address(host) and (problem := address_problem(host, rules)):
        yield Problem("url", problem, ALLOW)


def _shape(url: str, parts: SplitResult, rules: Rules) -> Iterator[Problem]:
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        fix = f"write at most {LONGEST_URL} characters of ASCII, others percent-encoded"
        yield Problem("url", "it has characters that no URL has, or too many", fix)
    elif not parts.hostname:
        yield Problem("url", "it names no host", "write https://host.example/path")
    if parts.scheme == "http" and not rules.allow_http:
        fix = "write https://, or set webhooks.allow_http"
        yield Problem("url", "it would be sent unencrypted", fix)
    elif parts.scheme not in {"http", "https"}:
        yield Problem("url", f"{parts.scheme[:20]!r} is not https", "write https://")
    if parts.username is not None or parts.password is not None:
        yield Problem("url", "it holds a user or password", "leave them out: messages are signed")
    if parts.fragment:
        yield Problem("url", "it has a fragment, which is never sent", "leave # out")


def _embedded(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

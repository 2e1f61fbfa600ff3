"""Finds mistakes in a topology: names the table and key, the problem, and the fix."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from itertools import chain
from typing import Final, NoReturn

from xco.errors import TopologyError
from xco.topology.elements import Host, Link, Switch
from xco.units import MAX_RATE_BPS, format_rate

SOURCE: Final = "topology"
"""The file name in an error until the caller sets it."""
MAX_HOSTS: Final = 0xFFFF
"""A host is 16 bits on the wire; the highest number is the controller."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_NAMES: Final = "write 1 to 64 letters, digits and . _ : -, the first a letter or a digit"


def check(
    switches: Sequence[Switch],
    hosts: Sequence[Host],
    links: Sequence[Link],
    tree: frozenset[int] | None,
    *,
    tree_to_come: bool = False,
) -> None:
    """Find the first mistake of a topology; allow loops if the tree is read later.

    Raises:
        TopologyError: a name is malformed or duplicate; an address is invalid or has two hosts;
            a link names an unknown node, itself, or an impossible capacity; a host does not have
            exactly one link; the tree names an unknown link; the links that carry traffic form a
            loop or do not reach every node.
    """
    _check_nodes(switches, hosts)
    _check_addresses(hosts)
    known = {name for _, name in _node_keys(switches, hosts)}
    for index, link in enumerate(links):
        _check_link(index, link, known)
    _check_host_links(hosts, links)
    _check_spanning(switches, hosts, links, tree, tree_to_come=tree_to_come)


def link_key(index: int, key: str = "") -> str:
    """Return an error's name for a link, or for a key of it; links count from 0."""
    return f"link[{index}]" + (f".{key}" if key else "")


def between(link: Link) -> str:
    """Return the text by which an error identifies a link."""
    return f"{link.a} - {link.b}"


def _check_nodes(switches: Sequence[Switch], hosts: Sequence[Host]) -> None:
    taken: dict[str, str] = {}
    for key, name in _node_keys(switches, hosts):
        if not _NAME.fullmatch(name):
            _wrong(key, f"{name!r} is no name", _NAMES)
        if name in taken:
            _wrong(key, f"the name is taken by {taken[name]}", "give every node its own name")
        taken[name] = key
    if not hosts:
        _wrong("host", "there is none", "add a table [host.NAME] for each host")
    if len(hosts) > MAX_HOSTS:
        _wrong("host", f"{len(hosts)} hosts, and {MAX_HOSTS} at most", "use two controllers")


def _check_addresses(hosts: Sequence[Host]) -> None:
    owner: dict[str, str] = {}
    for host in hosts:
        key = f"host.{host.name}.addresses"
        for text in host.addresses:
            address = _address(key, text)
            if address in owner:
                _wrong(key, f"{text} is also one of {owner[address]}", "give it to one host")
            owner[address] = host.name


def _address(key: str, text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        _wrong(key, f"{text!r} is no address", "write an IPv4 or IPv6 address of a VM, no prefix")
    if address.is_multicast or address.is_unspecified:
        _wrong(key, f"{text} cannot be the address of a VM", "write a unicast address")
    return str(address)


def _check_link(index: int, link: Link, known: set[str]) -> None:
    for name in (link.a, link.b):
        if name not in known:
            fix = "add a table [switch.NAME] or [host.NAME] for it, or correct the name"
            _wrong(link_key(index, "between"), f"there is no switch or host {name!r}", fix)
    if link.a == link.b:
        _wrong(link_key(index, "between"), f"{link.a} is linked to itself", "name two nodes")
    key = link_key(index, "capacity")
    if not 0 < link.capacity_bps <= MAX_RATE_BPS:
        said = format_rate(link.capacity_bps)
        bounds = f"write a rate above 0 and at most {format_rate(MAX_RATE_BPS)}"
        _wrong(key, f"{between(link)} cannot carry {said}", bounds)
    if link.buffer_bytes is not None and link.buffer_bytes < 0:
        _wrong(
            link_key(index, "buffer"), f"{link.buffer_bytes} bytes", "write a size, or leave out"
        )


def _check_host_links(hosts: Sequence[Host], links: Sequence[Link]) -> None:
    """Hosts have one outgoing link (paper, section 3.2.1): C_x is its capacity."""
    count = Counter(chain.from_iterable((link.a, link.b) for link in links))
    for host in hosts:
        if count[host.name] != 1:
            fix = (
                "a host has one link; describe bonded ones as one (docs/reference/xco-topology.md)"
            )
            _wrong(f"host.{host.name}", f"has {count[host.name] or 'no'} links", fix)


def _check_spanning(
    switches: Sequence[Switch],
    hosts: Sequence[Host],
    links: Sequence[Link],
    tree: frozenset[int] | None,
    *,
    tree_to_come: bool,
) -> None:
    for index in sorted(tree or ()):
        if not 0 <= index < len(links):
            _wrong("tree", f"there is no link {index}", f"links count from 0 to {len(links) - 1}")
    keys = list(_node_keys(switches, hosts))
    groups = _Groups(name for _, name in keys)
    for index in range(len(links)) if tree is None else sorted(tree):
        joined = groups.join(links[index].a, links[index].b)
        if not joined and not tree_to_come:
            _loop(index, links[index], given=tree is not None)
    _check_one_group(groups, keys, given=tree is not None)


def _loop(index: int, link: Link, *, given: bool) -> NoReturn:
    if given:
        fix = "set tree = false on one of the loop's links: on the one that blocks"
        _wrong(link_key(index, "tree"), f"{between(link)} closes a loop within the tree", fix)
    fix = "set tree = false on the links that block, or have the tree read from the switches"
    _wrong(link_key(index), f"{between(link)} closes a loop, and no tree is given", fix)


def _check_one_group(groups: "_Groups", keys: list[tuple[str, str]], *, given: bool) -> None:
    first_key, first = keys[0]
    for key, name in keys:
        if groups.find(name) != groups.find(first):
            problem = f"not connected to {first_key}" + (" by the tree" if given else "")
            fix = "set tree = true on a link that leads there" if given else "add a [[link]]"
            _wrong(key, problem, fix)


class _Groups:
    """Which nodes are connected so far: disjoint sets with path halving."""

    def __init__(self, names: Iterable[str]) -> None:
        self._leader = {name: name for name in names}

    def find(self, name: str) -> str:
        leader = self._leader
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    def join(self, a: str, b: str) -> bool:
        """Connect two nodes; False if they were connected already."""
        a, b = self.find(a), self.find(b)
        self._leader[a] = b
        return a != b


def _node_keys(switches: Sequence[Switch], hosts: Sequence[Host]) -> Iterator[tuple[str, str]]:
    """Yield every node's table and name."""
    yield from ((f"switch.{node.name}", node.name) for node in switches)
    yield from ((f"host.{node.name}", node.name) for node in hosts)


def _wrong(key: str, problem: str, fix: str) -> NoReturn:
    raise TopologyError(SOURCE, key, problem, fix)

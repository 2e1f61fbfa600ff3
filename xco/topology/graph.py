"""The coordinated network: hosts, switches, links, and the spanning tree that carries traffic.

Hosts and links are numbered in the topology's order; names are for people and files. Physical
link i is two directed links: ``2 * i`` from its `a` to its `b`, ``2 * i + 1`` from `b` to `a`.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from itertools import chain

from xco.topology.check import check
from xco.topology.elements import Host, Link, Switch
from xco.topology.spanning_tree import Tree

__all__ = ["Host", "Link", "Paths", "Switch", "Topology"]


@dataclass(frozen=True)
class Topology:
    """Switches, hosts and links; `tree` are the links that carry traffic, None for all of them.

    Call `check` first: the other methods assume a valid topology.
    """

    switches: tuple[Switch, ...]
    hosts: tuple[Host, ...]
    links: tuple[Link, ...]
    tree: frozenset[int] | None = None

    def check(self, *, tree_to_come: bool = False) -> None:
        """Find the first mistake, if any; allow loops if the tree is read later.

        Raises:
            TopologyError: names the table, the key, the problem and the fix.
        """
        check(self.switches, self.hosts, self.links, self.tree, tree_to_come=tree_to_come)

    @property
    def active_links(self) -> Sequence[int]:
        """The physical links of the spanning tree, in order."""
        return range(len(self.links)) if self.tree is None else sorted(self.tree)

    def capacity_bps(self, directed: int) -> int:
        """Return C_ij of a directed link, in bits/s."""
        return self.links[directed >> 1].capacity_bps

    def host_rate_bps(self, host: int) -> int:
        """Return C_x: the capacity of a host's only link, in bits/s."""
        return self.capacity_bps(self.uplink(host))

    def uplink(self, host: int) -> int:
        """Return the directed link out of a host."""
        return self._host_links[host]

    def host_of(self, address: str) -> int | None:
        """Return the host that has the VM of an IPv4 or IPv6 address; None if unknown.

        Raises:
            ValueError: the text is no address.
        """
        known = self._addresses.get(address)
        return self._addresses.get(str(ip_address(address))) if known is None else known

    def host_index(self, name: str) -> int | None:
        """Return the number of a host; None if the name is unknown."""
        index = self.node_indices.get(name)
        return None if index is None or index >= len(self.hosts) else index

    def safe_share_bps(self, source: int, destination: int) -> int:
        """Return the rate at which a host may send to one other without ever congesting a link.

        It is the least, over the links of the path, of the capacity divided by the number of hosts
        that may send across the link: even if all send at once, no link is overloaded. A host that
        sends to several at once divides its shares: see `safe_shares_bps`. In bits/s, rounded down;
        within a host it is that host's rate.
        """
        return self.safe_shares_bps(source, (destination,))[0]

    def safe_shares_bps(self, source: int, destinations: Sequence[int]) -> tuple[int, ...]:
        """Return the rates at which a host may send to several hosts at once, in their order.

        On each link the host's share is divided by the number of its destinations behind the link.
        In bits/s, rounded down.
        """
        paths = [self.spanning.path(source, destination) for destination in destinations]
        crossing = Counter(chain.from_iterable(paths))
        own = self.host_rate_bps(source)
        return tuple(
            min((self._share_bps(link) // crossing[link] for link in path), default=own)
            for path in paths
        )

    def link_shares_bps(self, source: int, destination: int) -> tuple[tuple[int, int], ...]:
        """Return the links on the path to a host with the safe rate of each, in bits/s.

        That is the link's capacity divided by the number of hosts that may send across it.
        """
        path = self.spanning.path(source, destination)
        return tuple((link, self._share_bps(link)) for link in path)

    def digest(self) -> bytes:
        """Return 32 bytes that two topologies share if and only if they are equal."""
        return _digest(self.switches, self.hosts, self.links, list(self.active_links))

    def hosts_digest(self) -> bytes:
        """Return 32 bytes that two topologies share if and only if they number the same hosts.

        It does not change when links, the tree or addresses change.
        """
        return _digest([host.name for host in self.hosts])

    def nodes_digest(self) -> bytes:
        """Return 32 bytes that two topologies share if and only if they number the same nodes."""
        return _digest(list(self.node_indices))

    @cached_property
    def node_indices(self) -> dict[str, int]:
        """The number of each node by its name: hosts first, then switches."""
        names = chain((host.name for host in self.hosts), (one.name for one in self.switches))
        return {name: index for index, name in enumerate(names)}

    @cached_property
    def spanning(self) -> Tree:
        """The spanning tree, on node numbers."""
        nodes = self.node_indices
        ends = {
            index: (nodes[self.links[index].a], nodes[self.links[index].b])
            for index in self.active_links
        }
        return Tree(len(nodes), len(self.hosts), ends)

    @cached_property
    def _addresses(self) -> dict[str, int]:
        return {
            str(ip_address(address)): index
            for index, host in enumerate(self.hosts)
            for address in host.addresses
        }

    @cached_property
    def _host_links(self) -> tuple[int, ...]:
        out = [-1] * len(self.hosts)
        for index, link in enumerate(self.links):
            for end, name in enumerate((link.a, link.b)):
                if (host := self.host_index(name)) is not None:
                    out[host] = 2 * index + end
        return tuple(out)

    def _share_bps(self, directed: int) -> int:
        return self.capacity_bps(directed) // self.spanning.senders(directed)


class Paths:
    """P_sd for all pairs of hosts (paper, section 3.2.1): precomputed as one tree."""

    __slots__ = ("_tree",)

    def __init__(self, topology: Topology) -> None:
        """Take the tree of a checked topology."""
        self._tree = topology.spanning

    def path(self, source: int, destination: int) -> tuple[int, ...]:
        """Return the directed links from one host to another, in order; none to itself."""
        return self._tree.path(source, destination)


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()

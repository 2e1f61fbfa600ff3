"""A rooted spanning tree on node numbers: paths by parent pointers, and hosts per link side.

Paths for all pairs of 50,000 hosts would fill the memory. A parent and a depth for each node answer
the same questions, in as many steps as a path has links.
"""

from collections.abc import Mapping, Sequence


class Tree:
    """A tree over numbered nodes; the first `hosts` of them are hosts, the rest switches.

    A directed link is ``2 * i`` from the first to the second end of link i, ``2 * i + 1`` back.
    """

    __slots__ = ("_below", "_child", "_depth", "_hosts", "_parent", "_uplink")

    def __init__(self, nodes: int, hosts: int, ends: Mapping[int, tuple[int, int]]) -> None:
        """Root the tree of links with these numbers and ends at the last node.

        Raises:
            ValueError: the links do not form one tree over all nodes.
        """
        self._hosts = hosts
        self._parent = [-1] * nodes
        self._uplink = [-1] * nodes
        self._depth = [-1] * nodes
        self._child: dict[int, int] = {}
        order = self._grow(_neighbours(nodes, ends))
        if len(order) != nodes or len(ends) != nodes - 1:
            raise ValueError("the links do not form one tree over all nodes")
        self._below = self._hosts_below(order)

    def path(self, source: int, destination: int) -> tuple[int, ...]:
        """Return the directed links from one node to another, in order; none to itself.

        This is P_sd (paper, section 3.2.1).
        """
        up: list[int] = []
        down: list[int] = []
        while source != destination:
            if self._depth[source] >= self._depth[destination]:
                up.append(self._uplink[source])
                source = self._parent[source]
            else:
                down.append(self._uplink[destination] ^ 1)
                destination = self._parent[destination]
        return (*up, *reversed(down))

    def senders(self, directed: int) -> int:
        """Return the number of hosts on the sending side of the directed link.

        Only they can send across it. A link outside the tree has none.
        """
        child = self._child.get(directed >> 1)
        if child is None:
            return 0
        below = self._below[child]
        return below if self._uplink[child] == directed else self._hosts - below

    def _grow(self, neighbours: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
        """Set parents, uplinks and depths breadth first; return the nodes in that order."""
        order = [len(neighbours) - 1]
        self._depth[order[0]] = 0
        for node in order:
            for neighbour, away in neighbours[node]:
                if self._depth[neighbour] < 0:
                    self._depth[neighbour] = self._depth[node] + 1
                    self._parent[neighbour] = node
                    self._uplink[neighbour] = away ^ 1
                    self._child[away >> 1] = neighbour
                    order.append(neighbour)
        return order

    def _hosts_below(self, order: Sequence[int]) -> list[int]:
        """Return for each node the number of hosts at it and below it."""
        below = [1 if node < self._hosts else 0 for node in range(len(order))]
        for node in reversed(order[1:]):
            below[self._parent[node]] += below[node]
        return below


def _neighbours(nodes: int, ends: Mapping[int, tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return each node's neighbours, with the directed link that leads there."""
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for link, (a, b) in ends.items():
        neighbours[a].append((b, 2 * link))
        neighbours[b].append((a, 2 * link + 1))
    return neighbours

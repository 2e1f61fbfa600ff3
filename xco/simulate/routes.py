"""Which V2V flow crosses which directed link, in the order of traversal."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from xco.arrays import Floats, Indices, sums


@dataclass(frozen=True, slots=True)
class Stage:
    """Directed links crossed at the same time; no flow crosses two of them."""

    links: Indices
    """Shape (ports,): the directed link behind each port, in rising order."""
    flows: Indices
    """Shape (crossings,): the flow of each crossing, in rising order."""
    port: Indices
    """Shape (crossings,): the index within `links` of the port that the flow crosses."""


@dataclass(frozen=True, slots=True)
class Routes:
    """The paths of all flows, as a sparse matrix in rows (CSR) and by stages."""

    offsets: Indices
    """Shape (flows,): where each flow's links begin in `hops`."""
    hops: Indices
    """Shape (crossings,): directed links, flow after flow, each path in its order."""
    flow_of_hop: Indices
    """Shape (crossings,): the flow that each of `hops` belongs to."""
    stages: tuple[Stage, ...]
    """The first has the hosts' own links. Passing the stages in order follows every path."""

    def least(self, of_links: Floats) -> Floats:
        """Return for each flow the least of a figure over its path, shape (flows,)."""
        if not len(self.offsets):
            return np.empty(0)
        least: Floats = np.minimum.reduceat(of_links[self.hops], self.offsets)
        return least

    def load(self, of_flows: Floats, links: int) -> Floats:
        """Return for each directed link the sum of a figure over its flows, shape (links,)."""
        return sums(self.hops, of_flows[self.flow_of_hop], links)


def routes(paths: Iterable[tuple[int, ...]]) -> Routes:
    """Build the paths: for each flow, the directed links from its source to its destination.

    The paths are those of a tree: up, then down, so that no link comes both before and after
    another, and a numbering exists that rises along every path.
    """
    listed = list(paths)
    lengths = np.fromiter(map(len, listed), np.int64, len(listed))
    hops = np.fromiter(chain.from_iterable(listed), np.int64, int(lengths.sum()))
    flow_of_hop = np.repeat(np.arange(len(listed)), lengths)
    order = _orders(hops, flow_of_hop)
    stages = tuple(
        _stage(hops[order == at], flow_of_hop[order == at])
        for at in range(order.max(initial=-1) + 1)
    )
    return Routes(np.cumsum(lengths) - lengths, hops, flow_of_hop, stages)


def _orders(hops: Indices, flow_of_hop: Indices) -> Indices:
    """Return for each hop the length of the longest way to its link, shape (crossings,)."""
    together = flow_of_hop[:-1] == flow_of_hop[1:]
    following = np.unique(np.stack([hops[:-1][together], hops[1:][together]]), axis=1)
    order = np.zeros(hops.max(initial=0) + 1, np.int64)
    while True:
        later = order.copy()
        np.maximum.at(later, following[1], order[following[0]] + 1)
        if np.array_equal(later, order):
            return order[hops]
        order = later


def _stage(hops: Indices, flows: Indices) -> Stage:
    links, port = np.unique(hops, return_inverse=True)
    return Stage(links, flows, port)

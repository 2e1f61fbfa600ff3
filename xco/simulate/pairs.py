"""Flows by their source and destination hosts: what a grant opens."""

from dataclasses import dataclass

import numpy as np

from xco.arrays import Floats, Indices, sums
from xco.simulate.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Pairs:
    """Distinct (source, destination) pairs, sorted; a host's pairs are next to each other."""

    host: Indices
    """Shape (pairs,): the sending host."""
    destination: Indices
    """Shape (pairs,): the receiving host."""
    of_flow: Indices
    """Shape (flows,): the pair of each flow."""
    begins: Indices
    """Shape (hosts + 1,): where each host's pairs begin; the last is the number of pairs."""

    def of(self, host: int) -> slice:
        """Return where a host's pairs are."""
        return slice(int(self.begins[host]), int(self.begins[host + 1]))

    def index(self, host: int, destination: int) -> int:
        """Return the index of a pair, which must exist."""
        own = self.of(host)
        return int(own.start) + int(np.searchsorted(self.destination[own], destination))

    def sums(self, of_flows: Floats) -> Floats:
        """Return for each pair the sum of a figure over its flows, shape (pairs,)."""
        return sums(self.of_flow, of_flows, len(self.host))


def pairs(traffic: Traffic, hosts: int) -> Pairs:
    """Group flows by source and destination."""
    keys, of_flow = np.unique(traffic.source * hosts + traffic.destination, return_inverse=True)
    host = keys // hosts
    return Pairs(host, keys % hosts, of_flow, np.searchsorted(host, np.arange(hosts + 1)))

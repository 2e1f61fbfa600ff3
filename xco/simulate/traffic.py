"""Senders and receivers: greedy and paced UDP, and a model of TCP."""

from dataclasses import dataclass

import numpy as np

from xco.arrays import Flags, Floats, Indices
from xco.errors import ConfigError
from xco.topology.graph import Topology

GREEDY = float("inf")
"""The rate of a sender that always has more."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """V2V flows; arrays of shape (flows,)."""

    source: Indices
    """The sending host's index."""
    destination: Indices
    """The receiving host's index."""
    rate_bps: Floats
    """Bits/s that a UDP sender offers; infinite: as much as it may send."""
    windowed: Flags
    """TCP: the window limits what it sends."""

    def check(self, hosts: int) -> None:
        """Raise ConfigError unless every flow is valid for this number of hosts."""
        if not len(self.source):
            raise ConfigError("", "traffic", "no flow", "name at least one sender and its receiver")
        ends = np.concatenate([self.source, self.destination])
        if ends.min() < 0 or ends.max() >= hosts:
            raise ConfigError("", "traffic", f"a host beyond the {hosts} there are", "add hosts")
        if (self.source == self.destination).any():
            raise ConfigError(
                "", "traffic", "a flow from a host to itself", "name another receiver"
            )
        if not (self.rate_bps > 0).all():
            raise ConfigError("", "traffic.rate", "not above 0", "such as 50Mbps, or leave it out")

    def __len__(self) -> int:
        return len(self.source)


def flows(
    source: Indices, destination: Indices, *, rate_bps: float = GREEDY, tcp: int = 0
) -> Traffic:
    """Return equal flows, of which the last `tcp` are TCP."""
    count = len(source)
    windowed = np.arange(count) >= count - tcp
    rate = np.where(windowed, GREEDY, rate_bps)
    return Traffic(np.asarray(source), np.asarray(destination), rate, windowed)


def halves(topology: Topology, *, rate_bps: float = GREEDY) -> Traffic:
    """Return the traffic of section 5.2: half of the hosts send to their counterparts.

    Raises:
        ConfigError: the number of hosts is odd, or 0.
    """
    half, odd = divmod(len(topology.hosts), 2)
    if odd or not half:
        fix = 'an even number of them, or traffic = "shuffled" (--traffic shuffled)'
        raise ConfigError("", "hosts", f"{len(topology.hosts)} have no halves", fix)
    return flows(np.arange(half), np.arange(half, 2 * half), rate_bps=rate_bps)


def shuffled(topology: Topology, *, rate_bps: float = GREEDY, seed: int = 0) -> Traffic:
    """Return one flow from every host to another one, a cycle through all in random order.

    Raises:
        ConfigError: there are fewer than two hosts.
    """
    hosts = len(topology.hosts)
    if hosts < 2:
        raise ConfigError("", "hosts", f"{hosts}: no host to send to", "at least two")
    cycle = np.random.default_rng(seed).permutation(hosts)
    return flows(cycle, np.roll(cycle, -1), rate_bps=rate_bps)

"""Rates for V2V flows: the equal shares of the paper's section 3.3, and weighted max-min."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xco.topology.graph import Paths, Topology


@dataclass(frozen=True, slots=True)
class Flow:
    """A backlogged V2V flow, host to host."""

    source: int
    destination: int
    weight: int = 1


def capacities(topology: Topology, pace_permille: int = 1000) -> dict[int, int]:
    """Return the usable rate of each directed link of the tree, in bits/s."""
    return {
        2 * index + end: paced(topology.capacity_bps(2 * index), pace_permille)
        for index in topology.active_links
        for end in (0, 1)
    }


def paced(rate_bps: int, pace_permille: int) -> int:
    """Return the granted share of a rate; the rest absorbs bursts."""
    return rate_bps * pace_permille // 1000


def equal_shares(
    topology: Topology, flows: Sequence[Flow], left_bps: Mapping[int, int]
) -> dict[Flow, int]:
    """Return the capacity of each flow's bottleneck by the number of flows through it, in bits/s.

    Paper, section 3.3. The bottleneck is the link of the path that gives least; as every flow
    gets the least of its path, rounded down, no link gets more than it has left.
    """
    paths = _paths(topology, flows)
    load = Counter(chain.from_iterable(paths.values()))
    return {flow: min(left_bps[link] // load[link] for link in paths[flow]) for flow in flows}


def max_min_shares(
    topology: Topology, flows: Sequence[Flow], left_bps: Mapping[int, int]
) -> dict[Flow, int]:
    """Return weighted max-min rates, in bits/s, by water filling.

    Of all links, the one that can give least by weight sets the rates of its flows. Those are
    taken off all links, and so on. Levels are whole bits/s for a weight of one.
    """
    left = dict(left_bps)
    paths = _paths(topology, flows)
    shares: dict[Flow, int] = {}
    while len(shares) < len(paths):
        load = _load(paths, (flow for flow in paths if flow not in shares))
        level = min(left[link] // weight for link, weight in load.items())
        settled = [
            flow
            for flow in paths
            if flow not in shares and any(left[link] // load[link] == level for link in paths[flow])
        ]
        for flow in settled:
            shares[flow] = level * flow.weight
            for link in paths[flow]:
                left[link] -= shares[flow]
    return shares


def _paths(topology: Topology, flows: Iterable[Flow]) -> dict[Flow, tuple[int, ...]]:
    paths = Paths(topology)
    return {flow: paths.path(flow.source, flow.destination) for flow in flows}


def _load(paths: Mapping[Flow, tuple[int, ...]], flows: Iterable[Flow]) -> Counter[int]:
    load: Counter[int] = Counter()
    for flow in flows:
        for link in paths[flow]:
            load[link] += flow.weight
    return load

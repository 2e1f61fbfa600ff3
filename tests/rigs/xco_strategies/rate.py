"""Rates for V2V flows: the equal shares of the paper's section 3.3; guarantees and max-min."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xco.topology.graph import Paths, Topology

MBPS = 10**6


@dataclass(frozen=True, slots=True)
class Flow:
    """A backlogged V2V flow, host to host."""

    source: int
    destination: int
    weight: int = 1
    guarantee_mbps: int = 0


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


def guaranteed_shares(
    topology: Topology, flows: Sequence[Flow], left_bps: Mapping[int, int]
) -> dict[Flow, int]:
    """Return what each flow is guaranteed, in bits/s, of all but a twentieth of its links.

    A guarantee counts up to what its path can promise, in whole Mb/s, rounded up. Where those of a
    link are more than it can promise, each gets its part of that; of its links, the least.
    """
    paths = _paths(topology, flows)
    left_bps = {link: left - left // 20 for link, left in left_bps.items()}
    wanted = {
        flow: min(flow.guarantee_mbps, *(-(-left_bps[link] // MBPS) for link in paths[flow]))
        for flow in flows
    }
    load = _load(paths, wanted)
    return {
        flow: min(
            wanted[flow] * MBPS
            if load[link] * MBPS <= left_bps[link]
            else wanted[flow] * left_bps[link] // load[link]
            for link in paths[flow]
        )
        for flow in flows
    }


def max_min_shares(
    topology: Topology, flows: Sequence[Flow], left_bps: Mapping[int, int]
) -> dict[Flow, int]:
    """Return what is guaranteed and a weighted max-min share of the rest, in bits/s.

    Of all links, the one that can give least by weight sets what its flows get. That is taken off
    all links, and so on. Levels are whole bits/s for a weight of one; weights are halved together
    until they have 20 bits.
    """
    paths = _paths(topology, flows)
    weights = lightened(flows)
    floors = guaranteed_shares(topology, flows, left_bps)
    left = dict(left_bps)
    for flow, floor in floors.items():
        _take(left, paths[flow], floor)
    shares: dict[Flow, int] = {}
    while len(shares) < len(paths):
        load = _load(paths, {flow: weights[flow] for flow in paths if flow not in shares})
        level = min(left[link] // weight for link, weight in load.items())
        settled = [
            flow
            for flow in paths
            if flow not in shares and any(left[link] // load[link] == level for link in paths[flow])
        ]
        for flow in settled:
            shares[flow] = level * weights[flow]
            _take(left, paths[flow], shares[flow])
    return {flow: floors[flow] + shares[flow] for flow in paths}


def lightened(flows: Iterable[Flow]) -> dict[Flow, int]:
    """Return the weights, halved together until all have 20 bits; at least 1."""
    flows = list(flows)
    halvings = max(0, max((flow.weight for flow in flows), default=1).bit_length() - 20)
    return {flow: max(1, flow.weight >> halvings) for flow in flows}


def _take(left: dict[int, int], path: Iterable[int], rate_bps: int) -> None:
    for link in path:
        left[link] -= rate_bps


def _paths(topology: Topology, flows: Iterable[Flow]) -> dict[Flow, tuple[int, ...]]:
    paths = Paths(topology)
    return {flow: paths.path(flow.source, flow.destination) for flow in flows}


def _load(paths: Mapping[Flow, tuple[int, ...]], loads: Mapping[Flow, int]) -> Counter[int]:
    load: Counter[int] = Counter()
    for flow, weight in loads.items():
        for link in paths[flow]:
            load[link] += weight
    return load

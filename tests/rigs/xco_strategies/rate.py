"""Rates for V2V flows: the equal shares of the paper's section 3.3; guarantees and max-min."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import floor

from xco.topology.graph import Paths, Topology

MBPS = 10**6
GREEDY = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Flow:
    """A V2V flow, host to host; greedy, or with the rate that it demands."""

    source: int
    destination: int
    weight: int = 1
    guarantee_mbps: int = 0
    demand_bps: int = GREEDY


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

    A guarantee counts up to what its flow demands and its path can promise, in whole Mb/s, rounded
    up. Where those of a link are more than it can promise, each gets its part of that; of its
    links, the least, and no more than is demanded.
    """
    paths = _paths(topology, flows)
    left_bps = {link: left - left // 20 for link, left in left_bps.items()}
    wanted = {
        flow: min(
            flow.guarantee_mbps,
            -(-flow.demand_bps // MBPS),
            *(-(-left_bps[link] // MBPS) for link in paths[flow]),
        )
        for flow in flows
    }
    load = _load(paths, wanted)
    return {
        flow: min(
            flow.demand_bps,
            *(
                wanted[flow] * MBPS
                if load[link] * MBPS <= left_bps[link]
                else wanted[flow] * left_bps[link] // load[link]
                for link in paths[flow]
            ),
        )
        for flow in flows
    }


def max_min_shares(
    topology: Topology, flows: Sequence[Flow], left_bps: Mapping[int, int]
) -> dict[Flow, int]:
    """Return what is guaranteed and a weighted max-min share of the rest, in bits/s.

    What no flow demands then is shared in the same way by those that got what they demand.
    """
    paths = _paths(topology, flows)
    left = dict(left_bps)
    rates = guaranteed_shares(topology, flows, left_bps)
    for flow, rate in rates.items():
        _take(left, paths[flow], rate)
    _fill(rates, paths, left, {flow: flow.demand_bps for flow in flows})
    sated = [flow for flow in flows if rates[flow] == flow.demand_bps]
    _fill(rates, paths, left, dict.fromkeys(sated, GREEDY))
    return rates


def _fill(
    rates: dict[Flow, int],
    paths: Mapping[Flow, tuple[int, ...]],
    left: dict[int, int],
    demands: Mapping[Flow, int],
) -> None:
    """Add max-min shares to rates, up to demands; take them off what links have left.

    Of all links, the one that can give least by weight sets what its flows get. Those that demand
    less come first: what they leave raises its level. Levels are exact, rates whole bits/s.
    """
    waiting = set(demands)
    while waiting:
        load = _load(paths, {flow: flow.weight for flow in waiting})
        levels = {link: Fraction(left[link], weight) for link, weight in load.items()}
        level = min(levels.values())
        sated = {flow for flow in waiting if demands[flow] - rates[flow] <= level * flow.weight}
        held = {flow for flow in waiting if any(levels[link] == level for link in paths[flow])}
        for flow in sated or held:
            share = min(demands[flow] - rates[flow], floor(level * flow.weight))
            rates[flow] += share
            _take(left, paths[flow], share)
        waiting -= sated or held


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

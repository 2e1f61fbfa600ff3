"""Hybrid: timeslices, plus rates on the capacity that they leave free."""

from collections.abc import Iterable, Sequence

from xco.topology.graph import Paths, Topology
from xco_strategies.rate import Flow, capacities, max_min_shares, paced
from xco_strategies.timeslice import Turn

LEAST_SHARE = 64
"""Less than this part of a host's rate is not worth a directive."""


def leftover_rates(
    topology: Topology, turns: Sequence[Turn], waiting: Iterable[Flow], pace_permille: int
) -> dict[Flow, int]:
    """Return the rates of flows that wait for their turn, in bits/s; omit those too small.

    The capacity that turns leave on each link is shared max-min fairly among the waiting flows. A
    host may have a turn to one destination and a rate to another, if its own link has room for
    both.
    """
    left = capacities(topology)
    paths = Paths(topology)
    taken = {(turn.host, turn.destination) for turn in turns}
    for turn in turns:
        for link in paths.path(turn.host, turn.destination):
            left[link] -= turn.rate_bps
    left = {link: paced(rate, pace_permille) for link, rate in left.items()}
    flows = [flow for flow in waiting if (flow.source, flow.destination) not in taken]
    rates = max_min_shares(topology, flows, left)
    return {
        flow: rate
        for flow, rate in rates.items()
        if rate >= topology.host_rate_bps(flow.source) // LEAST_SHARE
    }

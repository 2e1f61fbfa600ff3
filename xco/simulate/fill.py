"""Rates for flows that share links: equal shares as published, or max-min."""

import numpy as np

from xco.arrays import Flags, Floats
from xco.simulate.routes import Routes


def equal_shares(routes: Routes, capacity: Floats, senders: Flags) -> Floats:
    """Return min over its path of capacity / senders for each sender (paper, section 3.3).

    Takes bits/s of shape (links,) and which flows send, shape (flows,). Returns bits/s of shape
    (flows,), 0 for flows that do not send. On no link do the shares add up to more than its
    capacity.
    """
    crossing = routes.load(senders.astype(np.float64), len(capacity))
    return np.where(senders, routes.least(capacity / np.maximum(crossing, 1.0)), 0.0)


def max_min(routes: Routes, capacity: Floats, senders: Flags) -> Floats:
    """Return max-min rates: none can rise without lowering one that is not higher.

    Shapes and units are those of `equal_shares`. Water filling: a link that gives its flows no more
    than any other link would sets their rates; they are subtracted, and so on. Each round settles
    at least the flows of the link that can give least.
    """
    left, rates, unsettled = capacity.copy(), np.zeros(len(senders)), senders
    while unsettled.any():
        crossing = routes.load(unsettled.astype(np.float64), len(capacity))
        level = left / np.maximum(crossing, 1.0)
        least = routes.least(level)
        settled = unsettled & _held_by_one(routes, level, least, unsettled)
        rates[settled] = least[settled]
        left = np.maximum(left - routes.load(np.where(settled, least, 0.0), len(left)), 0.0)
        unsettled = unsettled & ~settled
    return rates


def _held_by_one(routes: Routes, level: Floats, least: Floats, unsettled: Flags) -> Flags:
    """Return which flows cross a link that is the tightest for all its unsettled flows."""
    tightest = np.full(len(level), np.inf)
    counted = unsettled[routes.flow_of_hop]
    np.minimum.at(tightest, routes.hops[counted], least[routes.flow_of_hop[counted]])
    holds = (tightest >= level) & np.isfinite(tightest)
    held: Flags = np.logical_or.reduceat(holds[routes.hops], routes.offsets)
    return held

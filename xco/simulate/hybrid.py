"""Timeslices, and rates for waiting flows: the strategy hybrid in the simulator."""

from time import perf_counter_ns

import numpy as np

from xco.arrays import Flags, Floats
from xco.simulate.fill import max_min
from xco.simulate.routes import Routes
from xco.simulate.timeslices import Timeslices

LEAST_SHARE = 1 / 64
"""Fraction of its host's rate: the controller grants no smaller rates."""


class Hybrid:
    """Timeslices, and max-min rates for waiting flows within the remaining capacity."""

    def __init__(self, slices: Timeslices, routes: Routes, capacity: Floats) -> None:
        """Take paths, and capacities in bits/s of shape (links,)."""
        self._slices, self._routes, self._capacity = slices, routes, capacity
        flows = len(routes.offsets)
        self._ready, self._granted = np.zeros(flows, np.bool_), np.zeros(flows)
        self._rates, self._filling_ns, self._filled = np.zeros(flows), 0, 0
        self._worthwhile = capacity[routes.hops[routes.offsets]] * LEAST_SHARE

    @property
    def events(self) -> int:
        """Number of decisions."""
        return self._slices.events

    @property
    def decisions(self) -> int:
        """Number of grants, and rates of waiting flows, given, changed or ended."""
        return self._slices.decisions + self._filled

    @property
    def spent_ns(self) -> int:
        """Wall time spent on decisions."""
        return self._slices.spent_ns + self._filling_ns

    def rates(self, slot: int, ready: Flags) -> Floats:
        """Return the granted bits/s, and for each waiting flow a share of the rest."""
        granted = self._slices.rates(slot, ready)
        same = np.array_equal(ready, self._ready) and np.array_equal(granted, self._granted)
        if not same:
            began = perf_counter_ns()
            rates = self._fill(granted, ready & (granted == 0))
            changed = (rates != self._rates) & (granted == self._granted)
            self._filled += int(np.count_nonzero(changed))
            self._ready, self._granted, self._rates = ready, granted, rates
            self._filling_ns += perf_counter_ns() - began
        return self._rates

    def _fill(self, granted: Floats, waiting: Flags) -> Floats:
        used = self._routes.load(granted, len(self._capacity))
        rates = max_min(self._routes, np.maximum(self._capacity - used, 0.0), waiting)
        return granted + np.where(rates >= self._worthwhile, rates, 0.0)

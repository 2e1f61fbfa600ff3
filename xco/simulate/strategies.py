"""Creates the coordination of a scenario."""

from xco.arrays import Floats
from xco.scheduler.native import NativeScheduler
from xco.scheduler.reference import PublishedScheduler
from xco.simulate.coordination import Coordination, RateLimits, Uncoordinated
from xco.simulate.hybrid import Hybrid
from xco.simulate.pairs import pairs
from xco.simulate.routes import Routes
from xco.simulate.scenario import Scenario
from xco.simulate.timeslices import Timeslices


def coordination_of(scenario: Scenario, routes: Routes, capacity: Floats) -> Coordination:
    """Return a strategy in its initial state; capacities in bits/s of shape (links,).

    Raises:
        CoreError: the compiled scheduler is asked for and not built.
    """
    if scenario.strategy == "uncoordinated":
        return Uncoordinated(capacity[routes.hops[routes.offsets]])
    if scenario.strategy == "rate":
        return RateLimits(routes, capacity)
    slices = _slices(scenario)
    return slices if scenario.strategy == "timeslice" else Hybrid(slices, routes, capacity)


def _slices(scenario: Scenario) -> Timeslices:
    of_hosts = pairs(scenario.traffic, len(scenario.topology.hosts))
    times = {
        "slot_ns": scenario.slot_ns,
        "slice_ns": scenario.slice_ns,
        "idle_slots": scenario.idle_slots,
    }
    if scenario.engine == "python":
        published = PublishedScheduler(scenario.topology, scenario.threshold_ns)
        return Timeslices(published, of_hosts, **times)
    native = NativeScheduler(
        scenario.topology,
        policy=scenario.policy,
        threshold_ns=scenario.threshold_ns,
    )
    return Timeslices(native, of_hosts, **times)

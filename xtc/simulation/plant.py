"""A model of a router that responds to its cap: Eq. 1 around a measured curve."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.units import CapFraction, PacketsPerSecond, Seconds
from models import ThroughputCurve

LAG_S = Seconds(1.0)
"""The period for which a plant's lag is given."""


@dataclass(frozen=True, slots=True)
class Plant:
    """The constants of a simulated router."""

    curve: ThroughputCurve
    offered: PacketsPerSecond
    lag: float = 0.0
    """`a` of Eq. 1 for a period of ``LAG_S``."""
    gain: float = 1.0
    """Speed of this router relative to its curve."""


@dataclass(frozen=True, slots=True)
class PlantState:
    """The state between steps."""

    throughput: PacketsPerSecond
    binding: bool = False
    """Whether the cap limited the router during the step."""
    used: CapFraction = CapFraction(0.0)
    """CPUs used on average during the step."""


def settled(plant: Plant, cap: CapFraction | None) -> PlantState:
    """Return the state of a router that has long been at the cap (None: uncapped)."""
    still = replace(plant, lag=0.0)
    return advanced(still, PlantState(PacketsPerSecond(0.0)), [cap], Seconds(1.0))


def advanced(
    plant: Plant,
    state: PlantState,
    caps: Sequence[CapFraction | None],
    dt: Seconds,
    *,
    stolen: float = 0.0,
) -> PlantState:
    """Simulate a step in which several caps were in force for equal parts.

    Args:
        plant: the router.
        state: the state before.
        caps: the caps of the equal parts of the step; None means uncapped.
        dt: the step's length in seconds; Eq. 1's lag is scaled to it.
        stolen: the share of the router's CPU that another process in it takes.
    """
    given = [1.0 if cap is None else cap for cap in caps]
    enough_for = [capacity(plant, cap, stolen) for cap in caps]
    reached = [min(each, plant.offered) for each in enough_for]
    used = [
        cap * min(1.0, plant.offered / max(each, 1e-9))
        for cap, each in zip(given, enough_for, strict=True)
    ]
    lag = plant.lag**dt
    throughput = lag * state.throughput + (1 - lag) * sum(reached) / len(reached)
    return PlantState(
        throughput=PacketsPerSecond(throughput),
        binding=any(each < plant.offered for each in enough_for),
        used=CapFraction(sum(used) / len(used)),
    )


def capacity(plant: Plant, cap: CapFraction | None, stolen: float = 0.0) -> float:
    """Return a router's capacity at a cap, in packets/s, independent of the offered load."""
    given = 1.0 if cap is None else cap
    return plant.gain * plant.curve.throughput(CapFraction(given * (1 - stolen)))

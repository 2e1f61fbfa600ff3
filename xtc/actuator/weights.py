"""The interface of what weighs a router: its floor, beside its cap, where the platform has one."""

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from xtc.spec import Original, Scale


class Arena(NamedTuple):
    """Where a router contends for the CPU, and as whom."""

    place: Hashable
    """The same for all that contend with each other."""
    member: str


class Weights(Protocol):
    """Weighs one router. Every method raises only ActuatorError and its subclasses."""

    @property
    def scale(self) -> Scale | None:
        """The weights that it takes; None where it takes none."""
        ...

    @property
    def cpus(self) -> int | None:
        """How many CPUs there are to share; None where that is not known."""
        ...

    @property
    def arena(self) -> Arena:
        """Where the router contends."""
        ...

    def rivals(self, but: Collection[str]) -> Mapping[str, int]:
        """Return the weights of all there but these members, by member."""
        ...

    def read(self) -> int:
        """Return the weight in force or under way.

        Raises:
            Unsupported: weights are out of force there.
            ActuatorError: the last one that was written failed; said once.
        """
        ...

    def claim(self, original: Original) -> Original:
        """Return an original with the weight that stands there now, unless it has one."""
        ...

    def disclaim(self, original: Original) -> Original:
        """Return an original that leaves the weight alone."""
        ...

    def standing(self, original: Original) -> int | None:
        """Return the weight that an original puts back; None where it leaves the weight alone."""
        ...

    def write(self, weight: int) -> None:
        """Write a weight; the original with its weight must be durable by now."""
        ...

    def contended(self) -> float | None:
        """Return the share of time in which the router waited for a CPU; None where unknown."""
        ...


@runtime_checkable
class Weighted(Protocol):
    """An actuator whose platform has weights."""

    @property
    def weights(self) -> Weights:
        """What weighs the router."""
        ...

"""The interface for a router's weight: its floor, next to its cap, where the platform has one."""

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from xtc.spec import Original, Scale


class Arena(NamedTuple):
    """Where a router contends for the CPU, and under which name."""

    place: Hashable
    """Equal for all that contend with each other."""
    member: str


class Weights(Protocol):
    """The weight of one router. Every method raises only ActuatorError and its subclasses."""

    @property
    def scale(self) -> Scale | None:
        """The weights that the platform accepts; None where it accepts none."""
        ...

    @property
    def cpus(self) -> int | None:
        """The number of CPUs to share; None where it is not known."""
        ...

    @property
    def arena(self) -> Arena:
        """The arena in which the router contends."""
        ...

    def rivals(self, but: Collection[str]) -> Mapping[str, int]:
        """Return the weights in the arena by member, without these members."""
        ...

    def read(self) -> int:
        """Return the weight in force or pending.

        Raises:
            Unsupported: weights have no effect there.
            ActuatorError: the last write failed; raised once.
        """
        ...

    def claim(self, original: Original) -> Original:
        """Return an original with the current weight, unless it already has one."""
        ...

    def disclaim(self, original: Original) -> Original:
        """Return an original that leaves the weight alone."""
        ...

    def standing(self, original: Original) -> int | None:
        """Return the weight that an original restores; None where it leaves the weight alone."""
        ...

    def write(self, weight: int) -> None:
        """Write a weight; the original with its weight must already be durable."""
        ...

    def contended(self) -> float | None:
        """Return the share of time in which the router waited for a CPU; None where unknown."""
        ...


@runtime_checkable
class Weighted(Protocol):
    """An actuator on a platform with weights."""

    @property
    def weights(self) -> Weights:
        """The router's weight."""
        ...

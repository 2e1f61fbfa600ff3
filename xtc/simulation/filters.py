"""Shields and limits of simulated routers: token buckets that drop before the host spends CPU.

They replace the BPF program and the kernel's token bucket of a real host.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.setpoint import Setpoint, Unit
from common.units import PacketsPerSecond
from xtc.errors import ActuatorError
from xtc.measure.collector import Side
from xtc.simulation.host import FRAME_BYTES
from xtc.simulation.token_bucket import passed

LIMIT_S = 0.05
"""Burst of a limit, in seconds of its rate."""


@dataclass
class Bucket:
    """One filter, in packets."""

    rate: float
    depth: float
    level: float = math.inf
    """Full at first."""
    dropped: float = 0.0

    def let_by(self, arrived: float, dt: float) -> float:
        """Return how many of the packets that arrive in a step pass."""
        self.level, let_by = passed(self.level, self.rate, self.depth, arrived, dt)
        self.dropped += arrived - let_by
        return let_by


class SimulatedShields:
    """Shields by router (`xtc.manager.shields.ShieldPort`)."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}
        self._bearing: dict[str, str] = {}
        """The router by interface."""

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, _side: Side
    ) -> Mapping[str, ActuatorError]:
        """Limit all interfaces together to a rate; this never fails."""
        self._bearing |= dict.fromkeys(interfaces, owner)
        self.change(owner, rate)
        return {}

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change a rate; tokens and counts stay."""
        scale = 1.0 if rate.unit is Unit.PACKETS else 1 / (8 * FRAME_BYTES)
        bucket = self._buckets.setdefault(owner, Bucket(0.0, 0.0))
        bucket.rate, bucket.depth = scale * rate.rate, scale * rate.allowance

    def dropped(self, owner: str) -> int | None:
        """Return how many packets were dropped, None where no limit was set."""
        bucket = self._buckets.get(owner)
        return None if bucket is None else int(bucket.dropped)

    def lift(self, interface: str) -> None:
        """Remove the limit from an interface."""
        self._bearing.pop(interface, None)

    def forget(self, owner: str) -> None:
        """Forget an owner that no longer has a limit."""
        self._buckets.pop(owner, None)

    def overruled(self, _interfaces: Iterable[str], _side: Side) -> str:
        """Return "": there are no foreign filters here."""
        return ""

    def on(self, interface: str) -> Bucket | None:
        """Return the filter of an interface."""
        return self._buckets.get(self._bearing.get(interface, ""))


class SimulatedLimits:
    """Limits by interface (`xtc.manager.limits.CountingLimiter`)."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def limit(self, interface: str, rate: PacketsPerSecond) -> None:
        """Limit what the host sends through an interface."""
        self._buckets[interface] = Bucket(rate, max(1.0, LIMIT_S * rate))

    def lift(self, interface: str) -> None:
        """Remove the limit."""
        self._buckets.pop(interface, None)

    def dropped(self, interfaces: Iterable[str]) -> Mapping[str, int]:
        """Return how many packets the limit on each interface has dropped since it was set."""
        there = {name: self._buckets.get(name) for name in interfaces}
        return {name: int(one.dropped) for name, one in there.items() if one is not None}

    def on(self, interface: str) -> Bucket | None:
        """Return the filter of an interface."""
        return self._buckets.get(interface)

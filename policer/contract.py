"""A contract: what one virtual router was promised, and what may be done when it misbehaves."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from policer.errors import Problem
from policer.ladder import Step
from policer.reach import TenantName

MAX_PPS = 1e9
"""No port of this decade forwards more; a larger number is a slip of the pen."""

Rate = Annotated[float, msgspec.Meta(gt=0, le=MAX_PPS, description="packets/s")]
RateOrZero = Annotated[float, msgspec.Meta(ge=0, le=MAX_PPS, description="packets/s")]
Weight = Annotated[float, msgspec.Meta(ge=0.001, le=1000)]
Packets = Annotated[float, msgspec.Meta(ge=0, le=1e12, description="packets")]
Cost = Annotated[float, msgspec.Meta(ge=0.01, le=100)]

BURST_MOST_S = 60.0
"""A burst of more seconds than that would leave nothing of a promise to be seen in a minute."""
# The bounds, which go with the rate, are judged by `contradictions`: it says what to write instead.
Burst = Annotated[
    float,
    msgspec.Meta(
        description=f"packets: 1 or more, and at most {BURST_MOST_S:g} s of the guarantee, or of "
        "the ceiling where nothing is guaranteed",
    ),
]

Punish = Literal["never", "when_harming", "always"]
"""What is sent to a router is not its own doing: it may be the victim of a flood. On a host that
has CPU to spare it harms nobody."""
DEFAULT_MEASURES = (Step.WARN, Step.LOWER, Step.LIMIT)
"""What a contract allows that does not say: nothing that stops a router's own traffic."""


class Contract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the operator promised one router (SLA)."""

    guarantee_pps: RateOrZero
    """Throughput that it gets whenever it wants it."""
    ceiling_pps: Rate | None = None
    """Throughput that it never gets more than, however idle the host; None is no ceiling."""
    weight: Weight = 1.0
    """Its part of what is left, beside the other routers' weights."""
    burst_packets: Packets = 0.0
    """What it may forward above its ceiling at once, saved up while it was below."""
    measures: tuple[Step, ...] = DEFAULT_MEASURES
    """What may be done to it when it misbehaves, from the mildest to the hardest."""
    dry_run: bool = False
    """Whether misbehaviour is only reported."""
    punish: Punish = "when_harming"
    """When it may be punished: never, while its host is contended, or always."""
    cost: Cost = 1.0
    """How much of the host's capacity one of its packets takes, beside an ordinary one."""
    burst: Burst | None = None
    """What a setpoint allows beyond its rate over any window, up or down; at most 60 s of the
    guarantee, or of the ceiling where nothing is guaranteed. None is 0.2 s of the setpoint in
    force."""
    tenant: TenantName | None = None
    """Whose router it is, for tokens that are limited to tenants; None is nobody's."""

    @property
    def ceiling(self) -> float:
        """The ceiling; infinite where there is none."""
        return float("inf") if self.ceiling_pps is None else self.ceiling_pps

    @property
    def reference_pps(self) -> float | None:
        """The rate that a burst goes with: the guarantee, or the ceiling; None without both."""
        return self.guarantee_pps or self.ceiling_pps

    def burst_at(self, setpoint_pps: float) -> float | None:
        """Return the burst that goes with a setpoint, in packets; None is the daemon's default.

        From the reference rate on it is the contract's. Below, it is as many seconds as at that
        rate: else a paused router could forward all of it at once.
        """
        if self.burst is None or self.reference_pps is None:
            return None
        return max(1.0, self.burst * min(1.0, setpoint_pps / self.reference_pps))


def contradictions(contract: Contract) -> Iterator[Problem]:
    """Say what in a contract contradicts itself, by field."""
    if contract.guarantee_pps > contract.ceiling:
        yield Problem(
            "ceiling_pps",
            f"{contract.ceiling:g} is below the guarantee of {contract.guarantee_pps:g}",
            "raise the ceiling, lower the guarantee, or leave the ceiling out",
        )
    if contract.burst_packets > 0 and contract.ceiling_pps is None:
        yield Problem(
            "burst_packets",
            "there is no ceiling that a burst could exceed",
            "give a ceiling, or leave the burst out",
        )
    yield from _problems_of_burst(contract)
    if list(contract.measures) != sorted(set(contract.measures), key=list(Step).index):
        yield Problem(
            "measures",
            f"{', '.join(contract.measures)}: each once, from the mildest to the hardest",
            f"keep this order: {', '.join(Step)}",
        )


def _problems_of_burst(contract: Contract) -> Iterator[Problem]:
    burst, rate = contract.burst, contract.reference_pps
    if burst is None:
        return
    if not burst >= 1:
        problem = f"{burst:g} packets; a burst is at least 1 packet"
        yield Problem("burst", problem, "give 1 or more, or leave it out for 0.2 s of the setpoint")
    elif rate is None:
        problem = "there is neither a guarantee nor a ceiling that a burst could go with"
        yield Problem("burst", problem, "give one of them, or leave the burst out")
    elif burst > (most := max(1.0, BURST_MOST_S * rate)) * (1 + 1e-9):
        name = "guarantee" if contract.guarantee_pps else "ceiling"
        problem = f"{burst:.10g} packets are more than {BURST_MOST_S:g} s of the {name}"
        yield Problem("burst", problem, f"give at most {most:.10g}")

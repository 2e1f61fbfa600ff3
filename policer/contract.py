"""A contract: what one virtual router was promised, and what may be done when it misbehaves."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from policer.errors import Problem
from policer.ladder import Step

MAX_PPS = 1e9
"""No port of this decade forwards more; a larger number is a slip of the pen."""

Rate = Annotated[float, msgspec.Meta(gt=0, le=MAX_PPS, description="packets/s")]
RateOrZero = Annotated[float, msgspec.Meta(ge=0, le=MAX_PPS, description="packets/s")]
Weight = Annotated[float, msgspec.Meta(ge=0.001, le=1000)]
Packets = Annotated[float, msgspec.Meta(ge=0, le=1e12, description="packets")]
Cost = Annotated[float, msgspec.Meta(ge=0.01, le=100)]

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
    cost: Cost = 1.0
    """How much of the host's capacity one of its packets takes, beside an ordinary one."""

    @property
    def ceiling(self) -> float:
        """The ceiling; infinite where there is none."""
        return float("inf") if self.ceiling_pps is None else self.ceiling_pps


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
    if list(contract.measures) != sorted(set(contract.measures), key=list(Step).index):
        yield Problem(
            "measures",
            f"{', '.join(contract.measures)}: each once, from the mildest to the hardest",
            f"keep this order: {', '.join(Step)}",
        )

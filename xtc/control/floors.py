"""CPU floors: the weights by which held routers get their CPU while others want it; pure.

A cap is a ceiling, and limits others. A weight is a floor: while the CPU is contended, each group
gets it in proportion to its weight. A router that needs the share m of a CPU gets it where its
weight is m times the sum of all weights that contend. Weights cost nothing while the CPU is free,
and a held router cannot use more than its cap, however large its weight.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from common.units import CapFraction, format_cap
from xtc.spec import Scale

AUTO: Final = "auto"
"""The weight of a router that follows its setpoint."""
KEEP: Final = "keep"
"""The weight of a router that is left alone."""
MARGIN: Final = 1.1
"""A need is taken for so much more: it is measured on one period, and caches are shared."""
KEPT: Final = 1.3
"""A need that was noted is kept until it is so many times what is needed now."""
REST: Final = 0.05
"""Share of each CPU that floors leave to others, as the kernel does for deadline threads."""
LEAST_SEEN: Final = 0.05
"""Share of its setpoint below which what a router forwards tells nothing of what packets cost."""
COVERED: Final = 0.98
"""A share of its need at which a router's floor counts as backed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One held router where several contend for the CPU."""

    need: CapFraction
    """CPUs that its setpoint needs."""
    standing: int
    """The weight that it had before xtc, below which it does not fall."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a router gets."""

    weight: int
    covers: CapFraction
    """CPUs that it is sure to get, on one CPU that all others want."""


def need_of(
    used: CapFraction, throughput: float, target: float, most: CapFraction
) -> CapFraction | None:
    """Return the CPUs that a setpoint needs, by what the packets of one period cost.

    Args:
        used: CPUs used.
        throughput: what was forwarded, in the setpoint's unit.
        target: the setpoint.
        most: the CPUs that it can use at most.

    Returns:
        None where too little was forwarded to tell.
    """
    if throughput < LEAST_SEEN * target or used <= 0:
        return None
    return CapFraction(min(used * target / throughput, most))


def noted(before: CapFraction | None, need: CapFraction) -> CapFraction:
    """Return the need to go by: the one of before while it covers the new one and is not far off.

    All weights of a group hang together, so that they change only where a need does.
    """
    if before is not None and need <= before <= KEPT * need:
        return before
    return CapFraction(MARGIN * need)


def grants(claims: Mapping[str, Claim], rivals: float, scale: Scale) -> dict[str, Grant]:
    """Return the weights with which every claim is covered against rivals of this weight in all.

    A claim that the standing weight covers keeps it. The sum T of all weights is then (rivals +
    standing weights kept) / (1 - the needs of the others), and these get their need times T. It
    rises with every claim that is raised, but where needs exceed the CPU: nobody falls below the
    weight that was standing then, either.
    """
    raised: set[str] = set()
    while True:
        total = _total(claims, raised, rivals)
        more = {
            name
            for name, claim in claims.items()
            if name not in raised and claim.need * total > claim.standing
        }
        if not more:
            break
        raised |= more
    return _expressed(claims, raised, rivals, scale)


def _total(claims: Mapping[str, Claim], raised: set[str], rivals: float) -> float:
    fixed = sum(claim.standing for name, claim in claims.items() if name not in raised)
    share = sum(claims[name].need for name in raised)
    return (rivals + fixed) / (1 - min(share, 1 - REST))


def _expressed(
    claims: Mapping[str, Claim], raised: set[str], rivals: float, scale: Scale
) -> dict[str, Grant]:
    """Return weights in the platform's range; where it ends, all that are raised shrink alike."""
    total = _total(claims, raised, rivals)
    highest = max((claims[name].need * total for name in raised), default=0.0)
    unit = total * (min(1.0, scale.most / highest) if highest else 1.0)
    weights = {name: claim.standing for name, claim in claims.items()}
    for name in raised:
        weights[name] = _within(max(claims[name].need * unit, claims[name].standing), scale)
    against = _on_one_cpu(claims, raised, weights, rivals)
    return {
        name: Grant(weight, CapFraction(weight / against if against else 1.0))
        for name, weight in weights.items()
    }


def _within(weight: float, scale: Scale) -> int:
    """Return the whole weight that is not below a wanted one, within the range."""
    return min(max(math.ceil(weight), scale.least), scale.most)


def _on_one_cpu(
    claims: Mapping[str, Claim], raised: set[str], weights: Mapping[str, int], rivals: float
) -> float:
    """Return all weights that can want one CPU: of routers that need more, as many as fit."""
    share = sum(claims[name].need for name in raised)
    fit = min(1.0, (1 - REST) / share) if share else 1.0
    fixed = sum(weight for name, weight in weights.items() if name not in raised)
    return rivals + fixed + fit * sum(weights[name] for name in raised)


def fits(total: float, cpus: int) -> bool:
    """Whether the needs of all held routers are backed by so many CPUs."""
    return total <= (1 - REST) * cpus


def shortage(name: str, needs: Mapping[str, CapFraction], cpus: int) -> str:
    """Say that a router's need is not backed by what the host has; "" where it is.

    Args:
        name: the router.
        needs: of every held router, itself included.
        cpus: of the host.
    """
    if name not in needs or fits(sum(needs.values()), cpus):
        return ""
    left = max(0.0, (1 - REST) * cpus - sum(need for other, need in needs.items() if other != name))
    return (
        f"its setpoint needs {format_cap(needs[name])} and {format_cap(CapFraction(left))} is left "
        f"of {cpus * 100}%: lower setpoints, or move a router"
    )


def uncovered(need: CapFraction, grant: Grant, scale: Scale) -> str:
    """Say that the largest weight does not cover a need; "" where a weight does."""
    if grant.weight < scale.most or grant.covers >= COVERED * min(need, 1 - REST):
        return ""
    return (
        f"{scale.parameter} {grant.weight} covers {format_cap(grant.covers)} of the "
        f"{format_cap(need)} that its setpoint needs: lower the weights of others next to it"
    )

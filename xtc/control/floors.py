"""CPU floors: weights that secure CPU for controlled routers under contention; pure.

A cap is a ceiling, and limits others. A weight is a floor: while the CPU is contended, each group
gets it in proportion to its weight. A router that needs the share m of a CPU gets it if its weight
is m times the sum of all contending weights. Weights cost nothing while the CPU is free, and a
controlled router cannot use more than its cap at any weight.
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
"""Factor on a need: it is measured in one period, and caches are shared."""
KEPT: Final = 1.3
"""A noted need is kept until it exceeds the current need by this factor."""
REST: Final = 0.05
"""Share of each CPU that floors leave to others, as the kernel does for deadline threads."""
LEAST_SEEN: Final = 0.05
"""Share of its setpoint below which throughput does not show the cost of packets."""
COVERED: Final = 0.98
"""Share of its need from which a router's floor counts as covering it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One controlled router among those that contend for the CPU."""

    need: CapFraction
    """CPUs that its setpoint needs."""
    standing: int
    """Its weight before xtc, a lower bound."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The result for a router."""

    weight: int
    covers: CapFraction
    """CPUs that are guaranteed to it, on one CPU that all others want."""


def need_of(
    used: CapFraction, throughput: float, target: float, most: CapFraction
) -> CapFraction | None:
    """Return the CPUs that a setpoint needs, from the cost of packets in one period.

    Args:
        used: CPUs used.
        throughput: in the setpoint's unit.
        target: the setpoint.
        most: the most CPUs that it can use.

    Returns:
        None where throughput was too low.
    """
    if throughput < LEAST_SEEN * target or used <= 0:
        return None
    return CapFraction(min(used * target / throughput, most))


def noted(before: CapFraction | None, need: CapFraction) -> CapFraction:
    """Return the need to use: the previous one while it covers the new one and is close.

    The weights of a group depend on each other, so they should change only with a need.
    """
    if before is not None and need <= before <= KEPT * need:
        return before
    return CapFraction(MARGIN * need)


def grants(claims: Mapping[str, Claim], rivals: float, scale: Scale) -> dict[str, Grant]:
    """Return weights that cover every claim against rivals of this total weight.

    A claim that its standing weight covers keeps that weight. The sum T of all weights is then
    (rivals + standing weights kept) / (1 - the needs of the others), and these get their need times
    T. T rises with every raised claim, except where needs exceed the CPU. Even then, no weight
    falls below the standing one.
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
    """Return weights in the platform's range; beyond it, all raised ones shrink alike."""
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
    """Return the smallest whole weight not below a wanted one, within the range."""
    return min(max(math.ceil(weight), scale.least), scale.most)


def _on_one_cpu(
    claims: Mapping[str, Claim], raised: set[str], weights: Mapping[str, int], rivals: float
) -> float:
    """Return the total weight that can contend for one CPU: as many large routers as fit."""
    share = sum(claims[name].need for name in raised)
    fit = min(1.0, (1 - REST) / share) if share else 1.0
    fixed = sum(weight for name, weight in weights.items() if name not in raised)
    return rivals + fixed + fit * sum(weights[name] for name in raised)


def fits(total: float, cpus: int) -> bool:
    """Whether this many CPUs cover the needs of all controlled routers."""
    return total <= (1 - REST) * cpus


def shortage(name: str, needs: Mapping[str, CapFraction], cpus: int) -> str:
    """Return that the host's CPUs do not cover a router's need; "" if they do.

    Args:
        name: the router.
        needs: of every controlled router, including itself.
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
    """Return that the largest weight does not cover a need; "" if a weight does."""
    if grant.weight < scale.most or grant.covers >= COVERED * min(need, 1 - REST):
        return ""
    return (
        f"{scale.parameter} {grant.weight} covers {format_cap(grant.covers)} of the "
        f"{format_cap(need)} that its setpoint needs: lower the weights of others next to it"
    )

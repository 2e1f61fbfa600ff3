"""Advice of `xtc config check` on CPU floors: how each router gets one, and groups above it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from common.errors import ConfigError
from common.setpoint import Unit
from common.units import CapFraction
from xtc.config.host_facts import HostFacts, is_on_groups
from xtc.config.plan import RouterPlan
from xtc.control.floors import KEEP, shortage
from xtc.kernel.weights import Level
from xtc.spec import CgroupSpec, DeadlineSpec, LibvirtSpec, SimulatedSpec

SHOWN = 3
"""Maximum rivals that are named."""
HEAVIER = 10
"""Recommended weight for groups that contain routers, in multiples of the default."""


class FloorWay(msgspec.Struct, frozen=True):
    """How a router gets its floor."""

    router: str
    way: str
    """The weight's name, `reservation` or `none`."""
    advice: str = ""
    """What the operator must do."""


def floor_ways(planned: Mapping[str, RouterPlan], facts: HostFacts) -> tuple[FloorWay, ...]:
    """Return how each router gets its floor; advice on a group above several appears once."""
    told: set[str] = set()
    found = []
    for name, plan in planned.items():
        if isinstance(plan.spec, SimulatedSpec):
            continue  # a model does not share its CPU
        way = _way(plan, facts.levels.get(name, ()))
        advice = [] if way == "none" else list(_advice(plan, facts.levels.get(name, ())))
        found.append(FloorWay(name, way, "; ".join(one for one in advice if one not in told)))
        told.update(advice)
    return tuple(found)


def _way(plan: RouterPlan, levels: tuple[Level, ...]) -> str:
    if isinstance(plan.spec, DeadlineSpec):
        return "reservation"
    if plan.weight == KEEP:
        return "none"
    if isinstance(plan.spec, LibvirtSpec):
        return "cpu_shares" if is_on_groups(plan.spec) else "weight"
    return levels[0].scale.parameter if levels else "none"


def _advice(plan: RouterPlan, levels: tuple[Level, ...]) -> Iterator[str]:
    """Yield advice on groups above a router that weigh no more than others."""
    above = levels[1:] if isinstance(plan.spec, CgroupSpec) else levels
    for level in above:
        if level.rivals and level.weight <= level.scale.default:
            yield _heavier(level)
    if isinstance(plan.spec, CgroupSpec) and levels and levels[0].weight == 0:
        yield f"{levels[0].path} is idle: write 0 into its cpu.idle"


def _heavier(level: Level) -> str:
    shown = ", ".join(level.rivals[:SHOWN]) + (" ..." if len(level.rivals) > SHOWN else "")
    weight, name = HEAVIER * level.scale.default, Path(level.path).name
    how = f"echo {weight} > {level.path}/{level.scale.parameter}"
    if name.endswith((".slice", ".scope", ".service")):
        how = f"systemctl set-property {name} CPUWeight={HEAVIER * 100}"
    return (
        f"{level.path} has {level.scale.parameter} {level.weight} against {shown}, "
        f"which can take the CPU of all routers in it: {how}"
    )


def unbacked(planned: Mapping[str, RouterPlan], cpus: int) -> Iterator[ConfigError]:
    """Yield the configured setpoints that need more CPU than the host has, by their models."""
    needs = {name: need for name, plan in planned.items() if (need := _need(plan)) is not None}
    for name in needs:
        if words := shortage(name, needs, cpus):
            yield ConfigError(f"router.{name}.setpoint", words)


def _need(plan: RouterPlan) -> CapFraction | None:
    """Return the CPU that a configured setpoint needs; None without a model."""
    setpoint, spec = plan.setpoint, plan.spec
    here = isinstance(spec, CgroupSpec | DeadlineSpec) or (
        isinstance(spec, LibvirtSpec) and is_on_groups(spec)
    )
    if plan.model is None or setpoint is None or setpoint.unit is not Unit.PACKETS or not here:
        return None
    return CapFraction(plan.model.curve.cap_for_clamped(setpoint.rate))

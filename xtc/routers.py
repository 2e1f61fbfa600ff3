"""From the words of the configuration to what the loop works with: one plan for each router."""

import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from models import HostModel, ModelError, bundled_host, bundled_names, load_host
from xtc.actuator.base import CapLimits
from xtc.actuator.spec import ActuatorSpec, LibvirtSpec
from xtc.collector import Binding, Side
from xtc.config import Config, RouterSection
from xtc.errors import ConfigError, UnitError
from xtc.instance import Profile
from xtc.law import Bounds, PaperLaw
from xtc.laws import law_named
from xtc.units import (
    CapFraction,
    PacketsPerSecond,
    Seconds,
    check_rate,
    parse_cap,
    parse_rate,
)


@dataclass(frozen=True)
class RouterPlan:
    """One router of the configuration, checked."""

    name: str
    spec: ActuatorSpec
    binding: Binding
    law: str
    model: HostModel | None
    setpoint: PacketsPerSecond | None
    floor: CapFraction | None
    ceiling: CapFraction | None
    safe_cap: CapFraction | None
    observe: bool = False

    @property
    def domain(self) -> LibvirtSpec | None:
        """The domain whose interfaces are its own, where the configuration names none."""
        named = self.binding.patterns or self.binding.domid
        return self.spec if isinstance(self.spec, LibvirtSpec) and not named else None

    def profile(self, limits: CapLimits, period: Seconds) -> Profile:
        """Return what the loop needs, within what the actuator can express."""
        floor = max(limits.floor, self.floor or limits.floor)
        ceiling = min(limits.ceiling, self.ceiling or limits.ceiling)
        return Profile(
            law=law_named(self.law, self.model, period=period),
            bounds=_expressible(floor, ceiling, limits.quantum),
            quantum=limits.quantum,
            period=period,
            default_setpoint=self.setpoint,
            safe_cap=self.safe_cap,
        )


def _expressible(floor: float, ceiling: float, quantum: float) -> Bounds:
    """Return the bounds, drawn in to what can be set in steps of the quantum."""
    if quantum > 0:
        floor = math.ceil(floor / quantum - 1e-9) * quantum
        ceiling = max(math.floor(ceiling / quantum + 1e-9), 1) * quantum
    return Bounds(CapFraction(min(floor, ceiling)), CapFraction(ceiling))


def plans(config: Config) -> dict[str, RouterPlan]:
    """Return a plan for every router.

    Raises:
        ConfigError: names the router and the field, and what to do.
    """
    found = {name: _plan(name, section) for name, section in config.router.items()}
    for plan in found.values():
        _check_gains(plan, config.daemon.period_s)
    _check_apart(found)
    return found


def _plan(name: str, section: RouterSection) -> RouterPlan:
    where = f"router.{name}"
    found_by_itself = isinstance(section.actuator, LibvirtSpec)
    if not (section.interfaces or section.domid or found_by_itself):
        raise ConfigError(where, "no interfaces", 'give interfaces = ["vif7.*"] or domid = 7')
    _check_local(section, f"{where}.actuator.uri")
    law_named(section.law, where=f"{where}.law")
    plan = RouterPlan(
        name=name,
        spec=section.actuator,
        binding=Binding(section.interfaces, section.domid, Side(section.side)),
        law=section.law,
        model=None if section.model is None else model_named(section.model, f"{where}.model"),
        setpoint=_rate(section.setpoint, f"{where}.setpoint"),
        floor=_cap(section.floor, f"{where}.floor"),
        ceiling=_cap(section.ceiling, f"{where}.ceiling"),
        safe_cap=_cap(section.safe_cap, f"{where}.safe_cap"),
        observe=section.observe,
    )
    if plan.floor is not None and plan.ceiling is not None and plan.floor > plan.ceiling:
        raise ConfigError(f"{where}.floor", "above the ceiling", "swap them")
    return plan


def _check_gains(plan: RouterPlan, period: float) -> None:
    """Refuse gains that were designed for samples of another period: they hold for no other."""
    law = law_named(plan.law)
    if plan.model is None or not isinstance(law, PaperLaw):
        return
    gains = plan.model.pi if plan.law == "pi" else plan.model.dead_beat
    if gains is not None and not math.isclose(gains.period, period, rel_tol=0.01):
        raise ConfigError(
            f"router.{plan.name}.law",
            f"the gains of {plan.model.name} are for samples of {gains.period:g} s, "
            f"the daemon's come every {period:g} s",
            f"set daemon.period_s = {gains.period:g}, measure anew, or take the default law",
        )


def _check_local(section: RouterSection, where: str) -> None:
    """Refuse another machine's hypervisor: its interfaces are not counted here."""
    spec = section.actuator
    if isinstance(spec, LibvirtSpec) and spec.uri is not None and urlsplit(spec.uri).hostname:
        raise ConfigError(where, f"{spec.uri} is another machine", "run an xtc there")


def model_named(name: str, where: str = "model") -> HostModel:
    """Return a model file's host, or one that comes with xtc.

    Raises:
        ConfigError: the file is not there or not a model.
    """
    try:
        return bundled_host(name) if name in bundled_names() else load_host(Path(name))
    except ModelError as error:
        raise ConfigError(where, str(error)) from error


def _rate(value: str | float | None, where: str) -> PacketsPerSecond | None:
    if value is None:
        return None
    try:
        return (
            parse_rate(value, field=where)
            if isinstance(value, str)
            else check_rate(value, field=where)
        )
    except UnitError as error:
        raise ConfigError(where, f"{error.got} is not {error.expected}") from error


def _cap(value: str | float | None, where: str) -> CapFraction | None:
    if value is None:
        return None
    try:
        return parse_cap(str(value), field=where)
    except UnitError as error:
        raise ConfigError(where, f"{error.got} is not {error.expected}") from error


def _check_apart(found: dict[str, RouterPlan]) -> None:
    """Refuse two routers whose caps would go to the same place."""
    owners: dict[ActuatorSpec, str] = {}
    for name, plan in found.items():
        other = owners.setdefault(plan.spec, name)
        if other != name:
            raise ConfigError(
                f"router.{name}.actuator", f"the same as router.{other}'s", "one router, one cap"
            )

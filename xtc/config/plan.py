"""Turns the configuration into one plan for each router."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from common.burst import check_burst, parse_burst
from common.errors import ConfigError, Mistakes, UnitError
from common.setpoint import Setpoint, Unit, parse_setpoint
from common.units import (
    CapFraction,
    PacketsPerSecond,
    Seconds,
    check_rate,
    parse_cap,
    parse_rate,
)
from models import HostModel, ModelError, bundled_host, bundled_names, load_host
from xtc.actuator.base import CapLimits
from xtc.actuator.places import Place, Spot, place_of
from xtc.config.schema import Config, LimiterSection, RouterSection
from xtc.control.floors import AUTO, KEEP
from xtc.control.instance import Profile
from xtc.control.law import HEADROOM, Bounds, PaperLaw
from xtc.control.laws import NAMES, NAMES_IN_BITS, law_in_bits, law_named
from xtc.measure.collector import Binding, Side
from xtc.shield.exemptions import DEFAULT, Exemptions
from xtc.spec import CGROUP_V1, ActuatorSpec, LibvirtSpec, SimulatedSpec

_Value = TypeVar("_Value")
OWN_COUNTERS = ("/proc/net/dev", "/proc/self/net/dev")
"""The counters of the daemon's own network namespace."""


@dataclass(frozen=True)
class RouterPlan:
    """One router of the configuration, checked."""

    name: str
    spec: ActuatorSpec
    binding: Binding
    law: str
    model: HostModel | None
    setpoint: Setpoint | None
    floor: CapFraction | None
    ceiling: CapFraction | None
    safe_cap: CapFraction | None
    headroom: float = HEADROOM
    """Behind a shield, its cap in multiples of its CPU need."""
    observe: bool = False
    shield: bool = False
    """Whether the host drops what exceeds its setpoint while it is controlled."""
    weight: str | int = KEEP
    """`auto`, `keep`, or its weight while it is controlled."""
    one_interface: bool = False
    """Whether packets arrive and leave through one interface: no other one was forgotten."""

    @property
    def domain(self) -> LibvirtSpec | None:
        """The domain that provides its interfaces, where the configuration names none."""
        named = self.binding.patterns or self.binding.domid
        return self.spec if isinstance(self.spec, LibvirtSpec) and not named else None

    def profile(self, limits: CapLimits, period: Seconds) -> Profile:
        """Return the loop's parameters, within the limits of the actuator."""
        floor = max(limits.floor, self.floor or limits.floor)
        ceiling = min(limits.ceiling, self.ceiling or limits.ceiling)
        return Profile(
            law=law_named(self.law, self.model, period=period),
            bounds=replace(_expressible(floor, ceiling, limits.quantum), headroom=self.headroom),
            quantum=limits.quantum,
            period=period,
            default_setpoint=self.setpoint,
            safe_cap=self.safe_cap,
            law_in_bits=law_in_bits(self.model, period=period),
        )


def _expressible(floor: float, ceiling: float, quantum: float) -> Bounds:
    """Return the bounds, reduced to multiples of the quantum."""
    if quantum > 0:
        floor = math.ceil(floor / quantum - 1e-9) * quantum
        ceiling = max(math.floor(ceiling / quantum + 1e-9), 1) * quantum
    return Bounds(CapFraction(min(floor, ceiling)), CapFraction(ceiling))


def plans(
    config: Config, *, place: Callable[[ActuatorSpec], Place] = place_of
) -> dict[str, RouterPlan]:
    """Return a plan for every router.

    Args:
        config: the merged files.
        place: finds the place of a cap on this host.

    Raises:
        ConfigError: names the router, the field and the fix; `ConfigErrors` where there are
            several mistakes.
    """
    mistakes, found = Mistakes(), dict[str, RouterPlan]()
    for name, section in config.router.items():
        with mistakes.noted():
            plan = _plan(name, section)
            shield, weight = _shielded(config, section), _weighed(config, section)
            found[name] = replace(plan, shield=shield, weight=weight)
            _check_gains(found[name], config.daemon.period_s)
    with mistakes.noted():
        _check_apart(found, place)
    mistakes.check()
    return found


def _plan(name: str, section: RouterSection) -> RouterPlan:
    where = f"router.{name}"
    mistakes = Mistakes()
    for check in (_check_counted, _check_local, _check_law, _check_burst, _check_weight):
        with mistakes.noted():
            check(section, where)
    values = _Values(section, where, mistakes)
    plan = RouterPlan(
        name=name,
        spec=section.actuator,
        binding=Binding(section.interfaces, section.domid, Side(section.side)),
        law=section.law,
        model=values.model(),
        setpoint=values.setpoint(),
        floor=values.cap("floor"),
        ceiling=values.cap("ceiling"),
        safe_cap=values.cap("safe_cap"),
        headroom=section.headroom,
        one_interface=section.one_interface,
        observe=section.observe,
    )
    for check_plan in (_check_bounds, _check_unit):
        with mistakes.noted():
            check_plan(plan, where)
    mistakes.check()
    return plan


def _shielded(config: Config, section: RouterSection) -> bool:
    """Whether a router has a shield; interfaces of another namespace are out of reach."""
    wanted = config.limiter.shield and section.shield
    here = config.daemon.proc_net_dev in OWN_COUNTERS
    return wanted and here and not isinstance(section.actuator, SimulatedSpec)


def _weighed(config: Config, section: RouterSection) -> str | int:
    """Return the setting of a router's weight; a number has precedence over the global setting."""
    return KEEP if section.weight == AUTO and not config.daemon.floors else section.weight


def _check_counted(section: RouterSection, where: str) -> None:
    found_by_itself = isinstance(section.actuator, LibvirtSpec)
    if not (section.interfaces or section.domid or found_by_itself):
        raise ConfigError(where, "no interfaces", 'give interfaces = ["vif7.*"] or domid = 7')


def _check_law(section: RouterSection, where: str) -> None:
    law_named(section.law, where=f"{where}.law")


def _check_burst(section: RouterSection, where: str) -> None:
    if section.burst is not None and section.setpoint is None:
        raise ConfigError(f"{where}.burst", "no setpoint", "a burst goes with one: give it too")


def _check_weight(section: RouterSection, where: str) -> None:
    weight, most = section.weight, CGROUP_V1.most
    if weight in {AUTO, KEEP} or (isinstance(weight, int) and 1 <= weight <= most):
        return
    fix = f'write "{AUTO}", "{KEEP}", or a number from 1 to {most}'
    raise ConfigError(f"{where}.weight", f"{weight!r} is no weight", fix)


def _check_bounds(plan: RouterPlan, where: str) -> None:
    if plan.floor is not None and plan.ceiling is not None and plan.floor > plan.ceiling:
        raise ConfigError(f"{where}.floor", "above the ceiling", "swap them")


def _check_unit(plan: RouterPlan, where: str) -> None:
    """Refuse bits/s for a law that supports packets/s only."""
    in_bits = plan.setpoint is not None and plan.setpoint.unit is Unit.BITS
    if in_bits and plan.law in NAMES and plan.law not in NAMES_IN_BITS:
        fix = f"give packets/s, such as 20kpps, or take the law {' or '.join(NAMES_IN_BITS)}"
        raise ConfigError(f"{where}.setpoint", f"law {plan.law} holds no bits/s", fix)


def _check_gains(plan: RouterPlan, period: float) -> None:
    """Refuse gains that were designed for another period: they are invalid for this one."""
    check_gains(plan.law, plan.model, period, where=f"router.{plan.name}.law")


def check_gains(name: str, model: HostModel | None, period: float, *, where: str) -> None:
    """Refuse a model's gains for a loop with another sampling period.

    Raises:
        ConfigError: they were designed for another period.
    """
    if model is None or not isinstance(law_named(name), PaperLaw):
        return
    gains = model.pi if name == "pi" else model.dead_beat
    if gains is not None and not math.isclose(gains.period, period, rel_tol=0.01):
        raise ConfigError(
            where,
            f"the gains of {model.name} are for samples of {gains.period:g} s, "
            f"the daemon's come every {period:g} s",
            f"set daemon.period_s = {gains.period:g}, measure again, or take the default law",
        )


def _check_local(section: RouterSection, where: str) -> None:
    """Refuse the hypervisor of another machine: its interfaces are not counted here."""
    spec = section.actuator
    if isinstance(spec, LibvirtSpec) and spec.uri is not None and urlsplit(spec.uri).hostname:
        problem = f"{spec.uri} is another machine"
        raise ConfigError(f"{where}.actuator.uri", problem, "run xtc on that machine")


def model_named(name: str, where: str = "model") -> HostModel:
    """Return the host of a model file, or a bundled one.

    Raises:
        ConfigError: the file is missing or not a model.
    """
    try:
        return bundled_host(name) if name in bundled_names() else load_host(Path(name))
    except ModelError as error:
        raise ConfigError(where, str(error)) from error


def exempted(section: LimiterSection) -> tuple[Exemptions, PacketsPerSecond]:
    """Return the traffic that limits exempt, and its rate.

    Raises:
        ConfigError: an entry or the rate cannot be used.
    """
    where = "limiter.exempt_pps"
    try:
        rate = _rate(section.exempt_pps, where)
    except UnitError as error:
        raise ConfigError(where, f"{error.got!r} is not {error.expected}") from error
    if rate < 1:
        raise ConfigError(where, f"{rate:g} is less than 1 packet/s", "give 1 or more")
    try:
        return Exemptions.parse([*DEFAULT, *section.exempt], where="limiter.exempt"), rate
    except UnitError as error:
        raise ConfigError("limiter.exempt", f"{error.got!r} is not {error.expected}") from error


class _Values:
    """Reads the values of one router; unreadable ones are noted and become None."""

    def __init__(self, section: RouterSection, where: str, mistakes: Mistakes) -> None:
        self._section, self._where, self._mistakes = section, where, mistakes

    def model(self) -> HostModel | None:
        name = self._section.model
        with self._mistakes.noted():
            return None if name is None else model_named(name, f"{self._where}.model")
        return None

    def setpoint(self) -> Setpoint | None:
        """Return the setpoint with its burst."""
        setpoint = self._read("setpoint", _setpoint)
        if setpoint is None or self._section.burst is None:
            return setpoint
        burst = self._read("burst", partial(_burst, setpoint))
        return replace(setpoint, burst=burst)

    def cap(self, key: str) -> CapFraction | None:
        return self._read(key, _cap)

    def _read(self, key: str, read: Callable[[str | float, str], _Value]) -> _Value | None:
        value, field = getattr(self._section, key), f"{self._where}.{key}"
        with self._mistakes.noted():
            try:
                return None if value is None else read(value, field)
            except UnitError as error:
                got = f'"{error.got}"' if isinstance(value, str) else error.got
                raise ConfigError(field, f"{got} is not {error.expected}") from error
        return None


def _rate(value: str | float, where: str) -> PacketsPerSecond:
    read = parse_rate(value, field=where) if isinstance(value, str) else value
    return check_rate(read, field=where)


def _setpoint(value: str | float, where: str) -> Setpoint:
    if isinstance(value, str):
        return parse_setpoint(value, field=where)
    return Setpoint(check_rate(value, field=where))


def _burst(setpoint: Setpoint, value: str | float, where: str) -> float:
    if isinstance(value, str):
        return parse_burst(value, setpoint, field=where)
    if setpoint.unit is Unit.BITS:
        raise UnitError(where, f"{value:g}", "a burst in bits: write it as text, such as 2Mb")
    return check_burst(value, setpoint, field=where)


def _cap(value: str | float, where: str) -> CapFraction:
    return parse_cap(str(value), field=where)


def _check_apart(found: Mapping[str, RouterPlan], place: Callable[[ActuatorSpec], Place]) -> None:
    """Refuse two routers with caps at the same place."""
    owners: dict[Spot, str] = {}
    mistakes = Mistakes()
    for name, plan in found.items():
        spots = place(plan.spec)
        others = {owners[spot] for spot in spots if spot in owners}
        owners |= dict.fromkeys(spots, name)
        mistakes.found += [
            ConfigError(
                f"router.{name}.actuator", f"the same as router.{other}'s", "one router, one cap"
            )
            for other in sorted(others)
        ]
    mistakes.check()

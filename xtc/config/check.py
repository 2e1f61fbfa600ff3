"""Checks a whole configuration: its text, its values, and its fit to this host."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import msgspec

from common.errors import ConfigError, mistakes_of
from common.units import Seconds
from xtc.actuator.factory import probe
from xtc.config.file import config_files, key_places, load_config, located
from xtc.config.floor_check import FloorWay, floor_ways
from xtc.config.host_check import check_host, owned_interfaces
from xtc.config.host_facts import AS_ROOT, HostFacts, look
from xtc.config.plan import RouterPlan, exempted, plans
from xtc.config.schema import Config
from xtc.config.timing import check_followed, check_timing
from xtc.measure.collector import Side
from xtc.shield.limiter import BestLimiter
from xtc.shield.methods import Choice, Way
from xtc.spec import SimulatedSpec


class Mistake(msgspec.Struct, frozen=True):
    """One mistake or warning, for programs."""

    at: str
    """File and line, or the file only."""
    key: str
    problem: str
    fix: str


class LimitWay(msgspec.Struct, frozen=True):
    """How traffic from the host into a router through one interface would be limited."""

    router: str
    interface: str
    way: str
    """`clsact`, `tbf` or `none`."""
    reason: str
    """Why no cheaper method is used."""
    shield: bool = False
    """Whether it carries the router's shield while the router is controlled."""


class Checked(msgspec.Struct, frozen=True):
    """Result of a check."""

    files: tuple[str, ...]
    routers: tuple[str, ...]
    """Empty where the configuration cannot be read."""
    mistakes: tuple[Mistake, ...]
    """Mistakes: the daemon refuses them, or cannot carry them out on this host."""
    warnings: tuple[Mistake, ...]
    """Doubtful settings on this host."""
    limits: tuple[LimitWay, ...] = ()
    """How each interface would be limited."""
    floors: tuple[FloorWay, ...] = ()
    """How each router gets its CPU floor."""


def check_file(path: Path) -> tuple[Checked, tuple[ConfigError, ...], tuple[ConfigError, ...]]:
    """Return the result of checking a configuration, then its mistakes and warnings as errors."""
    files = tuple(str(file) for file in config_files(path))
    routers: tuple[str, ...] = ()
    warnings: tuple[ConfigError, ...] = ()
    limits: tuple[LimitWay, ...] = ()
    floors: tuple[FloorWay, ...] = ()
    try:
        config, planned = load_checked(path)
    except ConfigError as error:
        mistakes = mistakes_of(error)
    else:
        routers = tuple(sorted(planned))
        facts = look(config.daemon, planned.values())
        mistakes = _unsupported(planned)
        warnings = _placed(check_host(planned, facts), path)
        limits = limit_ways(planned, facts, BestLimiter().choice)
        floors = floor_ways(planned, facts)
    found = _for_programs(mistakes), _for_programs(warnings)
    told = Checked(files, routers, *found, limits, floors)
    return told, mistakes, warnings


def limit_ways(
    planned: Mapping[str, RouterPlan], facts: HostFacts, choice: Callable[[str], Choice]
) -> tuple[LimitWay, ...]:
    """Return how each interface from the host into a router would be limited.

    Args:
        planned: every router.
        facts: of the host.
        choice: returns the method for one interface, and why no cheaper one is used.
    """
    owned = owned_interfaces(planned, facts)
    ways = []
    for name, plan in planned.items():
        if plan.binding.side is Side.ROUTER or isinstance(plan.spec, SimulatedSpec):
            continue  # there the host does not send through the counted interfaces
        for interface in sorted(owned[name]):
            found = choice(interface)
            shield = plan.shield and found.way is Way.CLSACT
            ways.append(LimitWay(name, interface, found.way.value, found.reason, shield))
    return tuple(ways)


def load_checked(path: Path) -> tuple[Config, dict[str, RouterPlan]]:
    """Return a configuration and its plans.

    Raises:
        ConfigError: the daemon would refuse it.
    """
    config = load_config(path)
    with located(path):
        planned = plans(config)
        exempted(config.limiter)
        check_timing(Seconds(config.daemon.period_s), Seconds(config.daemon.meter_period_s), None)
        check_followed(planned, Seconds(config.daemon.period_s))
    return config, planned


def doubts(
    config: Config, planned: Mapping[str, RouterPlan], path: Path | None
) -> tuple[ConfigError, ...]:
    """Return doubtful settings of a configuration on this host, with file and line."""
    return _placed(check_host(planned, look(config.daemon, planned.values())), path)


def _placed(found: tuple[ConfigError, ...], path: Path | None) -> tuple[ConfigError, ...]:
    if path is None or not found:
        return found
    places = key_places(path)
    return tuple(error.placed(places.find(error.where) or str(path)) for error in found)


def _unsupported(planned: Mapping[str, RouterPlan]) -> tuple[ConfigError, ...]:
    """Return the kinds of actuators that cannot work here, each with its routers."""
    fix = "" if os.geteuid() == 0 else AS_ROOT
    users: dict[str, list[str]] = {}
    for name, plan in planned.items():
        users.setdefault(str(plan.spec.__struct_config__.tag), []).append(f"router.{name}")
    return tuple(
        ConfigError("this host", f"no {kind} for {', '.join(users[kind])}: {why}", fix)
        for kind, why in asdict(probe()).items()
        if why is not None and kind in users
    )


def _for_programs(errors: Iterable[ConfigError]) -> tuple[Mistake, ...]:
    return tuple(Mistake(error.at, error.where, error.problem, error.fix) for error in errors)

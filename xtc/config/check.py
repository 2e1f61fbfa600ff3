"""A configuration checked whole: its text, its values, and what this host shows of it."""

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
    """File and line, or the file alone."""
    key: str
    problem: str
    fix: str


class LimitWay(msgspec.Struct, frozen=True):
    """How what the host sends into a router by one interface would be limited."""

    router: str
    interface: str
    way: str
    """`clsact`, `tbf` or `none`."""
    reason: str
    """Why it is not a cheaper one."""
    shield: bool = False
    """Whether it bears the router's shield while that is held."""


class Checked(msgspec.Struct, frozen=True):
    """What a check found."""

    files: tuple[str, ...]
    routers: tuple[str, ...]
    """Empty where the configuration cannot be read."""
    mistakes: tuple[Mistake, ...]
    """What the daemon refuses, or cannot do on this host."""
    warnings: tuple[Mistake, ...]
    """What is doubtful on this host."""
    limits: tuple[LimitWay, ...] = ()
    """The way in which each interface would be limited."""
    floors: tuple[FloorWay, ...] = ()
    """How each router gets its CPU floor."""


def check_file(path: Path) -> tuple[Checked, tuple[ConfigError, ...], tuple[ConfigError, ...]]:
    """Return what is wrong with a configuration, then its mistakes and its warnings as errors."""
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
    """Return how each interface that the host sends into a router by would be limited.

    Args:
        planned: every router.
        facts: what the host shows.
        choice: tells the way of one interface, and why it is no cheaper one.
    """
    owned = owned_interfaces(planned, facts)
    ways = []
    for name, plan in planned.items():
        if plan.binding.side is Side.ROUTER or isinstance(plan.spec, SimulatedSpec):
            continue  # there the host sends nothing by the interfaces that are counted
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
    """Return what is doubtful about a configuration on this host, with file and line."""
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

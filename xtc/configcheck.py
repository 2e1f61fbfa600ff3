"""A configuration checked whole: its text, its values, and what this host shows of it."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import msgspec

from xtc.actuator.factory import probe
from xtc.config import Config
from xtc.configfile import config_files, key_places, load_config, located
from xtc.errors import ConfigError, mistakes_of
from xtc.hostcheck import check_host
from xtc.hostfacts import AS_ROOT, look
from xtc.routers import RouterPlan, exempted, plans
from xtc.timing import check_timing
from xtc.units import Seconds


class Mistake(msgspec.Struct, frozen=True):
    """One mistake or warning, for programs."""

    at: str
    """File and line, or the file alone."""
    key: str
    problem: str
    fix: str


class Checked(msgspec.Struct, frozen=True):
    """What a check found."""

    files: tuple[str, ...]
    routers: tuple[str, ...]
    """Empty where the configuration cannot be read."""
    mistakes: tuple[Mistake, ...]
    """What the daemon refuses, or cannot do on this host."""
    warnings: tuple[Mistake, ...]
    """What is doubtful on this host."""


def check_file(path: Path) -> tuple[Checked, tuple[ConfigError, ...], tuple[ConfigError, ...]]:
    """Return what is wrong with a configuration, then its mistakes and its warnings as errors."""
    files = tuple(str(file) for file in config_files(path))
    routers: tuple[str, ...] = ()
    warnings: tuple[ConfigError, ...] = ()
    try:
        config, planned = load_checked(path)
    except ConfigError as error:
        mistakes = mistakes_of(error)
    else:
        routers = tuple(sorted(planned))
        mistakes, warnings = _unsupported(planned), doubts(config, planned, path)
    told = Checked(files, routers, _for_programs(mistakes), _for_programs(warnings))
    return told, mistakes, warnings


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
    return config, planned


def doubts(
    config: Config, planned: Mapping[str, RouterPlan], path: Path | None
) -> tuple[ConfigError, ...]:
    """Return what is doubtful about a configuration on this host, with file and line."""
    found = check_host(planned, look(config.daemon, planned.values()))
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

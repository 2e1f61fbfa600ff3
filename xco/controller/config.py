"""The controller's settings: the tables [controller] and [weight] of xco.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from xco.errors import ConfigError, UnitError
from xco.protocol.messages import Strategy
from xco.tables import Format, check_keys, converted, read_tables
from xco.units import format_duration, parse_duration

DEFAULT_PATH: Final = Path("/etc/xtc/xco.toml")
RUN_DIR: Final = "/run/xco"
LONGEST_SLICE_NS: Final = 10_000_000
"""Up to this length, a gate's tokens bound what a slice sends (xco/core/qdisc/tree.c)."""
POLICIES: Final = ("published", "fair")
"""Scheduler policies, numbered as enum xco_policy in xco/core/scheduler/schedule.h."""

FORM: Final = Format(
    forms={
        "controller": "a table: [controller]",
        "coordinator": "a table: [coordinator]",
        "port-agent": "a table: [port-agent]",
        "weight": "a table of hosts and numbers: [weight]",
        "topology": 'the path of the topology file, such as "/etc/xtc/topology.toml"',
        "listen": 'an address and a port, such as "10.0.0.1:7400" or "[fd00::1]:7400"',
        "key": 'the path of a file of 32 bytes, such as "/etc/xtc/xco.key"',
        "lease": 'a directory that both controllers see, or "postgresql+psycopg://..."',
        "strategy": '"timeslice", "rate", "hybrid" or "gcc"',
        "policy": '"published" or "fair"',
        "law": '"fair" or "published"',
        "pace": "a share from 0.001 to 1, such as 0.98",
        "realtime": "a priority of 1 to 99, or 0 for ordinary scheduling",
        "metrics": 'an address and a port, such as "127.0.0.1:9412", or "" for none',
        "run_dir": 'a directory, such as "/run/xco"',
    }
)

Duration = str
Pace = Annotated[float, msgspec.Meta(ge=0.001, le=1.0)]
Priority = Annotated[int, msgspec.Meta(ge=0, le=99)]
Weight = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class ControllerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table [controller]; durations such as "2ms".

    `pace` and `guard` add to the coordinators' own: coordinators send a little slower than granted,
    and close a little before a slice ends.
    """

    topology: str
    listen: str = "0.0.0.0:7400"
    key: str = "/etc/xtc/xco.key"
    lease: str = "/var/lib/xco"
    run_dir: str = RUN_DIR
    metrics: str = ""
    strategy: Literal["timeslice", "rate", "hybrid", "gcc"] = "timeslice"
    policy: Literal["published", "fair"] = "fair"
    law: Literal["fair", "published"] = "fair"
    max_min: bool = False
    on_demand: bool = False
    slice: Duration = "2ms"
    lead: Duration = "300us"
    guard: Duration = "10us"
    heartbeat: Duration = "10ms"
    silence: Duration = "50ms"
    drop: Duration = "200ms"
    calm: Duration = "200ms"
    preempt_after: Duration = "1ms"
    patience: Duration = "100ms"
    pace: Pace = 1.0
    realtime: Priority = 50


DURATIONS: Final = (
    "slice",
    "lead",
    "guard",
    "heartbeat",
    "silence",
    "drop",
    "calm",
    "preempt_after",
    "patience",
)


@dataclass(frozen=True)
class Places:
    """Paths of a running controller: all that reading its state needs."""

    run_dir: Path

    @property
    def loop_file(self) -> Path:
        """File that the loop reads (xco/core/controller/config.h)."""
        return self.run_dir / "controller.loop"

    @property
    def stats_file(self) -> Path:
        """File that the loop publishes."""
        return self.run_dir / "controller.stats"

    @property
    def command_socket(self) -> Path:
        """Socket where the loop takes commands."""
        return self.run_dir / "controller.command"

    @property
    def state_file(self) -> Path:
        """File where the shell publishes its role (leader or standby), since when, and epoch."""
        return self.run_dir / "controller.json"

    @property
    def names_file(self) -> Path:
        """File where the shell publishes the names of the hosts that the loop numbers."""
        return self.run_dir / "controller.hosts"


@dataclass(frozen=True)
class ControllerConfig(Places):
    """Checked settings: durations in nanoseconds, paths, addresses split into parts."""

    topology: Path
    listen: tuple[str, int]
    key: Path
    lease: str
    metrics: tuple[str, int] | None
    strategy: Strategy
    policy: int
    published: bool
    """Whether `gcc` follows its published law."""
    max_min: bool
    on_demand: bool
    durations_ns: Mapping[str, int]
    pace_permille: int
    realtime: int
    weights: Mapping[str, int]
    """By host name, where it is not 1."""


def load_controller_config(path: Path = DEFAULT_PATH) -> ControllerConfig:
    """Read the settings of a file.

    Raises:
        ConfigError: names the file, the key, what is wrong and how to fix it.
    """
    tables = read_tables(path, FORM)
    known = {"controller": dict, "coordinator": dict, "port-agent": dict, "weight": dict}
    check_keys(tables, known, str(path), FORM)
    raw = tables.get("controller")
    if raw is None:
        raise ConfigError(str(path), "controller", "missing", "add a table [controller]")
    table = converted(raw, ControllerTable, str(path), "controller", FORM)
    return checked(table, _weights(tables.get("weight", {}), path), path)


def load_places(path: Path) -> Places:
    """Return a controller's paths from its file, even if the rest of the file is wrong."""
    try:
        table = read_tables(path, FORM).get("controller")
    except ConfigError:
        table = None
    said = table.get("run_dir") if isinstance(table, dict) else None
    return Places(Path(said if isinstance(said, str) else RUN_DIR))


def checked(table: ControllerTable, weights: Mapping[str, int], path: Path) -> ControllerConfig:
    """Return settings in the loop's units, and check that the times fit together.

    Raises:
        ConfigError: as `load_controller_config`.
    """
    durations = {key: _duration_ns(table, key, path) for key in DURATIONS}
    check_times(durations, path)
    _check_law(table, path)
    return ControllerConfig(
        topology=path.parent / table.topology,
        listen=_endpoint(table.listen, "listen", path),
        key=path.parent / table.key,
        lease=table.lease,
        run_dir=Path(table.run_dir),
        metrics=_endpoint(table.metrics, "metrics", path) if table.metrics else None,
        strategy=Strategy[table.strategy.upper()],
        policy=POLICIES.index(table.policy),
        published=table.law == "published",
        max_min=table.max_min,
        on_demand=table.on_demand,
        durations_ns=durations,
        pace_permille=round(table.pace * 1000),
        realtime=table.realtime,
        weights=weights,
    )


def check_times(durations_ns: Mapping[str, int], path: Path) -> None:
    """Check the timing inequality (docs/reference/xco-protocol.md).

    ``slice <= 10 ms``: a gate's tokens bound what a slice sends. ``lead + guard < slice``: a slice
    is announced during the one before. ``3 * heartbeat <= silence``: two directives may be lost
    before a host falls back. ``silence <= drop``: no other host is scheduled in place of one that
    may still obey.

    Raises:
        ConfigError: names the key, and a value that works.
    """
    times = durations_ns
    _at_least("slice", times["slice"], 100_000, path)
    _at_most("slice", times["slice"], LONGEST_SLICE_NS, path)
    _at_least("slice", times["slice"], times["lead"] + times["guard"] + 1, path)
    _at_least("heartbeat", times["heartbeat"], 100_000, path)
    _at_least("silence", times["silence"], 3 * times["heartbeat"], path)
    _at_least("drop", times["drop"], times["silence"], path)


def _check_law(table: ControllerTable, path: Path) -> None:
    if table.law == "published" and table.strategy != "gcc":
        problem = f'"published" needs "gcc", and controller.strategy is "{table.strategy}"'
        fix = 'write controller.strategy = "gcc", or controller.law = "fair"'
        raise ConfigError(str(path), "controller.law", problem, fix)


def _at_least(key: str, value_ns: int, least_ns: int, path: Path) -> None:
    if value_ns < least_ns:
        problem = f"{format_duration(value_ns)} is too short for the other times"
        fix = f"write at least {format_duration(least_ns)}"
        raise ConfigError(str(path), f"controller.{key}", problem, fix)


def _at_most(key: str, value_ns: int, most_ns: int, path: Path) -> None:
    if value_ns > most_ns:
        problem = f"{format_duration(value_ns)} is longer than a gate can bound"
        fix = f"write at most {format_duration(most_ns)}"
        raise ConfigError(str(path), f"controller.{key}", problem, fix)


def _duration_ns(table: ControllerTable, key: str, path: Path) -> int:
    try:
        return parse_duration(getattr(table, key), field=f"controller.{key}")
    except UnitError as error:
        problem = f"{error.got!r} is not {error.expected}"
        fix = 'write a duration, such as "2ms"'
        raise ConfigError(str(path), f"controller.{key}", problem, fix) from error


def _endpoint(text: str, key: str, path: Path) -> tuple[str, int]:
    address, _, port = text.rpartition(":")
    if not address or not port.isdecimal() or int(port) > 65535:
        fix = f"write {FORM.forms[key]}"
        raise ConfigError(str(path), f"controller.{key}", f"{text!r} is malformed", fix)
    return address.strip("[]"), int(port)


def _weights(raw: Mapping[str, object], path: Path) -> dict[str, int]:
    try:
        return msgspec.convert(raw, dict[str, Weight])
    except msgspec.ValidationError as error:
        fix = "write a whole number from 1 to 1000000 for each host"
        raise ConfigError(str(path), "weight", str(error), fix) from error

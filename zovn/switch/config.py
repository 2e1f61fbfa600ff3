"""The configuration of the switch: schema, defaults and descriptions.

The file is TOML with the table ``[switch]``; other tables belong to other programs. `plain` writes
what the compiled program reads (zovn/core/program/config.h).
"""

import grp
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from common.errors import ConfigError, Mistakes, UnitError
from common.suggest import did_you_mean
from common.toml_explain import Words, choices_of, mistakes
from common.toml_explain import plain as plain_problem
from common.toml_tables import parse_tables, read_text
from common.units import parse_duration
from zovn.switch.port_table import (
    PORT_FORMS,
    Class,
    PortTable,
    SocketPath,
    check_port,
    place_of,
    port_words,
)

DEFAULT_PATH: Final = Path("/etc/xtc/zovn.toml")
DEFAULT_CONTROL: Final = "/run/zovn/control.sock"
MOST_PORTS: Final = 72
_TABLE: Final = "switch"

Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class ClassTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[switch.classes.N]``."""

    limit_bytes: Bytes = 0
    """Drop frames of a destination above this; 0: lossless."""
    mark_bytes: Bytes = 0
    """Mark frames of ECN senders above this; 0: never."""
    weight: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 1
    """Share among the classes; 0: strict, before all that have weights."""


class SwitchTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table ``[switch]``."""

    control: SocketPath = DEFAULT_CONTROL
    """Socket of the commands."""
    control_group: str | None = None
    """Group that may give commands, besides the user that runs the switch."""
    stall: str = "1s"
    """A destination that takes nothing for this long is treated as lossy until it does."""
    ageing: str = "300s"
    """A learned address that sends nothing for this long is forgotten."""
    addresses: Annotated[int, msgspec.Meta(ge=1, le=65536)] = 64
    """Maximum learned and static addresses of each port."""
    parked: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 16
    """Maximum flooded frames of each port that wait for several destinations."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """Threads that forward; each has some of the ports."""
    classes: dict[Annotated[str, msgspec.Meta(pattern=r"^[0-7]\Z")], ClassTable] = {}
    priorities: dict[Annotated[str, msgspec.Meta(pattern=r"^[0-7]\Z")], Class] = {}
    """Class of each VLAN priority, for ports that trust it; default: 0."""
    dscp: dict[Annotated[str, msgspec.Meta(pattern=r"^([0-9]|[1-5][0-9]|6[0-3])\Z")], Class] = {}
    """Class of each DSCP, for ports that trust it; default: 0."""
    port: Annotated[tuple[PortTable, ...], msgspec.Meta(max_length=MOST_PORTS)] = ()


_FORMS: Final[Mapping[str, str]] = {
    **PORT_FORMS,
    "switch": "a table: [switch]",
    "port": f"tables: [[switch.port]], at most {MOST_PORTS}",
    "control": PORT_FORMS["socket"],
    "addresses": 'in a port: a list of up to 16 addresses such as ["02:00:00:00:00:01"]; in '
    "[switch]: a number from 1 to 65536",
    "classes": "tables by class from 0 to 7, such as [switch.classes.3]",
    "priorities": "classes by VLAN priority from 0 to 7, such as 5 = 3",
    "dscp": "classes by DSCP from 0 to 63, such as 46 = 5",
    "weight": "a number from 0 to 1000",
    "parked": "a number from 1 to 4096",
    "threads": "a number from 1 to 8",
    "limit_bytes": "a number of bytes; 0 for a lossless class",
    "mark_bytes": "a number of bytes; 0 to mark nothing",
}


class _FormWords(Words):
    """How mistakes are described."""

    def unknown(self, key: str, fields: Mapping[str, Any], where: str) -> str:
        del where
        return did_you_mean(key, fields, f"remove it; there are {', '.join(fields)}")

    def missing(self, key: str, kind: Any) -> str:
        return f"write {_FORMS[key]}" if key in _FORMS else super().missing(key, kind)

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        if choices_of(kind) or key not in _FORMS:
            return super().wrong(key, kind, value, problem)
        shown = f"{value!r} is malformed" if "regex" in problem else plain_problem(problem)
        return shown, f"write {_FORMS[key]}"

    def name(self, name: str, kind: Any, problem: str, where: str) -> tuple[str, str]:
        del kind, problem
        key = where.rpartition(".")[2]
        return f"{name!r} is malformed", f"write {_FORMS[key]}"


class SwitchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A checked table with its quantities as numbers."""

    table: SwitchTable
    stall_ns: int
    ageing_ns: int
    groups: Mapping[str, int]
    """Numbers of the groups that are named."""

    @property
    def control(self) -> Path:
        """Socket of the commands."""
        return Path(self.table.control)


def load_config(path: Path = DEFAULT_PATH) -> SwitchConfig:
    """Read the file.

    Raises:
        ConfigError: names file, key, what is wrong and what to do.
    """
    tables = parse_tables(path, read_text(path))
    if _TABLE not in tables:
        raise ConfigError(_TABLE, "missing", f"write {_FORMS[_TABLE]}", at=str(path))
    return checked(tables[_TABLE], str(path))


def checked(raw: Any, file: str = "configuration") -> SwitchConfig:
    """Return the configuration of one table.

    Raises:
        ConfigError: as `load_config`.
    """
    found = mistakes(raw, SwitchTable, _FormWords(), _TABLE)
    Mistakes(ConfigError(*one, at=file) for one in found).check()
    table = msgspec.convert(raw, SwitchTable)
    noted = Mistakes()
    for number, port in enumerate(table.port):
        with noted.noted():
            check_port(port, f"{_TABLE}.port[{number}]", file)
    for check in (_check_unique, _check_static):
        with noted.noted():
            check(table, file)
    noted.check()
    return SwitchConfig(
        table=table,
        stall_ns=_duration(table.stall, "stall", file),
        ageing_ns=_duration(table.ageing, "ageing", file),
        groups=_groups(table, file),
    )


def _check_unique(table: SwitchTable, file: str) -> None:
    seen: dict[str, int] = {}
    for number, port in enumerate(table.port):
        for key, one in (("name", port.name), place_of(port)):
            if (first := seen.setdefault(f"{key} {one}", number)) != number:
                where = f"{_TABLE}.port[{number}].{key}"
                problem = f"{one!r} is that of port {first}"
                raise ConfigError(where, problem, "change one", at=file)


def _check_static(table: SwitchTable, file: str) -> None:
    """A static address has one port in its VLAN, and each port has room for its own."""
    seen: dict[tuple[int, str], int] = {}
    for number, port in enumerate(table.port):
        where, count = f"{_TABLE}.port[{number}].addresses", len(port.addresses)
        if count > table.addresses:
            problem = f"{count} static addresses; [switch] allows {table.addresses} for each port"
            fix = f"write addresses = {count} or more in [switch], or remove some here"
            raise ConfigError(where, problem, fix, at=file)
        for address in port.addresses:
            if (first := seen.setdefault((port.vlan, address.lower()), number)) != number:
                problem = f"{address!r} in VLAN {port.vlan} is a static address of port {first}"
                raise ConfigError(where, problem, "remove it from one of them", at=file)


def _duration(text: str, key: str, file: str) -> int:
    try:
        nanoseconds = round(parse_duration(text, field=f"{_TABLE}.{key}") * 1e9)
    except UnitError as error:
        fix = "write a duration such as 100ms, 1s or 5min"
        raise ConfigError(f"{_TABLE}.{key}", f"{text!r} is no duration", fix, at=file) from error
    if not nanoseconds:
        raise ConfigError(f"{_TABLE}.{key}", "must be above 0", "write e.g. 1s", at=file)
    return nanoseconds


def _groups(table: SwitchTable, file: str) -> dict[str, int]:
    named = {f"{_TABLE}.control_group": table.control_group}
    named |= {
        f"{_TABLE}.port[{number}].group": port.group for number, port in enumerate(table.port)
    }
    return {name: _group(name, where, file) for where, name in named.items() if name is not None}


def _group(name: str, where: str, file: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        fix = "remove it, or name a group of this machine (getent group)"
        raise ConfigError(where, f"there is no group {name!r}", fix, at=file) from None


def interfaces_of(config: SwitchConfig) -> list[str]:
    """Return the interfaces that the switch changes, and restores."""
    return [port.interface for port in config.table.port if port.interface and port.kind == "veth"]


def plain(config: SwitchConfig) -> str:
    """Return the text that the compiled program reads, one key a line."""
    return "".join(f"{line}\n" for line in _lines(config))


def _lines(config: SwitchConfig) -> Iterator[str]:
    table = config.table
    yield f"control {table.control}"
    if table.control_group:
        yield f"control_group {config.groups[table.control_group]}"
    yield f"stall_ns {config.stall_ns}"
    yield f"age_ns {config.ageing_ns}"
    yield f"addresses {table.addresses}"
    yield f"parked {table.parked}"
    yield f"threads {table.threads}"
    for number, one in table.classes.items():
        yield f"class {number} {one.limit_bytes} {one.mark_bytes} {one.weight}"
    for priority, class_ in table.priorities.items():
        yield f"priority {priority} {class_}"
    for point, class_ in table.dscp.items():
        yield f"dscp {point} {class_}"
    for port in table.port:
        yield f"port {port_words(port, config.groups)}"

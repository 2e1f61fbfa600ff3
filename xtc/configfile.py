"""Reads configuration files; every mistake is named by file and field, with a way to mend it."""

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from xtc.actuator.spec import ActuatorSpec
from xtc.config import (
    Config,
    DaemonSection,
    LogSection,
    MetricsSection,
    RouterName,
    RouterSection,
    ServerSection,
)
from xtc.errors import ConfigError

DEFAULT_PATH = Path("/etc/xtc/xtc.toml")
DROP_INS = "conf.d"
MAX_BYTES = 4 << 20
MAX_LINE = 4096
"""tomllib's memory grows with the square of a dotted key's length."""

_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<key>.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<key>.*)`$")


def load_config(path: Path) -> Config:
    """Read a file and its drop-ins.

    Raises:
        ConfigError: names the file, the field, what is wrong, and what to do.
    """
    merged: dict[str, Any] = {}
    for file in config_files(path):
        tables = _tables(file)
        _convert(file, tables, partial=file != path)
        merged = _laid_over(merged, tables)
    return _convert(path, merged)


def config_files(path: Path) -> tuple[Path, ...]:
    """Return the file and its drop-ins in the order in which they are laid over each other."""
    return (path, *sorted((path.parent / DROP_INS).glob("*.toml"), key=lambda file: file.name))


def parse_config(text: str, source: Path = Path("configuration")) -> Config:
    """Read one text, for tests and for tools.

    Raises:
        ConfigError: as `load_config`.
    """
    return _convert(source, _parsed(source, text))


def _tables(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            str(path), error.strerror or "cannot be read", "name a file with --config"
        ) from error
    try:
        return _parsed(path, raw.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "not UTF-8 text") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES or any(len(line) > MAX_LINE for line in text.splitlines()):
        raise ConfigError(str(path), "too large for a configuration", "split it into drop-ins")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), f"not TOML: {error}") from error


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return the tables with the later file's values over the earlier one's."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, dict) and isinstance(value, dict)
        merged[key] = _laid_over(under, value) if both else value  # type: ignore[arg-type]
    return merged


def _convert(path: Path, tables: dict[str, Any], *, partial: bool = False) -> Config:
    """Check tables against the schema; a drop-in alone may lack what the main file gives."""
    routers = tables.get("router", {})
    rest = {key: value for key, value in tables.items() if key != "router"}
    try:
        config = msgspec.convert(rest, Config)
    except msgspec.ValidationError as error:
        raise _explained(path, "", error) from None
    if not isinstance(routers, dict):
        raise ConfigError(f"{path}: router", "not a table", "one table each: [router.NAME]")
    sections = {}
    for name, section in routers.items():
        where = f"router.{name}"
        try:
            msgspec.convert(name, RouterName)
            sections[name] = msgspec.convert(section, RouterSection)
        except msgspec.ValidationError as error:
            if not (partial and _MISSING.match(str(error).partition(" - at ")[0])):
                raise _explained(path, where, error) from None
    return msgspec.structs.replace(config, router=sections)


def _explained(path: Path, table: str, error: msgspec.ValidationError) -> ConfigError:
    match = _AT.match(str(error))
    problem, field = (match["problem"], match["path"] or "") if match else (str(error), "")
    field = _joined(table, field)
    if unknown := _UNKNOWN.match(problem):
        key = unknown["key"]
        nearest = difflib.get_close_matches(key, sorted(KEYS), n=1)
        fix = f"did you mean {nearest[0]}?" if nearest else "remove it"
        return ConfigError(f"{path}: {_joined(field, key)}", "no such key", fix)
    if missing := _MISSING.match(problem):
        return ConfigError(f"{path}: {_joined(field, missing['key'])}", "missing", "add it")
    return ConfigError(f"{path}: {field}", problem[:1].lower() + problem[1:])


def _joined(table: str, key: str) -> str:
    return f"{table}.{key}" if table and key else table or key


def _all_keys() -> Iterator[str]:
    """Yield every key that any table knows."""
    structures: list[type[msgspec.Struct]] = [Config, *get_args(ActuatorSpec), RouterSection]
    structures += [DaemonSection, ServerSection, MetricsSection, LogSection]
    for structure in structures:
        yield from structure.__struct_fields__


KEYS = frozenset(_all_keys())
"""Every key of the format."""

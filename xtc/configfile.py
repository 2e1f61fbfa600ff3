"""Reads configuration files; every mistake is named by file and field, with a way to mend it."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

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
_NO_CHOICE = re.compile(r"^Invalid (?:enum )?value (?P<value>.*)$", re.DOTALL)
_MALFORMED = re.compile(r"^Expected `str` (?:matching regex|of length) ")

_NAME = "router"
"""The key by which FORMS knows a router's own name."""
FORMS = {
    _NAME: "a name of 1 to 64 letters, digits and . _ : -, the first a letter or a digit",
    "domain": "the domain's name or UUID: 1 to 255 characters, none of them a control character",
    "interfaces": "an interface's name, such as eth0: 1 to 15 characters, no blank and no slash",
    "netns": "the whole path, such as /run/netns/gold",
    "path": "the whole path, such as /sys/fs/cgroup/routers/gold",
    "plant": "the name of a simulated router",
    "uri": "a connection, such as xen:///system, qemu:///system or lxc:///system",
}
"""What to write where a text has to be of a certain form."""


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
    problem, inside = (match["problem"], match["path"] or "") if match else (str(error), "")
    field = _joined(table, inside)
    if unknown := _UNKNOWN.match(problem):
        key = unknown["key"]
        nearest = difflib.get_close_matches(key, sorted(KEYS), n=1)
        fix = f"did you mean {nearest[0]}?" if nearest else "remove it"
        return ConfigError(f"{path}: {_joined(field, key)}", "no such key", fix)
    if missing := _MISSING.match(problem):
        key = missing["key"]
        fix = f"add it: {_any_of(CHOICES[key])}" if key in CHOICES else "add it"
        return ConfigError(f"{path}: {_joined(field, key)}", "missing", fix)
    return ConfigError(f"{path}: {field}", *_in_words(_key(inside), problem))


def _in_words(key: str, problem: str) -> tuple[str, str]:
    """Return what is wrong with the value of a key, and how to mend it where that is not said."""
    if key in FORMS and _MALFORMED.match(problem):
        return "malformed", f"write {FORMS[key]}"
    if key not in CHOICES:
        return problem[:1].lower() + problem[1:], ""
    fix = f"write {_any_of(CHOICES[key])}"
    if wrong := _NO_CHOICE.match(problem):
        value = wrong["value"]
        nearest = difflib.get_close_matches(value.strip("'\""), CHOICES[key], n=1)
        return f"no such choice: {value}", f"did you mean {nearest[0]}? {fix}" if nearest else fix
    return problem[:1].lower() + problem[1:], fix


def _any_of(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _key(field: str) -> str:
    """Return the key at the end of a field's path; a router's name has no path."""
    return field.rpartition(".")[2].partition("[")[0] or _NAME


def _joined(table: str, key: str) -> str:
    return f"{table}.{key}" if table and key else table or key


def _all_structures() -> Iterator[type[msgspec.Struct]]:
    """Yield every table of the format."""
    yield from (Config, DaemonSection, ServerSection, MetricsSection, LogSection, RouterSection)
    yield from get_args(ActuatorSpec)


def _all_choices() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every key that has a choice of values, and those."""
    yield "kind", tuple(str(spec.__struct_config__.tag) for spec in get_args(ActuatorSpec))
    for structure in _all_structures():
        for field in msgspec.structs.fields(structure):
            if get_origin(field.type) is Literal:
                yield field.encode_name, get_args(field.type)


KEYS = frozenset(key for table in _all_structures() for key in table.__struct_fields__)
"""Every key of the format."""
CHOICES = dict(_all_choices())
"""Every key that has a choice of values; no two tables have one of the same name."""

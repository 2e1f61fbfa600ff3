"""Reads configuration files; reports every mistake with file, line, key and fix."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from common.errors import ConfigError, Mistakes, mistakes_of
from common.suggest import did_you_mean, nearest
from common.toml_tables import KeyPlaces, parse_tables, read_text
from xtc.config.schema import (
    Config,
    DaemonSection,
    LimiterSection,
    LogSection,
    MetricsSection,
    RouterName,
    RouterSection,
    ServerSection,
)
from xtc.spec import ActuatorSpec

DEFAULT_PATH = Path("/etc/xtc/xtc.toml")
DROP_INS = "conf.d"

_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_NO_CHOICE = re.compile(r"^Invalid (?:enum )?value (?P<value>.*)$", re.DOTALL)
_MALFORMED = re.compile(r"^Expected `str` (?:matching regex|of length) ")

_NAME = "router"
"""The key under which FORMS stores a router's own name."""
FORMS = {
    _NAME: "a name of 1 to 64 letters, digits and . _ : -, the first a letter or a digit",
    "domain": "the domain's name or UUID: 1 to 255 characters, none of them a control character",
    "interfaces": "an interface's name, such as eth0: 1 to 15 characters, no blank and no slash",
    "netns": "the whole path, such as /run/netns/gold, or container:NAME",
    "path": "the whole path, such as /sys/fs/cgroup/routers/gold, or container:NAME",
    "plant": "the name of a simulated router",
    "uri": "a connection, such as xen:///system, qemu:///system or lxc:///system",
}
"""Advice for texts that must have a certain format."""

_RATE, _CAP = 'a packet rate, such as "20kpps"', 'a cap, such as "35%"'
_SETPOINT = f'{_RATE}, or a bit rate, such as "50Mb/s"'
_HEADROOM = "a multiple of the CPU that it needs, from 1.1 to 4"
_QUANTITIES = {
    "setpoint": _SETPOINT,
    "floor": _CAP,
    "ceiling": _CAP,
    "safe_cap": _CAP,
    "headroom": _HEADROOM,
}
_UNITS = {"_s": "seconds", "_us": "microseconds", "_pps": "packets/s"}
"""The unit of a number, by the suffix of its key."""


def load_config(path: Path) -> Config:
    """Read a file and its drop-ins.

    Raises:
        ConfigError: names file, line and key, what is wrong, and what to do; `ConfigErrors` where
            there are several mistakes.
    """
    merged: dict[str, Any] = {}
    mistakes, places = Mistakes(), KeyPlaces()
    for file in config_files(path):
        with mistakes.noted():
            text = read_text(file)
            tables = parse_tables(file, text)
            places.add(file, text)
            _check(tables, places, file, partial=file != path)
            merged = _laid_over(merged, tables)
    mistakes.check()
    return _convert(merged, places, path)


def config_files(path: Path) -> tuple[Path, ...]:
    """Return the file and its drop-ins in the order in which they are merged."""
    return (path, *sorted((path.parent / DROP_INS).glob("*.toml"), key=lambda file: file.name))


def parse_config(text: str, source: Path = Path("configuration")) -> Config:
    """Parse one text, for tests and tools.

    Raises:
        ConfigError: as `load_config`.
    """
    tables, places = parse_tables(source, text), KeyPlaces()
    places.add(source, text)
    return _convert(tables, places, source)


@contextmanager
def located(path: Path | None) -> Iterator[None]:
    """Add file and line of the key to every mistake that the block raises.

    The files are read again for this, and only when there is a mistake.

    Raises:
        ConfigError: as the block did, with file and line.
    """
    try:
        yield
    except ConfigError as error:
        if path is None:
            raise
        places = key_places(path)
        Mistakes(_placed(one, places, path) for one in mistakes_of(error)).check()


def key_places(path: Path) -> KeyPlaces:
    """Return the positions of the keys of a file and its drop-ins, without unreadable ones."""
    places = KeyPlaces()
    for file in config_files(path):
        with Mistakes().noted():
            places.add(file, read_text(file))
    return places


def _placed(error: ConfigError, places: KeyPlaces, path: Path) -> ConfigError:
    return error.placed(places.find(error.where) or str(path))


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge the tables: the later file's values replace the earlier one's."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, dict) and isinstance(value, dict)
        merged[key] = _laid_over(under, value) if both else value  # type: ignore[arg-type]
    return merged


def _convert(tables: dict[str, Any], places: KeyPlaces, path: Path) -> Config:
    _check(tables, places, path)
    return msgspec.convert(tables, Config)


def _check(tables: dict[str, Any], places: KeyPlaces, path: Path, *, partial: bool = False) -> None:
    """Check tables against the schema; a drop-in alone may lack keys of the main file."""
    found = _mistakes(tables, partial=partial)
    Mistakes(_placed(one, places, path) for one in found).check()


def _mistakes(tables: dict[str, Any], *, partial: bool) -> Iterator[ConfigError]:
    routers = tables.get("router", {})
    rest = {key: value for key, value in tables.items() if key != "router"}
    yield from _of_table(rest, Config, "")
    if not isinstance(routers, dict):
        yield ConfigError("router", "not a table", "one table each: [router.NAME]")
        return
    for name, section in routers.items():
        where = f"router.{name}"
        yield from _of_value(name, RouterName, where, key=_NAME)
        yield from _of_table(section, RouterSection, where, partial=partial)


def _of_table(
    table: object, structure: type[msgspec.Struct], where: str, *, partial: bool = False
) -> Iterator[ConfigError]:
    """Yield the mistakes of a table, key by key: msgspec alone reports only the first."""
    if not isinstance(table, dict):
        yield from _of_value(table, structure, where)
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(structure)}
    meant: set[str] = set()
    for key, value in table.items():
        if key in fields:
            yield from _of_field(value, fields[key].type, _joined(where, key))
        elif key != structure.__struct_config__.tag_field:
            meant |= {nearest(key, sorted(fields)) or ""}
            fix = did_you_mean(key, sorted(fields), "remove it")
            yield ConfigError(_joined(where, key), "no such key", fix)
    for key, field in fields.items():
        if field.required and key not in table and key not in meant and not partial:
            yield _missing(_joined(where, key), key)


def _of_field(value: object, kind: Any, where: str) -> Iterator[ConfigError]:
    if kind == ActuatorSpec:
        yield from _of_actuator(value, where)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _of_table(value, kind, where)
    else:
        yield from _of_value(value, kind, where)


def _of_actuator(value: object, where: str) -> Iterator[ConfigError]:
    """Yield the mistakes of a table with keys that depend on its `kind`."""
    kinds = {str(spec.__struct_config__.tag): spec for spec in get_args(ActuatorSpec)}
    if isinstance(value, dict) and "kind" not in value:
        yield _missing(f"{where}.kind", "kind")
    elif isinstance(value, dict) and str(value["kind"]) in kinds:
        yield from _of_table(value, kinds[str(value["kind"])], where)
    else:
        yield from _of_value(value, ActuatorSpec, where)


def _missing(where: str, key: str) -> ConfigError:
    fix = f"add it: {_any_of(CHOICES[key])}" if key in CHOICES else "add it"
    return ConfigError(where, "missing", fix)


def _of_value(value: object, kind: Any, where: str, *, key: str = "") -> Iterator[ConfigError]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        match = _AT.match(str(error))
        problem, inside = (match["problem"], match["path"] or "") if match else (str(error), "")
        field = f"{where}{inside}" if inside.startswith("[") else _joined(where, inside)
        found, fix = _in_words(key or _key(field), problem)
        if isinstance(value, str) and problem.startswith("Expected `array`"):
            fix = f"write [{msgspec.json.encode(value).decode()}]"
        yield ConfigError(field, found, fix)


def _in_words(key: str, problem: str) -> tuple[str, str]:
    """Return what is wrong with the value of a key, and a fix where the problem lacks one."""
    if key in FORMS and _MALFORMED.match(problem):
        return "malformed", f"write {FORMS[key]}"
    if key not in CHOICES:
        return problem[:1].lower() + problem[1:], _quantity(key)
    fix = f"write {_any_of(CHOICES[key])}"
    if wrong := _NO_CHOICE.match(problem):
        value = wrong["value"]
        near = nearest(value.strip("'\""), CHOICES[key])
        return f"no such choice: {value}", f"did you mean {near}? {fix}" if near else fix
    return problem[:1].lower() + problem[1:], fix


def _quantity(key: str) -> str:
    """Return an example of a quantity, with its unit."""
    if key in _QUANTITIES:
        return f"write {_QUANTITIES[key]}"
    unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
    return f"a number of {unit}" if unit else ""


def _any_of(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _key(field: str) -> str:
    """Return the key at the end of a field's path."""
    return field.rpartition(".")[2].partition("[")[0]


def _joined(table: str, key: str) -> str:
    return f"{table}.{key}" if table and key else table or key


def _all_structures() -> Iterator[type[msgspec.Struct]]:
    """Yield every table of the format."""
    yield from (Config, DaemonSection, ServerSection, MetricsSection, LogSection)
    yield from (LimiterSection, RouterSection)
    yield from get_args(ActuatorSpec)


def _all_choices() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every key with a choice of values, and the values."""
    yield "kind", tuple(str(spec.__struct_config__.tag) for spec in get_args(ActuatorSpec))
    for structure in _all_structures():
        for field in msgspec.structs.fields(structure):
            if get_origin(field.type) is Literal:
                yield field.encode_name, get_args(field.type)


CHOICES = dict(_all_choices())
"""Every key with a choice of values; its name is unique among all tables."""

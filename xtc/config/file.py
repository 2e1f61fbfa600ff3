"""Reads configuration files; reports every mistake with file, line, key and fix."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from common.errors import ConfigError, Mistakes, mistakes_of
from common.suggest import nearest
from common.toml_explain import Mistake, Words, any_of, mistakes, plain
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
    found = list(mistakes(rest, Config, WORDS))
    if isinstance(routers, dict):
        found += _of_routers(routers, partial=partial)
    else:
        found.append(Mistake("router", "not a table", "one table each: [router.NAME]"))
    return (ConfigError(*one) for one in found)


def _of_routers(routers: Mapping[str, object], *, partial: bool) -> Iterator[Mistake]:
    for name, section in routers.items():
        where = f"router.{name}"
        try:
            msgspec.convert(name, RouterName)
        except msgspec.ValidationError as error:
            yield Mistake(where, *WORDS.wrong(_NAME, RouterName, name, str(error)))
        yield from mistakes(section, RouterSection, WORDS, where, partial=partial)


class _ConfigWords(Words):
    """How mistakes in xtc's configuration are described."""

    def missing(self, key: str, kind: Any) -> str:
        del kind
        return f"add it: {any_of(CHOICES[key])}" if key in CHOICES else "add it"

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        del kind
        found, fix = _in_words(key, problem)
        if isinstance(value, str) and problem.startswith("Expected `array`"):
            fix = f"write [{msgspec.json.encode(value).decode()}]"
        return found, fix


WORDS = _ConfigWords()


def _in_words(key: str, problem: str) -> tuple[str, str]:
    """Return what is wrong with the value of a key, and a fix where the problem lacks one."""
    if key in FORMS and _MALFORMED.match(problem):
        return "malformed", f"write {FORMS[key]}"
    if key not in CHOICES:
        return plain(problem), _quantity(key)
    fix = f"write {any_of(CHOICES[key])}"
    if wrong := _NO_CHOICE.match(problem):
        value = wrong["value"]
        near = nearest(value.strip("'\""), CHOICES[key])
        return f"no such choice: {value}", f"did you mean {near}? {fix}" if near else fix
    return plain(problem), fix


def _quantity(key: str) -> str:
    """Return an example of a quantity, with its unit."""
    if key in _QUANTITIES:
        return f"write {_QUANTITIES[key]}"
    unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")
    return f"a number of {unit}" if unit else ""


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

"""Reads TOML into typed tables; every error names the file and key, and how to fix it."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from common.suggest import did_you_mean
from xco.errors import ConfigError

MAX_BYTES: Final = 64 << 20
"""Enough for the topology of 65,535 hosts."""
MAX_LINE: Final = 4096
"""tomllib's memory grows with the square of a dotted key's length."""

Table = TypeVar("Table", bound=msgspec.Struct)

_AT: Final = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(?P<key>.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(?P<key>.*)`$")


@dataclass(frozen=True)
class Format:
    """How a format reports mistakes: the error to raise, and the hint for each key."""

    error: type[ConfigError] = ConfigError
    forms: Mapping[str, str] = field(default_factory=dict)
    """By key: a description of a valid value."""


def read_tables(path: Path, form: Format) -> dict[str, Any]:
    """Read a file as TOML.

    Raises:
        ConfigError: of the format's class: it cannot be read, is not TOML, or is too large.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        problem = error.strerror or "cannot be read"
        raise form.error(str(path), "", problem, "check its path and its mode") from error
    except UnicodeDecodeError as error:
        raise form.error(str(path), "", "not UTF-8 text", "save it as UTF-8") from error
    return parse_tables(text, str(path), form)


def parse_tables(text: str, file: str, form: Format) -> dict[str, Any]:
    """Read a text as TOML.

    Raises:
        ConfigError: of the format's class: it is not TOML, or too large.
    """
    if len(text) > MAX_BYTES:
        raise form.error(file, "", f"larger than {MAX_BYTES >> 20} MiB", "name another file")
    if any(len(line) > MAX_LINE for line in text.splitlines()):
        fix = "write a long list over several lines"
        raise form.error(file, "", f"a line is longer than {MAX_LINE} characters", fix)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise form.error(file, "", f"not TOML: {error}", "correct that line") from error
    except RecursionError as error:
        raise form.error(file, "", "nested too deeply", "close the brackets") from error


def check_keys(
    tables: Mapping[str, Any], known: Mapping[str, type], file: str, form: Format
) -> None:
    """Check that there are no other keys than these, and that each value has its type.

    Raises:
        ConfigError: of the format's class.
    """
    for key, value in tables.items():
        if key not in known:
            raise form.error(file, key, "no such table", _nearest(key, list(known)))
        if not isinstance(value, known[key]):
            raise form.error(file, key, "malformed", f"write {form.forms[key]}")


def converted(raw: Any, table: type[Table], file: str, where: str, form: Format) -> Table:
    """Return one table, checked against its structure; `where` is its name in the file.

    Raises:
        ConfigError: of the format's class, with the key that is wrong and the fix.
    """
    try:
        return msgspec.convert(raw, table)
    except msgspec.ValidationError as error:
        raise _explained(str(error), table, file, where, form) from None


def _explained(said: str, table: type[Table], file: str, where: str, form: Format) -> ConfigError:
    match = _AT.match(said)
    problem, inside = (match["problem"], match["path"] or "") if match else (said, "")
    if unknown := _UNKNOWN.match(problem):
        key = unknown["key"]
        fix = _nearest(key, list(table.__struct_encode_fields__))
        return form.error(file, f"{where}.{key}", "no such key", fix)
    if missing := _MISSING.match(problem):
        key = missing["key"]
        return form.error(file, f"{where}.{key}", "missing", _write(key, form))
    key = inside.partition("[")[0].partition(".")[0]
    plain = problem[:1].lower() + problem[1:]
    return form.error(file, f"{where}.{inside}" if inside else where, plain, _write(key, form))


def _nearest(key: str, known: list[str]) -> str:
    return did_you_mean(key, known, f"remove it; there are {', '.join(known)}")


def _write(key: str, form: Format) -> str:
    return f"write {form.forms[key]}" if key in form.forms else "correct it"

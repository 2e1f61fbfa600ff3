"""Reads TOML into typed tables; every error names the file and key, and how to fix it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from common import errors, toml_tables
from common.suggest import did_you_mean
from common.toml_explain import Mistake, Words, mistakes, plain
from xco.errors import ConfigError

LIMITS: Final = toml_tables.Limits(64 << 20, "name another file")
"""Enough for the topology of 65,535 hosts."""

Table = TypeVar("Table", bound=msgspec.Struct)


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
    with _told(form, str(path)):
        text = toml_tables.read_text(path, LIMITS)
    return parse_tables(text, str(path), form)


def parse_tables(text: str, file: str, form: Format) -> dict[str, Any]:
    """Read a text as TOML.

    Raises:
        ConfigError: of the format's class: it is not TOML, or too large.
    """
    with _told(form, file):
        return toml_tables.parse_tables(Path(file), text, LIMITS)


@contextmanager
def _told(form: Format, file: str) -> Iterator[None]:
    """Turn the errors of the reader into those of a format."""
    try:
        yield
    except errors.ConfigError as error:
        raise form.error(error.at or file, "", error.problem, error.fix) from error


def check_keys(
    tables: Mapping[str, Any], known: Mapping[str, type], file: str, form: Format
) -> None:
    """Check that there are no other keys than these, and that each value has its type.

    Raises:
        ConfigError: of the format's class.
    """
    found = []
    for key, value in tables.items():
        if key not in known:
            found.append(Mistake(key, "no such table", _nearest(key, list(known))))
        elif not isinstance(value, known[key]):
            found.append(Mistake(key, "malformed", f"write {form.forms[key]}"))
    _check(found, file, form)


def converted(raw: Any, table: type[Table], file: str, where: str, form: Format) -> Table:
    """Return one table, checked against its structure; `where` is its name in the file.

    Raises:
        ConfigError: of the format's class, with the key that is wrong and the fix.
    """
    _check(mistakes(raw, table, _FormatWords(form), where), file, form)
    return msgspec.convert(raw, table)


def _check(found: Iterable[Mistake], file: str, form: Format) -> None:
    """Raise the first mistake, with the words of all, each on a line of its own."""
    errors = [form.error(file, *one) for one in found]
    if errors:
        errors[0].args = ("\n".join(map(str, errors)),)
        raise errors[0]


class _FormatWords(Words):
    """How mistakes in a format are described."""

    def __init__(self, form: Format) -> None:
        self._forms = form.forms

    def unknown(self, key: str, fields: Mapping[str, Any], where: str) -> str:
        del where
        return _nearest(key, list(fields))

    def missing(self, key: str, kind: Any) -> str:
        del kind
        return self._write(key)

    def wrong(self, key: str, kind: Any, value: object, problem: str) -> tuple[str, str]:
        del kind, value
        return plain(problem), self._write(key)

    def _write(self, key: str) -> str:
        return f"write {self._forms[key]}" if key in self._forms else "correct it"


def _nearest(key: str, known: list[str]) -> str:
    return did_you_mean(key, known, f"remove it; there are {', '.join(known)}")

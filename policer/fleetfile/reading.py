"""Reads a document from TOML or JSON; names every mistake by file, line and key, with a fix."""

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import msgspec

from common.toml_lines import key_lines
from policer.errors import FileMistakes, Problem, SettingsError
from policer.fleetfile.document import FleetFile
from policer.fleetfile.mistakes import mistakes
from policer.fleetfile.rates import read

MAX_BYTES = 16 << 20
MAX_LINE = 4096
"""tomllib's memory grows with the square of a dotted key's length."""
MOST_MISTAKES = 50
"""That are reported."""
STDIN = "-"


class Read(NamedTuple):
    """A document, and the text that it came from."""

    file: FleetFile
    source: str
    text: str


def read_file(path: str) -> Read:
    """Read a file; `-` is standard input.

    Raises:
        SettingsError: it cannot be read, is too large, or is neither TOML nor JSON.
        FileMistakes: names file, line and key of each mistake, what is wrong, and what to do.
    """
    source = "standard input" if path == STDIN else path
    return read_text(_text(path, source), source)


def read_text(text: str, source: str = "document") -> Read:
    """Read one text, for tests and for tools.

    Raises:
        SettingsError: as `read_file`.
        FileMistakes: as `read_file`.
    """
    tables = _tables(text, source)
    try:
        return Read(msgspec.convert(tables, FleetFile), source, text)
    except msgspec.ValidationError as error:
        found = [*islice(mistakes(tables), MOST_MISTAKES)]
        shown = found or [Problem("", str(error), "")]
        raise FileMistakes(_located(source, text, shown)) from None


def located(read: Read | None, problems: Iterable[Problem]) -> Iterator[SettingsError]:
    """Yield problems with the file and line of each key; without them where no file was read."""
    if read is None:
        return (SettingsError(*problem) for problem in problems)
    return _located(read.source, read.text, problems)


def _located(source: str, text: str, problems: Iterable[Problem]) -> Iterator[SettingsError]:
    lines = {} if _is_json(text) else key_lines(text)
    for field, problem, fix in problems:
        line = _line(lines, field)
        at = source if line is None else f"{source}:{line}"
        yield SettingsError(f"{at}: {field}" if field else at, problem, fix)


def _text(path: str, source: str) -> str:
    fix = "name a file, or - for standard input"
    try:
        if path == STDIN:
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(source, error.strerror or "cannot be read", fix) from error
    except ValueError as error:
        raise SettingsError(repr(source), str(error), fix) from error
    if len(raw) > MAX_BYTES:
        raise SettingsError(source, f"larger than {MAX_BYTES >> 20} MiB", "split it, with --keep")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(source, "not UTF-8 text", "save it as UTF-8") from error


def _tables(text: str, source: str) -> Any:
    """Return the tables of a text."""
    is_json = _is_json(text)
    try:
        return _with_numbers(_json(text) if is_json else _toml(text), "")
    except (ValueError, RecursionError) as error:  # ValueError: a decoder's, or a huge number
        words = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        language = "JSON" if is_json else "TOML"
        raise SettingsError(source, f"not {language}: {words}", "correct it there") from error


def _is_json(text: str) -> bool:
    """Whether a text is JSON: it begins with a brace, as no TOML does."""
    return text.lstrip().startswith("{")


def _toml(text: str) -> Any:
    if any(len(line) > MAX_LINE for line in text.splitlines()):
        raise ValueError(f"a line of more than {MAX_LINE} characters")
    return tomllib.loads(text)


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a name that is given twice would be two opinions."""
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r} is given twice in one object")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _with_numbers(value: Any, key: str) -> Any:
    """Return tables with numbers in the place of texts with units."""
    if isinstance(value, dict):
        return {name: _with_numbers(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_numbers(inner, "") for inner in value]
    return read(value, key)


def _line(lines: dict[str, int], path: str) -> int | None:
    """Return the line of a key, or of the nearest table around it that stands anywhere."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None

"""Reads a configuration file into tables, within limits; errors name the file."""

import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.toml_lines import key_lines

MAX_LINE = 4096
"""tomllib's memory grows with the square of a dotted key's length."""
MAX_DEPTH = 16
"""Maximum nesting of tables and lists; no format has more than five."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest file of a format, and the advice for a larger one."""

    max_bytes: int = 4 << 20
    split: str = "split it into drop-ins"


LIMITS = Limits()


def read_text(path: Path, limits: Limits = LIMITS) -> str:
    """Return a file's text.

    Raises:
        ConfigError: it cannot be read, is no regular file, too large, not UTF-8, or was modified
            during the reading.
    """
    try:
        raw = _read(path, limits)
    except OSError as error:
        raise ConfigError(
            str(path), error.strerror or "cannot be read", "name a file with --config"
        ) from error
    except ValueError as error:
        raise ConfigError(repr(str(path)), str(error), "name a file with --config") from error
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError("", "not UTF-8 text", "save it as UTF-8", at=f"{path}:{line}") from error


def _read(path: Path, limits: Limits) -> bytes:
    with open(path, "rb", opener=_without_waiting) as stream:
        before = os.fstat(stream.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise ConfigError(str(path), "no regular file", "name a file with --config")
        raw = stream.read(limits.max_bytes + 1)
        after = os.fstat(stream.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        fix = "write another file and rename it over this one, then try again"
        raise ConfigError(str(path), "changed while it was read", fix)
    return raw


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO without a writer does not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def parse_tables(path: Path, text: str, limits: Limits = LIMITS) -> dict[str, Any]:
    """Return the tables of a text.

    Raises:
        ConfigError: it is not TOML, too large, or nests too deeply.
    """
    if len(text) > limits.max_bytes:
        raise ConfigError(str(path), f"larger than {limits.max_bytes >> 20} MiB", limits.split)
    if any(len(line) > MAX_LINE for line in text.splitlines()):
        fix = "write a long list over several lines"
        raise ConfigError(str(path), f"a line is longer than {MAX_LINE} characters", fix)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), f"not TOML: {error}", "correct that line") from error
    except RecursionError:
        raise _too_deep(path) from None
    if _deeper_than(tables, MAX_DEPTH):
        raise _too_deep(path)
    return tables


def _too_deep(path: Path) -> ConfigError:
    problem = f"tables or lists nest more than {MAX_DEPTH} deep"
    return ConfigError(str(path), problem, "close the brackets")


def _deeper_than(value: object, depth: int) -> bool:
    """Whether tables and lists nest deeper; without recursion, which would overflow."""
    level = [value]
    for _ in range(depth + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class KeyPlaces:
    """File and line of each key, for messages: the last file with the key wins."""

    def __init__(self) -> None:
        self._unread: list[tuple[Path, str]] = []
        self._places: dict[str, str] = {}

    def add(self, path: Path, text: str) -> None:
        """Add a text; it is parsed on the first query for a key."""
        self._unread.append((path, text))

    def find(self, key: str) -> str | None:
        """Return file and line of a key, or of the nearest enclosing table that occurs."""
        for path, text in self._unread:
            self._places |= {one: f"{path}:{line}" for one, line in key_lines(text).items()}
        self._unread = []
        while key:
            if key in self._places:
                return self._places[key]
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return None

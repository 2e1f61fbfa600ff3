"""Ports in the file of settings: adds and removes a table, and leaves every other byte as it is.

What the new text says is read again before it replaces the file: it must differ by this port alone.
"""

import json
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from common.durable import replace_file
from common.errors import ConfigError
from common.toml_tables import parse_tables
from zovn.switch.config import checked
from zovn.switch.port_table import PortTable

Port = Mapping[str, Any]
"""A table `[[switch.port]]`, with the names of the file."""

_HEADER: Final = re.compile(r"(?m)^[ \t]*\[\[[ \t]*switch[ \t]*\.[ \t]*port[ \t]*\]\].*$")
_NEXT: Final = re.compile(r"(?m)^[ \t]*\[")
_TRAILER: Final = re.compile(r"(?m)(?:^[ \t]*(?:#.*)?\r?\n)+\Z")
"""Blank lines and comments before the next table: they are that one's."""


def given(**options: Any) -> Port:
    """Return the table of a port, without what is as by default."""
    defaults = {one.encode_name: one.default for one in msgspec.structs.fields(PortTable)}
    kept = {key: value for key, value in options.items() if value != defaults[key]}
    return {key: list(one) if isinstance(one, tuple) else one for key, one in kept.items()}


def with_port(text: str, port: Port, file: str) -> str:
    """Return the file's text with a port added at its end.

    Raises:
        ConfigError: there are mistakes in it, with this port or without; or it cannot be appended.
    """
    before = _ports(text, file)
    table = _written(port)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = f"{text}{gap}{table}"
    if not _says(after, text, [*before, dict(port)]):
        fix = f"write the port by hand: {' '.join(table.split())}"
        raise ConfigError("switch.port", "a table at the end is not possible", fix, at=file)
    _ports(after, file)
    return after


def without_port(text: str, name: str, file: str) -> str:
    """Return the file's text without a port.

    Raises:
        ConfigError: there are mistakes in it, no such port, or its lines cannot be found for sure.
    """
    before = _ports(text, file)
    places = [place for place, port in enumerate(before) if port.get("name") == name]
    if not places:
        raise ConfigError("switch.port", f"no port {name!r}", "leave --save out", at=file)
    headers = list(_HEADER.finditer(text))
    (place,) = places
    if len(headers) == len(before):
        begin, end = _extent(text, headers[place])
        after = text[:begin] + text[end:]
        if _says(after, text, [*before[:place], *before[place + 1 :]]):
            return after
    fix = f"remove by hand the lines that set name = {json.dumps(name)} and the rest of its table"
    raise ConfigError("switch.port", "the lines of the port are not clear", fix, at=file)


def write(path: Path, text: str) -> None:
    """Replace the file, or what a link at its path leads to, in one step.

    Raises:
        ConfigError: it cannot be written; it is then as it was.
    """
    try:
        file = path.resolve(strict=True)
        mode = stat.S_IMODE(file.stat().st_mode)
        replace_file(file, text.encode(), durable=True, mode=mode)
    except OSError as error:
        problem = f"{error.strerror or 'cannot be written'}: the running switch has changed alone"
        raise ConfigError(str(path), problem, "write the change by hand") from error


def _ports(text: str, file: str) -> list[dict[str, Any]]:
    """Return the ports of a text without mistakes."""
    table = parse_tables(Path(file), text).get("switch", {})
    checked(table, file)
    return list(table.get("port", []))


def _says(after: str, before: str, ports: list[dict[str, Any]]) -> bool:
    """Return whether a text is another one with these ports in the place of its own."""
    try:
        found, wanted = tomllib.loads(after), tomllib.loads(before)
    except tomllib.TOMLDecodeError:
        return False
    for tables in (found, wanted):
        tables.setdefault("switch", {})
    wanted["switch"] |= {"port": ports}
    found["switch"].setdefault("port", [])
    return found == wanted


def _written(port: Port) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in port.items()]
    return "".join(f"{line}\n" for line in ("[[switch.port]]", *lines))


def _value(value: Any) -> str:
    """Return a value of TOML: a table in one line, so that it stays within its port's."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _extent(text: str, header: re.Match[str]) -> tuple[int, int]:
    """Return where a table begins and ends, with the blank line that sets it apart."""
    begin = header.start()
    following = _NEXT.search(text, header.end())
    limit = following.start() if following else len(text)
    trailer = _TRAILER.search(text, header.end(), limit)
    end = trailer.start() if trailer else limit
    if text.startswith("\n", end):
        return begin, end + 1
    return begin - text.endswith("\n\n", 0, begin), end

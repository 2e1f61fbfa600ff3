"""What is wrong with a value of a document, in words, and what to write instead; pure."""

import math
import re
from collections.abc import Callable
from typing import Final

from policer.fleetfile.rates import UNITS, unit_of

NAME: Final = "letters, digits, dots and dashes, the first a letter or a digit, at most 64"
_NAMED: Final = "letters, digits, dots, dashes and underscores, a letter or a digit first"
_TABLE: Final = "a table, such as [{0}.NAME]"
FORMS: Final = {
    "requests": "tcp://10.0.0.7:7077 or ipc:///run/xtc/manager.sock",
    "telemetry": "tcp://10.0.0.7:7078 or ipc:///run/xtc/telemetry.sock",
    "server_key": "the 40 characters that `xtc config keys` printed on the host",
    "start": "a time of day, such as 08:30",
    "end": "a time of day, such as 17:00",
    "valid_from": "a date and time with its zone, such as 2031-01-01T00:00:00Z",
    "valid_until": "a date and time with its zone, such as 2031-01-01T00:00:00Z",
    "zone": "a time zone, such as Europe/Berlin or UTC",
    "hours": 'a list of windows, such as [{ start = "08:00", end = "18:00" }]',
    "days": 'a list of days, such as ["mon", "tue"]',
    "measures": 'a list of measures, such as ["warn", "lower"]',
    "class": f"the name of a class: {_NAMED}",
    "tenant": f"the name of a tenant: {_NAMED}",
    "description": "a text",
    "weight": "a number from 0.001 to 1000, such as 2",
    "cost": "a number from 0.01 to 100, such as 1.5",
    "burst": "a number of packets, such as 200",
    "burst_packets": "a number of packets, such as 200",
    "packet_bytes": "a whole number from 64 to 65535, such as 1500",
    "dry_run": "true or false",
    "overcommit": "true or false",
    **{table: _TABLE.format(table) for table in ("hosts", "contracts", "classes", "tenants")},
}
"""What to write under a key."""
_KINDS: Final = {
    "object": "a table",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "datetime": "a date and time",
    "date": "a date without a time",
    "time": "a time without a date",
    "null": "nothing",
}
_WORDS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (
        re.compile(r"Expected `(\w+)[^`]*`, got `(\w+)`"),
        lambda m: f"it is {_kind(m[2])}, not {_kind(m[1])}",
    ),
    (re.compile(r"Expected `str` matching"), lambda _: "it has the wrong form"),
    (re.compile(r"Expected `\w+` of length <= (\d+)"), lambda m: f"it is longer than {m[1]}"),
    (re.compile(r"Expected `\w+` >= (\S+)"), lambda m: f"it is below {float(m[1]):.15g}"),
    (re.compile(r"Expected `\w+` > (\S+)"), lambda m: f"it is not above {float(m[1]):.15g}"),
    (re.compile(r"Expected `\w+` <= (\S+)"), lambda m: f"it is above {float(m[1]):.15g}"),
    (re.compile(r"Expected `datetime` with a timezone"), lambda _: "it has no time zone"),
    (re.compile(r"Invalid RFC3339"), lambda _: "it is no date and time"),
)


def _kind(name: str) -> str:
    return _KINDS.get(name, name)


def wrong(key: str, value: object, problem: str) -> str:
    """Return what is wrong with the value of a key.

    Args:
        key: the key.
        value: what it was given.
        problem: what msgspec says of it.
    """
    unit = unit_of(key)
    if unit is not None and isinstance(value, str):
        return f"{value!r} is not {unit.example.partition(',')[0]}"
    if isinstance(value, float) and math.isnan(value):
        return "it is not a number"
    for pattern, words in _WORDS:
        if match := pattern.match(problem):
            return words(match)
    return problem[:1].lower() + problem[1:]


def fix_of(key: str, value: object) -> str:
    """Return what to write under a key in the place of a value; "" where that is not known."""
    unit = unit_of(key)
    if unit is None:
        return f"write {FORMS[key]}" if key in FORMS else ""
    other = _other_unit(key, value)
    return f"did you mean {other}? Else write {unit.example}" if other else f"write {unit.example}"


def _other_unit(key: str, value: object) -> str | None:
    """Return the key of the same rate in the unit that a text is in; None where there is none."""
    name = key.rpartition("_")[0]
    if name == "capacity" or not isinstance(value, str):
        return None
    units = (unit for unit in UNITS if not key.endswith(unit.suffix) and unit.reads(value))
    return next((name + unit.suffix for unit in units), None)

"""Quantities of a document: numbers in the unit of their key, or texts with one; pure."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from common.errors import UnitError
from common.units import parse_bit_rate, parse_rate

WHOLE = 2.0**53
"""Beyond, floating point has no whole numbers of their own."""


class Unit(NamedTuple):
    """A unit, by the end of the keys that are counted in it."""

    suffix: str
    name: str
    prefixes: tuple[tuple[str, float], ...]
    parse: Callable[[str], float]
    """Reads a text; raises UnitError."""
    example: str

    def reads(self, text: str) -> bool:
        """Whether a text is a quantity of this unit."""
        try:
            self.parse(text)
        except UnitError:
            return False
        return True


_MEGA, _KILO = ("M", 1e6), ("k", 1e3)
UNITS = (
    Unit("_pps", "pps", (_MEGA, _KILO), parse_rate, 'a packet rate, such as "20kpps"'),
    Unit("_bps", "b/s", (("G", 1e9), _MEGA, _KILO), parse_bit_rate, 'a bit rate, such as "50Mb/s"'),
)


def unit_of(key: str) -> Unit | None:
    """Return the unit that a key is counted in; None where it is no quantity."""
    return next((unit for unit in UNITS if key.endswith(unit.suffix)), None)


def written(value: Any, key: str) -> Any:
    """Return a number as people write it: with its unit where that loses nothing."""
    unit = unit_of(key)
    if unit is not None and isinstance(value, float):
        return next((t for t in _texts(value, unit) if read(t, key) == value), shortened(value))
    return shortened(value)


def shortened(value: Any) -> Any:
    """Return a whole number as one: 2.0 says no more than 2."""
    if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE:
        return int(value)
    return value


def read(value: Any, key: str) -> Any:
    """Return the number that a text stands for; what is none stays as it is."""
    unit = unit_of(key)
    if unit is None or not isinstance(value, str):
        return value
    try:
        return float(unit.parse(value))
    except UnitError:
        return value


def _texts(value: float, unit: Unit) -> Iterator[str]:
    for prefix, scale in unit.prefixes:
        if value >= scale:
            yield f"{value / scale:.15g}{prefix}{unit.name}"

"""Rates in bits/s, times in ns and sizes in bytes, as operators write and read them.

Prefixes are decimal throughout: 1 KB is 1000 bytes; 1 KiB is 1024.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from xco.errors import UnitError

MAX_RATE_BPS: Final = 10**13
"""10 Tbit/s: no link of this decade is faster; a larger number is a typing error."""
MAX_DURATION_NS: Final = 24 * 3600 * 10**9
MAX_SIZE_BYTES: Final = 2**40

_QUANTITY = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,12})?)\s*([A-Za-z/]*)\s*")
_PREFIXES: Final = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_RATES: Final = {"": 1} | {
    prefix + unit: scale for prefix, scale in _PREFIXES.items() for unit in ("bps", "bit/s", "bit")
}
_DURATIONS: Final = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9
}  # fmt: skip
_SIZES: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30} | {
    prefix + "B": scale for prefix, scale in _PREFIXES.items()
}


def parse_rate(text: str, *, field: str = "rate") -> int:
    """Read a rate such as ``500Mbps``, ``10 Gbit/s`` or ``1000000``; returns bits/s.

    Raises:
        UnitError: the text is not a rate, or the rate is not within [1, 1e13] bits/s.
    """
    value = _parsed(text, _RATES, field, "a rate such as 500Mbps or 10Gbps")
    if not 0 < value <= MAX_RATE_BPS:
        raise UnitError(field, text, "a rate above 0 and at most 10Tbps")
    return value


def parse_duration(text: str, *, field: str = "duration") -> int:
    """Read a duration such as ``50us``, ``2ms`` or ``1s``; returns nanoseconds.

    Raises:
        UnitError: the text is not a duration with its unit, or is longer than a day.
    """
    value = _parsed(text, _DURATIONS, field, "a duration such as 50us, 2ms or 1s")
    if value > MAX_DURATION_NS:
        raise UnitError(field, text, "a duration of at most 24h")
    return value


def parse_size(text: str, *, field: str = "size") -> int:
    """Read a size such as ``32KB``, ``32KiB`` or ``9000``; returns bytes.

    Raises:
        UnitError: the text is not a size, or is above 1 TiB.
    """
    value = _parsed(text, _SIZES, field, "a size such as 32KB or 9000")
    if value > MAX_SIZE_BYTES:
        raise UnitError(field, text, "a size of at most 1024GiB")
    return value


def format_rate(bps: int) -> str:
    """Write a rate in bits/s exactly, as `parse_rate` reads it: ``500Mbps``, ``1.5Gbps``."""
    return _written(bps, {"bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12})


def format_duration(ns: int) -> str:
    """Write nanoseconds exactly, as `parse_duration` reads them: ``2ms``, ``1.5us``."""
    return _written(ns, {unit: _DURATIONS[unit] for unit in ("ns", "us", "ms", "s")})


def format_size(size: int) -> str:
    """Write bytes exactly, as `parse_size` reads them: ``32KB``, ``1.5MB``."""
    return _written(size, {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9})


def _parsed(text: str, scales: Mapping[str, int], field: str, expected: str) -> int:
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in scales:
        raise UnitError(field, text, expected)
    value = Decimal(match[1]) * scales[match[2]]
    if value != int(value):
        raise UnitError(field, text, f"{expected}, in whole bits, bytes or nanoseconds")
    return int(value)


def _written(value: int, scales: Mapping[str, int]) -> str:
    """Return the value in the largest unit that is at most the value, with all its digits."""
    unit = max((unit for unit in scales if scales[unit] <= abs(value)), key=scales.__getitem__,
               default=min(scales, key=scales.__getitem__))  # fmt: skip
    number = f"{Decimal(value) / scales[unit]:f}"
    return (number.rstrip("0").rstrip(".") if "." in number else number) + unit

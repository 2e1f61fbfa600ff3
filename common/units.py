"""The quantities of the control loop, and their text forms."""

import math
import re
from typing import NewType

from common.errors import UnitError

PacketsPerSecond = NewType("PacketsPerSecond", float)
"""A packet rate: throughput, offered load or setpoint."""

BitsPerSecond = NewType("BitsPerSecond", float)
"""A rate of Ethernet frames' bits as counted by interfaces: without preamble and checksum."""

CapFraction = NewType("CapFraction", float)
"""A hard CPU limit as a fraction of one CPU; 1.0 is one whole CPU."""

Seconds = NewType("Seconds", float)
"""A duration, or an instant of the monotonic clock."""

MAX_RATE = PacketsPerSecond(1e9)
"""No port of this decade forwards more; a larger number is a typo."""

MIN_BIT_RATE = BitsPerSecond(1e3)
"""A lower rate is less than a full-size frame in ten seconds; a loop cannot hold it."""

MAX_BIT_RATE = BitsPerSecond(1e12)
"""No port of this decade is faster; a larger number is a typo."""

MAX_CAP = CapFraction(8192.0)
"""No kernel runs more CPUs (CONFIG_NR_CPUS); a larger number is a typo."""

_RATE = re.compile(r"^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(p/s|pps|kp/s|kpps|k|Mp/s|Mpps|M)?\s*$")
_RATE_SCALE = {None: 1.0, "p": 1.0, "k": 1e3, "M": 1e6}
_BIT_RATE = re.compile(r"^\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([kMG]?)(?:b/s|bit/s)\s*$")
_BIT_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_DURATION = re.compile(r"^\s*([0-9.]+)\s*(ms|s|min|h)?\s*$")
_DURATION_SCALE = {None: 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def is_rate(text: str) -> bool:
    """Whether a text is a packet rate."""
    return _RATE.match(text) is not None


def parse_rate(text: str, *, field: str = "rate") -> PacketsPerSecond:
    """Parse a packet rate such as ``20kpps``, ``20 kp/s``, ``20k``, ``1.5Mpps`` or ``20000``.

    Raises:
        UnitError: the text is not a rate, or the rate is not within (0, 1e9] packets/s.
    """
    match = _RATE.match(text)
    if match is None:
        raise UnitError(field, text, "a packet rate such as 20kpps or 20000")
    prefix = match[2][0] if match[2] else None
    return check_rate(_number(match[1], field, text) * _RATE_SCALE[prefix], field=field)


def check_rate(value: float, *, field: str = "rate") -> PacketsPerSecond:
    """Return the value as a rate, if it is valid.

    Raises:
        UnitError: the value is not finite, not positive, or above 1e9 packets/s.
    """
    if not math.isfinite(value) or not 0 < value <= MAX_RATE:
        raise UnitError(field, f"{value:g}", "a rate above 0 and at most 1e9 packets/s")
    return PacketsPerSecond(value)


def parse_bit_rate(text: str, *, field: str = "rate") -> BitsPerSecond:
    """Parse a bit rate such as ``50Mb/s``, ``1.5 Gbit/s`` or ``64000b/s``.

    Raises:
        UnitError: the text is not a bit rate, or the rate is not within [1e3, 1e12] bits/s.
    """
    match = _BIT_RATE.match(text)
    if match is None:
        raise UnitError(field, text, "a rate such as 20kpps (packets) or 50Mb/s (bits)")
    return check_bit_rate(_number(match[1], field, text) * _BIT_SCALE[match[2]], field=field)


def check_bit_rate(value: float, *, field: str = "rate") -> BitsPerSecond:
    """Return the value as a bit rate, if it is valid.

    Raises:
        UnitError: the value is not finite, below 1e3 or above 1e12 bits/s.
    """
    if not math.isfinite(value) or not MIN_BIT_RATE <= value <= MAX_BIT_RATE:
        raise UnitError(field, f"{value:g} b/s", "a bit rate from 1kb/s to 1000Gb/s")
    return BitsPerSecond(value)


def format_rate(rate: float) -> str:
    """Format a packet rate with three significant digits, as ``12.3 kp/s``."""
    if abs(rate) >= 1e6:
        return f"{_digits(rate / 1e6)} Mp/s"
    return f"{_digits(rate / 1e3)} kp/s" if abs(rate) >= 1e3 else f"{_digits(rate)} p/s"


def short_rate(rate: float) -> str:
    """Format a packet rate with three significant digits and no unit, as ``12.3k``."""
    if abs(rate) >= 1e6:
        return f"{_digits(rate / 1e6)}M"
    return f"{_digits(rate / 1e3)}k" if abs(rate) >= 1e3 else _digits(rate)


def format_bit_rate(rate: float) -> str:
    """Format a bit rate with three significant digits, as ``12.3 Mb/s``."""
    number, prefix = _in_bits(rate)
    return f"{number} {prefix}b/s"


def short_bit_rate(rate: float) -> str:
    """Format a bit rate with three significant digits and no space, as ``12.3Mb/s``."""
    return "".join(_in_bits(rate)) + "b/s"


def _in_bits(rate: float) -> tuple[str, str]:
    for prefix in "GMk":
        if abs(rate) >= _BIT_SCALE[prefix]:
            return _digits(rate / _BIT_SCALE[prefix]), prefix
    return _digits(rate), ""


def parse_fraction(text: str, *, field: str = "fraction") -> float:
    """Parse a share such as ``35%`` or ``0.35``.

    Raises:
        UnitError: the text is not a number, or is negative.
    """
    body, percent = (text.strip()[:-1], 100.0) if text.strip().endswith("%") else (text, 1.0)
    return _number(body, field, text) / percent


def parse_cap(text: str, *, field: str = "cap") -> CapFraction:
    """Parse a cap such as ``35%`` or ``0.35``.

    Raises:
        UnitError: the text is not a share, or the cap is not within (0, 8192] CPUs.
    """
    cap = parse_fraction(text, field=field)
    if cap <= 0:
        raise UnitError(field, text, "a cap above 0, such as 35% (uncapped is a state, not 0)")
    if cap > MAX_CAP:
        raise UnitError(
            field, text, "a cap such as 35%, or 0.35 of one CPU; no host has that many CPUs"
        )
    return CapFraction(cap)


def format_cap(cap: float | None) -> str:
    """Format a cap in percent of one CPU; ``None`` is ``uncapped``."""
    return "uncapped" if cap is None else f"{_digits(cap * 100)}%"


def parse_duration(text: str, *, field: str = "duration") -> Seconds:
    """Parse a duration such as ``60s``, ``100ms``, ``2min`` or ``60``.

    Raises:
        UnitError: the text is not a duration.
    """
    match = _DURATION.match(text)
    if match is None:
        raise UnitError(field, text, "a duration such as 60s, 100ms or 2min")
    return Seconds(_number(match[1], field, text) * _DURATION_SCALE[match[2]])


def _digits(value: float) -> str:
    """Return three significant digits; from 1000 on, all integer digits, without an exponent."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def _number(body: str, field: str, text: str) -> float:
    try:
        value = float(body)
    except ValueError:
        raise UnitError(field, text, "a number") from None
    if not math.isfinite(value) or value < 0:
        raise UnitError(field, text, "a finite number that is not negative")
    return value

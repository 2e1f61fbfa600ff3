"""Bursts: parsing and bounds of what a setpoint allows beyond its rate."""

import math
import re

from common.errors import UnitError
from common.setpoint import LEAST_BURST, Setpoint, Unit
from common.units import MAX_BIT_RATE, parse_duration

MOST_S = 60.0
"""The largest burst, in seconds of the setpoint: as long as the longest period of a loop."""

_AMOUNT = re.compile(r"^\s*(-?[0-9.]+(?:e[+-]?[0-9]+)?)\s*([kMG]?)(p|b|bit|)\s*$")
_TIME = re.compile(r"^\s*-?[0-9.]+\s*(?:ms|s|min)\s*$")
_SCALE = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_FORMS = {
    Unit.PACKETS: "a burst such as 4000 (packets) or 200ms (of the setpoint)",
    Unit.BITS: "a burst such as 2Mb (bits) or 200ms (of the setpoint)",
}


def parse_burst(text: str, setpoint: Setpoint, *, field: str = "burst") -> float:
    """Parse packets such as ``4000`` or ``4kp``, bits such as ``2Mb``, or a time such as ``200ms``.

    Args:
        text: the text to parse.
        setpoint: the setpoint of the burst; a time counts in it.
        field: the field's name in errors.

    Returns:
        Packets or bits, as the setpoint.

    Raises:
        UnitError: the text is not a burst, is in another unit than the setpoint, or out of range.
    """
    if _TIME.match(text):
        return check_burst(_seconds(text, setpoint, field) * setpoint.rate, setpoint, field=field)
    match = _AMOUNT.match(text)
    in_bits = match is not None and match[3].startswith("b")
    if match is None or in_bits is not (setpoint.unit is Unit.BITS):
        raise UnitError(field, text, _FORMS[setpoint.unit])
    amount = _number(match[1], text, setpoint, field) * _SCALE[match[2]]
    return check_burst(amount, setpoint, field=field)


def check_burst(burst: float, setpoint: Setpoint, *, field: str = "burst") -> float:
    """Return a burst in the setpoint's unit if it is within bounds.

    Raises:
        UnitError: it is not a number, less than a packet or a frame, or more than ``MOST_S`` of
            the setpoint.
    """
    least, most = burst_bounds(setpoint)
    if not least <= burst <= most:
        raise UnitError(field, f"{burst:g}", burst_words(setpoint))
    return burst


def burst_bounds(setpoint: Setpoint) -> tuple[float, float]:
    """Return the smallest and the largest burst of a setpoint."""
    least = LEAST_BURST[setpoint.unit]
    return least, max(least, min(MOST_S * setpoint.rate, MAX_BIT_RATE))


def burst_words(setpoint: Setpoint) -> str:
    """Describe the bursts that a setpoint may have."""
    least, most = burst_bounds(setpoint)
    one = "one packet" if setpoint.unit is Unit.PACKETS else "one frame"
    return (
        f"between {least:g} and {most:g} {setpoint.unit.value}: "
        f"at least {one}, at most {MOST_S:g} s of the setpoint"
    )


def _seconds(text: str, setpoint: Setpoint, field: str) -> float:
    try:
        return parse_duration(text, field=field)
    except UnitError:
        raise UnitError(field, text, _FORMS[setpoint.unit]) from None


def _number(body: str, text: str, setpoint: Setpoint, field: str) -> float:
    try:
        value = float(body)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise UnitError(field, text, _FORMS[setpoint.unit])
    return value

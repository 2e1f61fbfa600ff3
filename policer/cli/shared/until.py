"""Reads instants as people write them: with a zone, or as a time from now; pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from policer.errors import SettingsError

LONGEST: Final = timedelta(days=3660)
_UNITS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART: Final = re.compile(r"([0-9]{1,9})(min|[smhdw])")
_SPAN: Final = re.compile(rf"(?:{_PART.pattern})+")
_FIX: Final = "write e.g. 2h, 1d12h or 2026-03-01T18:00:00Z"


def parse_until(text: str, now: datetime, *, field: str = "--until") -> datetime:
    """Return an instant, in UTC, of ``2h``, ``1d12h`` or ``2026-03-01T18:00:00+01:00`` (ISO 8601).

    Args:
        text: the user's text.
        now: reference of a duration.
        field: option named in the error.

    Raises:
        SettingsError: it is neither, has no zone, or is more than ten years ahead.
    """
    text = text.strip()
    if _SPAN.fullmatch(text):
        span = _span(text)
        if span > LONGEST:
            raise SettingsError(field, f"{text!r} is more than ten years", _FIX)
        return (now + span).astimezone(UTC)
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise SettingsError(field, f"{text!r} is neither a time nor an instant", _FIX) from None
    raise SettingsError(field, f"{text!r} has no time zone", "end it in Z for UTC, or in +01:00")


def _span(text: str) -> timedelta:
    """Return the sum of a duration's parts, limited to just above the longest allowed."""
    total = timedelta()
    for number, unit in _PART.findall(text):
        if int(number) > LONGEST / _UNITS[unit]:
            return 2 * LONGEST
        total += int(number) * _UNITS[unit]
    return total

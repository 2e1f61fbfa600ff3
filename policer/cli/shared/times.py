"""Times on the command line: a duration before now, such as 2h, or an instant with its zone."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from policer.errors import SettingsError

LONGEST_DAYS = 36_600
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO = re.compile(r"([0-9]{1,9})([smhdw])")
EXAMPLE = "write 2h, 30m or 7d (ago), or an instant with its zone: 2026-11-23T12:00:00Z"

Since = Annotated[
    str | None,
    typer.Option(help="From then on: 2h (ago), or an instant such as 2026-11-23T12:00:00Z."),
]
Until = Annotated[str | None, typer.Option(help="Before then, written as for --since.")]


def instant(option: str, text: str | None, now: datetime) -> str | None:
    """Return an instant in the format of the service; None stays None.

    Args:
        option: its name, for the error.
        text: the user's text.
        now: reference of a duration.

    Raises:
        SettingsError: it is no time.
    """
    if text is None:
        return None
    found = seconds(text)
    if found is not None and found <= LONGEST_DAYS * 86_400:
        return _written(now - timedelta(seconds=found))
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SettingsError(option, f"{text!r} is no time", EXAMPLE) from None
    if given.tzinfo is None:
        fix = f"write {text.strip()}Z for UTC, or its zone, such as +01:00"
        raise SettingsError(option, f"{text!r} has no zone", fix)
    return _written(given)


def seconds(text: str) -> int | None:
    """Return the seconds of a text such as 90s, 5m, 2h or 7d; None if it is invalid."""
    match = _AGO.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2]] if match else None


def hours(length_s: float) -> str:
    """Show a length of time by hours, minutes and seconds."""
    minutes, left = divmod(round(length_s), 60)
    whole, minutes = divmod(minutes, 60)
    return f"{whole}:{minutes:02}:{left:02}"


def now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def _written(at: datetime) -> str:
    try:
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise SettingsError("time", f"{at} is out of range", EXAMPLE) from None

"""Reads a journal, damaged or not, for people and for `xtc journal repair`."""

import re
from collections.abc import Iterator
from json import JSONDecoder, loads
from typing import Any, TypeVar

import msgspec

from xtc.lease import Lease
from xtc.state.journal import Entry, Ledger, body_of

T = TypeVar("T")

DAMAGED = "the checksum does not match: what is shown may be wrong"
_NAME = r'("(?:[^"\\]|\\.)*"):(?=\{"%s":)'
_ENTRY, _LEASE = re.compile(_NAME % "spec"), re.compile(_NAME % r"setpoint_[pb]ps")
_LIMITS, _SHIELDS = re.compile(r'"limits":(?=\{)'), re.compile(r'"shields":(?=\{)')
_BOOT, _EPOCH = re.compile(r'"boot_id":"([^"]*)"'), re.compile(r'"highest_epoch":(\d{1,19})\b')
_MAX_EPOCH = (1 << 62) - 1
_decoder = JSONDecoder()


class Salvaged(msgspec.Struct, frozen=True):
    """The readable contents of a journal."""

    ledger: Ledger
    """As written, of any boot."""
    problems: tuple[str, ...] = ()
    """What is damaged or unreadable; empty for an intact journal."""


def salvage(raw: bytes) -> Salvaged:
    """Read as much of a journal as possible; never raises."""
    body, intact = body_of(raw)
    doubts = () if intact else (DAMAGED,)
    try:
        return Salvaged(msgspec.json.decode(body, type=Ledger), doubts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _by_parts(body.decode("utf-8", "replace"), (*doubts, f"not whole: {error}"))


def _by_parts(text: str, doubts: tuple[str, ...]) -> Salvaged:
    """Return every intact entry, lease and limit, at any position."""
    problems = list(doubts)
    entries = dict(_named(text, _ENTRY, Entry, "entry", problems))
    leases = dict(_named(text, _LEASE, Lease, "lease", problems))
    boot = _BOOT.search(text)
    epochs = [int(epoch) for epoch in _EPOCH.findall(text)] or [-1]
    if max(epochs) < 0:
        problems.append("the highest epoch cannot be read; it is at least that of every lease")
    highest = max([0, *epochs, *(lease.epoch for lease in leases.values())])
    ledger = Ledger(
        boot_id=boot[1] if boot else "",
        entries=entries,
        leases=leases,
        limits=_borne(text, _LIMITS, "limits", problems),
        shields=_borne(text, _SHIELDS, "shields", problems),
        highest_epoch=min(highest, _MAX_EPOCH),
    )
    return Salvaged(ledger, tuple(problems))


def _named(
    text: str, pattern: re.Pattern[str], kind: type[T], word: str, problems: list[str]
) -> Iterator[tuple[str, T]]:
    """Yield the names and values of one kind; damaged ones are added to the problems."""
    for found in pattern.finditer(text):
        try:
            name = str(loads(found[1]))
        except ValueError:
            problems.append(f"a {word} whose name cannot be read: {found[1]}")
            continue
        value = _value(text, found.end(), kind, f"{word} of {name}", problems)
        if value is not None:
            yield name, value


def _borne(
    text: str, pattern: re.Pattern[str], word: str, problems: list[str]
) -> dict[str, tuple[str, ...]]:
    """Return the interfaces of each router, at any position."""
    borne: dict[str, tuple[str, ...]] = {}
    for found in pattern.finditer(text):
        borne |= _value(text, found.end(), dict[str, tuple[str, ...]], word, problems) or {}
    return borne


def _value(text: str, at: int, kind: Any, word: str, problems: list[str]) -> Any:
    """Return the value that begins at a position; None, and a problem, if it is damaged."""
    try:
        value, _ = _decoder.raw_decode(text, at)
        return msgspec.convert(value, kind, strict=True)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        problems.append(f"{word}: {error}")
        return None

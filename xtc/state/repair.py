"""Repairs a journal from quarantined ones, and lowers the epoch; no daemon may run.

An original is never lost: of two for the same place, the older is correct, since a daemon that
starts without its journal mistakes its predecessor's caps for originals. Every existing file is
kept under another name.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from xtc.actuator.places import captured_at, takes_over
from xtc.errors import JournalError
from xtc.lease import Lease
from xtc.state.journal import JOURNAL, Entry, Journal, Ledger, free_name, read_file
from xtc.state.salvage import Salvaged, salvage

ASIDE = f"{JOURNAL}.corrupt-"
USED = f"{JOURNAL}.repaired-"
BEFORE = f"{JOURNAL}.before-repair-"


class Repair(msgspec.Struct, frozen=True):
    """The contents of a repaired journal, and notes for the operator."""

    ledger: Ledger
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    """The source files, oldest first; the journal itself comes last."""


def read_state(directory: Path) -> dict[str, Salvaged]:
    """Return the result of `read_all` without writing; a daemon may run.

    Raises:
        JournalError: the directory or a file cannot be read.
    """
    try:
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise JournalError(f"{directory}: {error.strerror}") from error
    try:
        return read_all(opened)
    finally:
        os.close(opened)


def read_all(opened: int) -> dict[str, Salvaged]:
    """Return the readable contents of every journal in an open state directory.

    Quarantined ones come first, oldest first, and the current one last.

    Raises:
        JournalError: a file cannot be read.
    """
    try:
        present = [JOURNAL] if JOURNAL in os.listdir(opened) else []
        return {name: salvage(read_file(opened, name)) for name in [*aside(opened), *present]}
    except OSError as error:
        raise JournalError(f"{error.filename or JOURNAL}: {error.strerror}") from error


def aside(opened: int) -> list[str]:
    """Return the names of the quarantined journals, oldest first."""
    names = [name for name in os.listdir(opened) if name.startswith(ASIDE)]
    return sorted(names, key=lambda name: (os.stat(name, dir_fd=opened).st_mtime_ns, name))


def unrepaired(opened: int, boot: str) -> list[str]:
    """Return the names of quarantined journals whose caps may be in force, oldest first.

    Raises:
        JournalError: a file cannot be read.
    """
    found = read_all(opened)
    return [name for name, one in found.items() if name != JOURNAL and _of_boot(one.ledger, boot)]


def planned(found: Mapping[str, Salvaged], boot: str, *, newer_wins: bool = False) -> Repair:
    """Return a journal merged from several.

    Args:
        found: the readable contents of each, oldest first, the current one last.
        boot: the current boot; caps and limits of another boot are gone.
        newer_wins: take the newer of two originals of the same place instead of the older.
    """
    notes: list[str] = []
    for name, one in found.items():
        notes += [f"{name}: {problem}" for problem in one.problems]
    ours = {name: one.ledger for name, one in found.items() if _of_boot(one.ledger, boot)}
    gone = "of another boot, whose caps and limits are gone"
    notes += [f"{name}: {gone}" for name in found if name not in ours]
    order = list(ours.items())
    entries = _merged(order[::-1] if newer_wins else order, notes)
    limits = _united(ledger.limits for ledger in ours.values())
    shields = _united(ledger.shields for ledger in ours.values())
    highest = _highest(found.values())
    numbers = {name: at for ledger in ours.values() for name, at in ledger.numbers.items()}
    ledger = Ledger(boot, entries, _leases(found, boot), limits, highest, shields, numbers)
    return Repair(ledger, tuple(notes), tuple(found))


def _united(every: Iterable[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return all interfaces of each router."""
    united: dict[str, tuple[str, ...]] = {}
    for one in every:
        for vr, interfaces in one.items():
            united[vr] = tuple(sorted({*united.get(vr, ()), *interfaces}))
    return united


def _of_boot(ledger: Ledger, boot: str) -> bool:
    """Whether caps of this ledger may be in force; they may if its boot is unknown."""
    return ledger.boot_id in {boot, ""}


def _merged(ledgers: Iterable[tuple[str, Ledger]], notes: list[str]) -> dict[str, Entry]:
    """Return the entries of all; of two for the same place, the first."""
    merged: dict[str, Entry] = {}
    for source, ledger in ledgers:
        for name, entry in ledger.entries.items():
            known = next((e for e in merged.values() if _same_place(e, entry)), None)
            if known is None:
                merged[_free(name, merged)] = entry
            elif known.original != entry.original:
                notes.append(
                    f"{name}: {source} has another original, {_words(entry.original)}, than the "
                    f"one taken, {_words(known.original)}"
                )
    return merged


def _same_place(one: Entry, other: Entry) -> bool:
    """Whether two entries are of one place, in any notation."""
    return takes_over(
        one.spec, other.spec, other.original, lambda spec: captured_at(spec, one.original)
    )


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "'"  # no router of a configuration can have such a name
    return name


def _words(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _leases(found: Mapping[str, Salvaged], boot: str) -> dict[str, Lease]:
    """Return the leases of the newest journal with any; those of another boot have no end."""
    for one in reversed(list(found.values())):
        if one.ledger.leases:
            same = _of_boot(one.ledger, boot)
            leases = one.ledger.leases.items()
            return {vr: lease for vr, lease in leases if same or lease.expires_at is None}
    return {}


def _highest(found: Iterable[Salvaged]) -> int:
    return max((one.ledger.highest_epoch for one in found), default=0)


def carry_out(journal: Journal, repair: Repair) -> list[str]:
    """Store a repaired journal; return the new names of the previous files.

    Raises:
        JournalError: a file cannot be written or renamed; no existing data is lost.
    """
    opened = journal.descriptor
    try:
        kept = [_kept_present(opened)] if JOURNAL in repair.sources else []
        journal.store(repair.ledger)
        kept += [_renamed(opened, name) for name in repair.sources if name != JOURNAL]
        os.fsync(opened)
    except OSError as error:
        raise JournalError(f"{error.filename or JOURNAL}: {error.strerror}") from error
    return kept


def _kept_present(opened: int) -> str:
    name = free_name(opened, f"{BEFORE}{os.getpid()}")
    os.link(JOURNAL, name, src_dir_fd=opened, dst_dir_fd=opened, follow_symlinks=False)
    return name


def _renamed(opened: int, name: str) -> str:
    used = free_name(opened, USED + name.removeprefix(ASIDE))
    os.rename(name, used, src_dir_fd=opened, dst_dir_fd=opened)
    return used


def with_epoch(ledger: Ledger, epoch: int) -> Ledger:
    """Return a ledger whose highest epoch, and that of every lease, is at most this one.

    A lowered lease accepts any sequence of that epoch as its successor.
    """
    leases = {
        vr: lease if lease.epoch <= epoch else replace(lease, epoch=epoch, sequence=0)
        for vr, lease in ledger.leases.items()
    }
    return replace(ledger, leases=leases, highest_epoch=min(epoch, ledger.highest_epoch))

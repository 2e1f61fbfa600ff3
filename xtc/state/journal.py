"""The journal: original caps and leases, durable before the first cap is written.

One file, replaced atomically: a line with format and checksum, then JSON. A damaged file is
quarantined; xtc does not guess its contents, and starts without it.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import structlog

from common.directories import open_directory, open_within
from common.dirlock import hold_within, lock_of, still_held, take_over
from common.errors import Busy, XtcError
from xtc.errors import JournalError, TakenOver
from xtc.lease import Lease
from xtc.spec import ActuatorSpec, Original

JOURNAL = "journal"
NEW = "journal.new"
UNSTORED = "no new router will be capped until this is fixed"
UNWRITTEN = "the journal is not written yet"
_MAGIC = b"xtc-journal 1 sha256="
_Value = TypeVar("_Value")

log = structlog.get_logger()


class Entry(msgspec.Struct, frozen=True):
    """One router that may be capped: the place of its cap, and the original settings."""

    spec: ActuatorSpec
    original: Original


class Ledger(msgspec.Struct, frozen=True):
    """All state that must survive a crash."""

    boot_id: str
    """Monotonic instants are valid in this boot only."""
    entries: dict[str, Entry] = {}
    leases: dict[str, Lease] = {}
    limits: dict[str, tuple[str, ...]] = {}
    """Interfaces of a router with limited traffic from the host."""
    highest_epoch: int = 0
    shields: dict[str, tuple[str, ...]] = {}
    """Interfaces of a router that may have its shield."""
    numbers: dict[str, int] = {}
    """The numbers of the interfaces above: settings stay when interfaces are renamed."""


class Journal:
    """Holds the state directory exclusively for one daemon, and the ledger within it."""

    def __init__(self, directory: Path, *, force: bool = False) -> None:
        """Acquire nothing yet.

        Args:
            directory: the state directory.
            force: take it from a daemon that holds it, which may then no longer write.
        """
        self._directory, self._force = directory, force
        self._new = f"{NEW}-{os.getpid()}" if force else NEW  # the other may be writing its own
        self._path = directory / JOURNAL
        self._opened = self._lock = -1
        """The directory and its lock; -1 while they are not held."""
        self._stored = Ledger(boot_id=boot_id())
        self._in_doubt = False
        """Whether a write failed halfway, so that the disk may hold either ledger."""
        self._secured = Ledger(boot_id="")
        """What is durable in either case, if two ledgers are in doubt."""
        self._unkept = False
        """Whether the last file for `keep` could not be written."""
        self.quarantined: Path | None = None
        """The path of a damaged journal that was quarantined at the start."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ledger(self) -> Ledger:
        """The durable ledger."""
        return self._stored

    @property
    def secured(self) -> Mapping[str, Entry]:
        """Entries that are durable in either of the ledgers in doubt.

        Empty once another process has taken over the state directory.
        """
        return self.certain.entries

    @property
    def certain(self) -> Ledger:
        """What is durable in either of the ledgers in doubt, except leases.

        Empty once another process has taken over the state directory.
        """
        try:
            self.check_held()
        except TakenOver:
            return Ledger(boot_id="")
        return self._secured

    def open(self) -> None:
        """Acquire the state directory and read the journal of the last daemon.

        Raises:
            Busy: another daemon holds the directory.
            JournalError: the directory cannot be created or read, or another user could write to
                it.
        """
        try:
            self._opened = open_directory(self._directory, mode=0o700)
            self._lock = self._taken()
            self._stored = self._read()
            self._secured = self._stored
        except OSError as error:
            self.close()
            raise JournalError(f"{self._directory}: {error.strerror}") from error
        except XtcError:
            self.close()
            raise

    def _taken(self) -> int:
        found = lock_of(self._opened)
        try:
            return hold_within(self._opened, self._directory, "state_dir")
        except Busy:
            if not self._force:
                raise
            return take_over(self._opened, self._directory, found)

    @property
    def descriptor(self) -> int:
        """Descriptor of the state directory, while it is held."""
        return self._opened

    def check_held(self) -> None:
        """Check that no other process has taken over the state directory.

        Raises:
            TakenOver: another process has; this one may no longer cap or store anything.
        """
        if self._lock >= 0 and not still_held(self._opened, self._lock):
            words = "was taken over (`xtc release --all --force`); this daemon stops"
            raise TakenOver(f"{self._directory} {words}")

    def close(self) -> None:
        """Release the directory."""
        for descriptor in (self._lock, self._opened):
            if descriptor >= 0:
                os.close(descriptor)
        self._opened = self._lock = -1

    def store(self, ledger: Ledger) -> None:
        """Make the ledger durable; the old one stays until the new one is complete.

        Raises:
            JournalError: the disk is full or read-only. The old ledger is then still in force.
        """
        if self._stands(ledger):
            return
        self._expect(ledger)
        self._write(ledger)
        self._stored, self._in_doubt, self._secured = ledger, False, ledger

    @property
    def ticket(self) -> int:
        """The number of the newest ledger given, for `settled`."""
        return 0

    def settled(self, ticket: int) -> bool:
        """Whether a ledger was written, has failed, or takes too long to wait for."""
        return ticket <= self.ticket

    @property
    def wakes(self) -> int | None:
        """The descriptor that becomes readable when a write ends; None where there is none."""
        return None

    def woken(self) -> None:
        """Wait for the next write to end."""

    def store_later(self, ledger: Ledger) -> None:
        """Make the ledger durable when there is time; this class does so immediately.

        Raises:
            JournalError: as `store`.
        """
        self.store(ledger)

    def keep(self, name: str, data: bytes) -> None:
        """Write an optional file to the state directory; this class does so immediately.

        It is not synced; a failure is logged once.
        """
        try:
            self.check_held()
            _write_whole(self._opened, f"{name}.new", data)
            os.replace(f"{name}.new", name, src_dir_fd=self._opened, dst_dir_fd=self._opened)
        except (OSError, TakenOver) as error:
            if not self._unkept:
                log.warning("not_kept", file=name, problem=str(error))
            self._unkept = True
        else:
            self._unkept = False

    def _stands(self, ledger: Ledger) -> bool:
        """Whether the disk already holds the ledger."""
        return ledger == self._stored and not self._in_doubt and self._is_there()

    def _expect(self, ledger: Ledger) -> None:
        """Note that the disk may hold this ledger from now on."""
        self._in_doubt = True
        self._secured = common(self._secured, ledger)

    def _write(self, ledger: Ledger) -> None:
        self.check_held()
        body = msgspec.json.encode(ledger)
        try:
            _write_durably(self._opened, self._new, _MAGIC + _checksum(body) + b"\n" + body)
            os.replace(self._new, JOURNAL, src_dir_fd=self._opened, dst_dir_fd=self._opened)
            _sync_directory(self._opened)
        except OSError as error:
            raise JournalError(f"{self._path}: {error.strerror}; {UNSTORED}") from error

    def _is_there(self) -> bool:
        """Whether the journal is still a file."""
        with contextlib.suppress(FileNotFoundError):
            return stat.S_ISREG(
                os.stat(JOURNAL, dir_fd=self._opened, follow_symlinks=False).st_mode
            )
        return False

    def _read(self) -> Ledger:
        try:
            raw = read_file(self._opened, JOURNAL)
        except FileNotFoundError:
            return Ledger(boot_id=boot_id())
        except OSError as error:
            raise JournalError(f"{self._path}: {error.strerror}") from error
        try:
            return _decode(raw)
        except (ValueError, msgspec.DecodeError):
            self._set_aside()
            return Ledger(boot_id=boot_id())

    def _set_aside(self) -> None:
        """Rename the journal; earlier quarantined ones stay, as they may hold other originals."""
        name = free_name(self._opened, f"{JOURNAL}.corrupt-{os.getpid()}")
        try:
            os.replace(JOURNAL, name, src_dir_fd=self._opened, dst_dir_fd=self._opened)
        except OSError as error:
            raise JournalError(f"{self._path}: {error.strerror}") from error
        self.quarantined = self._directory / name


def common(one: Ledger, other: Ledger) -> Ledger:
    """Return what both ledgers contain, except leases."""
    if one is other:
        return one
    return Ledger(
        one.boot_id,
        _same(one.entries, other.entries),
        limits=_in_both(one.limits, other.limits),
        highest_epoch=min(one.highest_epoch, other.highest_epoch),
        shields=_in_both(one.shields, other.shields),
        numbers=_same(one.numbers, other.numbers),
    )


def _same(one: Mapping[str, _Value], other: Mapping[str, _Value]) -> dict[str, _Value]:
    return {name: value for name, value in one.items() if other.get(name) == value}


def _in_both(
    one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    return {
        name: names
        if names == other[name]
        else tuple(each for each in names if each in other[name])
        for name, names in one.items()
        if name in other
    }


def boot_id() -> str:
    """Return the kernel's id of this boot (random(4))."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return "unknown"


def _decode(raw: bytes) -> Ledger:
    """Return the ledger of a journal's text.

    Raises:
        ValueError: checksum or format is wrong.
        msgspec.DecodeError: the body is not a ledger.
    """
    body, intact = body_of(raw)
    if not intact:
        raise ValueError("the checksum does not match")
    ledger = msgspec.json.decode(body, type=Ledger)
    if ledger.boot_id != boot_id():
        # Instants of another boot cannot be compared, so leases with an end have expired. Caps and
        # limits of another boot no longer exist, so there is nothing to restore.
        lasting = {vr: lease for vr, lease in ledger.leases.items() if lease.expires_at is None}
        return Ledger(boot_id(), leases=lasting, highest_epoch=ledger.highest_epoch)
    return ledger


def body_of(raw: bytes) -> tuple[bytes, bool]:
    """Return the JSON of a journal's text, and whether its checksum matches."""
    head, _, body = raw.partition(b"\n")
    return body, head == _MAGIC + _checksum(body)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def read_file(directory: int, name: str, *, at_most: int | None = None) -> bytes:
    """Return the contents of a file in an open directory.

    Raises:
        OSError: it cannot be read, is too large, or is a symbolic link.
    """

    def opened(name: str, flags: int) -> int:
        return open_within(directory, name, flags | os.O_NONBLOCK)

    with open(name, "rb", opener=opened) as file:
        found = file.read(-1 if at_most is None else at_most + 1)
    if at_most is not None and len(found) > at_most:
        raise OSError(errno.EFBIG, f"{name} is larger than {at_most} bytes")
    return found


def free_name(directory: int, wanted: str) -> str:
    """Return an unused name in an open directory: the one wanted, or a similar one."""
    taken = set(os.listdir(directory))
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted}-{count}"
    return name


def _write_durably(directory: int, name: str, data: bytes) -> None:
    _write_whole(directory, name, data, sync=True)


def _write_whole(directory: int, name: str, data: bytes, *, sync: bool = False) -> None:
    """Write a new file: an existing link or leftover of that name is never written to."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
    descriptor = open_within(directory, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(directory: int) -> None:
    os.fsync(directory)

"""Why a user cannot use a file or a directory, and the command that changes that."""

import os
import stat
from pathlib import Path

from policer.config.accounts import Account, account_of

READ, WRITE, ENTER = os.R_OK, os.W_OK, os.X_OK
_DOES = {READ: "read", WRITE: "write to", ENTER: "enter"}
_LETTERS = {READ: "r", WRITE: "w", ENTER: "x"}
OTHERS = stat.S_IRWXG | stat.S_IRWXO
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
READABLE, WRITABLE = "can be read by others", "can be written to by others"
Finding = tuple[str, str]
"""What is wrong, and the command that fixes it."""


def not_entered(path: Path, user: Account) -> Finding | None:
    """Return the first directory of a path that a user may not enter; None if it may enter all.

    Such a directory belongs to another user: the fix only lets the user pass.
    """
    shut = _shut(path)
    if shut is None:
        return None
    fix = f"setfacl -m u:{user.name}:x {shut}"
    return f"{path}: {user.name} may not enter {shut}: {_owned(shut)}", as_root(fix)


def unusable(path: Path, wanted: int, user: Account, *, own: bool = True) -> Finding | None:
    """Return why a user cannot use the file at a path; None if it can.

    Args:
        path: a file or directory that exists, as far as visible.
        wanted: READ, WRITE and ENTER, added up.
        user: user with the current rights of this process.
        own: whether the user must own it; otherwise its group gets access.
    """
    shut = not_entered(path, user)
    if shut is not None or _may(path, wanted):
        return shut
    letters = "".join(letter for bit, letter in _LETTERS.items() if wanted & bit)
    does = " and ".join(word for bit, word in _DOES.items() if wanted & bit)
    problem = f"{path}: {user.name} may not {does} it: {_owned(path)}"
    if path.stat().st_uid == user.uid:
        return problem, f"chmod u+{letters} {path}"
    if own:
        return problem, as_root(f"chown {user.name}: {path}")
    return problem, as_root(f"chgrp {user.group} {path} && chmod g+{letters} {path}")


def exposed(path: Path, forbidden: int, words: str) -> Finding | None:
    """Return the problem if the mode of a file or directory allows too much; else None.

    Args:
        path: a file or directory.
        forbidden: bits of the mode that must not be set.
        words: what others may do then.
    """
    try:
        found = path.stat()
    except OSError:
        return None
    mode = stat.S_IMODE(found.st_mode)
    if not mode & forbidden:
        return None
    fix = f"chmod {mode & ~forbidden:o} {path}"
    mine = os.getuid() in {0, found.st_uid}
    return f"{path} {words}: mode {mode:04o}", fix if mine else as_root(fix)


def unread(path: Path, error: OSError, missing: str, *, own: bool = True) -> Finding:
    """Return why a file could not be read.

    Args:
        path: the file.
        error: what reading it raised.
        missing: what to do if it does not exist.
        own: whether the reader must own it.
    """
    if isinstance(error, PermissionError):
        found = unusable(path, READ, account_of(os.geteuid()), own=own)
        if found is not None:
            return found
    if isinstance(error, IsADirectoryError):
        return f"{path} is a directory", "name the file in it"
    fix = missing if isinstance(error, FileNotFoundError) else "name another file"
    return f"{path}: {error.strerror or error}", fix


def made_empty(path: Path) -> str:
    """Return the command that makes an empty file that every user may read."""
    folder = path.absolute().parent
    command = f"touch {path}" if folder.exists() else f"install -D -m 644 /dev/null {path}"
    above = next(one for one in path.absolute().parents if one.exists())
    return command if _may(above, WRITE | ENTER) else as_root(command)


def missing_folder(folder: Path, user: Account) -> Finding | None:
    """Return the problem if there is no directory at a path; None if it exists or is invisible."""
    if _shut(folder) is not None or folder.is_dir():
        return None
    if folder.exists():
        return f"{folder} is no directory", "set store.url to another place"
    fix = f"make it ({_made(folder, user)}), or set store.url to another place"
    return f"{folder}: no such directory", fix


def own_folder(file: Path, found: Finding, user: Account) -> Finding:
    """Return the fix for SQLite's directory: the ownership of a shared one is not changed."""
    problem, fix = found
    try:
        shared = any(not one.name.startswith(file.name) for one in file.parent.iterdir())
    except FileNotFoundError:
        return found
    except OSError:
        return problem, f"if nothing else is in it, {fix}"
    if not shared:
        return found
    own = file.parent / "policer"
    return problem, f"{_made(own, user)}, and set store.url to sqlite:///{own / file.name}"


def as_root(command: str) -> str:
    """Return a command for root; mention that it takes root if this is not root."""
    return command if os.getuid() == 0 else f"as root: {command}"


def _made(folder: Path, user: Account) -> str:
    """Return the command that makes a directory for a user."""
    above = next(one for one in folder.absolute().parents if one.exists())
    if os.getuid() == user.uid and _may(above, WRITE | ENTER):
        return f"install -d -m 700 {folder}"
    return as_root(f"install -d -m 700 -o {user.name} -g {user.group} {folder}")


def _may(path: Path, wanted: int) -> bool:
    """Whether the effective user has access to a path (access(2), AT_EACCESS)."""
    return os.access(path, wanted, effective_ids=True)


def _shut(path: Path) -> Path | None:
    """Return the first directory of a path that the effective user may not enter."""
    above = reversed(path.absolute().parents)
    return next((one for one in above if one.is_dir() and not _may(one, ENTER)), None)


def _owned(path: Path) -> str:
    found = path.stat()
    return f"mode {stat.S_IMODE(found.st_mode):04o}, of {account_of(found.st_uid).name}"

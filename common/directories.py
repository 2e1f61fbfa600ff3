"""Directories that other users can neither replace nor write to, and files within them.

A daemon that runs as root writes into its directories, so no other user may control their location.
"""

import errno
import os
import pwd
import stat
from pathlib import Path

MAX_LINKS = 40
"""Maximum symbolic links in a path, as in the kernel."""
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def open_directory(path: Path, *, mode: int, group_may_write: bool = False) -> int:
    """Create a directory if it is missing, check that it is only ours, and open it.

    Files opened relative to the descriptor stay in this directory, even if its path changes later.
    A symbolic link is followed only if no other user could create or replace it, for example that
    of systemd's DynamicUser=.

    Args:
        path: the directory; missing parents are created too.
        mode: the mode of a new directory; an existing one keeps its own.
        group_may_write: whether its group may write to it.

    Raises:
        PermissionError: another user could write to it or replace it; `strerror` says how, and
            which command changes that.
        OSError: it cannot be created or opened.
    """
    real = _made_path(path, mode)
    descriptor = os.open(real, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_directory(path, os.fstat(descriptor), group_may_write=group_may_write)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_within(directory: int, name: str, flags: int, mode: int = 0o600) -> int:
    """Open a file of an open directory; symbolic links are not followed, since we create none.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ELOOP:
            words = f"{name} is a symbolic link (see where it leads, then `rm {name}` there)"
            raise OSError(errno.ELOOP, words) from None
        raise


def _check_directory(path: Path, found: os.stat_result, *, group_may_write: bool) -> None:
    _check_owner(path, found)
    forbidden = stat.S_IWOTH if group_may_write else WRITABLE_BY_OTHERS
    if found.st_mode & forbidden:
        who = "every user" if found.st_mode & stat.S_IWOTH else "its group"
        mode = stat.S_IMODE(found.st_mode)
        words = f"{who} may write to it (mode {mode:04o})"
        raise _refusal(words, f"chmod {mode & ~forbidden:04o} {path}", path)


def _made_path(path: Path, mode: int) -> Path:
    """Return the target of a path; every part of it belongs to root or to this user.

    A missing part is created after its parents were checked: nothing is created behind another
    user's link.

    Raises:
        PermissionError: another user could replace a part of it.
        OSError: a part cannot be read, or links form a loop.
    """
    at, rest, links = Path("/"), list(reversed(path.absolute().parts[1:])), 0
    while rest:
        _check_parent(at)
        name = rest.pop()
        if name == "..":
            at = at.parent
            continue
        found = _made(at / name, 0o777 if rest else mode)
        _check_owner(at / name, found)
        if not stat.S_ISLNK(found.st_mode):
            at /= name
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, "too many symbolic links", str(path))
        target = (at / name).readlink()
        at = Path("/") if target.is_absolute() else at
        rest += reversed(target.parts[target.is_absolute() :])
    return at


def _made(path: Path, mode: int) -> os.stat_result:
    try:
        return path.lstat()
    except FileNotFoundError:
        path.mkdir(mode=mode, exist_ok=True)
        return path.lstat()


def _check_parent(directory: Path) -> None:
    """Refuse a directory in which other users could replace our files (chmod(1), sticky bit)."""
    found = directory.lstat()
    group = stat.S_IWGRP if found.st_gid not in {0, os.getegid()} else 0
    if found.st_mode & (stat.S_IWOTH | group) and not found.st_mode & stat.S_ISVTX:
        words = f"other users may write to {directory} and replace its files"
        raise _refusal(words, f"chmod g-w,o-w {directory}", directory)


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid in {0, os.geteuid()}:
        return
    words = f"{path} belongs to user {_name(found.st_uid)}, who could replace it"
    raise _refusal(words, f"chown -h {_name(os.geteuid())} {path}", path)


def _refusal(words: str, command: str, path: Path) -> PermissionError:
    words = f"{words} (run `{command}`, or name another directory)"
    return PermissionError(errno.EPERM, words, str(path))


def _name(user: int) -> str:
    """Return a user's name, or its number if it has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)

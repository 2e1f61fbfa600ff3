"""Whose files the service needs: the user that runs it, and looking at files as that user."""

import grp
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from policer.config.schema import STATE

SERVICE = "xtc-policer"
"""The user of the service, as the packages make it."""


class Account(NamedTuple):
    """A user of this machine."""

    name: str
    """Its number where it has no name."""
    uid: int
    gid: int

    @property
    def group(self) -> str:
        """The name of its group, or its number where it has none."""
        try:
            return grp.getgrgid(self.gid).gr_name
        except KeyError:
            return str(self.gid)


def account_of(uid: int) -> Account:
    """Return a user by number; one without a name is in the group of the same number."""
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return Account(str(uid), uid, uid)
    return Account(found.pw_name, uid, found.pw_gid)


def service_account(folder: Path | None) -> Account:
    """Return the user that runs the service.

    Who is not root runs it. For root, it is the owner of SQLite's directory, or the packages' user
    where that directory is theirs, is missing, or another database is used.

    Args:
        folder: SQLite's directory; None for another database.
    """
    me = account_of(os.geteuid())
    if me.uid != 0:
        return me
    if folder is not None and folder.is_dir():
        owner = account_of(folder.stat().st_uid)
        if owner.uid != 0 or folder.absolute() != Path(STATE):
            return owner
    try:
        return account_of(pwd.getpwnam(SERVICE).pw_uid)
    except KeyError:
        return me


@contextmanager
def acting_as(account: Account) -> Iterator[None]:
    """Have the rights of another user within the block, where this is root and may give them up."""
    before = os.getegid(), os.getgroups()
    if os.geteuid() != 0 or account.uid == 0:
        yield
        return
    try:
        os.setgroups(_groups(account))
    except PermissionError:  # a root without CAP_SETGID, as in a container
        yield
        return
    os.setegid(account.gid)
    os.seteuid(account.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(before[0])
        os.setgroups(before[1])


def _groups(account: Account) -> list[int]:
    """Return a user's groups; one without a name has its own alone."""
    try:
        pwd.getpwnam(account.name)
    except KeyError:
        return [account.gid]
    return os.getgrouplist(account.name, account.gid)

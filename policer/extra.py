"""The extra `policer`: what is loaded of it when it is used, and what is said when it is missing.

The command line loads none of these packages before a command needs it, so that it can say so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from policer.errors import MissingExtra, SettingsError

PACKAGES: Final = frozenset({"alembic", "httpx", "httpx_sse", "litestar", "sqlalchemy", "uvicorn"})
"""What the extra installs (pyproject.toml), by the names that they are imported by."""

OIDC: Final = frozenset({"cryptography", "joserfc"})
"""What the extra `oidc` installs, and what that needs."""


@contextmanager
def extra_needed() -> Iterator[None]:
    """Do what may load the extra.

    Raises:
        MissingExtra: one of its packages is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES:
            raise
        raise MissingExtra(package) from error


@contextmanager
def oidc_needed() -> Iterator[None]:
    """Load what the extra `oidc` installs.

    Raises:
        SettingsError: it is not installed, and the settings take it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OIDC:
            raise
        problem = f"{error.name} is not installed, which an issuer's tokens need"
        raise SettingsError("oidc.issuer", problem, "pip install 'xtc[oidc]'") from error

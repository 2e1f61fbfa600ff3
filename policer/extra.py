"""The extra `policer`: loads its packages on use, and reports missing ones.

The command line loads none of these packages before a command needs it, so it can report them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from policer.errors import MissingExtra, SettingsError

PACKAGES: Final = frozenset(
    {"alembic", "httpx", "httpx_sse", "litestar", "sqlalchemy", "tomli_w", "uvicorn"}
)
"""Packages of the extra (pyproject.toml), by their import names."""

OIDC: Final = frozenset({"cryptography", "joserfc"})
"""Packages of the extra `oidc`, and what these need."""


@contextmanager
def extra_needed() -> Iterator[None]:
    """Run code that may load the extra.

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
        SettingsError: it is not installed, and the settings need it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OIDC:
            raise
        problem = f"{error.name} is not installed, which an issuer's tokens need"
        raise SettingsError("oidc.issuer", problem, "pip install 'xtc[oidc]'") from error

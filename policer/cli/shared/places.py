"""Paths below /v1, and the size of pages, for clients of the service."""

from urllib.parse import quote

from policer.errors import SettingsError

PAGE = 500
"""Items per request."""


def place(*names: str) -> str:
    """Return a path below /v1, each name quoted.

    Raises:
        SettingsError: a name is invalid: servers would interpret its slashes or dots.
    """
    for name in names:
        if "/" in name or name.strip(".") == "":
            fix = "give a name of letters, digits, and . _ : -"
            raise SettingsError("name", f"{name!r} is none", fix)
    return "/v1/" + "/".join(quote(name, safe="") for name in names)

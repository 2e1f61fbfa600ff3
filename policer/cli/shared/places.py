"""Where things are below /v1, and how many a list gives at once, for those who ask the service."""

from urllib.parse import quote

from policer.errors import SettingsError

PAGE = 500
"""Items asked for at once."""


def place(*names: str) -> str:
    """Return a path below /v1, each name quoted.

    Raises:
        SettingsError: a name is none: what servers make of its slashes or dots is no name either.
    """
    for name in names:
        if "/" in name or name.strip(".") == "":
            fix = "give a name of letters, digits, and . _ : -"
            raise SettingsError("name", f"{name!r} is none", fix)
    return "/v1/" + "/".join(quote(name, safe="") for name in names)

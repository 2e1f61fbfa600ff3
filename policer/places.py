"""Where things are below /v1, and how many a list gives at once, for those who ask the service."""

from urllib.parse import quote

PAGE = 500
"""Items asked for at once."""


def place(*names: str) -> str:
    """Return a path below /v1, each name quoted."""
    return "/v1/" + "/".join(quote(name, safe="") for name in names)

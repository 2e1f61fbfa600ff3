"""policer whoami: identity, rights and end of the current token."""

from typing import Any

from common.output import print_json
from policer.cli.shared.places import place
from policer.cli.shared.remote import URL, Json, TokenFile, Url, reach
from policer.cli.shared.tables import moment, show


def whoami(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show the name, scope, limits and end of the current token."""
    with reach(url, token_file) as client:
        known = client.get(place("token")).body
    if json:
        print_json(known)
    else:
        show(("", ""), _rows(known))


def _rows(known: Any) -> list[tuple[str, str]]:
    limits = [(name, ", ".join(known["reach"][name]) or "all") for name in known["reach"]]
    return [
        ("name", known["name"]),
        ("id", known["id"]),
        ("scope", known["scopes"][-1]),
        *limits,
        ("expires", moment(known["expires_at"]) if known["expires_at"] else "never"),
        ("asks from", known["address"]),
    ]

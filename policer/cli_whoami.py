"""policer whoami: whose token this is, what it may do, and until when."""

from typing import Any

from common.output import print_json
from policer.cli_reach import URL, Json, TokenFile, Url, reach
from policer.cli_tables import moment, show
from policer.places import place


def whoami(url: Url = URL, token_file: TokenFile = None, json: Json = False) -> None:
    """Show whose token this is, its scope, what it is limited to, and until when it holds."""
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

"""Common parts of the commands that call a running policer: address, token, JSON."""

import os
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from common.command import CODES, EXIT_FAILED, EXIT_UNREACHABLE, EXIT_USAGE, Codes
from models import ModelError
from policer.cli.shared.places import place
from policer.config.file import secret_text
from policer.errors import FileMistakes, PolicerError, Rejected, SettingsError, Unanswered

if TYPE_CHECKING:
    from policer.cli.shared.client import Client

TOKEN = "POLICER_TOKEN"  # noqa: S105  the name of a variable, not a token
URL = "http://127.0.0.1:8420"

POLICER_CODES: Codes = MappingProxyType(
    {
        **CODES,
        ModelError: EXIT_USAGE,
        PolicerError: EXIT_FAILED,
        Rejected: EXIT_FAILED,
        SettingsError: EXIT_USAGE,
        FileMistakes: EXIT_USAGE,
        Unanswered: EXIT_UNREACHABLE,
    }
)
"""Exit code of each kind of error."""

Url = Annotated[str, typer.Option(envvar="POLICER_URL", help="URL of the policer.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help=f"A file with the token, for its owner alone; else {TOKEN} is taken."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
HostName = Annotated[str, typer.Argument(metavar="HOST", help="The host's name.")]
Vr = Annotated[str, typer.Argument(metavar="VR", help="The router's name on its host.")]
OfHost = Annotated[str | None, typer.Option("--host", help="Only this host.")]


def items_of(
    client: "Client", what: str, host: str | None, *, misbehaving: bool | None = None
) -> list[Any]:
    """Return a list, of one host or of all.

    Raises:
        Rejected: there is no such host: an empty list would suggest that all is well.
    """
    items = list(client.items(place(what), host=host, misbehaving=misbehaving))
    if host is not None and not items:
        client.get(place("hosts", host))
    return items


def reach(url: str, token_file: Path | None, timeout_s: float | None = None) -> "Client":
    """Return a client; tokens never come from the command line, which others can read.

    Args:
        url: address of the policer.
        token_file: file with the token; None takes it from the environment.
        timeout_s: how long to wait for an answer, seconds; None is the default.

    Raises:
        SettingsError: there is no token, or the URL would expose it.
    """
    if token_file is not None:
        token = secret_text("--token-file", token_file)
    else:
        token = os.environ.get(TOKEN, "")
    token = token.strip()
    if not token:
        fix = f"set {TOKEN}, or give --token-file; `policer token add` makes one"
        raise SettingsError("token", "there is none", fix)
    if not (token.isascii() and token.isprintable()):
        raise SettingsError(
            "token", "this is none", "give one of `policer token add`, or an issuer's"
        )
    from policer.cli.shared.client import (  # noqa: PLC0415  part of the extra, and slow to load
        TIMEOUT_S,
        Client,
    )

    return Client(url, token, timeout_s=timeout_s or TIMEOUT_S)

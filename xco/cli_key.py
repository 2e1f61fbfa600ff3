"""xco key: makes the key that controllers and coordinators share."""

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from xco.command import Json
from xco.errors import ConfigError
from xco.output import print_json
from xco.wire import KEY_BYTES

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The key of all messages.")


@app.callback()
def _group() -> None:
    """Have a group though there is one command."""


@app.command()
def make(
    file: Annotated[Path, typer.Argument(help="Where it goes, such as /etc/xtc/xco.key.")],
    json: Json = False,
) -> None:
    """Make a key that its owner alone can read; a file that is there already stays.

    Copy it to every host and to the controllers: whoever has it can open and close all gates.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(secrets.token_bytes(KEY_BYTES))
    except FileExistsError as error:
        fix = "give another name: hosts know the old key"
        raise ConfigError(str(file), "", "is there already", fix) from error
    except OSError as error:
        fix = "give a file that you may write"
        raise ConfigError(str(file), "", error.strerror or "cannot be made", fix) from error
    if json:
        print_json({"key": str(file)})
    else:
        typer.echo(f"{file}: made; copy it to every host and to the controllers")

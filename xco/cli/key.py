"""xco key: creates the controllers' master key, and the key files of hosts and port agents."""

from pathlib import Path
from typing import Annotated

import typer

from common.output import print_json
from xco.cli.command import Json
from xco.errors import ConfigError
from xco.protocol.checks import AGENT
from xco.protocol.keys import derive, host_file, new_master, read_master, write_new
from xco.topology.file import load_file

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keys of the messages.")


@app.command()
def make(
    file: Annotated[Path, typer.Argument(help="Path of the new key, e.g. /etc/xtc/xco.key.")],
    json: Json = False,
) -> None:
    """Create a master key that only its owner can read; refuse to replace an existing file.

    Copy it to the controllers only: its holder can open and close all gates.
    """
    write_new(file, new_master())
    if json:
        print_json({"key": str(file)})
    else:
        typer.echo(f"{file}: made; copy it to the other controllers, and to no other machine")


@app.command()
def host(
    master: Annotated[Path, typer.Argument(help="Master key of the controllers.")],
    name: Annotated[str, typer.Argument(help="A host of the topology.", metavar="HOST-NAME")],
    topology: Annotated[Path, typer.Option(help="Topology file.")],
    out: Annotated[Path, typer.Option(help="Path of the host's new key.")],
    json: Json = False,
) -> None:
    """Create the key file of one host; refuse to replace an existing file.

    Copy it to that host only. With it the host signs what it reports to the controller and writes
    to the other hosts of the file, and checks what they write to it.
    """
    known = load_file(topology).topology
    number = known.host_index(name)
    if number is None:
        raise ConfigError(str(topology), f"host.{name}", "no such host", "name one of the file")
    write_new(out, host_file(derive(read_master(master), number, len(known.hosts))))
    if json:
        print_json({"key": str(out), "host": name, "number": number})
    else:
        typer.echo(f"{out}: made; move it to {name}, and to no other machine")


@app.command()
def agent(
    master: Annotated[Path, typer.Argument(help="Master key of the controllers.")],
    out: Annotated[Path, typer.Option(help="Path of the port agents' new key.")],
    json: Json = False,
) -> None:
    """Create the key file of the port agents; refuse to replace an existing file.

    With it an agent signs the counters of all ports that it reads.
    """
    write_new(out, host_file(derive(read_master(master), AGENT)))
    if json:
        print_json({"key": str(out)})
    else:
        typer.echo(f"{out}: made; move it to the machines of port agents, and to no other")

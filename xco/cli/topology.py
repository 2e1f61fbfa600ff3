"""xco topology: checks a topology file, and reads the spanning tree from the switches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from common.output import counted, print_json
from xco.cli.command import Json
from xco.cli.output import show, table
from xco.topology.file import load_file
from xco.topology.graph import Topology
from xco.units import format_rate, format_size

DEFAULT_TOPOLOGY = Path("/etc/xtc/topology.toml")
File = Annotated[Path, typer.Argument(help="Topology file.")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Hosts, switches and links.")


@app.command()
def check(file: File = DEFAULT_TOPOLOGY, json: Json = False) -> None:
    """Check a file without asking any switch; exit code 2 if it has a mistake."""
    loaded = load_file(file)
    topology = loaded.topology
    found: dict[str, Any] = {
        "file": str(file),
        "hosts": len(topology.hosts),
        "switches": len(topology.switches),
        "links": len(topology.links),
        "vms": len(loaded.vms),
        "read_from": [source.switch for source in loaded.sources],
    }
    if json:
        print_json(found)
        return
    kinds = (("host", "hosts"), ("switch", "switches"), ("link", "links"))
    counts = [f"{found[many]} {one if found[many] == 1 else many}" for one, many in kinds]
    if loaded.vms:
        counts.append(counted(len(loaded.vms), "VM"))
    typer.echo(f"{file}: no mistake found; {', '.join(counts)}")
    if loaded.sources:
        typer.echo(f"the tree is read from {', '.join(found['read_from'])}: xco topology discover")


@app.command()
def discover(file: File = DEFAULT_TOPOLOGY, json: Json = False) -> None:
    """Ask the switches which links their spanning tree uses now; change nothing."""
    from xco.topology.discovery import discover as read  # noqa: PLC0415  a check needs no switch

    links = list(_links(read(file)))
    if json:
        print_json({"file": str(file), "links": links})
        return
    headings = ("link", "between", "capacity", "buffer", "tree")
    show(table(headings, map(_row, links), left=2))


def _links(topology: Topology) -> Iterator[dict[str, Any]]:
    active = frozenset(topology.active_links)
    for index, link in enumerate(topology.links):
        yield {
            "link": index,
            "between": [link.a, link.b],
            "capacity_bps": link.capacity_bps,
            "buffer_bytes": link.buffer_bytes,
            "tree": index in active,
        }


def _row(link: dict[str, Any]) -> tuple[str, ...]:
    buffer = link["buffer_bytes"]
    return (
        str(link["link"]),
        " - ".join(link["between"]),
        format_rate(link["capacity_bps"]),
        "-" if buffer is None else format_size(buffer),
        "yes" if link["tree"] else "no",
    )

"""xtc-train transfer: a new host's model, from a known curve and a few caps measured on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table

from common.output import print_json
from common.units import format_cap, format_rate
from training.cli.fit import write_model
from training.cli.place import Json
from training.files import check_output
from training.recording.recording import COLUMNS, read_csv
from xtc.config.plan import model_named

if TYPE_CHECKING:
    # scipy and control take seconds to load, and a sweep needs none of them.
    from models import HostModel
    from training.compare.known_curve import Known
    from training.compare.transfer import Transfer
    from training.fit.interval import Interval

HEAD = 1 << 14
"""Bytes at the start of a file that contain a recording's header."""


def transfer(
    known: Annotated[
        str, typer.Argument(metavar="KNOWN", help="A model file, or the CSV of a sweep.")
    ],
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING", help="The CSV of sweep --cap on the new host.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the model file of the new host there.")
    ],
    json: Json = False,
) -> None:
    """Scale a known host's curve to a new host of its kind, by a few caps measured there.

    Exits with 1 if no single factor fits all caps, or if it is not known to 5 %.
    """
    from training.compare.scaled import scaled_host  # noqa: PLC0415
    from training.compare.transfer import transfer_of  # noqa: PLC0415

    check_output(output, [Path(known), recording])
    measured = read_csv(recording)
    source = _known(known)
    found = transfer_of(source, measured)
    host = scaled_host(source.host, found, measured.metadata)
    write_model(host, output)
    if json:
        print_json({"output": str(output), "known": source.host.name, **to_builtins(found)})
    else:
        _print(found, host)
        typer.echo(f'{output}: written; name it as model = "{output}" in the configuration')


def _known(name: str) -> "Known":
    """Return a model file's curve, or a sweep's.

    Raises:
        RecordingError, UnfitError: a recording cannot be used or fitted.
        ConfigError: it is not a model file.
    """
    from training.compare.known_curve import known_from_model, known_from_sweep  # noqa: PLC0415

    if _is_recording(Path(name)):
        return known_from_sweep(read_csv(Path(name)))
    return known_from_model(model_named(name, "KNOWN"))


def _is_recording(path: Path) -> bool:
    """Whether a file is a recording, by its name or by its header."""
    if path.suffix == ".csv":
        return True
    try:
        with path.open("rb") as file:
            return ",".join(COLUMNS).encode() in file.read(HEAD)
    except OSError:
        return False  # a bundled model has no file; the reader of models reports other errors


def _print(found: "Transfer", host: "HostModel") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cap", "known", "measured", "factor", "95 %"):
        table.add_column(heading, justify="right")
    for one in found.caps:
        rates = (format_rate(one.known_pps), format_rate(one.throughput_pps))
        table.add_row(format_cap(one.cap), *rates, *_cells(one.factor))
    table.add_row("all", "", "", *_cells(found.factor))
    Console(highlight=False).print(table)
    for caution in found.cautions:
        typer.echo(f"caution: {caution}")
    if found.unused:
        typer.echo(f"not used, since they do not bind: {', '.join(map(format_cap, found.unused))}")
    typer.echo(
        f"top {format_rate(host.curve.top)} from a cap of {format_cap(host.curve.cap_threshold)}"
    )


def _cells(found: "Interval") -> tuple[str, str]:
    return f"{found.value:.3f}", f"{found.low:.3f} to {found.high:.3f}"

"""xtc-train mix: predict from a model what a host forwards of mixed packet sizes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from common.output import print_json
from common.units import format_bit_rate, format_cap, format_rate, parse_rate
from models import HostModel
from training.cli.fit import write_model
from training.cli.place import Json
from training.design.mix import parse_mix, predicted
from training.errors import UnfitError
from training.files import check_output
from xtc.config.plan import model_named

if TYPE_CHECKING:
    from training.design.mix import Held, Predicted


def mix(
    model: Annotated[str, typer.Argument(help="A model file with a [cost].")],
    mix: Annotated[
        str,
        typer.Option(
            "--mix",
            help="SIZE:SHARE of the packets, by comma, such as 64:0.5,576:0.3,1400:0.2, or imix "
            "(7:4:1 of 60, 590 and 1514). Sizes are bytes of the Ethernet frame without its "
            "checksum (FCS).",
        ),
    ],
    setpoint: Annotated[
        list[str] | None, typer.Option(help="A packet rate to find the cap for; repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the mix's model file there.")
    ] = None,
    json: Json = False,
) -> None:
    """Predict the curve of a mix of packet sizes from a model that has the cost of a packet."""
    check_output(output, [Path(model)])
    sizes = parse_mix(mix)
    goals = [parse_rate(text, field="--setpoint") for text in setpoint or ()]
    host = model_named(model, "MODEL")
    if host.cost is None:
        fix = "sweep with two or more --packet-size, and fit that"
        raise UnfitError("cost", f"{model} has no [cost]", fix)
    found, says = predicted(host, sizes, goals)
    if output is not None:
        write_model(_described(found, mix), output)
    if json:
        print_json(says)
    else:
        _print(says)
        if output is not None:
            typer.echo(f"{output}: written")


def _described(host: HostModel, mix: str) -> HostModel:
    words = f"Predicted for packets of {mix} from: {host.description}"
    return replace(host, description=words[:1000])


def _print(says: "Predicted") -> None:
    limit = ", limited by the load" if says.limited_by == "load" else ""
    typer.echo(
        f"{says.mean_bytes:.4g} bytes on average: {says.ratio:.3f} of the model's own throughput "
        "where the CPU limits it"
    )
    top = f"{format_rate(says.top_pps)} ({format_bit_rate(says.top_bps)})"
    typer.echo(f"top {top} from a cap of {format_cap(says.cap_threshold)}{limit}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cap", "throughput", "bits"):
        table.add_column(heading, justify="right")
    for cap, rate, bits in says.points:
        table.add_row(format_cap(cap), format_rate(rate), format_bit_rate(bits))
    Console(highlight=False).print(table)
    for held in says.setpoints:
        typer.echo(f"setpoint {format_rate(held.setpoint_pps)}: {_cap(held)}")


def _cap(held: "Held") -> str:
    return "above the top" if held.cap is None else f"cap {format_cap(held.cap)}"

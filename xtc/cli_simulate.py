"""xtc simulate: the closed loop on a model file, from the command line."""

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from models import HostModel
from xtc.errors import UnitError
from xtc.law import Bounds
from xtc.laws import DEFAULT, NAMES, law_named
from xtc.output import print_json, sparkline
from xtc.plant import LAG_S, Plant
from xtc.routers import model_named
from xtc.simulate import Scenario, SecondOfRun, Summary, run, summarise
from xtc.units import (
    CapFraction,
    PacketsPerSecond,
    format_cap,
    format_rate,
    parse_cap,
    parse_duration,
    parse_fraction,
    parse_rate,
)

LEAST_CAP = CapFraction(0.001)
"""Fine caps go down to a tenth of a percent, as a cgroup quota does."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A process in the router that takes a share of its CPU from a second on."""

    share: float = 0.0
    second: int = 0


def parse_disturbance(text: str) -> Disturbance:
    """Read ``15%@60s``.

    Raises:
        UnitError: it is not a share below 100 %, an @, and a time.
    """
    share, at, second = text.partition("@")
    if not at:
        raise UnitError("--disturb", text, "a share and a time, such as 15%@60s")
    stolen = parse_fraction(share, field="--disturb")
    if stolen >= 1:
        raise UnitError("--disturb", text, "a share below 100%")
    return Disturbance(stolen, round(parse_duration(second, field="--disturb")))


def simulate(
    setpoint: Annotated[str, typer.Option(help="A packet rate, such as 20kpps.")],
    model: Annotated[str, typer.Option(help="A model file, or paper, hinge or log.")] = "paper",
    law: Annotated[str, typer.Option(help=f"One of {', '.join(NAMES)}.")] = DEFAULT,
    offered: Annotated[
        str | None, typer.Option(help="Offered load; the model's own if not.")
    ] = None,
    cap_step: Annotated[
        str | None, typer.Option(help="Step between caps, such as 1%; 0 is none.")
    ] = None,
    floor: Annotated[str | None, typer.Option(help="The smallest cap.")] = None,
    start_cap: Annotated[str, typer.Option(help="The cap that the run begins at.")] = "1%",
    noise: Annotated[str, typer.Option(help="Standard deviation of a sample, such as 5%.")] = "0%",
    delay: Annotated[int, typer.Option(min=0, max=20, help="Samples until a cap shows.")] = 0,
    gain: Annotated[
        float, typer.Option(min=0.01, max=100, help="Speed relative to the model.")
    ] = 1.0,
    disturb: Annotated[str | None, typer.Option(help="A thief, such as 15%@60s.")] = None,
    duration: Annotated[str, typer.Option(help="How long, in seconds.")] = "60s",
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    untrained: Annotated[bool, typer.Option(help="Keep the model from the default law.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print samples and summary as JSON.")
    ] = False,
) -> None:
    """Run the closed loop on a model of a host, one sample a second."""
    host = model_named(model, "--model")
    step = host.cap_step if cap_step is None else parse_fraction(cap_step, field="--cap-step")
    thief = Disturbance() if disturb is None else parse_disturbance(disturb)
    bounds = _bounds(host, step, floor)
    scenario = Scenario(
        setpoint=parse_rate(setpoint, field="--setpoint"),
        duration=_samples(duration, thief),
        start_cap=_start_cap(start_cap, bounds),
        bounds=bounds,
        quantum=step,
        noise=_noise(noise),
        delay=delay,
        stolen=thief.share,
        stolen_from=thief.second,
        seed=seed,
    )
    plant = Plant(host.curve, _offered(host, offered), host.lag_at(LAG_S), gain)
    held_by = law_named(law, None if untrained else host, period=LAG_S, where="--law")
    samples = run(plant, held_by, scenario)
    summary = summarise(samples, scenario)
    if json:
        print_json({"model": host.name, "law": law, "summary": summary, "samples": samples})
    else:
        _print_run(host, law, scenario, samples, summary)


def _samples(duration: str, thief: Disturbance) -> int:
    count = round(parse_duration(duration, field="--duration"))
    if not 2 <= count <= 1_000_000:
        raise UnitError("--duration", duration, "between 2 s and 1000000 s")
    if thief.share and thief.second >= count:
        raise UnitError("--disturb", f"{thief.second}s", f"before the run's end at {count}s")
    return count


def _bounds(host: HostModel, step: float, floor: str | None) -> Bounds:
    ceiling = CapFraction(host.cap_ceiling)
    if step > ceiling:
        raise UnitError("--cap-step", format_cap(step), f"at most {format_cap(ceiling)}")
    least = CapFraction(step or LEAST_CAP) if floor is None else parse_cap(floor, field="--floor")
    if least > ceiling:
        raise UnitError("--floor", format_cap(least), f"at most {format_cap(ceiling)}")
    return Bounds(least, ceiling)


def _start_cap(text: str, bounds: Bounds) -> CapFraction:
    cap = parse_cap(text, field="--start-cap")
    if cap > bounds.ceiling:
        raise UnitError("--start-cap", text, f"at most {format_cap(bounds.ceiling)}")
    return cap


def _noise(text: str) -> float:
    noise = parse_fraction(text, field="--noise")
    if noise >= 1:
        raise UnitError("--noise", text, "a share below 100%")
    return noise


def _offered(host: HostModel, text: str | None) -> PacketsPerSecond:
    if text is not None:
        return parse_rate(text, field="--offered")
    return PacketsPerSecond(host.curve.offered or host.curve.top)


def _print_run(
    host: HostModel,
    law: str,
    scenario: Scenario,
    samples: list[SecondOfRun],
    summary: Summary,
) -> None:
    console = Console(highlight=False)
    console.print(f"{host.name}, law {law}, setpoint {format_rate(scenario.setpoint)} (simulated)")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("second", "throughput", "cap", "next cap", "reason"):
        table.add_column(heading, justify="left" if heading == "reason" else "right")
    for sample in samples[:12]:
        table.add_row(
            str(sample.t),
            format_rate(sample.throughput_pps),
            format_cap(sample.cap),
            format_cap(sample.next_cap),
            sample.reason.value,
        )
    console.print(table)
    width = max(sys.stdout.isatty() and console.width, 60) - 12
    stride = max(1, len(samples) // width)
    console.print(f"throughput {sparkline([s.throughput_pps for s in samples[::stride]])}")
    for words, value in _figures(summary).items():
        console.print(f"{words}: {value}")


def _figures(summary: Summary) -> dict[str, Any]:
    figures = {
        "settling": _samples_words(summary.settling_samples),
        "mean throughput": format_rate(summary.mean_throughput_pps),
        "mean error": f"{summary.mean_error * 100:.2f}%",
        "relative RMSE": f"{summary.relative_rmse * 100:.2f}%",
    }
    if summary.recovery_samples is not None:
        figures["recovery from the disturbance"] = _samples_words(summary.recovery_samples)
    return figures


def _samples_words(samples: int | None) -> str:
    return "never within 5%" if samples is None else f"{samples} samples"

"""xtc simulate: run the closed loop on a model file."""

import sys
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from common.burst import parse_burst
from common.errors import UnitError
from common.output import print_json, sparkline
from common.setpoint import Setpoint
from common.units import (
    CapFraction,
    PacketsPerSecond,
    Seconds,
    format_cap,
    format_rate,
    parse_cap,
    parse_duration,
    parse_fraction,
    parse_rate,
)
from models import HostModel
from xtc.config.plan import check_gains, model_named
from xtc.config.schema import PERIODS_S
from xtc.control.law import Bounds
from xtc.control.laws import DEFAULT, NAMES, law_named
from xtc.simulation.closed_loop import Scenario, SecondOfRun, Summary, run, summarise
from xtc.simulation.load_text import FORMS, OWN_RATES, parse_load
from xtc.simulation.loads import Load
from xtc.simulation.plant import LAG_S, Plant

MOST_SAMPLES = 1_000_000
QUEUE = 1000
"""Packets that can wait for a router's CPU, as at a Linux interface."""
LEAST_CAP = CapFraction(0.001)
"""The smallest fine cap: a tenth of a percent, as for a cgroup quota."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A process in the router that takes a share of its CPU from a given second on."""

    share: float = 0.0
    second: int = 0


def parse_disturbance(text: str) -> Disturbance:
    """Parse ``15%@60s``.

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


def parse_efficiency(text: str) -> tuple[float, float]:
    """Parse ``3x@60s`` (three times the model's efficiency from second 60 on) into (60, 3).

    Raises:
        UnitError: it is not a factor from 0.01 to 100, an x, an @, and a time.
    """
    factor, at, second = text.partition("x@")
    wrong = UnitError("--efficiency-step", text, "a factor and a time, such as 3x@60s or 0.5x@60s")
    try:
        times = float(factor)
    except ValueError:
        raise wrong from None
    if not at or not 0.01 <= times <= 100:
        raise wrong
    return parse_duration(second, field="--efficiency-step"), times


def simulate(
    setpoint: Annotated[str, typer.Option(help="A packet rate, such as 20kpps.")],
    model: Annotated[str, typer.Option(help="A model file, or paper, hinge or log.")] = "paper",
    law: Annotated[str, typer.Option(help=f"One of {', '.join(NAMES)}.")] = DEFAULT,
    offered: Annotated[
        str | None, typer.Option(help="Offered load (default: the model's own).")
    ] = None,
    load: Annotated[
        str, typer.Option(help=f"How it is offered: {', '.join(FORMS.values())}.")
    ] = "steady",
    burst: Annotated[
        str | None, typer.Option(help="Burst beyond the setpoint: 4000 (packets) or 200ms.")
    ] = None,
    shield: Annotated[
        bool,
        typer.Option(
            "--shield/--no-shield", help="Drop traffic above the setpoint before the router."
        ),
    ] = True,
    period: Annotated[str, typer.Option(help="Sampling period, e.g. 500ms.")] = "1s",
    efficiency_step: Annotated[
        list[str] | None, typer.Option(help="Change of speed at a time, e.g. 3x@60s; repeatable.")
    ] = None,
    cap_step: Annotated[
        str | None, typer.Option(help="Step between caps, e.g. 1% (0 = none).")
    ] = None,
    floor: Annotated[str | None, typer.Option(help="Smallest cap.")] = None,
    start_cap: Annotated[str, typer.Option(help="Initial cap.")] = "1%",
    noise: Annotated[str, typer.Option(help="Standard deviation of a sample, such as 5%.")] = "0%",
    delay: Annotated[
        int, typer.Option(min=0, max=20, help="Samples until a cap takes effect.")
    ] = 0,
    gain: Annotated[
        float, typer.Option(min=0.01, max=100, help="Speed relative to the model.")
    ] = 1.0,
    disturb: Annotated[
        str | None, typer.Option(help="CPU taken by another process from a time on, e.g. 15%@60s.")
    ] = None,
    duration: Annotated[str, typer.Option(help="Duration in seconds.")] = "60s",
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    untrained: Annotated[
        bool, typer.Option(help="Do not give the model to the default law.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print samples and summary as JSON.")
    ] = False,
) -> None:
    """Run the closed loop on a model of a host, behind a shield, one sample a period."""
    host = model_named(model, "--model")
    length = _period(period)
    wanted = Setpoint(parse_rate(setpoint, field="--setpoint"))
    step = host.cap_step if cap_step is None else parse_fraction(cap_step, field="--cap-step")
    thief = Disturbance() if disturb is None else parse_disturbance(disturb)
    bounds = _bounds(host, step, floor)
    samples_wanted = _samples(duration, thief, length)
    sent = _load(load, host, offered, samples_wanted * length, seed)
    scenario = Scenario(
        setpoint=PacketsPerSecond(wanted.rate),
        duration=samples_wanted,
        start_cap=_start_cap(start_cap, bounds),
        bounds=bounds,
        quantum=step,
        noise=_noise(noise),
        delay=delay,
        stolen=thief.share,
        stolen_from=round(thief.second / length),
        seed=seed,
        period=length,
        burst=None if burst is None else parse_burst(burst, wanted, field="--burst"),
        load=sent,
        shield=shield,
        queue=QUEUE,
        efficiency=tuple(sorted(parse_efficiency(step) for step in efficiency_step or ())),
    )
    plant = Plant(host.curve, PacketsPerSecond(sent.peak), host.lag_at(LAG_S), gain)
    held_by = law_named(law, None if untrained else host, period=length, where="--law")
    check_gains(law, None if untrained else host, length, where="--law")
    samples = run(plant, held_by, scenario)
    summary = summarise(samples, scenario)
    if json:
        print_json({"model": host.name, "law": law, "summary": summary, "samples": samples})
    else:
        _print_run(host, law, scenario, samples, summary)


def _samples(duration: str, thief: Disturbance, period: Seconds) -> int:
    seconds = parse_duration(duration, field="--duration")
    count = round(seconds / period)
    if not 2 <= count <= MOST_SAMPLES:
        words = f"between {2 * period:g} s and {MOST_SAMPLES * period:g} s"
        raise UnitError("--duration", duration, words)
    if thief.share and thief.second >= seconds:
        raise UnitError("--disturb", f"{thief.second}s", f"before the run's end at {seconds:g}s")
    return count


def _period(text: str) -> Seconds:
    period = parse_duration(text, field="--period")
    shortest, longest = PERIODS_S
    if not shortest <= period <= longest:
        raise UnitError("--period", text, f"between {shortest:g} s and {longest:g} s")
    return period


def _load(text: str, host: HostModel, offered: str | None, duration_s: float, seed: int) -> Load:
    """Return the offered load; loads with rates of their own accept no other rate."""
    own = text.partition(":")[0] in OWN_RATES
    if own and offered is not None:
        raise UnitError("--offered", offered, f"needed: --load {text} names its own rates")
    rate = _offered(host, offered)
    return parse_load(text, rate, duration_s=duration_s, seed=seed)


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
    for heading in ("second", "offered", "throughput", "cap", "next cap", "reason"):
        table.add_column(heading, justify="left" if heading == "reason" else "right")
    for sample in samples[:12]:
        table.add_row(
            f"{sample.t * scenario.period:g}",
            format_rate(sample.offered_pps),
            format_rate(sample.throughput_pps),
            format_cap(sample.cap),
            format_cap(sample.next_cap),
            sample.reason.value,
        )
    console.print(table)
    width = max(sys.stdout.isatty() and console.width, 60) - 12
    stride = max(1, len(samples) // width)
    console.print(f"throughput {sparkline([s.throughput_pps for s in samples[::stride]])}")
    for words, value in {**_figures(summary, scenario), **_kept(summary)}.items():
        console.print(f"{words}: {value}")


def _figures(summary: Summary, scenario: Scenario) -> dict[str, str]:
    """Return how close to the setpoint a run was; for a varying load, by its mean only."""
    mean = {"mean throughput": format_rate(summary.mean_throughput_pps)}
    if scenario.varies:
        return mean
    figures = {
        "settling": _samples_words(summary.settling_samples),
        **mean,
        "mean error": f"{summary.mean_error * 100:.2f}%",
        "relative RMSE": f"{summary.relative_rmse * 100:.2f}%",
    }
    if summary.recovery_samples is not None:
        figures["recovery from the disturbance"] = _samples_words(summary.recovery_samples)
    return figures


def _kept(summary: Summary) -> dict[str, str]:
    """Return how well the run kept its promise, including its start."""
    return {
        "over the promise": f"{summary.over_promise_packets:.0f} packets",
        "under the promise": f"{summary.under_promise_packets:.0f} packets",
        "in breach": f"{summary.breach_seconds:.3g} s",
    }


def _samples_words(samples: int | None) -> str:
    return "never within 5%" if samples is None else f"{samples} samples"

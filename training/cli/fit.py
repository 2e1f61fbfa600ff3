"""xtc-train fit, design and report: evaluate a sweep without touching any router."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table

from common.durable import replace_file
from common.errors import ConfigError
from common.output import print_json
from common.units import format_cap, format_rate, parse_duration, parse_fraction
from models import HostModel, dump_host
from training.errors import DesignError, UnfitError
from training.files import check_output
from training.recording.recording import Recording, read_csv
from xtc.config.plan import model_named

if TYPE_CHECKING:
    # scipy, control and matplotlib take seconds to load, and a sweep needs none of them: their
    # users are imported where they are called.
    from training.design.gains import Design, Loop
    from training.fit.drift import Variation
    from training.fit.fit import Fit
    from training.fit.interval import Interval
    from training.fit.verdict import Verdict

SETTLING, OVERSHOOT = "5s", "8%"
"""Default design target: settling time and overshoot of the paper's PI gains."""
NAMES = {"settling_s": "--settling", "overshoot": "--overshoot"}
"""The options behind a design's figures."""

RecordingPath = Annotated[Path, typer.Argument(help="CSV file of a sweep.")]
Settling = Annotated[str, typer.Option(help="Settling time of the PI law.")]
Overshoot = Annotated[str, typer.Option(help="Overshoot allowed at a new setpoint.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def fit(
    recording: RecordingPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the model file there.")
    ] = None,
    settling: Settling = SETTLING,
    overshoot: Overshoot = OVERSHOOT,
    rough: Annotated[
        bool, typer.Option("--rough", help="Write the model even if it is not precise enough.")
    ] = False,
    json: Json = False,
) -> None:
    """Fit a host's model to a sweep; if that fails, exit with 1 and name what to measure."""
    check_output(output, [recording])
    measured = read_csv(recording)
    found = _fit(measured)
    verdict = _verdict_on(found)
    # An explicit target is checked, written or not; the default 5 s is too short for a long period.
    if output is not None or (settling, overshoot) != (SETTLING, OVERSHOOT):
        gains = _design(found, measured, settling, overshoot)
        if output is not None and (verdict.usable or rough):
            write_model(_host_model(found, gains, measured), output)
    if json:
        print_json({"usable": verdict.usable, "reasons": verdict.reasons, **to_builtins(found)})
    else:
        _print_fit(found, verdict)
    if output is not None:
        if not (verdict.usable or rough):
            raise UnfitError("precision", f"{output}: not written", f"{verdict.words}; or --rough")
        if not json:
            typer.echo(f'{output}: written; name it as model = "{output}" in the configuration')


def design(
    recording: Annotated[Path | None, typer.Argument(help="CSV file of a sweep.")] = None,
    model: Annotated[str | None, typer.Option(help="Model file, or paper or log.")] = None,
    settling: Settling = SETTLING,
    overshoot: Overshoot = OVERSHOOT,
    json: Json = False,
) -> None:
    """Design the gains of the paper's two laws from settling time and overshoot."""
    if (recording is None) is (model is None):
        raise typer.BadParameter("give the CSV of a sweep, or --model")
    if model is not None:
        found = _design_of_model(model_named(model, "--model"), settling, overshoot)
    else:
        assert recording is not None  # one of the two is given
        measured = read_csv(recording)
        found = _design(_fit(measured), measured, settling, overshoot)
    if json:
        print_json(found)
    else:
        _print_design(found)


def report(
    recording: RecordingPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML page.")] = Path(
        "report.html"
    ),
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Write the page's tables there as CSV and JSON files."),
    ] = None,
    settling: Settling = SETTLING,
    overshoot: Overshoot = OVERSHOOT,
    json: Json = False,
) -> None:
    """Write one HTML page on a sweep: curve, step responses, residuals, poles, expectations."""
    check_output(output, [recording])
    measured = read_csv(recording)
    _check_data(data, recording)
    found = _fit(measured)
    gains = _design(found, measured, settling, overshoot)
    _write_report(measured, found, gains, output, data)
    if json:
        print_json({"output": str(output), "data": None if data is None else str(data)})
        return
    typer.echo(f"{output}: written")
    if data is not None:
        typer.echo(f"{data}: tables written")


def _check_data(data: Path | None, recording: Path) -> None:
    """Refuse a folder in which a table would replace the recording.

    Raises:
        OptionError: it is one.
    """
    if data is None:
        return
    from training.report.export import FILES  # noqa: PLC0415

    for name in FILES:
        check_output(data / name, [recording], option="--data", fix="name another folder")


def _fit(measured: Recording) -> "Fit":
    from training.fit.fit import fit as fitted  # noqa: PLC0415

    return fitted(measured)


def _host_model(found: "Fit", gains: "Design", measured: Recording) -> HostModel:
    from training.design.host_model import host_model  # noqa: PLC0415

    return host_model(found, gains, measured.metadata)


def _write_report(
    measured: Recording, found: "Fit", gains: "Design", path: Path, data: Path | None
) -> None:
    from training.report.report import write_report  # noqa: PLC0415

    write_report(measured, found, gains, path, data)


def _design(found: "Fit", measured: Recording, settling: str, overshoot: str) -> "Design":
    from training.design.host_model import b_of, lag_of  # noqa: PLC0415

    period = measured.metadata.period_s
    return _designed(lag_of(found), b_of(found), settling, overshoot, period)


def _design_of_model(host: HostModel, settling: str, overshoot: str) -> "Design":
    line = host.log_model
    if line is None:
        raise DesignError("--model", f"{host.name} has no [log_model]", "fit one to a sweep")
    if host.pi and host.dead_beat and host.pi.period != host.dead_beat.period:
        problem = f"period_s of the two gains of {host.name} differs, and Eq. 1 is of one"
        raise DesignError("--model", problem, "give both the period_s of the measurement")
    return _designed(line.a, line.b, settling, overshoot, host.period)


def _designed(a: float, b: float, settling: str, overshoot: str, period_s: float) -> "Design":
    from training.design.gains import design as designed  # noqa: PLC0415

    typed = {"--settling": settling, "--overshoot": overshoot}
    seconds = parse_duration(settling, field="--settling")
    share = parse_fraction(overshoot, field="--overshoot")
    try:
        return designed(a, b, settling_s=seconds, overshoot=share, period_s=period_s)
    except DesignError as error:
        if (option := NAMES.get(error.field)) is None:
            raise
        raise error.typed(option, typed[option]) from error


def write_model(host: HostModel, path: Path) -> None:
    """Write a model file.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        replace_file(path, dump_host(host).encode(), durable=True)
    except OSError as error:
        fix = "give a path that this user may write"
        raise ConfigError("--output", f"{path}: {error.strerror}", fix) from error


def _verdict_on(found: "Fit") -> "Verdict":
    from training.fit.verdict import verdict_on  # noqa: PLC0415

    return verdict_on(found)


def _print_fit(found: "Fit", verdict: "Verdict") -> None:
    from training.fit.cost import in_words as cost_in_words  # noqa: PLC0415
    from training.fit.loads import in_words, named  # noqa: PLC0415
    from training.report.summary import threshold_doubt, why_missed  # noqa: PLC0415

    doubt = threshold_doubt(found)
    held_out = found.held_out_error
    rows = [
        ("verdict", verdict.words),
        ("curve", _curve(found)),
        ("top", _top(found)),
        ("cap threshold", _threshold(found, doubt)),
        ("smallest useful cap", format_cap(found.smallest_useful_cap)),
        ("shape", found.shapes.answer),
        ("a", _interval(found.eq1.a)),
        ("b", f"{_interval(found.eq1.b)} kp/s per decade"),
        ("Eq. 1", f"R² {found.eq1.r_squared:.4f}; {why_missed(found)}"),
        ("noise of a sample", f"{found.noise * 100:.1f}%"),
    ]
    if found.variation is not None:
        rows.append(("host's speed", _variation(found.variation)))
    if held_out is not None:
        worst = found.held_out_worst or 0.0
        errors = f"median error {held_out * 100:.1f}%, worst {worst * 100:.1f}%"
        rows.append(("held-out caps", errors))
    if found.outliers:
        rows.append(("outliers", f"{len(found.outliers)} left out"))
    rows += [(f"at {named(one.traffic)}", in_words(one)) for one in found.loads]
    if found.cost is not None:
        rows.append(("cost", cost_in_words(found.cost)))
    if found.cost_unknown:
        rows.append(("cost", f"not known: {found.cost_unknown}"))
    _print_rows(rows)


def _variation(variation: "Variation") -> str:
    if not variation.sure:
        return f"no change found; {variation.high * 100:.1f}% or more would have shown"
    drift = f", {variation.trend * 100:+.0f}% from begin to end" if variation.drifts else ""
    apart = f"visits up to {variation.span * 100:.0f}% apart"
    return f"varied by {variation.speed * 100:.1f}%{drift}; {apart}"


def _top(found: "Fit") -> str:
    low, high = format_rate(found.top.low), format_rate(found.top.high)
    limited = ", limited by the load" if found.limited_by == "load" else ""
    return f"{format_rate(found.top_pps)} (95 %: {low} to {high}){limited}"


def _threshold(found: "Fit", doubt: str) -> str:
    above = f"it bends above {format_cap(found.threshold_above)}"
    return f"{format_cap(found.cap_threshold)} ({doubt or above})"


def _curve(found: "Fit") -> str:
    first, last = found.points[0].cap, found.points[-1].cap
    measured = f"{len(found.points)} caps from {format_cap(first)} to {format_cap(last)}"
    return f"{measured}, R² {found.curve_r_squared:.4f}"


def _interval(value: "Interval") -> str:
    return f"{value.value:.4g} (95 %: {value.low:.4g} to {value.high:.4g})"


def _print_design(found: "Design") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("law", "Kp", "Ki", "settles", "overshoot", "stable up to", "phase margin"):
        table.add_column(heading, justify="right")
    table.add_row("PI", *_loop(found.pi))
    table.add_row("dead-beat", *_loop(found.dead_beat))
    Console(highlight=False).print(table)
    typer.echo(f"for a = {found.a:.4g}, b = {found.b:.4g}; gains in decades of cap per kp/s")


def _loop(loop: "Loop") -> tuple[str, ...]:
    return (
        f"{loop.kp * 1e3:.3f}e-3",
        f"{loop.ki * 1e3:.3f}e-3",
        f"{loop.settling_s:g} s",
        f"{loop.overshoot * 100:.1f}%",
        f"{loop.largest_gain:.2f} b",
        f"{loop.phase_margin_deg:.0f}°",
    )


def _print_rows(rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        typer.echo(f"{name:<{width}}  {words}")

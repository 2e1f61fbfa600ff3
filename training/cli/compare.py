"""xtc-train compare: whether two sweeps are of one kind of host, and how fast each is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.table import Table

from common.command import EXIT_FAILED
from common.errors import ConfigError
from common.output import print_json
from common.units import format_cap, format_rate
from training.cli.place import Json
from training.errors import RecordingError, UnfitError
from training.files import check_output
from training.recording.recording import Recording, read_csv

if TYPE_CHECKING:
    # scipy and matplotlib take a second to load, and a sweep needs none of them.
    from training.compare.likeness import Likeness
    from training.compare.ratio import Answer, CapRatio, Ratio
    from training.fit.fit import Fit
    from training.fit.interval import Interval


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="CSV file of a sweep.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="CSV file of another sweep.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw the ratio in this HTML page.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare two sweeps: the ratio of B to A at each cap, and one ratio for all caps.

    Exit codes, as of diff: 0 the same host, 1 a different host or not known well enough, 2 a file
    that cannot be used.
    """
    from training.compare.likeness import likeness_of  # noqa: PLC0415
    from training.compare.ratio import ratio_of_fits  # noqa: PLC0415

    check_output(output, [a, b])
    try:
        ratio = ratio_of_fits(_fitted(a), _fitted(b))
    except UnfitError as error:
        raise RecordingError(str(b), 0, error.lacks, error.problem, error.measure) from error
    likeness = likeness_of(ratio)
    if output is not None:
        _write_page(ratio, likeness, (str(a), str(b)), output)
    if json:
        print_json(_document(ratio, likeness, a, b))
    else:
        _print(ratio, likeness)
    if not likeness.same:
        raise typer.Exit(EXIT_FAILED)


def _fitted(path: Path) -> "tuple[Recording, Fit]":
    """Read and fit a sweep.

    Raises:
        RecordingError: it cannot be read, or supports no fit; exit code 1 means that hosts differ.
    """
    from training.fit.fit import fit  # noqa: PLC0415

    recording = read_csv(path)
    try:
        return recording, fit(recording)
    except UnfitError as error:
        raise RecordingError(str(path), 0, error.lacks, error.problem, error.measure) from error


def _document(ratio: "Ratio", likeness: "Likeness", a: Path, b: Path) -> dict[str, object]:
    return {
        "same": likeness.same,
        "verdict": likeness.kind,
        "words": likeness.words,
        "notes": likeness.notes,
        "files": {"a": str(a), "b": str(b)},
        "lags_differ": ratio.lags_differ,
        "delays_differ": ratio.delays_differ,
        "tops_tell": ratio.top.tells,
        **to_builtins(ratio),
    }


def _print(ratio: "Ratio", likeness: "Likeness") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cap", "A", "B", "B/A", "95 %"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for point in ratio.points:
        table.add_row(*_row(point))
    top = ratio.top.ratio
    table.add_row("top", "", "", f"{top.value:.3f}", _range(top), _limits(ratio))
    table.add_row("common", "", "", f"{ratio.common.value:.3f}", _range(ratio.common), "")
    Console(highlight=False).print(table)
    for words in (*_answers(ratio), *likeness.notes, likeness.words):
        typer.echo(words)


def _row(point: "CapRatio") -> tuple[str, ...]:
    rates = (format_rate(point.a_pps), format_rate(point.b_pps))
    how = "interpolated" if point.interpolated else ""
    return (format_cap(point.cap), *rates, f"{point.ratio.value:.3f}", _range(point.ratio), how)


def _range(found: "Interval") -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def _limits(ratio: "Ratio") -> str:
    limits = (ratio.top.a_limited_by, ratio.top.b_limited_by)
    return "limited by {} and {}".format(*(limit or "the end of the sweep" for limit in limits))


def _answers(ratio: "Ratio") -> tuple[str, ...]:
    a, b = ratio.a, ratio.b
    return (
        f"one ratio at every cap: probability {ratio.chance:.2g}",
        f"lag at {a.period_s:g} s: {_lag(a)} and {_lag(b)}",
        f"delay: {a.delay_s:g} s and {b.delay_s:g} s",
    )


def _lag(answer: "Answer") -> str:
    return f"{answer.lag.value:.3f} ({_range(answer.lag)})"


def _write_page(ratio: "Ratio", likeness: "Likeness", names: tuple[str, str], path: Path) -> None:
    from training.report.ratio_page import page_of  # noqa: PLC0415

    try:
        path.write_text(page_of(ratio, likeness, names), encoding="utf-8")
    except OSError as error:
        fix = "give a path that this user may write"
        raise ConfigError("--output", f"{path}: {error.strerror}", fix) from error

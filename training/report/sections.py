"""Sections of a report: step responses, expected behaviour of each law, and the data files."""

from collections.abc import Callable, Iterator, Mapping

from common.units import format_cap, format_rate
from training.design.expect import DURATION, RUNS, Outlook, Spread
from training.report.contents import LAWS, Contents
from training.report.markup import Figures, Markup, element, joined, table
from training.report.plots import draw_responses, svg
from training.report.responses import Responses


def responses_section(found: Responses, figures: Figures) -> Iterator[Markup]:
    """Yield the figure of the measured step responses, and a sentence that explains it."""
    yield element("h2", "Measured step responses")
    if not found.steps:
        yield element("p", f"No change of cap is large enough to be shown.{_left_out(found)}")
        return
    yield element("p", f"{found.words}{_left_out(found)}")
    yield figures.figure(
        svg(lambda axes: draw_responses(axes, found)),
        f"{len(found.steps)} changes of cap over the samples since each. {found.words}",
        "Each change of cap as a share of the way from the level before (0) to the level after "
        "(1). Thin lines that leave the band together show a host that does not answer as a "
        "lag of first order.",
    )


def _left_out(found: Responses) -> str:
    if not found.left_out:
        return ""
    changes = "1 change is" if found.left_out == 1 else f"{found.left_out} changes are"
    return f" {changes} left out, too small or too short to stand out from noise."


def expectations_section(contents: Contents, noise: float, speed: float) -> Iterator[Markup]:
    """Yield the table of each law's behaviour in simulation.

    Args:
        contents: of the report.
        noise: standard deviation of a sample, as a share.
        speed: standard deviation of the host's speed from run to run, as a share.
    """
    yield element("h2", "What to expect")
    yield element(
        "p",
        f"Each law simulated {RUNS} times for {DURATION} samples on the monotone curve, from "
        f"uncapped: with the noise that was measured ({noise:.1%} of a sample), and each time on "
        f"a host of another speed, as it changed from visit to visit ({speed:.1%}). Shown are "
        "the median and, in brackets, the range from 5 to 95 %. Settled is the number of samples "
        "until the loop stays within 5 % (and three times the noise). Dead-beat has a minimum "
        "cap of 3 %.",
    )
    head = ("setpoint and law", "cap", "settled", "mean error, %", "relative RMSE, %")
    yield table("Each law at five setpoints", head, map(_row, contents.expectations))


def _row(one: Outlook) -> tuple[str, ...]:
    return (
        # One heading per row, which stays in sight while the rest scrolls.
        f"{format_rate(one.setpoint_pps)}, {LAWS[one.law]}",
        format_cap(one.cap),
        _range(one.settling_samples, lambda value: f"{value:.0f}"),
        _range(one.mean_error, lambda value: f"{round(100 * value, 1) + 0.0:+.1f}"),  # no -0.0
        _range(one.relative_rmse, lambda value: f"{100 * value:.1f}"),
    )


def _range(spread: Spread, words: Callable[[float], str]) -> str:
    median, low, high = (
        "never" if value is None else words(value)
        for value in (spread.median, spread.low, spread.high)
    )
    return median if low == high else f"{median} ({low} to {high})"


def files_section(folder: str, files: Mapping[str, str]) -> Iterator[Markup]:
    """Yield the list of files written with the page, each with its contents."""
    yield element("h2", "Data")
    yield element(
        "p", joined(("Files with the figures of this page, in ", element("code", folder), ":"))
    )
    yield table("Files", ("file", "content"), files.items())

"""A chapter of the report: the experiments of one paper, and what is better and worse than it."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmarks.evaluation.plan import Experiment
from benchmarks.evaluation.plots import svg
from benchmarks.evaluation.reasons import reason
from benchmarks.evaluation.result import Judgement, Result, judged

OURS = "ours"
"""Ways with a name that begins so are compared with the paper."""


def chapter(
    paper: str, experiments: Sequence[Experiment], results: Mapping[str, Sequence[Result]]
) -> str:
    """Return a chapter as HTML."""
    sections = "".join(section(one, results.get(one.name, ())) for one in experiments)
    return f"<h2>{escape(paper)}</h2>{sections}{comparison(experiments, results)}"


def section(experiment: Experiment, results: Sequence[Result]) -> str:
    """Return one experiment: its plot and its table."""
    title = f"<h3>{escape(experiment.title)}</h3><p>{escape(experiment.figures)}</p>"
    if not results:
        return f"{title}<p>Not measured.</p>"
    return f"{title}{svg(results)}<details><summary>All values</summary>{table(results)}</details>"


def table(results: Sequence[Result]) -> str:
    """Return the results as a table."""
    heads = ("experiment", "way", "metric", "value", "95 % interval", "paper")
    head = "".join(f"<th>{one}</th>" for one in heads)
    return f"<table><tr>{head}</tr>{''.join(map(_row, results))}</table>"


def comparison(experiments: Sequence[Experiment], results: Mapping[str, Sequence[Result]]) -> str:
    """Return the two columns: better than the paper, worse than the paper."""
    better = [_line(one) for _, one in compared("better", experiments, results)]
    worse = [
        f"{_line(one)}<br>{escape(reason(experiment.name, one.metric))}"
        for experiment, one in compared("worse", experiments, results)
    ]
    columns = _column("Better than the paper", better) + _column("Worse than the paper", worse)
    return f'<div class="columns">{columns}</div>'


def number(value: float | None) -> str:
    """Return a value with three significant digits or more."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def compared(
    wanted: Judgement,
    experiments: Sequence[Experiment],
    results: Mapping[str, Sequence[Result]],
) -> Iterator[tuple[Experiment, Result]]:
    """Yield our results that are so compared with the paper's."""
    for experiment in experiments:
        directions = {metric.name: metric.better for metric in experiment.metrics}
        for one in results.get(experiment.name, ()):
            direction = directions.get(one.metric)
            if one.way.startswith(OURS) and direction and judged(one, direction) == wanted:
                yield experiment, one


def _line(one: Result) -> str:
    words = f"{one.experiment}, {one.way}: {one.metric} {number(one.value)}"
    return escape(f"{words}, paper {number(one.paper_value)}")


def _column(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{line}</li>" for line in lines) or "<li>Nothing.</li>"
    return f"<div><h3>{title}</h3><ul>{items}</ul></div>"


def _row(one: Result) -> str:
    words = "".join(f"<td>{escape(word)}</td>" for word in (one.experiment, one.way, one.metric))
    between = "" if one.low is None else f"{number(one.low)} to {number(one.high)}"
    numbers = (number(one.value), between, number(one.paper_value))
    return f"<tr>{words}{''.join(f'<td class=number>{each}</td>' for each in numbers)}</tr>"

"""The results of an archive as Markdown: `python -m benchmarks.evaluation.tables ARCHIVE DOCUMENT`.

Writes the tables into the document, each between a line `<!-- table: EXPERIMENT -->` or
`<!-- compared: PAPER -->` and the next line `<!-- end -->`. A value is a mean, with half of its
95 % interval.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.evaluation.archive import load
from benchmarks.evaluation.catalogue import EXPERIMENTS, PAPERS
from benchmarks.evaluation.chapter import compared, number
from benchmarks.evaluation.plan import Experiment
from benchmarks.evaluation.reasons import reason
from benchmarks.evaluation.result import Judgement, Result

BLOCK: Final = re.compile(r"(<!-- (table|compared): (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(experiment: Experiment, results: Sequence[Result]) -> str:
    """Return the results of an experiment: rows are its metrics and points, columns are ways."""
    names = [metric.name for metric in experiment.metrics]
    listed = [one for one in results if one.metric in names]
    ways = list(dict.fromkeys(one.way for one in listed))
    rows: dict[tuple[str, str], dict[str, Result]] = {}
    for one in sorted(listed, key=lambda one: names.index(one.metric)):
        rows.setdefault((one.metric, point_of(one)), {})[one.way] = one
    heads = ("metric", "point", *ways, "paper")
    lines = [heads, ["---"] * len(heads), *(_row(key, found, ways) for key, found in rows.items())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def point_of(result: Result) -> str:
    """Return the point of a result, without the experiment's name."""
    return result.experiment.partition(": ")[2] or "all"


def filled(document: str, results: Mapping[str, Sequence[Result]]) -> str:
    """Return a document with the tables of results; a table without results becomes empty.

    Raises:
        KeyError: the document names an experiment or a paper that does not exist.
    """
    experiments = {one.name: one for one in EXPERIMENTS}
    papers = {paper: [one for one in EXPERIMENTS if one.paper == paper] for paper in PAPERS}

    def fill(block: re.Match[str]) -> str:
        begin, kind, name, end = block.groups()
        if kind == "compared":
            return f"{begin}\n{comparison(papers[name], results)}\n{end}"
        found = results[experiments[name].name]
        return f"{begin}\n{table(experiments[name], found)}\n{end}" if found else begin + end

    return BLOCK.sub(fill, document)


def comparison(experiments: Sequence[Experiment], results: Mapping[str, Sequence[Result]]) -> str:
    """Return what is better and what is worse than in a paper, with the reasons of the latter."""
    judgements: tuple[Judgement, ...] = ("better", "worse")
    lines = [
        "| than the paper | experiment, way | metric | value (paper) | reason |",
        "| --- " * 5 + "|",
    ]
    for judgement in judgements:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for experiment, one in compared(judgement, experiments, results):
            value = f"{point_of(one)}: {number(one.value)} ({number(one.paper_value)})"
            groups.setdefault((experiment.name, one.way, one.metric), []).append(value)
        lines += [_compared(judgement, key, values) for key, values in groups.items()]
        if not groups:
            lines.append(f"| {judgement} | nothing | | | |")
    return "\n".join(lines) + "\n"


def _compared(judgement: Judgement, key: tuple[str, str, str], values: Sequence[str]) -> str:
    name, way, metric = key
    why = reason(name, metric) if judgement == "worse" else ""
    return f"| {judgement} | `{name}`, {way} | {metric} | {'; '.join(values)} | {why} |"


def value_of(result: Result | None) -> str:
    """Return a value with half of its interval."""
    if result is None:
        return "-"
    if result.low is None or result.high is None:
        return number(result.value)
    half = (result.high - result.low) / 2
    return (
        f"{number(result.value)} ± {half:.0f}"
        if half >= 10
        else f"{number(result.value)} ± {half:.2g}"
    )


def _row(key: tuple[str, str], found: Mapping[str, Result], ways: Sequence[str]) -> list[str]:
    papers = dict.fromkeys(number(one.paper_value) for one in found.values())
    paper = " or ".join(filter(None, papers)) or "-"
    return [*key, *(value_of(found.get(way)) for way in ways), paper]


def main() -> None:
    """Write the tables into a document."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, help="written by --archive of an evaluation")
    parser.add_argument("document", type=Path, help="a document with places for tables")
    given = parser.parse_args()
    given.document.write_text(filled(given.document.read_text(), load(given.archive).results()))


if __name__ == "__main__":
    main()

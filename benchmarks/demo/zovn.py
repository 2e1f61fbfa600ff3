"""make demo-zovn: 32 workers answer one aggregator, through a lossy and a lossless switch.

A query is complete when the last byte of the last answer has arrived. Both switches are zovn's and
have a port of 1 Gb/s to the aggregator; the lossy one drops above a queue of 64 or 256 frames. They
take turns. TCP sends no tail loss probes, as when the paper was written; a second table shows one
size with them. Needs root and Linux 6.16; takes a minute.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.demo.zovn_plot import Bar, plot
from benchmarks.zovn.partition_points import Point, Record, Round, points
from benchmarks.zovn.partition_run import Load, Plan, measure
from benchmarks.zovn.partition_ways import missing
from common.arguments import whole_number
from common.output import fitting_console
from lab.errors import LabError

MODES: Final = {"zovn-lossy": "lossy", "zovn": "lossless"}
WORKERS: Final = 32
QUEUES: Final = (256, 64)
CASES: Final = ((12_000, False), (24_000, False), (12_000, True))
"""Bytes of an answer, and whether TCP sends tail loss probes."""
ROUNDS: Final = 2
QUERIES: Final = 40
LIMIT_S: Final = 2.0
BOTTLENECK: Final = "1Gbps"
OUTPUT: Final = Path("build/demo-zovn")


@dataclass(frozen=True)
class Line:
    """One line of the summary."""

    mode: str
    queue: int
    """Frames of the lossy port; a lossless one has the number of the lossy one beside it."""
    workers: int
    size_bytes: int
    """Of each worker's answer."""
    mean_ms: float | None
    """Of the completion times; None if no query was complete."""
    p99_ms: float | None
    dropped: int
    """Frames, by the switch."""
    timeouts: int
    """Of TCP, at the workers."""


def summary(found: Sequence[Point]) -> list[Line]:
    """Return the lines of points."""
    return [
        Line(
            mode=MODES[each.mode],
            queue=each.queue,
            workers=each.workers,
            size_bytes=each.size_bytes,
            mean_ms=_rounded(each.mean_ms),
            p99_ms=_rounded(each.p99_ms),
            dropped=each.dropped,
            timeouts=each.timeouts,
        )
        for each in found
    ]


def pairs(lines: Sequence[Line]) -> Iterator[tuple[Line, Line]]:
    """Yield lossy lines, each with the lossless one beside it."""
    lossless = {(line.queue, line.size_bytes): line for line in lines if line.mode == "lossless"}
    for line in lines:
        if line.mode == "lossy":
            yield line, lossless[line.queue, line.size_bytes]


def speed_up(lossy: Line, lossless: Line) -> float | None:
    """Return how many times faster queries are without loss."""
    if not lossy.mean_ms or not lossless.mean_ms:
        return None
    return lossy.mean_ms / lossless.mean_ms


def sound(lines: Sequence[Line]) -> bool:
    """Whether the lossless switch dropped nothing, and is faster somewhere."""
    whole = all(line.dropped == 0 for line in lines if line.mode == "lossless")
    return whole and any((speed_up(*pair) or 0) > 1 for pair in pairs(lines))


def table(title: str, lines: Sequence[Line]) -> Table:
    """Return lines as a table, in which both modes share a row."""
    shown = Table(title=title, box=None, header_style="bold")
    for heading in ("answer", "queue", *_headings("lossy"), *_headings("lossless"), "faster"):
        shown.add_column(heading, justify="right")
    for lossy, lossless in pairs(lines):
        faster = speed_up(lossy, lossless)
        cells = [cell for line in (lossy, lossless) for cell in _cells(line)]
        times = "-" if faster is None else f"{faster:.1f} x"
        shown.add_row(f"{lossy.size_bytes // 1000} KB", str(lossy.queue), *cells, times)
    return shown


def _headings(mode: str) -> tuple[str, ...]:
    return (f"{mode} ms", "p99 ms", "drops", "timeouts")


def _cells(line: Line) -> Iterator[str]:
    yield from ("-" if t is None else f"{t:.1f}" for t in (line.mean_ms, line.p99_ms))
    yield from (str(line.dropped), str(line.timeouts))


def _rounded(time_ms: float | None) -> float | None:
    return None if time_ms is None else round(time_ms, 3)


def with_tail_probes(rounds: Sequence[Round], *, on: bool) -> list[Round]:
    """Return the rounds in which TCP sent tail loss probes, or not."""
    return [each for each in rounds if each.setting.tail_probes is on]


def write(rounds: Sequence[Round], folder: Path) -> list[Line]:
    """Write summary.json and demo-zovn.png; return the lines of the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = summary(points(rounds))
    (folder / "summary.json").write_text(json.dumps([asdict(line) for line in lines], indent=2))
    bars = [Bar(*key, times) for key, times in _times(rounds).items()]
    plot(bars, WORKERS, folder / "demo-zovn.png")
    return lines


def _times(rounds: Sequence[Round]) -> dict[tuple[str, int, int], list[float]]:
    found: dict[tuple[str, int, int], list[float]] = {}
    for each in rounds:
        key = (MODES[each.setting.mode], each.setting.queue, each.setting.size_bytes)
        found.setdefault(key, []).extend(took / 1e6 for took in each.query_ns)
    return found


def play(console: Console, options: argparse.Namespace) -> list[Round]:
    """Measure all points."""
    load = Load(options.queries, options.limit, BOTTLENECK)
    plan, rounds = Plan(tuple(MODES), CASES, options.rounds, load), list[Round]()
    for queue in QUEUES:
        rounds += measure(WORKERS, queue, plan, Record(), console.print)
    return rounds


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; end the program if the machine cannot do it."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rounds", type=whole_number(1), default=ROUNDS, help=f"of all points ({ROUNDS})")
    add("--queries", type=whole_number(1), default=QUERIES, help=f"of a round, at most ({QUERIES})")
    add("--limit", type=float, default=LIMIT_S, help=f"seconds of a round ({LIMIT_S:g})")
    options = parser.parse_args(words)
    if lacking := missing(MODES):
        parser.exit(1, "\n".join(lacking) + "\n")
    return options


def main() -> int:
    """Run the demo, and leave summary.json and demo-zovn.png in build/demo-zovn."""
    options, console = arguments(), fitting_console()
    try:
        rounds = play(console, options)
    except LabError as error:
        console.print(str(error))
        return 1
    lines = write(with_tail_probes(rounds, on=False), OUTPUT)
    others = summary(points(with_tail_probes(rounds, on=True)))
    console.print(table(f"{WORKERS} workers, TCP without tail loss probes", lines))
    console.print(table("The same with tail loss probes", others))
    console.print(f"{OUTPUT / 'demo-zovn.png'} shows the first table")
    console.print(f"{OUTPUT / 'summary.json'} holds it")
    return int(not sound(lines))


if __name__ == "__main__":
    sys.exit(main())

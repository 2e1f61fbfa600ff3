"""The lab's figures with two versions of the gates in one run, in turns.

Each version is a working tree with its core built (`sh scripts/setup-xco.sh`). Its own benchmark
runs in it as a program, with its own coordinators, controller and settings. In odd repetitions the
old tree is first, in even ones the new tree. Figures are medians with the least and the greatest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from common.arguments import whole_number

HERE: Final = Path(__file__).parents[2]
PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "incast": ("--short",),
    "mix": ("--short",),
    "ping": ("--seconds", "2"),
    "conservation": (),
}
"""Benchmarks, and their options: long ones run with fewer points."""
FRAME: Final = 1_514 / 1_472
"""Bytes on the wire per payload byte, for a datagram that fills a packet."""


@dataclass(frozen=True)
class Figure:
    """One figure of one run of one version."""

    gate: str
    """old or new."""
    repetition: int
    program: str
    point: str
    way: str
    value: float
    unit: str


def figures_of(program: str, answer: Mapping[str, Any]) -> Iterator[tuple[str, str, float, str]]:
    """Yield the figures of a benchmark's JSON: point, way, value, unit."""
    for row in answer["rows"]:
        if program == "ping":
            if row["pinger"] != "idle":
                yield f"{row['pinger']}: median", row["way"], row["p50_ms"], "ms"
            yield f"{row['pinger']}: longest", row["way"], row["max_ms"], "ms"
            continue
        frame = FRAME if program == "conservation" else 1.0
        goodput = (
            row["tcp_bps"] + row["udp_bps"] if program == "mix" else row["goodput_bps"]
        ) * frame
        yield point_of(program, row), row["way"], 100 * goodput / answer["bottleneck_bps"], "%"


def point_of(program: str, row: Mapping[str, Any]) -> str:
    """Return the figures of a row of a benchmark."""
    if program == "incast":
        return f"{row['servers']} servers"
    return f"{row['udp_senders']} of 5 UDP" if program == "mix" else "3 slow, 2 greedy"


def answer_of(tree: Path, program: str, ways: Sequence[str]) -> Mapping[str, Any]:
    """Run a benchmark of a working tree, with that tree's core."""
    # Older trees have all benchmarks in one folder.
    name = f"xco.{program}" if (tree / "benchmarks/xco").is_dir() else f"xco_{program}"
    words = [sys.executable, "-m", f"benchmarks.{name}", "--json", *PROGRAMS[program]]
    env = {**os.environ, "PYTHONPATH": str(tree), "XCO_CORE": str(tree / "xco/core/build")}
    run = subprocess.run([*words, "--ways", *ways], cwd=tree, env=env, stdout=-1, check=True)
    answer: Mapping[str, Any] = json.loads(run.stdout)
    return answer


def in_turns(
    old: Path, programs: Sequence[str], ways: Sequence[str], repetitions: int
) -> Iterator[Figure]:
    """Yield the figures of both versions."""
    trees = [("old", old), ("new", HERE)]
    for repetition in range(1, repetitions + 1):
        for program in programs:
            for gate, tree in trees if repetition % 2 else reversed(trees):
                print(f"{repetition}: {program}, {gate} ...", file=sys.stderr, flush=True)
                for figure in figures_of(program, answer_of(tree, program, ways)):
                    yield Figure(gate, repetition, program, *figure)


def spread(values: Iterable[float]) -> str:
    """Return the median of values, with the least and the greatest."""
    found = sorted(values)
    return f"{statistics.median(found):.1f} ({found[0]:.1f} to {found[-1]:.1f})"


def lines(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the table, as Markdown: one row for each point and way."""
    yield "| program | point | way | old gate | new gate |"
    yield "| --- | --- | --- | --- | --- |"
    rows = dict.fromkeys((f.program, f.point, f.way, f.unit) for f in figures)
    for program, point, way, unit in rows:
        cells = [
            spread(
                f.value
                for f in figures
                if (f.gate, f.program, f.point, f.way, f.unit) == (gate, program, point, way, unit)
            )
            for gate in ("old", "new")
        ]
        yield f"| {program} | {point} | {way} | {' | '.join(f'{c} {unit}' for c in cells)} |"


def version(tree: Path) -> str:
    """Return the commit of a working tree."""
    words = ["git", "-C", str(tree), "log", "-1", "--format=%h"]
    return subprocess.run(words, stdout=-1, text=True, check=True).stdout.strip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", type=Path, required=True, help="working tree of the old gates")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=tuple(PROGRAMS))
    parser.add_argument("--ways", nargs="+", default=["rate", "timeslice", "hybrid"])
    parser.add_argument("--repetitions", type=whole_number(1), default=3)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    chosen = parser.parse_args()
    old = chosen.old.resolve()
    found = list(in_turns(old, chosen.programs, chosen.ways, chosen.repetitions))
    if chosen.json:
        about = {"old": version(old), "new": version(HERE), "cpus": os.cpu_count()}
        print(json.dumps({**about, "figures": [asdict(figure) for figure in found]}))
    else:
        print("\n".join(lines(found)))


if __name__ == "__main__":
    main()

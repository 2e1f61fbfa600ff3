"""make demo-gcc: one TCP flow beside three UDP floods, without control and under xco.

The dumbbell of SDN-GCC in three phases: the floods alone, the tagged TCP flow with them, the tagged
flow alone. The ways take turns. Needs root; takes a minute.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.demo.gcc_plot import plot
from benchmarks.xco.gcc_ways import WAYS, LabWay, available, enter
from benchmarks.xco.phases import Load, Recording, run
from benchmarks.xco.phases_judged import Figures, judge
from benchmarks.xco.rig import XcoRig, rig
from benchmarks.xco.runs import require
from common.arguments import whole_number
from lab.fabric.fabric import Fabric

SHOWN: Final = (
    "none",
    "rate",
    "gcc",
    "hygenicc",
)
"""Ways of benchmarks/xco/gcc_ways.py; those that cannot run here are left out."""
PORT_BPS: Final = 100_000_000
BUFFER_BYTES: Final = 151_400
"""100 full frames, as in the paper."""
SENDERS: Final = 4
ROUNDS: Final = 2
PHASE_S: Final = 2.0
OUTPUT: Final = Path("build/demo-gcc")


@dataclass(frozen=True)
class Turn:
    """One way in one round."""

    way: str
    recording: Recording
    figures: Figures


@dataclass(frozen=True)
class Line:
    """One line of the summary: medians over the rounds; rates are of payload, in Mb/s."""

    way: str
    tagged_mbps: float
    """Mean of the tagged TCP flow over the three phases."""
    ideal_mbps: float
    """The same at equal shares of the whole port."""
    jain: float
    """Jain's index of all senders in the second phase."""
    tagged_with_others_mbps: float
    """The tagged flow in the second phase."""
    drops: int
    """Packets dropped by the port, of all phases."""
    marks: int
    """Packets marked by the port, of all phases."""
    rounds: int


def play(console: Console, xco: XcoRig, ways: Sequence[LabWay], phase_s: float) -> list[Turn]:
    """Run one round, and return its turns."""
    turns = []
    for way in ways:
        console.print(f"  {way.name}: {way.words}")
        enter(xco, way, SENDERS)
        recording = run(
            xco.fabric,
            Load(SENDERS, congestion=way.congestion),
            phase_s,
            lambda words: console.print(f"    {words}"),
        )
        turns.append(Turn(way.name, recording, judge(recording, PORT_BPS)))
        found = turns[-1].figures
        console.print(f"    tagged flow: {found.tagged_mbps:.1f} of {found.ideal_mbps:.1f} Mb/s")
    return turns


def summary(turns: Sequence[Turn]) -> list[Line]:
    """Return a line for each way, in the order in which they were first tried."""
    return [_line(name, turns) for name in dict.fromkeys(turn.way for turn in turns)]


def _line(name: str, turns: Sequence[Turn]) -> Line:
    found = [turn.figures for turn in turns if turn.way == name]
    return Line(
        way=name,
        tagged_mbps=round(statistics.median(one.tagged_mbps for one in found), 2),
        ideal_mbps=round(statistics.median(one.ideal_mbps for one in found), 2),
        jain=round(statistics.median(one.jain for one in found), 4),
        tagged_with_others_mbps=round(statistics.median(one.phases_mbps[1] for one in found), 2),
        drops=round(statistics.median(one.drops for one in found)),
        marks=round(statistics.median(one.marks for one in found)),
        rounds=len(found),
    )


def typical(turns: Sequence[Turn], line: Line) -> Turn:
    """Return the turn of a way whose tagged flow is closest to the median."""
    return min(
        (turn for turn in turns if turn.way == line.way),
        key=lambda turn: abs(turn.figures.tagged_mbps - line.tagged_mbps),
    )


def table(lines: Sequence[Line]) -> Table:
    """Return the summary as a table."""
    shown = Table(title="Summary", box=None, header_style="bold")
    headings = ("tagged Mb/s", "ideal", "of ideal", "beside floods", "Jain", "drops", "marks")
    for heading in ("way", *headings):
        shown.add_column(heading, justify="left" if heading == "way" else "right")
    for line in lines:
        shown.add_row(
            line.way,
            f"{line.tagged_mbps:.1f}",
            f"{line.ideal_mbps:.1f}",
            f"{line.tagged_mbps / line.ideal_mbps:.0%}",
            f"{line.tagged_with_others_mbps:.1f}",
            f"{line.jain:.3f}",
            str(line.drops),
            str(line.marks),
        )
    return shown


def fairer(lines: Sequence[Line]) -> bool:
    """Whether every way is fairer than the first, no control."""
    return all(line.jain > lines[0].jain for line in lines[1:])


def write(turns: Sequence[Turn], lines: Sequence[Line], folder: Path) -> None:
    """Write summary.json and demo-gcc.png."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps([asdict(line) for line in lines], indent=2))
    panels = {
        f"{line.way}: {WAYS[line.way].words}": typical(turns, line).recording for line in lines
    }
    plot(panels, PORT_BPS, folder / "demo-gcc.png")


def main() -> None:
    """Run the demo, and leave summary.json and demo-gcc.png in build/demo-gcc."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=whole_number(1), default=ROUNDS, help=f"of all ways ({ROUNDS})"
    )
    parser.add_argument("--phase", type=float, default=PHASE_S, help=f"seconds ({PHASE_S:g})")
    options = parser.parse_args()
    require(parser)
    console, turns = Console(highlight=False), list[Turn]()
    ways, skipped = available(SHOWN)
    for name, reason in skipped.items():
        console.print(f"without {name}: {reason}")
    with Fabric("xcogcc") as fabric, rig(fabric.incast(SENDERS, PORT_BPS, BUFFER_BYTES)) as xco:
        for number in range(options.rounds):
            console.print(f"round {number + 1} of {options.rounds}")
            turns += play(console, xco, ways[:: -1 if number % 2 else 1], options.phase)
    lines = summary(turns)
    write(turns, lines, OUTPUT)
    console.print(table(lines))
    console.print(f"{OUTPUT / 'demo-gcc.png'} shows it over time")
    console.print(f"{OUTPUT / 'summary.json'} holds this summary")
    sys.exit(not fairer(lines))


if __name__ == "__main__":
    main()

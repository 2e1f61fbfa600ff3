"""The experiments of SDN-GCC and HyGenICC: a tagged TCP flow next to others, lab and simulation."""

from collections.abc import Iterator
from typing import Any, Final

from benchmarks.evaluation.plan import Cell, Experiment
from benchmarks.evaluation.programs.program import WAY, Program
from benchmarks.evaluation.programs.simulated import HYGENICC, SDN_GCC, Simulation
from benchmarks.evaluation.programs.tagged import (
    ECN,
    JAIN,
    METRICS,
    NONE,
    OURS,
    PUBLISHED,
    published,
    tagged,
)
from benchmarks.evaluation.result import Value
from benchmarks.xco.dumbbell import IDEAL_MBPS

WAYS: Final = {
    "none": NONE,
    "ecn": ECN,
    "gcc-published": PUBLISHED,
    "gcc": OURS,
    "hygenicc-published": PUBLISHED,
    "hygenicc": OURS,
}
IDEAL: Final = IDEAL_MBPS[4]
WITHOUT: Final = {
    **published(NONE, "3 udp", 153 / IDEAL),
    **published(NONE, "3 tcp", 416 / IDEAL),
    **published(ECN, "3 udp", 359 / IDEAL),
}
"""Fig. 1, of 4 senders."""


def values(found: Any) -> Iterator[Value]:
    """Yield the values of the lab's rows."""
    for row in found["rows"]:
        case, figures = row["case"], row["figures"]
        way, point = WAYS[row["way"]], f"{case['beside']} {case['others']}"
        yield from tagged(way, point, figures["of_ideal"])
        yield Value(way, point, JAIN, figures["jain"])


def _lab(ways: str, others: str, quick_ways: str) -> Program:
    shared = "--senders 3 --repetitions 1"
    return Program(
        "xco.gcc_lab",
        f"{shared} --phase 1.25 --ways {ways} --others {others}",
        f"{shared} --phase 1 --ways {quick_ways} --others udp",
        values,
    )


def _experiment(  # noqa: PLR0917  one table of experiments below
    name: str,
    paper: str,
    title: str,
    figures: str,
    of: Program | Simulation,
    numbers: dict[tuple[str, str, str], float],
    seconds: tuple[float, float],
    repetitions: int = 5,
) -> Experiment:
    return Experiment(
        name=name,
        paper=paper,
        title=title,
        figures=figures,
        metrics=METRICS,
        cells=(Cell(WAY, "", seconds[0]),),
        quick_cells=(Cell(WAY, "", seconds[1]),),
        bench=of.bench,
        method=of.method,
        published=numbers,
        repetitions=repetitions,
    )


def _both(point: str, of_ideal: float) -> dict[tuple[str, str, str], float]:
    return published(PUBLISHED, point, of_ideal) | published(OURS, point, of_ideal)


LAB: Final = "A tagged TCP flow next to three senders, real packets, port of 100 Mb/s"
SIMULATED: Final = "The paper's figures in our simulation, port of 1 Gb/s"
EXPERIMENTS: Final = (
    _experiment(
        "gcc-lab",
        "SDN-GCC",
        LAB,
        "Fig. 1 and 4b, scaled",
        _lab("none,ecn,gcc-published,gcc", "udp,tcp", "none,gcc"),
        {
            **WITHOUT,
            **_both("3 udp", 405 / IDEAL),
            **_both("3 tcp", 407 / IDEAL),
        },
        (37.0, 20.0),
    ),
    _experiment(
        "gcc-simulated",
        "SDN-GCC",
        SIMULATED,
        "Fig. 1, 4b, 5 and 6",
        SDN_GCC,
        SDN_GCC.published(),
        (56.0, 20.0),
        1,
    ),
    _experiment(
        "hygenicc-lab",
        "HyGenICC",
        LAB,
        "Fig. 1 and 4a, scaled",
        _lab("none,hygenicc-published,hygenicc", "udp", "none,hygenicc"),
        {**published(NONE, "3 udp", 153 / IDEAL), **_both("3 udp", 410 / IDEAL)},
        (15.0, 20.0),
    ),
    _experiment(
        "hygenicc-simulated",
        "HyGenICC",
        SIMULATED,
        "Fig. 4a",
        HYGENICC,
        HYGENICC.published(),
        (9.5, 8.0),
        1,
    ),
)

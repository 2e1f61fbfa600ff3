"""The laws side by side on simulated hosts: settling, mean error and relative RMSE.

Everything here is simulated: Eq. 1 around the curve of a model file, one sample a second. First the
paper's host, with fine and with whole-percent caps; then the same law on a hinge and on a log host,
with gain errors, a delay and a thief.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from common.units import PacketsPerSecond
from models import HostModel, bundled_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.law import Law
from xtc.control.laws import law_named
from xtc.simulation.closed_loop import Scenario, run, summarise
from xtc.simulation.plant import Plant

SETPOINTS = (2, 5, 8, 10, 15, 20, 40, 60, 80, 90)
OFFERED = PacketsPerSecond(100e3)


@dataclass(frozen=True)
class Result:
    """One run."""

    host: str
    law: str
    trouble: str
    setpoint_kpps: float
    settling_samples: int | None
    recovery_samples: int | None
    mean_error: float
    relative_rmse: float


@dataclass(frozen=True)
class Trouble:
    """Conditions of a run."""

    name: str
    gain: float = 1.0
    scenario: dict[str, Any] | None = None


NONE = Trouble("none")
TROUBLES = (
    NONE,
    Trouble("gain -30 %", gain=0.7),
    Trouble("gain +30 %", gain=1.3),
    Trouble("delay of one sample", scenario={"delay": 1}),
    Trouble("thief of 15 %", scenario={"stolen": 0.15, "stolen_from": 30}),
)
WHOLE_PERCENT = Trouble("whole-percent caps", scenario={"quantum": 0.01})


def results() -> Iterator[Result]:
    """Run everything that the tables show."""
    paper = bundled_host("paper")
    for name in ("pi", "dead-beat", "dead-beat-min3"):
        yield from _row(paper, name, law_named(name, paper), WHOLE_PERCENT)
    for trouble in (NONE, WHOLE_PERCENT):
        yield from _row(paper, "default", law_named("default", paper), trouble)
    for host in map(bundled_host, ("paper", "hinge", "log")):
        for trouble in TROUBLES:
            yield from _row(host, "default", law_named("default", host), trouble)
            untrained = AdaptiveLaw(lag=host.lag)
            yield from _row(host, "default, untrained", untrained, trouble)


def _row(host: HostModel, name: str, law: Law[Any], trouble: Trouble) -> Iterator[Result]:
    for setpoint in SETPOINTS:
        scenario = Scenario(PacketsPerSecond(setpoint * 1e3), **(trouble.scenario or {}))
        plant = Plant(host.curve, OFFERED, host.lag, trouble.gain)
        summary = summarise(run(plant, law, scenario), scenario)
        yield Result(
            host.name,
            name,
            trouble.name,
            setpoint,
            summary.settling_samples,
            summary.recovery_samples,
            summary.mean_error,
            summary.relative_rmse,
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every run as JSON")
    options = parser.parse_args()
    found = list(dict.fromkeys(results()))
    if options.json:
        print(json.dumps([asdict(result) for result in found], indent=2))
        return
    console = Console(highlight=False, width=150)
    for title, value in (
        ("Samples until the loop stays within 5 %", _settling),
        ("Mean error of the steady samples, %", lambda r: f"{r.mean_error * 100:.2f}"),
        ("Relative RMSE, %", lambda r: f"{r.relative_rmse * 100:.2f}"),
    ):
        console.print(_table(title, found, value))
    console.print("Simulated. `-`: never within 5 %. `a+b`: settled after a, recovered after b.")


def _settling(result: Result) -> str:
    first = "-" if result.settling_samples is None else str(result.settling_samples)
    if not result.trouble.startswith("thief"):
        return first
    return f"{first}+{'-' if result.recovery_samples is None else result.recovery_samples}"


def _table(title: str, found: Iterable[Result], value: Any) -> Table:
    table = Table(title=title, box=None, header_style="bold", title_justify="left")
    table.add_column("host")
    table.add_column("law")
    table.add_column("trouble")
    for setpoint in SETPOINTS:
        table.add_column(f"{setpoint}", justify="right")
    rows: dict[tuple[str, str, str], list[str]] = {}
    for result in found:
        key = (result.host.partition(" ")[0], result.law, result.trouble)
        rows.setdefault(key, []).append(value(result))
    for key, cells in rows.items():
        table.add_row(*key, *cells)
    return table


if __name__ == "__main__":
    main()

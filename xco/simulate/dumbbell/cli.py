"""xco simulate --dumbbell: its options, table, JSON and plot."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from xco.errors import ConfigError
from xco.simulate.dumbbell.options import Dumbbell
from xco.simulate.dumbbell.plot import plot_dumbbells
from xco.simulate.dumbbell.port import PACKET_BITS
from xco.simulate.dumbbell.run import DumbbellResult, run_dumbbell
from xco.tables import Format, converted
from xco.units import parse_duration, parse_rate, parse_size

OWN: Final = ("law", "competitors", "tagged", "delay", "foreign", "bottleneck", "believed")
"""Options that only the dumbbell has."""
SHARED: Final = ("senders", "seconds", "strategy", "buffer", "edge")
FORM: Final = Format(
    ConfigError,
    {
        "strategy": "uncoordinated, static, rate, gcc or hygenicc",
        "law": "published, by-bytes or fair",
        "competitors": "udp, tcp, ecn or dctcp",
        "tagged": "tcp, ecn, dctcp or udp",
        "bottleneck": "last: the receiver's own link; or core",
    },
)


def refuse_without(given: Mapping[str, object]) -> None:
    """Refuse options of the dumbbell in other simulations.

    Raises:
        ConfigError: names the first.
    """
    for name in OWN:
        if given.get(name) is not None:
            raise ConfigError("", f"--{name}", "only the dumbbell has it", "add --dumbbell")


def dumbbell_of(given: Mapping[str, Any], strategy: str) -> Dumbbell:
    """Return a run from the options of the command line, which are None where not given.

    Raises:
        ConfigError: an option that the dumbbell does not have, or a wrong value.
        UnitError: a quantity that cannot be read.
    """
    values = {name: value for name, value in given.items() if value is not None}
    for name in values:
        if name not in (*OWN, *SHARED):
            fix = f"leave it out, or --dumbbell; it has {', '.join((*SHARED, *OWN))}"
            raise ConfigError("", f"--{name}", "the dumbbell does not have it", fix)
    kept = {key: values[key] for key in values.keys() - {"seconds", "delay", "buffer", "edge"}}
    read: dict[str, Any] = {"strategy": strategy}
    if "seconds" in values:
        read["phase_s"] = values["seconds"] / 3
    if "delay" in values:
        read["delay_s"] = parse_duration(values["delay"], field="delay") / 1e9
    if "edge" in values:
        read["capacity_bps"] = float(parse_rate(values["edge"], field="edge"))
    if "buffer" in values:
        size = parse_size(values["buffer"], field="buffer")
        read["buffer_packets"] = max(1, round(size * 8 / PACKET_BITS))
    return converted(kept | read, Dumbbell, "", "dumbbell", FORM)


def simulate_dumbbell(
    given: Mapping[str, Any], strategies: Sequence[str], plot: Path | None, *, json: bool
) -> None:
    """Run the dumbbell with each strategy, and show the results.

    Raises:
        ConfigError: an option is wrong, or the plot cannot be written.
    """
    runs = [dumbbell_of(given, name) for name in strategies]
    for run in runs:
        run.check()
    results = [_run(run) for run in runs]
    if plot is not None:
        plot_dumbbells(results, plot)
    if json:
        whole = [_as_json(result) for result in results]
        value = whole if len(whole) > 1 else whole[0]
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        sys.stdout.write(text + "\n")
    else:
        Console(highlight=False).print(_table(results))


def _run(given: Dumbbell) -> DumbbellResult:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(given.strategy, total=given.steps)
        return run_dumbbell(given, lambda done: bar.update(task, completed=done))


def _as_json(result: DumbbellResult) -> dict[str, Any]:
    return msgspec.structs.asdict(result) | {"of_ideal": result.of_ideal}


def _table(results: Sequence[DumbbellResult]) -> Table:
    first = results[0]
    title = f"{first.title}; ideal {first.ideal_mbps:.0f} Mb/s"
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for name in ("", "Mb/s", "of ideal", "by phase", "used", "Jain", "lost", "marked"):
        table.add_column(name, justify="right" if name else "left")
    for result in results:
        table.add_row(
            result.name,
            f"{result.tagged_mbps:.0f}",
            f"{result.of_ideal:.1%}",
            " ".join(f"{rate:.0f}" for rate in result.phases_mbps),
            " ".join(f"{share:.0%}" for share in result.used),
            f"{result.jain:.3f}",
            f"{result.lost_packets:.0f}",
            f"{result.marked:.1%}",
        )
    return table

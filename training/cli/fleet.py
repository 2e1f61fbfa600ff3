"""xtc-train fleet: sweeps several hosts, and writes one page on all of them."""

import math
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from common.output import counted, print_json
from common.printable import say
from common.units import format_cap, format_rate
from training.cli.progress import shown_hosts
from training.errors import FleetPathError
from training.fleet.file import load_fleet
from training.fleet.run import HostFailure, sweep_fleet

if TYPE_CHECKING:
    # scipy and matplotlib take seconds to load: load them only when there is something to fit.
    from training.fleet.summary import HostRow, Summary


OWN_FILES, FILES_EACH = 32, 5
"""File descriptors that this program has open, and that each host takes (pipes and their
processes)."""


def fleet(
    hosts: Annotated[
        Path | None, typer.Argument(metavar="FLEET.toml", help="The list of hosts.")
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Folder for all results; an existing one is continued."
        ),
    ] = Path("fleet"),
    summary_only: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Do not sweep: fit the CSV files in this folder."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="Number of hosts swept at the same time (0 = all).")
    ] = 0,
    again: Annotated[
        bool, typer.Option("--again", help="Sweep hosts with a complete recording too.")
    ] = False,
    rough: Annotated[
        bool, typer.Option("--rough", help="Write models even if they are not precise enough.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Sweep the hosts of a list, fit each, and write one page on all of them.

    A failed host stops no other. Run the same command again to resume.
    """
    if (hosts is None) is (summary_only is None):
        raise typer.BadParameter("give a list of hosts, or --summary-only")
    if summary_only is not None and (jobs or again):
        raise typer.BadParameter("--jobs and --again are for a list of hosts")
    if hosts is not None:
        names, failures = _swept(hosts, output, jobs, again=again, quiet=json)
        folder = output
    else:
        assert summary_only is not None  # one of the two is given
        from training.fleet.results import names_in  # noqa: PLC0415

        names, failures, folder = names_in(summary_only), [], summary_only
    summary, failures = _published(folder, names, failures, rough=rough, quiet=json)
    _print(folder, summary, failures, json=json)
    if failures or any(row.top_pps is None for row in summary.hosts):
        raise typer.Exit(1)


def _swept(
    path: Path, folder: Path, jobs: int, *, again: bool, quiet: bool
) -> tuple[list[str], list[HostFailure]]:
    hosts = load_fleet(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fix = "give --output a folder that this user may write"
        raise FleetPathError(str(folder), error.strerror or str(error), fix) from error
    names = [host.name for host in hosts]
    for name in names:
        if (folder / f"{name}.toml").resolve() == path.resolve():
            fix = "give another --output, or rename the host"
            raise FleetPathError(str(path), f"the model of {name} would replace the list", fix)
    with shown_hosts(names, quiet=quiet) as tell:
        failures = sweep_fleet(hosts, folder, jobs=_jobs(jobs, len(hosts)), again=again, tell=tell)
    return names, failures


def _jobs(wanted: int, hosts: int) -> int:
    """Return how many hosts to sweep at the same time: each needs some file descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = math.inf if soft == resource.RLIM_INFINITY else soft
    return int(max(1, min(wanted or hosts, hosts, (files - OWN_FILES) / FILES_EACH)))


def _published(
    folder: Path, names: Sequence[str], failures: Sequence[HostFailure], *, rough: bool, quiet: bool
) -> tuple["Summary", list[HostFailure]]:
    from training.fleet.results import publish, read_all  # noqa: PLC0415

    recordings, failed = read_all(folder, names, failures)
    with shown_hosts(list(recordings), quiet=quiet) as tell:
        return publish(folder, recordings, failed, rough=rough, tell=tell), failed


def _print(
    folder: Path, summary: "Summary", failures: Sequence[HostFailure], *, json: bool
) -> None:
    from training.fleet.results import PAGE  # noqa: PLC0415

    page = str(folder / PAGE)
    if json:
        print_json(
            {
                "output": page,
                "findings": summary.findings,
                "hosts": summary.hosts,
                "failed": failures,
            }
        )
    else:
        for words in summary.findings:
            say(words)
        _print_rows([("host", *HEAD), *map(_row, summary.hosts)])
        usable = sum(row.usable for row in summary.hosts)
        say(f"{page}: written; {usable} of {counted(len(summary.hosts), 'model')} can be used")
    for failure in failures:
        _say_failure(failure)


HEAD = ("top", "cap threshold", "speed", "verdict")


def _row(row: "HostRow") -> tuple[str, ...]:
    from training.fleet.page import NONE, speed_words  # noqa: PLC0415

    top = NONE if row.top_pps is None else format_rate(row.top_pps.value)
    threshold = NONE if row.cap_threshold is None else format_cap(row.cap_threshold)
    return (row.name, top, threshold, speed_words(row), row.verdict)


def _print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        *cells, last = row
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False))
        say(f"{line}  {last}")


def _say_failure(failure: HostFailure) -> None:
    """Name a host that failed, with the last lines of its standard error and what to do."""
    say(f"{failure.name}: {failure.problem}", err=True)
    for line in failure.lines:
        say(f"{failure.name} | {line}", err=True)
    say(f"{failure.name}: to do: {failure.fix}", err=True)

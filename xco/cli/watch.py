"""xco status and xco top: what runs on this machine, once or live."""

import math
import time
from collections import deque
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from common.output import print_json
from xco.cli.command import ConfigPath, Json
from xco.cli.output import print_line
from xco.cli.report import Histories, frame_table, print_machine
from xco.cli.status import StatusReader
from xco.cli.top import Frame, busiest_first, frame
from xco.controller.config import DEFAULT_PATH

EVERY_S = 1.0
FLOWS_OVER_S = 10.0
"""Time over which the rate of a flow is taken."""


def status(config: ConfigPath = DEFAULT_PATH, json: Json = False) -> None:
    """Show this machine's controller and coordinator; exit code 3 if neither runs."""
    machine = StatusReader(config).look()
    if json:
        print_json(machine)
    else:
        print_machine(machine)


def top(
    config: ConfigPath = DEFAULT_PATH,
    rows: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number to show.")] = 40,
    every: Annotated[
        float, typer.Option(min=0.2, max=60, help="Seconds between updates.")
    ] = EVERY_S,
    ticks: Annotated[int, typer.Option(min=0, help="Exit after N (0 = never).")] = 0,
    json: Json = False,
) -> None:
    """Watch hosts and flows live, largest backlog first; with --json, print one line per tick."""
    frames = looks(StatusReader(config), every, ticks)
    try:
        if json:
            for shown in frames:
                print_line(shown)
        else:
            _watch(frames, rows)
    except KeyboardInterrupt:
        return


def looks(looker: StatusReader, every: float, ticks: int) -> Iterator[Frame]:
    """Yield the changes between successive snapshots; without end if `ticks` is 0.

    Raises:
        NobodyAnswersError: neither controller nor coordinator runs (or no longer).
    """
    past = deque([looker.look()], maxlen=math.ceil(FLOWS_OVER_S / every))
    number = 0
    while ticks == 0 or number < ticks:
        time.sleep(every)
        after = looker.look()
        yield busiest_first(frame(past[-1], after, past[0]))
        past.append(after)
        number += 1


def _watch(frames: Iterator[Frame], rows: int) -> None:
    histories: Histories = {}
    with Live(console=Console(highlight=False, emoji=False), auto_refresh=False) as live:
        for shown in frames:
            live.update(frame_table(shown, rows, histories), refresh=True)

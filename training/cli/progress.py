"""Progress of a sweep or a validation: a bar for people, lines for logs."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from common.printable import printable, say
from common.units import format_cap, format_rate
from training.sweep.sweep import Progress

_LEFT = re.compile(r"\b(\d+):(\d\d) left at most$")
LINE_S = 10.0
"""Seconds between two lines without a terminal."""


def describe(progress: Progress) -> str:
    """Return a sweep's progress in words."""
    rate = "-" if progress.throughput_pps is None else format_rate(progress.throughput_pps)
    return (
        f"{progress.phase.replace('_', ' ')} {format_cap(progress.cap)}: {rate}, "
        f"{progress.caps} caps, {clock_time(progress.left_s)} left at most"
    )


def clock_time(seconds: float) -> str:
    """Return a duration as ``4:05``."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"


Tell = Callable[[float, float, str], None]
"""Called with the seconds done, the seconds left, and a text."""


@contextmanager
def shown(*, quiet: bool) -> Iterator[Tell]:
    """Show progress on standard error: a bar on a terminal, else a line at intervals."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if quiet:
        yield lambda _done, _left, _words: None
    elif console.is_terminal:
        with Bar(BarColumn(30), TextColumn("{task.description}"), console=console) as bar:
            task = bar.add_task("starting")

            def show(done: float, left: float, words: str) -> None:
                bar.update(task, completed=done, total=done + left, description=words)

            yield show
    else:
        yield _lines()


TellHost = Callable[[str, str], None]
"""Called with a host's name, and a text: a line of its progress, or its result."""


@contextmanager
def shown_hosts(names: Sequence[str], *, quiet: bool) -> Iterator[TellHost]:
    """Show the progress of many hosts on standard error: a bar each on a terminal, else lines."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if quiet:
        yield lambda _name, _words: None
    elif console.is_terminal and names:
        with _host_bars(names, console) as tell:
            yield tell
    else:
        yield lambda name, words: say(f"{name}: {words}", err=True)


@contextmanager
def _host_bars(names: Sequence[str], console: Console) -> Iterator[TellHost]:
    columns = (
        TextColumn("{task.fields[name]}", markup=False),
        BarColumn(20),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=console) as bar:
        tasks = {name: bar.add_task("waits", name=name, total=None) for name in names}
        began: dict[str, float] = {}

        def show(name: str, words: str) -> None:
            now = time.monotonic()
            done = now - began.setdefault(name, now)
            left = seconds_left(words)
            if left is not None:
                bar.update(tasks[name], completed=done, total=done + left)
            bar.update(tasks[name], description=printable(words))

        yield show


def seconds_left(words: str) -> float | None:
    """Return the most seconds left that a progress line names; None if it names none.

    It reads what `describe` writes.
    """
    found = _LEFT.search(words)
    return None if found is None else 60.0 * int(found[1]) + int(found[2])


def _lines() -> Tell:
    told = [-LINE_S]

    def tell(_done: float, _left: float, words: str) -> None:
        now = time.monotonic()
        if now - told[0] >= LINE_S:
            told[0] = now
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()

    return tell

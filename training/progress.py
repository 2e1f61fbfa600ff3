"""How a sweep or a validation tells how far it is: a bar for people, lines for logs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from training.sweep import Progress
from xtc.units import format_cap, format_rate

LINE_S = 10.0
"""Seconds between two lines where there is no terminal."""


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
"""Called with the seconds done, the seconds left, and words."""


@contextmanager
def shown(*, quiet: bool) -> Iterator[Tell]:
    """Show progress on standard error: a bar on a terminal, else now and then a line."""
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


def _lines() -> Tell:
    told = [-LINE_S]

    def tell(_done: float, _left: float, words: str) -> None:
        now = time.monotonic()
        if now - told[0] >= LINE_S:
            told[0] = now
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()

    return tell

"""Tables of results: a row for each TCP and background, the modes next to each other."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from zovn.simulate.results import Result
from zovn.simulate.scenario import LOADS

Row = list[Result]


def rows_of(results: Sequence[Result]) -> list[Row]:
    """Return results that differ only by their mode together, in the order of their coming."""
    rows: dict[tuple[object, ...], Row] = {}
    for result in results:
        rows.setdefault((result.load, result.own_class, result.tcp), []).append(result)
    return list(rows.values())


def gain(result: Result, row: Row) -> float | None:
    """Return how many times faster a mode is than LL of its row; None without queries or LL."""
    lossy = next((one for one in row if one.mode == "LL"), None)
    if lossy is None or lossy.times is None or result.times is None:
        return None
    return lossy.times.mean_ms / result.times.mean_ms


def background_of(result: Result) -> str:
    """Return what the background is called."""
    name = next((name for name, load in LOADS.items() if load == result.load), f"{result.load:g}")
    return f"{name}, own class" if result.own_class else name


def summary(results: Sequence[Result]) -> Table:
    """Return a line for each result."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("background", "tcp", "mode"):
        table.add_column(name)
    for name in ("mean ms", "5 %", "95 %", "99 %", "gain", "unfinished", "timeouts", "drops"):
        table.add_column(name, justify="right")
    table.add_column("dropped at")
    for row in rows_of(results):
        for result in row:
            table.add_row(*_cells(result, row))
    return table


def _cells(result: Result, row: Row) -> Iterator[str]:
    yield from (background_of(result), result.tcp, result.mode)
    times = result.times
    if times is None:
        yield from ["-"] * 4
    else:
        bound = ">" if result.unfinished else ""
        yield f"{bound}{times.mean_ms:.2f}"
        yield from (f"{time:.2f}" for time in (times.p5_ms, times.p95_ms, times.p99_ms))
    times_faster = gain(result, row)
    yield "-" if times_faster is None else f"{times_faster:.1f}"
    yield from (str(result.unfinished), str(result.timeouts), str(result.drops))
    yield where_dropped(result)


def where_dropped(result: Result) -> str:
    """Return the places of drops with their shares, most first."""
    places = sorted(result.dropped.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count / result.drops:.0%}" for name, count in places[:3])

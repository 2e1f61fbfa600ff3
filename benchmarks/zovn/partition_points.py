"""Figures of partition-aggregate: rounds as measured, points of all their rounds, tables."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.zovn.partition_network import Losses
from lab.traffic.completion import completion


@dataclass(frozen=True)
class Setting:
    """What was asked of a way: rounds with the same settings make a point."""

    mode: str
    queue: int
    workers: int
    tiers: int
    size_bytes: int
    tail_probes: bool
    """Whether TCP sends tail loss probes, as Linux does by default since 3.10."""


@dataclass(frozen=True)
class Round:
    """One way's turn in a round of a point."""

    setting: Setting
    turn: int
    load: dict[str, Any]
    """Everything else that distinguishes measurements: queries, rates, background."""
    query_ns: list[int]
    losses: Losses


@dataclass(frozen=True)
class Point:
    """One point of the figure in one way; times are None where no query was complete."""

    mode: str
    queue: int
    workers: int
    tiers: int
    size_bytes: int
    tail_probes: bool
    queries: int
    """Complete; fewer than asked for if the time was over."""
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    dropped: int
    timeouts: int
    probes: int
    retransmitted: int
    spurious: int


@dataclass
class Measured:
    """What the rounds of one point have measured so far."""

    query_ns: list[int] = field(default_factory=list)
    losses: Losses = Losses()


def points(rounds: Iterable[Round]) -> list[Point]:
    """Return a point for each setting, in the order of their first rounds."""
    found: dict[Setting, Measured] = defaultdict(Measured)
    for each in rounds:
        found[each.setting].query_ns += each.query_ns
        found[each.setting].losses += each.losses
    return [point(setting, measured) for setting, measured in found.items()]


def point(setting: Setting, measured: Measured) -> Point:
    """Return the figures of one point."""
    found, lost = completion(measured.query_ns), measured.losses
    return Point(
        **asdict(setting),
        queries=len(measured.query_ns),
        mean_ms=None if found is None else found.mean_ms,
        p50_ms=None if found is None else found.p50_ms,
        p99_ms=None if found is None else found.p99_ms,
        **asdict(lost),
    )


def table(found: Sequence[Point]) -> Table:
    """Return points as a table."""
    shown = Table(
        "workers", "queue", "bytes", "TLP", "way", "queries", "mean ms", "p50 ms", "p99 ms"
    )
    for heading in ("dropped", "timeouts", "probes", "sent again", "in vain"):
        shown.add_column(heading)
    for each in found:
        times = ("-" if t is None else f"{t:.2f}" for t in (each.mean_ms, each.p50_ms, each.p99_ms))
        tail = "yes" if each.tail_probes else "no"
        first = (each.workers, each.queue, each.size_bytes, tail, each.mode, each.queries)
        last = (each.dropped, each.timeouts, each.probes, each.retransmitted, each.spurious)
        shown.add_row(*map(str, first), *times, *map(str, last))
    return shown


class Record:
    """Rounds that were measured, also by earlier runs if there is a file, one a line."""

    def __init__(self, path: Path | None = None) -> None:
        """Read what the file has; a line that was not finished is measured again."""
        self._path = path
        text = path.read_text() if path is not None and path.exists() else ""
        *lines, rest = text.split("\n")
        self.rounds = [_round(json.loads(line)) for line in lines]
        if path is not None and rest:
            path.write_text(text.removesuffix(rest))

    def find(self, setting: Setting, turn: int, load: dict[str, Any]) -> Round | None:
        """Return such a round, if it was measured."""
        wanted = (setting, turn, load)
        return next((r for r in self.rounds if (r.setting, r.turn, r.load) == wanted), None)

    def add(self, measured: Round) -> None:
        """Keep a round."""
        self.rounds.append(measured)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(measured)) + "\n")


def _round(raw: dict[str, Any]) -> Round:
    known = {"setting": Setting(**raw["setting"]), "losses": Losses(**raw["losses"])}
    return Round(**(raw | known))

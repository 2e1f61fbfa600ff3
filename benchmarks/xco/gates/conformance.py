"""How closely a gate keeps a rate that changes: what arrives, as a part of what was granted.

A sender that never stops waits behind the gate of a real coordinator, whose controller grants up to
a tenth more or less than a share of the link, at random or (`--alternate`) the extremes in turns.
What is granted is the sum of each rate over the time until the next one is sent. Goal: within 1 %
at 1, 10 and 50 % of the link, with a change every 10 and every 1 ms. Shares and periods take turns
in each repetition.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle, pairwise, product
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.xco.gates.rig import LINE_BPS, PAYLOAD, Capture, Rig, StandIn, on_time, rig
from common.arguments import whole_number
from xco.protocol.messages import Mode, Permit
from xco.protocol.wire import Strategy

GOAL: Final = 0.01
SHARES: Final = (0.01, 0.1, 0.5)
PERIODS_MS: Final = (0, 10, 1)
"""0: the rate stays."""
SWING: Final = 0.1
SETTLE_S: Final = 0.2
KEEP_S: Final = 0.01
"""Between repetitions of a rate that stays."""
FRAME_BITS: Final = 8 * (PAYLOAD + 42)
"""With the headers of UDP, IP and Ethernet."""


@dataclass(frozen=True)
class Conformance:
    """What arrived at one share of the link and period of changes, as a part of the granted."""

    share: float
    period_ms: int
    median: float
    least: float
    most: float

    @property
    def reached(self) -> bool:
        """Whether the goal is met."""
        return abs(self.median - 1.0) <= GOAL


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; fail on a missed goal if requested."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.xco.gates.conformance", description=__doc__
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of each run")
    parser.add_argument("--repetitions", type=whole_number(1), default=5)
    parser.add_argument("--alternate", action="store_true", help="the extremes in turns")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = measure(options.seconds, options.repetitions, swings(options.alternate))
    if options.json:
        rows = [asdict(one) | {"reached": one.reached} for one in found]
        json.dump(rows, sys.stdout, indent=2)
    else:
        show(found)
    return 1 if options.strict and not all(one.reached for one in found) else 0


def swings(alternate: bool) -> Iterator[float]:
    """Yield by what part each rate differs from its share of the link, without an end."""
    choice = random.Random(1)  # noqa: S311  no secret
    for extreme in cycle((-SWING, SWING)):
        yield extreme if alternate else choice.uniform(-SWING, SWING)


def measure(seconds: float, repetitions: int, by: Iterator[float]) -> list[Conformance]:
    """Grant every share with every period in turns, on a rig of its own."""
    runs: dict[tuple[float, int], list[float]] = defaultdict(list)
    plan = [run for _ in range(repetitions) for run in product(SHARES, PERIODS_MS)]
    with rig("xcoconform") as bench:
        grants = Grants(bench.stand_in(), bench.capture(), by)
        grants.begin(bench)
        for share, period_ms in track(plan, console=Console(stderr=True)):
            with on_time():
                kept = grants.kept(share * LINE_BPS, period_ms, seconds)
            runs[share, period_ms].append(kept)
    return [
        Conformance(*key, statistics.median(found), min(found), max(found))
        for key, found in runs.items()
    ]


@dataclass
class Grants:
    """A controller that changes a rate, and the far end of the gate that obeys it."""

    stand_in: StandIn
    capture: Capture
    by: Iterator[float]
    """By what part each rate differs from its mean."""

    def begin(self, bench: Rig) -> None:
        """Start the coordinator, and a sender that waits behind its gate."""
        self.stand_in.strategy = Strategy.RATE
        bench.start(bench.config(pace=1.0))
        self.stand_in.wait_for(lambda: self.stand_in.reports)
        bench.send()
        self.stand_in.keep_until(lambda: self.stand_in.reports[-1].waiting, Mode.CLOSED)

    def kept(self, rate_bps: float, period_ms: int, seconds: float) -> float:
        """Return what arrived of a rate that changes, as a part of what was granted."""
        self.stand_in.keep(SETTLE_S, Mode.RATE, Permit(1, round(rate_bps)))
        self.capture.take()
        rates = self._grant(rate_bps, period_ms, seconds)
        first, last = rates[0][0], rates[-1][0]
        arrived = sum(first <= at < last for at in self._stamps())
        granted = sum((b - a) / 1e9 * rate for (a, rate), (b, _) in pairwise(rates))
        return arrived * FRAME_BITS / granted

    def _grant(self, rate_bps: float, period_ms: int, seconds: float) -> list[tuple[int, int]]:
        """Send rates for some time; return them with their instants in ns."""
        rates = []
        start, step_ns = time.monotonic_ns(), round((period_ms / 1000 or KEEP_S) * 1e9)
        for turn in range(round(seconds * 1e9 / step_ns) + 1):
            _sleep_until(start + turn * step_ns)
            granted = round(rate_bps * (1 + (next(self.by) if period_ms else 0.0)))
            self.stand_in.direct(Mode.RATE, 0, 0, Permit(1, granted))
            rates.append((self.stand_in.directed_ns[-1], granted))
            self.stand_in.hear()
        return rates

    def _stamps(self) -> Iterator[int]:
        until = time.monotonic_ns()
        while batch := self.capture.take():
            yield from (at for at, _, _ in batch)
            if batch[-1][0] > until:
                return


def _sleep_until(instant_ns: int) -> None:
    wait_ns = instant_ns - time.monotonic_ns()
    if wait_ns > 0:
        time.sleep(wait_ns / 1e9)


def show(found: Sequence[Conformance]) -> None:
    """Print a row for each share and period."""
    table = Table("of the link", "a change every", "arrived", "goal", box=None, pad_edge=False)
    for one in found:
        table.add_row(
            f"{one.share:.0%}",
            f"{one.period_ms} ms" if one.period_ms else "none",
            f"{one.median:.4f} ({one.least:.4f} to {one.most:.4f})",
            "reached" if one.reached else f"missed: {GOAL:.0%}",
        )
    Console(highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main())

"""Loss with and without coordination, simulated: the paper's tree, 50,000 hosts, both set-ups.

Section 5 of the paper: 1 to 5 UDP senders to one port of 1 Gb/s (figure 23), 1 to 13 over an
uplink of 10 Gb/s (24), a mix of five TCP and UDP senders (25, 26), 800 to 4,800 hosts (27).
TCP is a model (docs/reference/xco-simulate.md). Everything here is simulated.
"""

import argparse
import json
import resource
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from xco.simulate import Result, run
from xco.simulate.options import Options, overridden, scenario_of
from xco.simulate.plot import plot_losses

STRATEGIES = ("uncoordinated", "rate", "timeslice", "hybrid")
ROWS = (4, 8, 12, 16, 20, 24)


@dataclass(frozen=True)
class Row:
    """One run, without its flows and its course."""

    setup: str
    strategy: str
    policy: str | None
    """The scheduler's policy; None if there was none."""
    engine: str | None
    """native: the compiled scheduler; python: Algorithm 1 as printed."""
    hosts: int
    udp: int
    tcp: int
    loss: float
    bottleneck_loss: float
    """Of the layer with the largest loss."""
    bottleneck_use: float
    """Of the most used layer, except for the hosts' own links."""
    goodput_gbps: float
    application_gbps: float
    tcp_mbps: float | None
    """Of one TCP flow on average."""
    fairness: float
    starved_flows: int
    seconds: float
    decisions: int
    decisions_per_second: float | None
    """Per second of the scheduler's wall time."""
    slots_per_second: float
    wall_seconds: float
    peak_mb: float
    """Of this process so far."""


def small() -> Iterator[Row]:
    """Run the paper's two set-ups, for comparison with the real lab."""
    for strategy in STRATEGIES:
        for senders in range(1, 6):
            yield _row("incast", strategy, setup="incast", senders=senders, seconds=0.5)
        for senders in range(1, 14):
            yield _row("uplink", strategy, setup="uplink", senders=senders, seconds=0.5)
        for tcp in range(6):
            yield _row("mix", strategy, setup="incast", senders=5, tcp=tcp, seconds=2.0)


def large(rows: Iterable[int] = ROWS) -> Iterator[tuple[Row, Result]]:
    """Run the paper's tree with a number of rows."""
    for strategy in STRATEGIES:
        for count in rows:
            yield _measured("tree", strategy, rows=count, seconds=0.4)


def largest() -> Iterator[Row]:
    """Run 50,000 hosts for a second, without and with coordination."""
    for strategy in ("uncoordinated", "timeslice"):
        yield _row("tree", strategy, rows=250)


def _row(title: str, strategy: str, **options: object) -> Row:
    return _measured(title, strategy, **options)[0]


def _measured(title: str, strategy: str, **options: object) -> tuple[Row, Result]:
    given = {"strategy": strategy, "seconds": 1.0, "slot": "200us"} | options
    result = run(scenario_of(overridden(Options(), given)))
    print(f"{title} {options} {strategy}: {result.loss:.2%} lost", file=sys.stderr)
    of_tcp = [flow.goodput_bps / 1e6 for flow in result.flow if flow.kind == "tcp"]
    row = Row(
        setup=title,
        strategy=strategy,
        policy=result.policy,
        engine=None if result.policy is None else str(given.get("engine", "native")),
        hosts=result.hosts,
        udp=result.flows - len(of_tcp),
        tcp=len(of_tcp),
        loss=result.loss,
        bottleneck_loss=max(layer.loss for layer in result.layers),
        bottleneck_use=max(layer.utilisation for layer in result.layers[1:]),
        goodput_gbps=result.goodput_bps / 1e9,
        application_gbps=result.application_bps / 1e9,
        tcp_mbps=sum(of_tcp) / len(of_tcp) if of_tcp else None,
        fairness=result.fairness,
        starved_flows=result.starved_flows,
        seconds=result.seconds,
        decisions=result.decisions,
        decisions_per_second=result.speed.decisions_per_second,
        slots_per_second=result.speed.slots_per_second,
        wall_seconds=result.speed.wall_seconds,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )
    return row, result


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print every row as JSON")
    parser.add_argument("--only", choices=("small", "large", "largest"), help="a part alone")
    parser.add_argument("--plot", type=Path, help="draw figure 27")
    options = parser.parse_args()
    rows = list(small()) if options.only in {None, "small"} else []
    trees = list(large()) if options.only in {None, "large"} else []
    rows += [row for row, _ in trees]
    rows += list(largest()) if options.only in {None, "largest"} else []
    if options.plot is not None and trees:
        plot_losses([result for _, result in trees], options.plot)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    Console(highlight=False, width=180).print(_table(rows))


def _table(rows: Iterable[Row]) -> Table:
    table = Table(box=None, header_style="bold", title="Simulated", title_justify="left")
    headings = (
        *("set-up", "strategy", "engine", "hosts", "UDP", "TCP", "loss", "at worst layer"),
        *("link used", "goodput Gb/s", "in messages", "each TCP Mb/s", "Jain", "starved"),
        *("decisions/s", "slots/s", "s", "MB"),
    )
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < 3 else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> Iterator[str]:
    yield from (
        row.setup,
        row.strategy,
        row.engine or "-",
        str(row.hosts),
        str(row.udp),
        str(row.tcp),
    )
    yield from (f"{row.loss:.2%}", f"{row.bottleneck_loss:.2%}", f"{row.bottleneck_use:.1%}")
    yield from (f"{row.goodput_gbps:.2f}", f"{row.application_gbps:.2f}")
    yield "-" if row.tcp_mbps is None else f"{row.tcp_mbps:.0f}"
    yield from (f"{row.fairness:.3f}", str(row.starved_flows))
    yield "-" if row.decisions_per_second is None else f"{row.decisions_per_second:.0f}"
    yield from (f"{row.slots_per_second:.0f}", f"{row.wall_seconds:.1f}", f"{row.peak_mb:.0f}")


if __name__ == "__main__":
    main()

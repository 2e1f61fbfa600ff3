"""The whole controller under load: messages per second and core, and reaction times to reports.

A program in C (`make -C xco/core load`) plays all hosts over loopback UDP, with authentic messages,
against the real xco-controller with real-time priority. The network is that of
`benchmarks.xco.controller.scheduler` (`tree`: 20 hosts a rack, 10 racks a row, 1 and 10 Gb/s). In
each rack 17 hosts always have something to send to the other half of the network and report every
heartbeat; one requests a free link, uses its turn for 1 to 3 ms, and releases it. A reaction is the
time from that host's report to the receipt of the directive that answers it, by the kernel's stamp.

The controller's CPU time is that of its process, with the kernel's part. Messages are those that it
read and sent, by its counters, from the generator's start to its end. With two or more CPUs the
controller runs on the first and the generator on the last. `reports` is the sent share of those
that the heartbeat requires: far below 100 % the generator was saturated. `lost` counts requests
without an answer within 100 ms.

With `--pairs`, for the strategies `rate` and `gcc`, each host instead always has something to send
to several others, so that so many pairs of hosts are active. Under `gcc` each host reports the port
before it every 10 ms: a link of 1 Gb/s that is 97 to 100 % full, up to 30 % of it foreign, another
share every 0.1 to 0.3 s, with marks. Its counters do not depend on the directives. A plan is the
computation of all rates.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from statistics import median_low
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.xco.controller.scheduler import CORE, topology_of
from common.arguments import whole_number
from xco.controller.config import ControllerTable, checked
from xco.controller.loopfile import loop_text
from xco.errors import ControllerError
from xco.protocol.stats import Snapshot, read_statistics
from xco.protocol.wire import ENTRIES_MAX
from xco.topology.graph import Topology

BUILD: Final = CORE / "build"
EPOCH: Final = 1_800_000_000
MESSAGES: Final = (
    "received_hellos",
    "received_reports",
    "received_ports",
    "dropped_not_joined",
    "dropped_lower_epoch",
    "directives_sent",
    "welcomes_sent",
)
"""The controller's counters of received and sent messages."""
HEARTBEAT_US: Final = 5000
PATIENCE_S: Final = 10.0
SIZES: Final = (64, 256, 1024, 4800)
SIZES_OF_PAIRS: Final = (32,)
STRATEGIES: Final[dict[str, dict[str, object]]] = {
    "timeslice": {"strategy": "timeslice"},
    "on-demand": {"strategy": "timeslice", "on_demand": True},
    "rate": {"strategy": "rate"},
    "hybrid": {"strategy": "hybrid"},
    "gcc": {"strategy": "gcc"},
}
OF_PAIRS: Final = ("rate", "gcc")
"""Strategies that share links out among all pairs at once."""


@dataclass(frozen=True)
class Load:
    """Results of one run; times are of the window, shares of the requests or of a core."""

    hosts: int
    strategy: str
    joined: int
    reports_share: float
    messages_per_s: float
    core_share: float
    messages_per_core_s: float
    answers: int
    unanswered: int
    p50_us: float
    p99_us: float
    slices_per_s: float
    realtime: bool
    pairs: int
    """Always active; 0: hosts have roles."""
    ports_per_s: float
    plans_per_s: float
    directives_per_s: float


def measure(hosts: int, strategy: str, seconds: int, destinations: int = 0) -> Load:
    """Run the controller and the generator once."""
    topology = topology_of(hosts, "tree")
    with tempfile.TemporaryDirectory(prefix="xco-load-") as name:
        folder = Path(name)
        with _controller(folder, topology, strategy) as process:
            found, before, after = _generate(folder, topology, process.pid, seconds, destinations)

    def rate(*names: str) -> float:
        return sum(after.values[name] - before.values[name] for name in names) / found["elapsed"]

    messages = rate(*MESSAGES)
    core_share = found["cpu_seconds"] / found["seconds"]
    wanted = found["seconds"] * 1e6 / HEARTBEAT_US * hosts
    return Load(
        hosts=hosts,
        strategy=strategy,
        joined=int(found["joined"]),
        reports_share=(found["sent"] - found["sent_ports"]) / wanted,
        messages_per_s=messages,
        core_share=core_share,
        messages_per_core_s=messages / core_share,
        answers=int(found["answers"]),
        unanswered=int(found["unanswered"]),
        p50_us=found["p50_us"],
        p99_us=found["p99_us"],
        slices_per_s=rate("slices_started"),
        realtime=bool(after.values["realtime"]),
        pairs=hosts * destinations,
        ports_per_s=rate("received_ports"),
        plans_per_s=rate("plans_computed"),
        directives_per_s=rate("directives_sent"),
    )


@contextmanager
def _controller(folder: Path, topology: Topology, strategy: str) -> Iterator[subprocess.Popen[str]]:
    _write_loop_file(folder, topology, strategy)
    command = [str(BUILD / "xco-controller"), str(folder / "controller.loop"), "--with-parent"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    try:
        _pin(process.pid, min(os.sched_getaffinity(0)))
        _wait_until_up(folder, process)
        yield process
    finally:
        process.terminate()
        process.wait()


def _write_loop_file(folder: Path, topology: Topology, strategy: str) -> None:
    (folder / "key").write_bytes(os.urandom(32))
    places = {"topology": "t", "key": "key", "lease": str(folder)}
    settings = {"listen": "127.0.0.1:0", "run_dir": str(folder), **STRATEGIES[strategy]}
    table = msgspec.convert({**places, **settings}, ControllerTable)
    config = checked(table, {}, folder / "xco.toml")
    (folder / "controller.loop").write_text(loop_text(config, topology, EPOCH))


def _pin(pid: int, cpu: int) -> None:
    if len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(pid, {cpu})


def _statistics(folder: Path) -> Snapshot:
    return read_statistics(folder / "controller.stats")


def _statistics_since(folder: Path, since_ns: int) -> Snapshot:
    """Return the statistics published after an instant: a flooded controller publishes nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := _statistics(folder)).updated_ns < since_ns and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def _wait_until_up(folder: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if _statistics(folder).values["port"] > 0:
                return
        except ControllerError:
            pass  # it is not published yet
        time.sleep(0.01)
    raise SystemExit("the controller does not start")


def _generate(
    folder: Path, topology: Topology, pid: int, seconds: int, destinations: int
) -> tuple[dict[str, float], Snapshot, Snapshot]:
    hosts = len(topology.hosts)
    port = _statistics(folder).values["port"]
    digests = [topology.hosts_digest().hex(), topology.nodes_digest().hex()]
    numbers = [hosts, destinations, HEARTBEAT_US, seconds]
    command = [str(BUILD / "xco-load"), str(port), str(pid), str(folder / "key"), *digests]
    command += map(str, numbers)
    before, began_ns = _statistics(folder), time.monotonic_ns()
    generator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _pin(generator.pid, max(os.sched_getaffinity(0)))
    output, _ = generator.communicate()
    ended_ns = time.monotonic_ns()
    if generator.returncode != 0:
        raise SystemExit("the generator failed")
    found = msgspec.json.decode(output, type=dict[str, float])
    found["elapsed"] = (ended_ns - began_ns) / 1e9
    return found, before, _statistics_since(folder, ended_ns)


def alike(found: list[Load]) -> list[list[Load]]:
    """Return the repetitions of each kind of run."""
    kinds: dict[tuple[int, int, str], list[Load]] = {}
    for load in found:
        kinds.setdefault((load.hosts, load.pairs, load.strategy), []).append(load)
    return list(kinds.values())


def median(runs: list[Load]) -> Load:
    """Return the median of each value; the lower one of two."""
    values = {field.name: [getattr(run, field.name) for run in runs] for field in fields(Load)}
    return Load(**{name: median_low(all_) for name, all_ in values.items()})


def show(found: list[Load]) -> None:
    """Print the table of medians."""
    table = Table("hosts", "strategy")
    names = ("joined", "reports", "messages/s", "core", "messages/s/core", "slices/s")
    for name in (*names, "answers", "lost", "p50 us", "p99 us"):
        table.add_column(name, justify="right")
    for load in map(median, alike(found)):
        table.add_row(
            f"{load.hosts:,}",
            load.strategy,
            f"{load.joined:,}",
            f"{load.reports_share:.0%}",
            f"{load.messages_per_s:,.0f}",
            f"{load.core_share:.0%}",
            f"{load.messages_per_core_s:,.0f}",
            f"{load.slices_per_s:,.0f}",
            f"{load.answers:,}",
            f"{load.unanswered:,}",
            f"{load.p50_us:,.0f}",
            f"{load.p99_us:,.0f}",
        )
    Console(width=150).print(table)


def show_pairs(found: list[Load]) -> None:
    """Print the table of medians with pairs, the core's also with least and most."""
    table = Table("hosts", "pairs", "strategy")
    names = ("joined", "reports", "messages/s", "ports/s", "plans/s", "directives/s", "core")
    for name in (*names, "least to most"):
        table.add_column(name, justify="right")
    for runs in alike(found):
        load, cores = median(runs), [run.core_share for run in runs]
        rates = (load.messages_per_s, load.ports_per_s, load.plans_per_s, load.directives_per_s)
        table.add_row(
            f"{load.hosts:,}",
            f"{load.pairs:,}",
            load.strategy,
            f"{load.joined:,}",
            f"{load.reports_share:.0%}",
            *(f"{rate:,.0f}" for rate in rates),
            f"{load.core_share:.1%}",
            f"{min(cores):.1%} to {max(cores):.1%}",
        )
    Console(width=150).print(table)


def parsed() -> tuple[argparse.Namespace, list[tuple[int, int, str]]]:
    """Return the command line, and hosts, destinations of each and strategy of each run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=whole_number(1), default=3, help="measured of each run")
    parser.add_argument(
        "--repetitions", type=whole_number(1), default=1, help="of each run, in turns"
    )
    parser.add_argument("--hosts", type=_numbers, help="sizes, with commas")
    parser.add_argument("--pairs", type=_numbers, default=(), help="of active hosts, with commas")
    parser.add_argument("--strategy", help="strategies, with commas")
    options = parser.parse_args()
    strategies = options.strategy.split(",") if options.strategy else _usual(options.pairs)
    if wrong := set(strategies) - set(STRATEGIES):
        parser.error(f"--strategy: {', '.join(wrong)}: write some of {', '.join(STRATEGIES)}")
    sizes = options.hosts or (SIZES_OF_PAIRS if options.pairs else SIZES)
    shapes = [(size, pairs // size) for size in sizes for pairs in options.pairs or (0,)]
    if options.pairs and any(not 0 < each < min(size, ENTRIES_MAX + 1) for size, each in shapes):
        most = f"{ENTRIES_MAX} for each host, and less than there are hosts"
        parser.error(f"--pairs: write at least as many as there are hosts, and at most {most}")
    return options, [(*shape, strategy) for shape, strategy in product(shapes, strategies)]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _usual(pairs: tuple[int, ...]) -> tuple[str, ...]:
    return OF_PAIRS if pairs else tuple(STRATEGIES)


def main() -> int:
    """Measure, and print a table or JSON."""
    options, kinds = parsed()
    subprocess.run(["make", "-s", "-C", str(CORE), "all", "load"], check=True)  # noqa: S607  any make
    found = []
    for _, (hosts, destinations, strategy) in product(range(options.repetitions), kinds):
        of_each = f" {destinations} destinations each," if destinations else ""
        print(f"{hosts} hosts,{of_each} {strategy} ...", file=sys.stderr, flush=True)
        found.append(measure(hosts, strategy, options.seconds, destinations))
    if options.json:
        print(json.dumps([asdict(load) for load in found], indent=2))
    elif options.pairs:
        show_pairs(found)
    else:
        show(found)
    if not all(load.realtime for load in found):
        print("The controller had no real-time priority: run as root.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

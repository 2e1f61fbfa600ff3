"""Runs all benchmarks one after the other: output to build/bench, a summary at the end.

`--quick` gives each its shortest settings: it shows that all of them run, and its figures mean
nothing. A full run takes about five hours; `--resume` skips what an earlier one has finished.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from rich.console import Console
from rich.table import Table

OUTPUT: Final = Path("build/bench")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark; its options are written as in a shell."""

    module: str
    """Below `benchmarks`."""
    quick: str = ""
    """Its options for a short run."""
    full: str = ""
    """Its options for a full run."""
    judges: bool = False
    """Whether it ends with 1 where its figures miss a goal."""


Result = Literal["ok", "goal missed", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one benchmark."""

    command: str
    seconds: float
    result: Result


SHORT: Final = "--short --seconds 1"
BENCHMARKS: Final = (
    Benchmark("xtc.laws"),
    Benchmark("xtc.promise"),
    Benchmark("xtc.cost", "--sizes 10 --seconds 2"),
    Benchmark("xtc.slow_disk"),
    Benchmark("xtc.shield", "--rounds 1 --packets 1000"),
    Benchmark("xtc.floors", "--rounds 1 --settle 2 --seconds 2"),
    Benchmark("xtc.loop", "--runs 1 --full 0 --kind user-space --share 0.5", "--full 1"),
    Benchmark("xtc.periods", "--runs 1 --kind user-space --period 1 --share 0.5"),
    Benchmark("xtc.kernel_short", "--period 1 --share 0.5 --seconds 5"),
    Benchmark("xtc.promise_packets", "--kind user-space --way shield --load 'steady flood'"),
    Benchmark("xtc.platforms", "--share 0.5"),
    Benchmark("xtc.quota_share"),
    Benchmark("xtc.tcp_burst", "--rounds 1 --seconds 2 --settle 2"),
    Benchmark("training.lag", "--sweeps 1"),
    Benchmark("training.coverage", "--sweeps 2"),
    Benchmark("training.ratios", "--pairs 1"),
    Benchmark("training.sweeps", "--quick --kind user-space"),
    Benchmark("policer.sharing", "--rounds 1 --seconds 2 --settle 2"),
    Benchmark("policer.reaction", "--runs 1 --failovers 1"),
    Benchmark("policer.scale", "--hosts 2 --seconds 5"),
    Benchmark("policer.soak", "--minutes 1 --hosts 10 --routers 5 --connections 20", judges=True),
    Benchmark(
        "policer.alternate", "--kills 2 --hosts 2 --routers 2 --database sqlite", judges=True
    ),
    Benchmark("policer.history", "--hosts 2 --routers 5 --minutes 1"),
    Benchmark("xco.controller.scheduler", "--seconds 0.1 --hosts 256", judges=True),
    Benchmark("xco.controller.exchange", "--hosts 16 --count 100", judges=True),
    Benchmark("xco.controller.load", "--seconds 1 --hosts 16", judges=True),
    Benchmark(
        "xco.controller.load",
        "--seconds 1 --hosts 4 --pairs 12",
        "--pairs 64,256,1000 --repetitions 5 --json",
    ),
    Benchmark("xco.controller.flood", "--hosts 16 --count 1000 --senders 1", judges=True),
    Benchmark("xco.gates.precision", "--seconds 1"),
    Benchmark("xco.gates.conformance", "--repetitions 1 --seconds 0.2"),
    Benchmark("xco.gates.rtnl", "--seconds 1"),
    Benchmark("xco.gates.classify", "--repetitions 1", judges=True),
    Benchmark("xco.gates.pace", "--repetitions 10", judges=True),
    Benchmark("xco.gates.marks", "--repetitions 1"),
    Benchmark("xco.incast", SHORT),
    Benchmark("xco.incast", SHORT, "--ways uncoordinated --bottleneck 500Mbps"),
    *(
        Benchmark(f"xco.{name}", SHORT)
        for name in (
            *("mix", "reads", "short", "ping", "conservation", "late", "responsiveness"),
            *("uplink", "migration", "simulated"),
        )
    ),
    Benchmark("xco.controller.simulation", "--only small"),
    Benchmark("xco.dumbbell", "--phase 0.2"),
    Benchmark("xco.foreign", SHORT, judges=True),
    *(
        Benchmark("xco.gcc_lab", f"--quick {quick}", f"--repetitions 3 {full}")
        for quick, full in (
            ("", ""),
            ("--delay 50", "--senders 3 --delay 1,5,10,50"),
            ("--foreign 0.3 --mice", "--senders 3 --foreign 0.3 --mice"),
        )
    ),
    Benchmark("zovn.step", "--seconds 0.05 --repetitions 1"),
    Benchmark("zovn.offloads", "--seconds 0.05 --repetitions 1"),
    Benchmark("zovn.threads", "--seconds 0.05 --repetitions 1"),
    Benchmark("zovn.speed", "--quick"),
    Benchmark("zovn.overload", "--quick"),
    Benchmark("zovn.receivers", "--quick", judges=True),
    Benchmark("zovn.ports", "--quick"),
    Benchmark("zovn.idle", "--quick", judges=True),
    Benchmark("zovn.latency", "--quick"),
    Benchmark("zovn.partition_aggregate", "--quick"),
    Benchmark("zovn.partition_aggregate", "--quick --tiers 3", "--tiers 3 --queries 200"),
    Benchmark(
        "zovn.partition_aggregate",
        "--quick --tail-probes no",
        "--tail-probes no --workers 32 --sizes 6KB,12KB,24KB,48KB",
    ),
    Benchmark("zovn.overlay", "--quick"),
    Benchmark("zovn.overlay", "--quick --udp 0.3", "--udp 0.3 --background shared own"),
)


def command(benchmark: Benchmark, *, quick: bool) -> str:
    """Return the arguments of Python that run a benchmark."""
    options = benchmark.quick if quick else benchmark.full
    return f"-m benchmarks.{benchmark.module} {options}".rstrip()


def run(arguments: str, *, judges: bool) -> Outcome:
    """Run one benchmark; its output goes to a file that is named after its command."""
    begin, path = time.monotonic(), output_of(arguments)
    with path.open("w") as output:
        argv = [sys.executable, *shlex.split(arguments)]
        code = subprocess.run(argv, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    missed = judges and code == 1 and "Traceback (most recent call last)" not in path.read_text()
    result: Result = "ok" if code == 0 else "goal missed" if missed else "failed"
    return Outcome(arguments, round(time.monotonic() - begin, 1), result)


def output_of(arguments: str) -> Path:
    """Return the file for the output of a benchmark."""
    words = arguments.removeprefix("-m benchmarks.")
    return OUTPUT / ("".join(c if c.isalnum() or c in ".-" else "_" for c in words) + ".txt")


def earlier(summary: Path) -> dict[str, Outcome]:
    """Return the benchmarks that an earlier run finished, by command."""
    if not summary.exists():
        return {}
    outcomes = [Outcome(**values) for values in json.loads(summary.read_text())]
    return {outcome.command: outcome for outcome in outcomes if outcome.result != "failed"}


def table(outcomes: Iterable[Outcome]) -> Table:
    """Return the summary: seconds and result of each benchmark."""
    shown = Table("benchmark", "seconds", "result", "output")
    for each in outcomes:
        name = each.command.removeprefix("-m benchmarks.")
        style = "red" if each.result == "failed" else ""
        output = str(output_of(each.command))
        shown.add_row(name, f"{each.seconds:.0f}", each.result, output, style=style)
    return shown


def main() -> int:
    """Run the benchmarks of the command line; 1 where one could not run to its end."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shortest settings: no figures")
    parser.add_argument("--only", default="", help="benchmarks with names that begin so, e.g. xco")
    parser.add_argument("--resume", action="store_true", help="skip what was finished before")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    options = parser.parse_args()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    summary = OUTPUT / ("quick.json" if options.quick else "full.json")
    outcomes = earlier(summary) if options.resume else {}
    chosen = [each for each in BENCHMARKS if each.module.startswith(options.only)]
    console = Console(stderr=True)
    for number, benchmark in enumerate(chosen, 1):
        arguments = command(benchmark, quick=options.quick)
        if arguments in outcomes:
            continue
        console.print(f"{number} of {len(chosen)}: python {arguments}")
        outcomes[arguments] = run(arguments, judges=benchmark.judges)
        summary.write_text(json.dumps([asdict(each) for each in outcomes.values()], indent=2))
    if options.json:
        print(summary.read_text())
    else:
        Console().print(table(outcomes.values()))
    return int(any(outcome.result == "failed" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())

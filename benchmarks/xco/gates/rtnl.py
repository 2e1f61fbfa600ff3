"""How long it takes to set a gate, alone and while another namespace makes and deletes interfaces.

Requests for traffic control wait for RTNL, the kernel's lock for network settings, which other
programs hold as well: starting VMs makes interfaces. Four ways in turn in one run: a gate's TBF
closed and opened (RTM_NEWQDISC), an HTB class's rate changed (RTM_NEWTCLASS), and a BPF map
written. The last takes no RTNL and affects only packets that arrive later; it neither holds nor
releases waiting ones.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from lab.system import namespaces

CORE: Final = Path(__file__).parents[3] / "xco" / "core"
SOURCE: Final = Path(__file__).with_suffix(".c")
PARTS: Final = (
    "gate",
    "connection",
    "answer",
    "lost",
    "message",
    "paced",
    "parts",
    "sources",
    "tree",
)
GATED, BUSY = "xcortnl-gated", "xcortnl-busy"
CHURN: Final = "link add v0 type veth peer name v1\nlink del v0\n" * 200_000
"""Longer than any measurement."""


@dataclass(frozen=True)
class Cost:
    """Of one kind of request; times in us."""

    way: str
    beside: str
    requests: int
    p50_us: float
    p99_us: float
    max_us: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each of the two runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    costs = measure(options.seconds)
    if options.json:
        json.dump([asdict(cost) for cost in costs], sys.stdout, indent=2)
    else:
        show(costs)


def measure(seconds: float) -> list[Cost]:
    """Time all ways alone, and then next to a namespace that makes and deletes interfaces."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xco-rtnl-")))
        timer = _compile(folder)
        for name in (GATED, BUSY):
            namespaces.create(name)
            stack.callback(namespaces.remove, name)
        _ip(GATED, "link", "add", "d0", "type", "veth", "peer", "name", "d1")
        for device in ("d0", "d1"):
            _ip(GATED, "link", "set", device, "up")
        costs = _run(timer, seconds, "nothing")
        with _churn():
            return costs + _run(timer, seconds, "veth pairs made and deleted")


def _compile(folder: Path) -> Path:
    sources = [SOURCE, *(CORE / f"qdisc/{part}.c" for part in PARTS)]
    command = ["cc", "-O2", "-std=c17", "-D_GNU_SOURCE", f"-I{CORE}"]
    subprocess.run([*command, "-o", folder / "timer", *sources], check=True)
    return folder / "timer"


def _ip(namespace: str, *words: str) -> None:
    subprocess.run(["ip", "-n", namespace, *words], check=True)  # noqa: S607  the system's


@contextmanager
def _churn() -> Iterator[None]:
    command = ["ip", "-n", BUSY, "-batch", "-"]
    with tempfile.TemporaryFile("w+") as lines:
        lines.write(CHURN)
        lines.seek(0)
        running = subprocess.Popen(command, stdin=lines)
        try:
            yield
        finally:
            running.kill()
            running.wait()


def _run(timer: Path, seconds: float, beside: str) -> list[Cost]:
    command = ["ip", "netns", "exec", GATED, str(timer), "d0", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    taken: dict[str, list[int]] = defaultdict(list)
    for line in done.stdout.splitlines():
        way, ns = line.split()
        taken[way].append(int(ns))
    return [_cost(way, beside, sorted(times)) for way, times in taken.items()]


def _cost(way: str, beside: str, times: Sequence[int]) -> Cost:
    def at(share: float) -> float:
        return times[min(len(times) - 1, int(len(times) * share))] / 1000

    return Cost(way, beside, len(times), at(0.5), at(0.99), at(1.0))


def show(costs: Sequence[Cost]) -> None:
    """Print a row for each way and run."""
    table = Table("way", "beside", "requests", "p50, us", "p99, us", "max, us", box=None)
    for cost in costs:
        times = (f"{time:.1f}" for time in (cost.p50_us, cost.p99_us, cost.max_us))
        table.add_row(cost.way, cost.beside, str(cost.requests), *times)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()

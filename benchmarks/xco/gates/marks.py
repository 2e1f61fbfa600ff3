"""Cost of counting congestion marks: the shim's programs, ns a packet, by the kernel's own clock.

UDP packets over a veth pair, sent out or coming in, with bits that the program leaves or rewrites.
The kernel counts runs and their time (kernel.bpf_stats_enabled), which adds two clock readings to
each run. Ways take turns within each repetition. Needs root, and no other user of that setting.
"""

import argparse
import json
import socket
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.xco.gates.rig import HOST, RECEIVER, Rig, rig
from common.arguments import whole_number
from lab.system import namespaces
from xco.core_files import BUILD, SHIM

STATISTICS: Final = Path("/proc/sys/kernel/bpf_stats_enabled")
PACKETS, PAYLOAD, PORT = 50_000, 1_400, 9
FRAMES_A_SECOND: Final = {"1 Gb/s": 1e9 / 8 / 1_538, "10 Gb/s": 1e10 / 8 / 1_538}
"""Of 1,500 bytes, with what the wire adds."""
CAPABLE, MARKED = 2, 3
FAR_MAC: Final = "020000770002"


@dataclass(frozen=True)
class Way:
    """Packets in one direction, between hosts that are listed by MAC address."""

    name: str
    near_to_far: bool
    bits: int


WAYS: Final = (
    Way("out, made capable", True, 0),
    Way("out, capable already", True, CAPABLE),
    Way("in, not capable", False, 0),
    Way("in, marked: counted and cleared", False, MARKED),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every way."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.xco.gates.marks", description=__doc__
    )
    parser.add_argument("--repetitions", type=whole_number(1), default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {way.name: [] for way in WAYS}
    subprocess.run(["make", "-s", "-C", BUILD.parent, "load"], check=True)  # noqa: S607  our own
    with counted(), rig("xcobm") as bench, watching(bench) as process:
        rounds = range(options.repetitions)
        for _ in track(rounds, "measuring", console=Console(stderr=True), disable=options.json):
            for way in WAYS:
                found[way.name].append(cost(bench, process, way))
    rows = [
        {"what": name, "ns": statistics.median(costs), "all": costs}
        for name, costs in found.items()
    ]
    print(json.dumps(rows)) if options.json else Console().print(table(found))
    return 0


@contextmanager
def counted() -> Iterator[None]:
    """Have the kernel count the runs of programs."""
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


@contextmanager
def watching(bench: Rig) -> Iterator[int]:
    """Run the shim on the near interface; yield its process."""
    words: list[str | Path] = [BUILD / "xco-shim-watch", BUILD / SHIM, "e0", "64", "hide"]
    with subprocess.Popen(
        ["ip", "netns", "exec", bench.near, *words],  # noqa: S607
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write(f"mac {FAR_MAC} 1\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        yield process.pid
        process.terminate()


def cost(bench: Rig, process: int, way: Way) -> float:
    """Return the ns that the kernel spent in a program for each packet of a way."""
    before = runs(process)
    send(bench, way)
    ran = {one: [b - a for a, b in zip(before[one], counts, strict=True)]
           for one, counts in runs(process).items()}  # fmt: skip
    count, spent_ns = max(ran.values())
    assert count >= PACKETS
    return spent_ns / count


def runs(process: int) -> dict[str, tuple[int, int]]:
    """Return runs and ns of each program that a process holds (proc(5), fdinfo)."""
    found = {}
    for file in Path(f"/proc/{process}/fdinfo").iterdir():
        lines = (line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
        fields = {key: value.strip() for key, value in lines}
        if "run_cnt" in fields:
            found[fields["prog_id"]] = (int(fields["run_cnt"]), int(fields["run_time_ns"]))
    return found


def send(bench: Rig, way: Way) -> None:
    """Send the packets of a way; the port is closed to none of them."""
    ends = [(bench.near, HOST), (bench.far, RECEIVER)]
    (sender, source), (receiver, address) = ends if way.near_to_far else reversed(ends)
    with opened(sender, source) as out, opened(receiver, address):
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, way.bits)
        payload = bytes(PAYLOAD)
        for _ in range(PACKETS):
            out.sendto(payload, (address, PORT))


def opened(name: str, address: str) -> socket.socket:
    """Open a socket in a namespace."""

    def create() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, PORT))
        return made

    return namespaces.inside(name, create)


def table(found: dict[str, list[float]]) -> Table:
    """Return the figures, in ns, and as shares of a CPU."""
    shown = Table(title="a run of the program (median of repetitions)")
    shown.add_column("packets")
    for name in ("ns", "least", "most", *(f"of a CPU at {rate}" for rate in FRAMES_A_SECOND)):
        shown.add_column(name, justify="right")
    for name, costs in found.items():
        median = statistics.median(costs)
        numbers = [f"{number:.0f}" for number in (median, min(costs), max(costs))]
        shares = [f"{median * rate / 1e9:.2%}" for rate in FRAMES_A_SECOND.values()]
        shown.add_row(name, *numbers, *shares)
    return shown


if __name__ == "__main__":
    raise SystemExit(main())

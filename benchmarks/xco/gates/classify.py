"""Cost of classification for the sender: CPU per packet without a coordinator, with u32, with BPF.

"queues" is the path through the gates' queues alone, one of each, without a classifier.

One process sends UDP packets over a veth pair to 1, 64 and 256 addresses of 64 hosts in turn; the
far end drops them by their MAC address. Ways take turns within each repetition. Needs root and a
compiler.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.xco.gates.rig import CONTROLLER_ADDRESS, HOST, Rig, rig
from common.arguments import whole_number
from xco.protocol.messages import Mode

WAYS: Final = ("none", "queues", "u32", "bpf")
QUEUES: Final = (
    "qdisc add dev e0 root handle 1: htb default 10 r2q 100000",
    "class add dev e0 parent 1: classid 1:10 htb rate 34gbit",
    "qdisc add dev e0 parent 1:10 handle 20: tbf rate 30gbit burst 1m limit 4m",
    "qdisc add dev e0 parent 20: handle 30: htb default 10 r2q 100000",
    "class add dev e0 parent 30: classid 30:10 htb rate 34gbit",
    "qdisc add dev e0 parent 30:10 handle 40: bfifo limit 4m",
)
DESTINATIONS: Final = (1, 64, 256)
HOSTS, GOAL_NS = 64, 1000
FIRST: Final = IPv4Address("10.77.2.0")
UNUSED_MAC: Final = "02:00:00:00:ff:ff"
SOURCE: Final = Path(__file__).with_name("classify_sender.c")
PACKETS, PAYLOAD = 1920, 1400
READY_S: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every way at every count; the exit code is 0 if BPF meets its goal everywhere."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.xco.gates.classify", description=__doc__
    )
    parser.add_argument("--repetitions", type=whole_number(1), default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rounds = [(way, number) for number in range(options.repetitions) for way in WAYS]
    found: dict[tuple[str, int], list[float]] = {}
    steps = track(rounds, "measuring", console=Console(stderr=True), disable=options.json)
    for way, _ in steps:
        for count, cost in measured(way):
            found.setdefault((way, count), []).append(cost)
    rows = [
        {"way": way, "destinations": count, "ns_a_packet": statistics.median(costs), "all": costs}
        for (way, count), costs in found.items()
    ]
    if options.json:
        print(json.dumps(rows))
    else:
        Console().print(table({key: statistics.median(costs) for key, costs in found.items()}))
    return int(any(above(found, count) > GOAL_NS for count in DESTINATIONS))


def above(found: dict[tuple[str, int], list[float]], count: int) -> float:
    """Return the additional cost of BPF over nothing, in ns."""
    return statistics.median(found["bpf", count]) - statistics.median(found["none", count])


def measured(way: str) -> Iterator[tuple[int, float]]:
    """Yield counts of destinations, and the cost of a packet to one of them, in ns."""
    with tempfile.TemporaryDirectory() as folder, rig("xcobc") as bench:
        sender = Path(folder, "sender")
        subprocess.run(["cc", "-O2", "-o", sender, SOURCE], check=True)  # noqa: S607  our own
        prepare(bench)
        with coordinated(bench, way):
            for count in DESTINATIONS:
                yield count, cost(bench, sender, count)


def prepare(bench: Rig) -> None:
    """Give the addresses a route, and a MAC address that no host has."""
    ip = ["ip", "-n", bench.near]
    subprocess.run([*ip, "route", "add", f"{FIRST}/23", "dev", "e0"], check=True)
    for number in range(max(DESTINATIONS)):
        place = [str(FIRST + number), "lladdr", UNUSED_MAC, "dev", "e0"]
        subprocess.run([*ip, "neigh", "add", *place], check=True)


@contextmanager
def coordinated(bench: Rig, way: str) -> Iterator[None]:
    """Run a coordinator whose gates are all open, or none."""
    if way in {"none", "queues"}:
        for words in QUEUES if way == "queues" else ():
            subprocess.run(["tc", "-n", bench.near, *words.split()], check=True)  # noqa: S607
        yield
        return
    bench.classifier = way
    topology = bench.folder / "many.toml"
    topology.write_text(network())
    stand_in = bench.stand_in()
    running = bench.start(bench.config(topology=str(topology), flow_idle="1h"))
    stand_in.wait_for(lambda: stand_in.reports)
    stand_in.direct(Mode.OPEN, 0, 0)
    yield
    running.process.terminate()
    running.process.wait(READY_S)


def network() -> str:
    """Return a switch with this host, the controller's, and 64 of four addresses each."""
    hosts = [("a", [HOST]), ("k", [CONTROLLER_ADDRESS])]
    hosts += [
        (f"h{number}", [str(FIRST + number + HOSTS * k) for k in range(4)])
        for number in range(HOSTS)
    ]
    tables = [f"[host.{name}]\naddresses = {json.dumps(addresses)}" for name, addresses in hosts]
    links = [f'[[link]]\nbetween = ["{name}", "s"]\ncapacity = "40Gbps"' for name, _ in hosts]
    return "\n".join(["[switch.s]", *tables, *links])


def cost(bench: Rig, sender: Path, count: int) -> float:
    """Return the cost of a packet once every address has its queue, in ns."""
    command = ["ip", "netns", "exec", bench.near, str(sender), str(FIRST), str(count)]
    for packets in (PACKETS, PACKETS):
        done = subprocess.run(
            [*command, str(packets), str(PAYLOAD)], capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def table(found: dict[tuple[str, int], float]) -> Table:
    """Return the figures, in us."""
    shown = Table(title="CPU of the sender a packet, us (median of repetitions)")
    shown.add_column("destinations")
    for way in WAYS:
        shown.add_column(way, justify="right")
    for count in DESTINATIONS:
        shown.add_row(str(count), *(f"{found[way, count] / 1000:.2f}" for way in WAYS))
    return shown


if __name__ == "__main__":
    raise SystemExit(main())

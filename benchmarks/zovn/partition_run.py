"""Runs partition-aggregate: all ways of a request side by side, which take turns."""

import errno
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from benchmarks.zovn.partition_network import Losses, Network, Request
from benchmarks.zovn.partition_points import Record, Round, Setting
from benchmarks.zovn.partition_ways import WAYS
from lab.programs.processes import Place
from lab.system import namespaces
from lab.traffic import roles
from lab.traffic.partition import BACKGROUND_PORT, Tiers, aggregate, send_background

POLL_S: Final = 0.1
LOCK: Final = "\0zovn-partition-aggregate"
"""An abstract address (unix(7)), which the kernel frees when its process ends."""
PROBES_WITH_RACK: Final = 3
"""The kernel's default."""


@dataclass(frozen=True)
class Load:
    """What the aggregator asks for, and what else is sent."""

    queries: int
    """Of a round."""
    limit: float
    """Seconds for a round at most."""
    bottleneck: str
    """Rate of the port to the aggregator."""
    congestion: str = "cubic"
    """Congestion control of the workers (tcp(7))."""
    rate: float | None = None
    """Queries/s; None: one after another."""
    tiers: int = 2
    middles: int = 4
    """Mid-level aggregators with three tiers."""
    background: float | None = None
    """Mean gap of background flows, in seconds."""


@dataclass(frozen=True)
class Plan:
    """What is measured for each number of workers and each queue."""

    ways: Sequence[str]
    cases: Sequence[tuple[int, bool]]
    """Bytes of an answer, and whether TCP sends tail loss probes."""
    rounds: int
    load: Load


@dataclass(frozen=True)
class Running:
    """A way with everything that answers on it."""

    network: Network
    tiers: Tiers

    def ask(self, size: int, load: Load, *, tail_probes: bool = True) -> tuple[list[int], Losses]:
        """Send queries until they are complete or the time is over."""
        for host in self.network.hosts:
            set_tail_probes(host.place, on=tail_probes)
        with self.network.awake():
            before = self.network.losses()
            query_ns = self._ask(size, load)
            return query_ns, self.network.losses() - before

    def _ask(self, size: int, load: Load) -> list[int]:
        query_ns: list[int] = []
        deadline = time.monotonic() + load.limit
        with aggregate(
            self.network.top,
            self.tiers.servers,
            size=size,
            queries=load.queries,
            rate=load.rate,
            port=self.tiers.port,
        ) as running:
            while time.monotonic() < deadline and len(query_ns) < load.queries:
                time.sleep(POLL_S)
                query_ns += running.counts().query_ns
        return query_ns


def start(stack: ExitStack, request: Request, way: str, load: Load) -> Running:
    """Build a way, and start workers, mid-level aggregators and background flows on it."""
    network = stack.enter_context(WAYS[way](request))
    if load.background is not None:
        network = replace(network, awake=nullcontext)  # background flows never pause
    middles = load.middles if load.tiers == 3 else 0
    with network.awake():
        workers, between = network.hosts[middles:], network.hosts[:middles]
        tiers = stack.enter_context(Tiers(workers, between, congestion=load.congestion))
        if load.background is not None:
            start_background(stack, network, load.background)
    return Running(network, tiers)


def set_tail_probes(place: Place, *, on: bool) -> None:
    """Let TCP there send tail loss probes, or not (networking/ip-sysctl)."""
    value = PROBES_WITH_RACK if on else 0
    namespaces.write_sysctls(Path(place.netns).name, {"ipv4/tcp_early_retrans": value})


def start_background(stack: ExitStack, network: Network, gap_s: float) -> None:
    """Start a sink and a source of background flows on every host."""
    for host in network.hosts:
        stack.enter_context(roles.sink_streams(host.place, port=BACKGROUND_PORT))
    for seed, host in enumerate(network.hosts):
        others = [other.address for other in network.hosts if other is not host]
        stack.enter_context(send_background(host.place, others, gap_s=gap_s, seed=seed))


def measure(
    workers: int, queue: int, plan: Plan, record: Record, say: Callable[[str], None]
) -> list[Round]:
    """Measure all sizes in all ways, but for the rounds that the record has."""
    wanted = list(_turns(workers, queue, plan))
    load = asdict(plan.load)
    if any(record.find(setting, turn, load) is None for setting, turn in wanted):
        _measure(wanted, plan, record, say)
    found = (record.find(setting, turn, load) for setting, turn in wanted)
    return [each for each in found if each is not None]


@contextmanager
def alone(say: Callable[[str], None]) -> Iterator[None]:
    """Hold the names of the networks: a second process would remove those of the first."""
    with socket.socket(socket.AF_UNIX) as lock:
        if not _bound(lock):
            say("waiting: another process measures partition-aggregate on this machine")
            while not _bound(lock):
                time.sleep(POLL_S)
        yield


def _bound(lock: socket.socket) -> bool:
    try:
        lock.bind(LOCK)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _turns(workers: int, queue: int, plan: Plan) -> Iterator[tuple[Setting, int]]:
    for turn, case, way in product(range(plan.rounds), plan.cases, plan.ways):
        yield Setting(way, queue, workers, plan.load.tiers, *case), turn


def _words(setting: Setting) -> str:
    tail = "" if setting.tail_probes else " without tail loss probes"
    return f"{setting.mode}, {setting.size_bytes} bytes{tail}"


def _measure(
    wanted: Sequence[tuple[Setting, int]], plan: Plan, record: Record, say: Callable[[str], None]
) -> None:
    first, load = wanted[0][0], plan.load
    hosts = first.workers + (load.middles if load.tiers == 3 else 0)
    known: dict[str, Any] = asdict(load)
    with alone(say), ExitStack() as stack:
        say(f"{first.workers} workers, queue {first.queue}: starting {', '.join(plan.ways)}")
        ways = {
            way: start(
                stack, Request(f"zpa{number}", hosts, first.queue, load.bottleneck), way, load
            )
            for number, way in enumerate(plan.ways)
        }
        for setting, turn in wanted:
            if record.find(setting, turn, known) is not None:
                continue
            say(f"  {_words(setting)}: {turn + 1} of {plan.rounds}")
            way = ways[setting.mode]
            measured = way.ask(setting.size_bytes, load, tail_probes=setting.tail_probes)
            record.add(Round(setting, turn, known, *measured))

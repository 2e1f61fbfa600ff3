"""One policer and its fleet: CPU, memory, rounds and REST reads at 1,000 to 10,000 routers.

The policer is the real one (`policer serve` on SQLite); the hosts are simulated in two processes of
their own (`benchmarks.policer.hosts`) and talk to it over encrypted TCP: twenty routers each, with
an offered load of 1.2 times the host's capacity that scatters by 10 % from second to second, so
that every host is engaged all the time; one host in fifty has a flooding router. Meanwhile a client
reads hosts, routers and events, at most ten times a second, and another one scrapes the metrics
four times a minute, as Prometheus does.

The simulated hosts, the client and the policer share the machine; their use is measured separately.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
import zmq.auth
from rich.console import Console
from rich.table import Table

from benchmarks.policer.hosts import CAPACITY, PROMISED
from benchmarks.policer.rig import Policer, enter
from benchmarks.rig import cpu_seconds
from common.arguments import whole_number
from policer.contracts.contract import Contract
from policer.contracts.host import Host

SIZES: Final = (50, 150, 500)
ROUTERS: Final = 20
"""Of each host."""
PROCESSES: Final = 2
WARM_UP_S: Final = 20.0
READS_EVERY_S: Final = 0.1
SCRAPES_EVERY_S: Final = 15.0
SEEN_S: Final = 120.0
"""How long all hosts may take to report."""


@dataclass(frozen=True)
class Cost:
    """Cost of a policer of a number of routers."""

    hosts: int
    routers: int
    heard: int
    """Hosts that were reachable at the end."""
    engaged: int
    cpu_share: float
    """Of one core."""
    rss_mib: float
    round_p50_ms: float
    round_p99_ms: float
    rounds_per_host_s: float
    read_p50_ms: float
    read_p99_ms: float
    reads: int
    scrape_ms: float
    """The longest."""
    hosts_cpu_share: float
    """Of the simulated hosts."""

    @property
    def per_router_us(self) -> float:
        """CPU time per router and second."""
        return self.cpu_share / self.routers * 1e6


@contextmanager
def simulated(count: int) -> Iterator[tuple[list[Host], list[int]]]:
    """Yield the entries of some simulated hosts, and their processes."""
    shares = [count // PROCESSES + (n < count % PROCESSES) for n in range(PROCESSES)]
    processes = [_started(sum(shares[:n]), share) for n, share in enumerate(shares) if share]
    try:
        entries = [
            msgspec.convert(entry, Host)
            for process in processes
            for entry in json.loads(_line(process))
        ]
        yield entries, [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _started(first: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.policer.hosts", str(first), str(count)]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, str(ROUTERS)], stdin=pipe, stdout=pipe, text=True)


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("the simulated hosts did not start")
    return line


def measure(count: int, seconds: float) -> Cost:
    """Measure one size of fleet."""
    with tempfile.TemporaryDirectory(prefix="xtc-scale-") as name, simulated(count) as fleet:
        folder, (hosts, pids) = Path(name), fleet
        _, secret_key = zmq.auth.create_certificates(name, "policer")
        Path(secret_key).chmod(0o600)
        url = f"sqlite:///{folder}/policer.db"
        secret = enter(url, hosts, {host.name: _contracts() for host in hosts})
        with Policer(folder / "one", url, secret, keys=Path(secret_key)) as policer:
            _wait_until_heard(policer, count)
            time.sleep(WARM_UP_S)
            watch = _watch(policer, hosts, pids, seconds)
        return _cost(watch, policer, count)


@dataclass(frozen=True)
class Watched:
    """External observations while it ran."""

    began: float
    ended: float
    cpu: float
    hosts_cpu: float
    rss_mib: float
    reads: list[float]
    scrapes: list[float]
    heard: int
    engaged: int


def _watch(policer: Policer, hosts: Sequence[Host], pids: list[int], seconds: float) -> Watched:
    """Read for some time, and measure the cost."""
    paths = itertools.cycle(_paths(hosts))
    began, cpu = time.monotonic(), policer.cpu_seconds()
    hosts_cpu = sum(map(cpu_seconds, pids))
    reads = []
    with _scraping(policer) as scrapes:
        while (now := time.monotonic()) < began + seconds:
            reads.append(policer.timed(next(paths)))
            time.sleep(max(0.0, now + READS_EVERY_S - time.monotonic()))
    ended, used = time.monotonic(), policer.cpu_seconds() - cpu
    hosts_used = sum(map(cpu_seconds, pids)) - hosts_cpu
    found = _all_hosts(policer)
    return Watched(
        began=began,
        ended=ended,
        cpu=used,
        hosts_cpu=hosts_used,
        rss_mib=policer.rss_mib(),
        reads=reads,
        scrapes=scrapes,
        heard=sum(host["reachable"] for host in found),
        engaged=sum(host["engaged"] for host in found),
    )


@contextmanager
def _scraping(policer: Policer) -> Iterator[list[float]]:
    """Scrape the metrics repeatedly in the background; yield how long it takes."""
    took: list[float] = []
    ending = threading.Event()

    def scrape() -> None:
        with policer.client() as client:
            while True:
                began = time.perf_counter()
                client.get("/metrics").raise_for_status()
                took.append(time.perf_counter() - began)
                if ending.wait(SCRAPES_EVERY_S):
                    return

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield took
    finally:
        ending.set()
        thread.join()


def _cost(watch: Watched, policer: Policer, count: int) -> Cost:
    """Combine the observations with the policer's own record of its rounds, after its end."""
    seconds = watch.ended - watch.began
    rounds = [r.seconds for r in policer.rounds() if watch.began <= r.at <= watch.ended]
    return Cost(
        hosts=count,
        routers=count * ROUTERS,
        heard=watch.heard,
        engaged=watch.engaged,
        cpu_share=watch.cpu / seconds,
        rss_mib=watch.rss_mib,
        round_p50_ms=1e3 * quantile(rounds, 0.5),
        round_p99_ms=1e3 * quantile(rounds, 0.99),
        rounds_per_host_s=len(rounds) / count / seconds,
        read_p50_ms=1e3 * quantile(watch.reads, 0.5),
        read_p99_ms=1e3 * quantile(watch.reads, 0.99),
        reads=len(watch.reads),
        scrape_ms=1e3 * max(watch.scrapes),
        hosts_cpu_share=watch.hosts_cpu / seconds,
    )


def _contracts() -> dict[str, Contract]:
    guarantee = PROMISED * CAPACITY / ROUTERS
    return {f"vr{n}": Contract(guarantee_pps=guarantee) for n in range(ROUTERS)}


def _paths(hosts: Sequence[Host]) -> list[str]:
    """Return the client's requests, in turns: those of a page and a scraper."""
    middle = hosts[len(hosts) // 2].name
    return [
        "/v1/hosts?limit=100",
        f"/v1/hosts/{middle}",
        f"/v1/hosts/{middle}/routers",
        f"/v1/hosts/{middle}/routers/vr3",
        "/v1/routers?limit=100",
        "/v1/events?limit=50",
        "/v1/capacity",
    ]


def _all_hosts(policer: Policer) -> list[dict[str, bool]]:
    """Return the state of every host."""
    found: list[dict[str, bool]] = []
    path = "/v1/hosts?limit=100"
    while True:
        page = policer.get(path)
        found += [item["live"] for item in page["items"]]
        if page["next"] is None:
            return found
        path = f"/v1/hosts?limit=100&after={page['next']}"


def _wait_until_heard(policer: Policer, count: int) -> None:
    deadline = time.monotonic() + SEEN_S
    while (heard := sum(host["reachable"] for host in _all_hosts(policer))) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {heard} of {count} hosts were heard:\n{policer.log[-2000:]}")
        time.sleep(0.5)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--hosts", type=whole_number(1), action="append", help="of 20 routers each; repeatable"
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    costs = []
    for count in options.hosts or SIZES:
        costs.append(measure(count, options.seconds))
        print(f"  {costs[-1]}", file=sys.stderr)
    if options.json:
        rows = [asdict(cost) | {"per_router_us": cost.per_router_us} for cost in costs]
        print(json.dumps(rows, indent=2))
    else:
        _print(costs)


def _print(costs: list[Cost]) -> None:
    table = Table(box=None, header_style="bold")
    headings = "routers", "hosts heard", "engaged", "CPU", "a router", "memory"
    more = "round p50", "p99", "read p50", "p99", "scrape", "hosts' own CPU"
    for heading in (*headings, *more):
        table.add_column(heading, justify="right")
    for cost in costs:
        table.add_row(
            str(cost.routers),
            f"{cost.heard} of {cost.hosts}",
            str(cost.engaged),
            f"{cost.cpu_share * 100:.1f} %",
            f"{cost.per_router_us:.0f} us/s",
            f"{cost.rss_mib:.0f} MiB",
            f"{cost.round_p50_ms:.2f} ms",
            f"{cost.round_p99_ms:.2f} ms",
            f"{cost.read_p50_ms:.1f} ms",
            f"{cost.read_p99_ms:.1f} ms",
            f"{cost.scrape_ms:.0f} ms",
            f"{cost.hosts_cpu_share * 100:.0f} %",
        )
    console = Console(highlight=False, width=140)
    console.print(table)
    console.print("CPU in percent of one core. A round is one host's, once a second.")


if __name__ == "__main__":
    main()

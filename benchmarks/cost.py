"""What the daemon costs: CPU, memory and tick time at 10, 100 and 1,000 routers.

The daemon is the real one: it reads the kernel's /proc/net/dev of as many real interfaces (two a
router) ten times a second, and writes and reads back a real cgroup quota for each router. What
the routers forward is simulated, since no machine has a thousand busy routers to spare: the
simulated host's text takes the place of what was read, and its time is taken off the bill.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from prometheus_client import Histogram
from pyroute2 import IPRoute, netns
from rich.console import Console
from rich.table import Table

from benchmarks.rig import lab_missing
from lab import cgroups, namespaces
from models import bundled_host
from xtc.actuator.base import Actuator, CapLimits, CpuUsage
from xtc.actuator.cgroup import CgroupActuator
from xtc.actuator.simulated import SimulatedHost
from xtc.actuator.spec import ActuatorSpec, CgroupSpec, Original
from xtc.clock import MonotonicClock
from xtc.configfile import parse_config
from xtc.daemon import Daemon
from xtc.journal import Journal
from xtc.limiter import Limiter
from xtc.logs import set_up_logging
from xtc.manager import Manager
from xtc.meter import ProcNetDev, Snapshot
from xtc.metrics import Metrics
from xtc.plant import Plant
from xtc.routers import plans
from xtc.server import Listen, Server
from xtc.units import CapFraction, PacketsPerSecond, Seconds
from xtc.virt.hypervisors import Hypervisors

PREFIX = "xtccost"
SIZES = (10, 100, 1000)
SECONDS = 20
WARM_UP = 5


@dataclass(frozen=True)
class Cost:
    """What a daemon of so many routers costs."""

    routers: int
    cpu_share: float
    """Of one core."""
    rss_mib: float
    tick_p50_ms: float
    tick_p99_ms: float
    ticks: int


class Bill:
    """The CPU time that is the plant's and not the daemon's."""

    def __init__(self) -> None:
        self.plant = 0.0

    @contextmanager
    def of_plant(self) -> Iterator[None]:
        """Charge what happens within to the plant."""
        start = time.perf_counter()
        yield
        self.plant += time.perf_counter() - start


class Host:
    """Reads the kernel's file, then answers with the simulated host's."""

    def __init__(self, simulated: SimulatedHost, bill: Bill) -> None:
        self._real = ProcNetDev("/proc/thread-self/net/dev")
        self._simulated, self._bill = simulated, bill

    def read(self, now: Seconds) -> Snapshot:
        """Pay for the real file, and return the simulated one."""
        self._real.read(now)
        with self._bill.of_plant():
            return self._simulated.read(now)

    def close(self) -> None:
        """Let go of the file."""
        self._real.close()


class BothActuators:
    """A real quota on an empty group, and the simulated router that answers to it."""

    slow = False

    def __init__(self, spec: CgroupSpec, simulated: SimulatedHost, bill: Bill) -> None:
        self._real = CgroupActuator(spec)
        self._simulated = simulated.actuator(Path(spec.path).name)
        self._bill = bill

    @property
    def limits(self) -> CapLimits:
        """The real actuator's."""
        return self._real.limits

    def rebalance(self) -> CapFraction | None:
        """Nothing is shared here."""
        return None

    def settle(self) -> bool:
        """As the real one."""
        return self._real.settle()

    def capture(self) -> Original:
        """The real original."""
        return self._real.capture()

    def applied(self) -> CapFraction | None:
        """The real cap."""
        return self._real.applied()

    def apply(self, cap: CapFraction) -> CapFraction:
        """Write the real cap, and let the simulated router know."""
        got = self._real.apply(cap)
        with self._bill.of_plant():
            self._simulated.apply(got)
        return got

    def usage(self) -> CpuUsage:
        """Pay for the real counters, and return the simulated ones."""
        self._real.usage()
        with self._bill.of_plant():
            return self._simulated.usage()

    def restore(self, original: Original) -> None:
        """Put the real original back."""
        self._real.restore(original)


class Ticks:
    """Stands where the histogram does, and keeps every duration without the plant's part."""

    def __init__(self, bill: Bill) -> None:
        self.durations: list[float] = []
        self._bill = bill

    @contextmanager
    def time(self) -> Iterator[None]:
        """Measure what happens within."""
        start, plant = time.perf_counter(), self._bill.plant
        yield
        spent = time.perf_counter() - start
        self.durations.append(spent - (self._bill.plant - plant))


def measure(count: int) -> Cost:
    """Run a daemon of so many routers in this process."""
    with ExitStack() as stack:
        groups = stack.enter_context(_groups(count))
        stack.enter_context(_interfaces(2 * count))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-cost-")))
        return _run(count, groups, folder)


def _run(count: int, groups: list[Path], folder: Path) -> Cost:
    set_up_logging(json=True, level="error")
    bill, simulated = Bill(), SimulatedHost()
    ticks = Ticks(bill)
    curve = bundled_host("hinge").curve
    for group in groups:
        simulated.add(group.name, Plant(curve, PacketsPerSecond(150e3), lag=0.05))
    config = parse_config(_config(groups))
    metrics = Metrics()
    metrics.ticks = cast("Histogram", ticks)  # the same interface, and keeps every value
    clock = MonotonicClock()

    def open_actuator(spec: ActuatorSpec, _original: Original | None) -> Actuator:
        assert isinstance(spec, CgroupSpec)
        return BothActuators(spec, simulated, bill)

    with Journal(folder / "state") as journal:
        manager = Manager(
            plans(config),
            journal=journal,
            clock=clock,
            open_actuator=open_actuator,
            limiter=Limiter(),
            period=Seconds(1.0),
        )
        with Server(Listen(folder / "run"), manager.handle) as server:
            daemon = Daemon(
                config,
                path=None,
                clock=clock,
                source=Host(simulated, bill),
                manager=manager,
                server=server,
                metrics=metrics,
                hypervisors=Hypervisors(clock),
            )
            watcher = _Watcher(bill, ticks)
            watcher.start()
            daemon.run()
    return watcher.cost(count)


class _Watcher(threading.Thread):
    """Lets the daemon warm up, meters it for a while, and stops it."""

    def __init__(self, bill: Bill, ticks: Ticks) -> None:
        super().__init__(daemon=True)
        self._bill, self._ticks = bill, ticks
        self._spent = 0.0
        self._durations: list[float] = []
        self._elapsed = 1.0

    def run(self) -> None:
        """Meter the process."""
        time.sleep(WARM_UP)
        start, cpu, plant = time.monotonic(), time.process_time(), self._bill.plant
        first = len(self._ticks.durations)
        time.sleep(SECONDS)
        self._elapsed = time.monotonic() - start
        self._spent = time.process_time() - cpu - (self._bill.plant - plant)
        self._durations = sorted(self._ticks.durations[first:])
        os.kill(os.getpid(), signal.SIGTERM)

    def cost(self, count: int) -> Cost:
        """Return the bill."""
        self.join()
        durations = self._durations
        return Cost(
            routers=count,
            cpu_share=self._spent / self._elapsed,
            rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            tick_p50_ms=durations[len(durations) // 2] * 1e3,
            tick_p99_ms=durations[min(len(durations) - 1, round(len(durations) * 0.99))] * 1e3,
            ticks=len(durations),
        )


def _config(groups: list[Path]) -> str:
    return "\n".join(
        f'[router.{group.name}]\ninterfaces = ["{group.name}.0"]\nsetpoint = {20000 + 50 * i}\n'
        f'actuator = {{ kind = "cgroup", path = "{group}" }}'
        for i, group in enumerate(groups)
    )


@contextmanager
def _groups(count: int) -> Iterator[list[Path]]:
    mount = cgroups.find_root()
    assert mount is not None  # the lab's requirements have been looked at
    # A host of today counts CPU time where it caps; one of cgroup v1 may keep two hierarchies.
    roots = [mount / PREFIX, mount.parent / "cpuacct" / PREFIX]
    roots = [root for root in dict.fromkeys(roots) if root.parent.is_dir()]
    groups = [root / f"vr{number}" for root in roots for number in range(count)]
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
    try:
        yield groups[:count]
    finally:
        for group in (*groups, *roots):
            group.rmdir()


@contextmanager
def _interfaces(count: int) -> Iterator[None]:
    """Enter a namespace of its own with so many interfaces."""
    namespaces.create(PREFIX)
    try:
        netns.setns(PREFIX)  # this process is here for nothing else
        with IPRoute() as route:
            for number in range(count // 2):
                route.link("add", ifname=f"a{number}", kind="veth", peer={"ifname": f"b{number}"})
        yield
    finally:
        namespaces.remove(PREFIX)


def main() -> None:
    """Measure every size in a process of its own, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("this needs: " + "; ".join(missing))
    if options.one:
        print(json.dumps(asdict(measure(options.one))))
        return
    costs = [_in_process(count) for count in SIZES]
    if options.json:
        print(json.dumps([asdict(cost) for cost in costs], indent=2))
        return
    table = Table(box=None, header_style="bold")
    for heading in ("routers", "CPU, % of a core", "per router, us/s", "memory", "tick p50", "p99"):
        table.add_column(heading, justify="right")
    for cost in costs:
        table.add_row(
            str(cost.routers),
            f"{cost.cpu_share * 100:.2f}",
            f"{cost.cpu_share / cost.routers * 1e6:.0f}",
            f"{cost.rss_mib:.0f} MiB",
            f"{cost.tick_p50_ms:.1f} ms",
            f"{cost.tick_p99_ms:.1f} ms",
        )
    Console(highlight=False).print(table)


def _in_process(count: int) -> Cost:
    command = [sys.executable, "-m", "benchmarks.cost", "--one", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Cost(**json.loads(done.stdout))


if __name__ == "__main__":
    main()

"""One run of `benchmarks.xtc.cost`: a daemon in this process, metered once it holds its routers."""

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, cast

from prometheus_client import Histogram

from benchmarks.xtc.cost_rig import (
    Bill,
    BothActuators,
    BothShields,
    Decided,
    Host,
    ToldShields,
    control_groups,
    interfaces,
    read_alone,
)
from benchmarks.xtc.cost_sections import Sections
from common.clock import MonotonicClock
from common.logs import set_up_logging
from common.units import Seconds
from xtc.actuator.base import Actuator
from xtc.config.file import parse_config
from xtc.config.plan import plans
from xtc.daemon.loop import Daemon
from xtc.daemon.metrics import Metrics
from xtc.daemon.server import Listen, Server
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.manager import Manager
from xtc.measure.host_drops import HostWatch
from xtc.shield.tbf import Limiter
from xtc.spec import ActuatorSpec, CgroupSpec, Original
from xtc.state.writer import WriteBehind

WARM_UP: Final = 5
"""Ticks with every router capped and shielded before the metering."""
PATIENCE_S: Final = 180.0
SOFTNET: Final = Path("/proc/thread-self/net/softnet_stat")
IO: Final = Path("/proc/self/io")
_LISTEN: Final = """
import sys
from pathlib import Path
from xtc.daemon.client import Client
with Client(Path(sys.argv[1])) as client:
    for _ in client.telemetry():
        pass
"""


@dataclass(frozen=True)
class Options:
    """Settings of a run."""

    routers: int
    seconds: int
    subscribed: bool = False
    """Whether the telemetry has a subscriber."""
    sections: bool = False
    """Whether to measure the time by section, which takes time itself."""
    shield: bool = True
    """Whether a shield is in force on every router."""
    kernel: bool = True
    """Whether files are read and caps and shields set; else loops decide on simulated values."""


@dataclass(frozen=True)
class Cost:
    """Cost of a daemon of a number of routers."""

    options: Options
    cpu_share: float
    """Of one core, by all threads."""
    loop_share: float
    """Of one core, by the loop's thread."""
    rss_mib: float
    ticks: list[float]
    """Seconds of the wall clock, the shortest first."""
    ticks_cpu: list[float]
    """The same of CPU time."""
    shields: int
    """Routers with a shield in force at the end."""
    sections: dict[str, float] = field(default_factory=dict)
    """Seconds a period by part, means of all periods; empty if not requested."""
    system_share: float = 0.0
    """Of one core, by all threads: the part of cpu_share in system calls."""
    calls: float = 0.0
    """Calls of read(2) and write(2) and their like a tick, by all threads."""
    files_s: float = 0.0
    """Seconds of CPU a period and router in which its files alone are read, without a daemon."""

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Self:
        """Return the result of another process."""
        return cls(**fields | {"options": Options(**fields["options"])})

    def tick_ms(self, share: float, *, cpu: bool) -> float:
        """Return the time that this share of the ticks does not exceed."""
        ticks = self.ticks_cpu if cpu else self.ticks
        return ticks[min(len(ticks) - 1, round(len(ticks) * share))] * 1e3


class Ticks:
    """Replacement for the histogram that keeps every duration without the plant's part."""

    def __init__(self, bill: Bill, sections: Sections) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self._bill, self._sections = bill, sections

    @contextmanager
    def time(self) -> Iterator[None]:
        """Measure the time within the context."""
        start, cpu, plant = time.perf_counter(), time.thread_time(), self._bill.plant
        yield
        not_ours = self._bill.plant - plant
        self.cpu.append(time.thread_time() - cpu - not_ours)
        self.wall.append(time.perf_counter() - start - not_ours)
        self._sections.end_tick()


def measure(options: Options) -> Cost:
    """Run a daemon of a number of routers in this process."""
    with ExitStack() as stack:
        groups = stack.enter_context(control_groups(options.routers))
        stack.enter_context(interfaces([group.name for group in groups]))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-cost-")))
        return _run(options, groups, folder)


def _run(options: Options, groups: list[Path], folder: Path) -> Cost:
    set_up_logging(json=True, level="error")
    sections, bill = Sections(), Bill()
    if options.sections:
        sections.install()
    host = Host([group.name for group in groups], bill, kernel=options.kernel)
    ticks = Ticks(bill, sections)
    config = parse_config(_config(groups))
    metrics = Metrics()
    metrics.ticks = cast("Histogram", ticks)  # the same interface, and keeps every value
    clock = MonotonicClock()

    def open_actuator(spec: ActuatorSpec, _original: Original | None) -> Actuator:
        assert isinstance(spec, CgroupSpec)
        router = host.routers[Path(spec.path).name]
        return (BothActuators if options.kernel else Decided)(spec, router)

    with ExitStack() as stack:
        manager = Manager(
            plans(config),
            journal=stack.enter_context(WriteBehind(folder / "state")),
            clock=clock,
            open_actuator=open_actuator,
            limiter=Limiter(),
            shield=_shield(options, host),
            period=Seconds(1.0),
        )
        server = stack.enter_context(Server(Listen(folder / "run"), manager.handle))
        if options.subscribed:
            stack.enter_context(_subscriber(folder / "run"))
        daemon = Daemon(
            config,
            path=None,
            clock=clock,
            source=host,
            manager=manager,
            server=server,
            metrics=metrics,
            hypervisors=Hypervisors(clock),
            watch=HostWatch(SOFTNET) if options.kernel else None,
        )
        meter = _Meter(options, bill, ticks, sections, manager)
        meter.start()
        daemon.run()
        cost = meter.cost()
    return replace(cost, files_s=read_alone(groups))


def _shield(options: Options, host: Host) -> BothShields | ToldShields | None:
    if not options.shield:
        return None
    return BothShields(host.routers) if options.kernel else ToldShields(host.routers)


class _Meter(threading.Thread):
    """Wait until all routers are held, meter the process for some time, and stop it."""

    def __init__(
        self, options: Options, bill: Bill, ticks: Ticks, sections: Sections, manager: Manager
    ) -> None:
        super().__init__(daemon=True)
        self._options, self._bill, self._ticks = options, bill, ticks
        self._sections, self._manager = sections, manager
        self._cost: Cost | None = None

    def run(self) -> None:
        """Meter the process."""
        try:
            self._await_held()
            self._cost = self._metered()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    def cost(self) -> Cost:
        """Return the bill."""
        self.join()
        assert self._cost is not None, "the daemon did not hold its routers"
        return self._cost

    def _shielded(self) -> int:
        routers = tuple(self._manager.routers.values())
        return sum(managed.shielded.rate is not None for managed in routers)

    def _held(self) -> int:
        if self._options.shield:
            return self._shielded()
        routers = tuple(self._manager.routers.values())
        return sum(m.instance is not None and m.instance.capped for m in routers)

    def _await_held(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while self._held() < self._options.routers:
            if time.monotonic() > until:
                raise TimeoutError(f"{self._held()} routers are held")
            time.sleep(0.5)
        self._await_ticks(WARM_UP)

    def _await_ticks(self, count: int) -> None:
        until = len(self._ticks.wall) + count
        while len(self._ticks.wall) < until:
            time.sleep(0.1)

    def _metered(self) -> Cost:
        start, spent, loop = time.monotonic(), self._spent(time.process_time()), self._loop()
        first, system, calls = len(self._ticks.wall), _in_kernel(), _calls()
        self._await_ticks(self._options.seconds)
        elapsed, last = time.monotonic() - start, len(self._ticks.wall)
        return Cost(
            options=self._options,
            cpu_share=(self._spent(time.process_time()) - spent) / elapsed,
            loop_share=(self._loop() - loop) / elapsed,
            rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            ticks=sorted(self._ticks.wall[first:last]),
            ticks_cpu=sorted(self._ticks.cpu[first:last]),
            shields=self._shielded(),
            sections=self._sections.means(first, last),
            system_share=(_in_kernel() - system) / elapsed,
            calls=(_calls() - calls) / (last - first),
        )

    def _spent(self, cpu: float) -> float:
        return cpu - self._bill.plant

    def _loop(self) -> float:
        thread = threading.main_thread().ident
        assert thread is not None  # the daemon is running
        return self._spent(time.clock_gettime(time.pthread_getcpuclockid(thread)))


def _in_kernel() -> float:
    """Return this process's CPU seconds in the kernel; sampled, so precise only over time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_stime


def _calls() -> int:
    """Return how often this process has called read(2), write(2) and their like (proc(5))."""
    fields = dict(line.split(": ") for line in IO.read_text().splitlines())
    return int(fields["syscr"]) + int(fields["syscw"])


@contextmanager
def _subscriber(runtime: Path) -> Iterator[None]:
    """Subscribe to the telemetry from another process."""
    command = [sys.executable, "-c", _LISTEN, str(runtime)]
    listener = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # hide its error at the end
    try:
        yield
    finally:
        listener.kill()
        listener.wait()


def _config(groups: list[Path]) -> str:
    return "\n".join(
        f'[router.{group.name}]\ninterfaces = ["{group.name}.0", "{group.name}.1"]\n'
        f'setpoint = {20000 + 50 * i}\nactuator = {{ kind = "cgroup", path = "{group}" }}'
        for i, group in enumerate(groups)
    )

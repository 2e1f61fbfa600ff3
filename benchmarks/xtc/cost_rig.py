"""The host of `benchmarks.xtc.cost`: real groups and interfaces, and routers that are simulated.

Their CPU time is charged to the plant: the daemon's is that of the process without it.
"""

import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute, netns

from common.setpoint import Setpoint
from common.units import CapFraction, Seconds
from lab.system import cgroups, namespaces
from xtc.actuator.base import CapLimits, CpuUsage
from xtc.actuator.cgroup import CgroupActuator
from xtc.errors import ActuatorError
from xtc.kernel.files import KeptFile
from xtc.measure.collector import Side
from xtc.measure.meter import ProcNetDev, Snapshot
from xtc.shield.router import RouterShields
from xtc.spec import CgroupSpec, Original

PREFIX: Final = "xtccost"
OFFERED: Final = 150e3
"""Packets/s sent to each router, of FRAME bytes."""
PER_CPU: Final = 300e3
"""Packets/s that a router forwards with a whole CPU."""
NOISE: Final = 0.03
"""Standard deviation of its throughput in a second, so that caps change from tick to tick."""
FRAME: Final = 64
_READ: Final = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat", "cpuacct.usage")
"""Files of a group that the daemon reads in each period, if its cgroup version has them."""
_HEADER: Final = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)


class Bill:
    """The plant's part of the loop thread's CPU time."""

    def __init__(self) -> None:
        self.plant = 0.0

    @contextmanager
    def of_plant(self) -> Iterator[None]:
        """Charge the time within the context to the plant."""
        start = time.thread_time()
        yield
        self.plant += time.thread_time() - start


@dataclass
class Router:
    """One simulated router: its settings, and its counters."""

    cap: CapFraction | None = None
    shield: float = math.inf
    """Limit of its shield, in packets/s."""
    forwarded: float = 0.0
    received: float = 0.0
    dropped: float = 0.0
    """By the shield."""
    used: float = 0.0
    periods: int = 0
    throttled: int = 0

    def advance(self, dt: float, noise: float) -> None:
        """Advance time."""
        cap = 1.0 if self.cap is None else self.cap
        let_by = min(OFFERED, self.shield)
        throughput = min(let_by, PER_CPU * cap * noise)
        self.forwarded += throughput * dt
        self.received += let_by * dt
        self.dropped += (OFFERED - let_by) * dt
        self.used += min(cap, throughput / PER_CPU / noise) * dt
        self.periods += 100
        self.throttled += 90 * (throughput < let_by)


class Host:
    """A file that pays for reading the kernel's, then returns the simulated routers' text."""

    def __init__(self, names: list[str], bill: Bill, *, kernel: bool = True) -> None:
        self.routers: Mapping[str, Router] = {name: Router() for name in names}
        self._real = ProcNetDev("/proc/thread-self/net/dev")
        self._kernel = kernel
        self._bill, self._random = bill, random.Random(1)  # noqa: S311  noise, not a key
        self._at: Seconds | None = None
        self._noise: list[float] = []
        self._second = -1

    def read(self, now: Seconds) -> Snapshot:
        """Read the real file, and return the simulated one."""
        if self._kernel:
            self._real.read(now)
        with self._bill.of_plant():
            return Snapshot(now, self._text(now))

    def _text(self, now: Seconds) -> bytes:
        dt = 0.0 if self._at is None else now - self._at
        self._at = now
        if int(now) != self._second:  # the noise changes once a second, however often it is read
            self._second = int(now)
            self._noise = [max(0.5, self._random.gauss(1, NOISE)) for _ in self.routers]
        for router, noise in zip(self.routers.values(), self._noise, strict=True):
            router.advance(dt, noise)
        lines = (_lines(name, router) for name, router in self.routers.items())
        return (_HEADER + "".join(lines)).encode()

    def close(self) -> None:
        """Close the file."""
        self._real.close()


def _lines(name: str, router: Router) -> str:
    """Return a router's two interfaces as the kernel writes them: half arrives on each."""
    out, into = int(router.forwarded / 2), int(router.received / 2)
    return "".join(
        f"{name + end:>6}: {out * FRAME:7} {out:7}    0    0    0     0          0         0"
        f" {into * FRAME:8} {into:7}    0    0    0     0       0          0\n"
        for end in (".0", ".1")
    )


class BothShields(RouterShields):
    """Real shields, which see no packets, and their simulated routers."""

    def __init__(self, routers: Mapping[str, Router]) -> None:
        super().__init__()
        self._simulated = routers

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, side: Side = Side.HOST
    ) -> dict[str, ActuatorError]:
        """Set a shield in both."""
        self._simulated[owner].shield = rate.rate
        return super().limit(owner, interfaces, rate, side)

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change it in both."""
        self._simulated[owner].shield = rate.rate
        super().change(owner, rate)

    def dropped(self, owner: str) -> int | None:
        """Read the real counter, and return the simulated one."""
        real = super().dropped(owner)
        return None if real is None else int(self._simulated[owner].dropped)


class ToldShields:
    """Shields of the simulated routers alone."""

    def __init__(self, routers: Mapping[str, Router]) -> None:
        self._simulated = routers

    def limit(
        self, owner: str, interfaces: Sequence[str], rate: Setpoint, side: Side
    ) -> dict[str, ActuatorError]:
        """Set one."""
        del interfaces, side
        self._simulated[owner].shield = rate.rate
        return {}

    def change(self, owner: str, rate: Setpoint) -> None:
        """Change it."""
        self._simulated[owner].shield = rate.rate

    def dropped(self, owner: str) -> int | None:
        """Return the simulated counter."""
        return int(self._simulated[owner].dropped)

    def lift(self, interface: str) -> None:
        """Nothing is on an interface."""

    def forget(self, owner: str) -> None:
        """Nothing is known of an owner."""

    def overruled(self, interfaces: Iterable[str], side: Side) -> str:
        """No filter decides before."""
        del interfaces, side
        return ""


def read_alone(groups: Sequence[Path], periods: int = 5) -> float:
    """Return the CPU seconds for reading one group's files once a second.

    That is the cost of the kernel and of one Python call per file: nothing is parsed or decided.
    """
    files = [KeptFile(str(path)) for group in groups for path in _files(group)]
    spent = 0.0
    for _ in range(periods):
        time.sleep(1.0)
        start = time.thread_time()
        for file in files:
            file.read()
        spent += time.thread_time() - start
    return spent / periods / len(groups)


def _files(group: Path) -> list[Path]:
    mount = cgroups.find_root()
    assert mount is not None  # the lab's requirements are checked already
    places = (group, mount.parent / "cpuacct" / group.relative_to(mount))
    paths = [place / name for place in dict.fromkeys(places) for name in _READ]
    return [path for path in paths if path.exists()]


class BothActuators:
    """A real quota on an empty group, and the simulated router that obeys it."""

    slow = False

    def __init__(self, spec: CgroupSpec, router: Router) -> None:
        self._real, self._router = CgroupActuator(spec), router

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
        """Write the real cap, and set the simulated router's."""
        self._router.cap = self._real.apply(cap)
        return self._router.cap

    def usage(self) -> CpuUsage:
        """Pay for the real counters, and return the simulated ones."""
        self._real.usage()
        return _usage(self._router)

    def restore(self, original: Original) -> None:
        """Put the real original back."""
        self._real.restore(original)


class Decided(BothActuators):
    """A simulated router alone; the real group only provides the original."""

    def applied(self) -> CapFraction | None:
        """The simulated cap."""
        return self._router.cap

    def apply(self, cap: CapFraction) -> CapFraction:
        """Set the simulated router's cap."""
        self._router.cap = cap
        return cap

    def usage(self) -> CpuUsage:
        """Return the simulated counters."""
        return _usage(self._router)


def _usage(router: Router) -> CpuUsage:
    return CpuUsage(Seconds(router.used), router.throttled, router.periods)


@contextmanager
def control_groups(count: int) -> Iterator[list[Path]]:
    """Make control groups with a quota, and with CPU time if that is counted separately."""
    mount = cgroups.find_root()
    assert mount is not None  # the lab's requirements are checked already
    # cgroup v2 counts CPU time in the capped group; v1 may have two hierarchies.
    tops = [cgroups.create_top(mount, PREFIX)]
    if (accounting := mount.parent / "cpuacct").is_dir() and accounting != mount:
        tops.append(accounting / PREFIX)
    groups = [top / f"vr{number}" for top in tops for number in range(count)]
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
    try:
        yield groups[:count]
    finally:
        for group in (*groups, *tops):
            group.rmdir()


@contextmanager
def interfaces(names: list[str]) -> Iterator[None]:
    """Enter a new namespace with two interfaces, the ends of a veth, for each router."""
    namespaces.create(PREFIX)
    try:
        netns.setns(PREFIX)  # this process has no other task
        with IPRoute() as route:
            for name in names:
                route.link("add", ifname=f"{name}.0", kind="veth", peer={"ifname": f"{name}.1"})
        yield
    finally:
        namespaces.remove(PREFIX)

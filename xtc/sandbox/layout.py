"""The layout of a sandbox: its hosts, their routers, and their files."""

from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigError
from xtc.config.schema import Config, DaemonSection, LogSection, RouterSection
from xtc.daemon.client import Client
from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.errors import Unreachable
from xtc.simulation.host import interface_of
from xtc.spec import SimulatedSpec
from xtc.wire import Status

MODEL = "hinge"
"""Model of each router with a CPU to itself: a bundled model of a measured host."""
CAPACITY_PPS = 180e3
"""Minimum total throughput of a host's routers; a test checks it."""
MOST_HOSTS = 8
ANSWER_S = 1.0
"""How long a daemon may take to answer, in seconds."""
LONGEST_SOCKET = 107
"""Maximum bytes of a local socket's path (unix(7), sun_path)."""
_NAMED = (
    {"gold": 60e3, "silver": 20e3, "bronze": 30e3},
    {"iron": 40e3, "tin": 30e3, "zinc": 20e3},
)
_LOADS = (40e3, 30e3, 20e3)
"""Load of the routers of each further host."""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """One simulated host."""

    name: str
    """It begins with `sim`, so that it is recognisable in every list."""
    usual: dict[str, float]
    """Initial load of each router, in packets/s."""
    directory: Path
    capacity_pps: float = CAPACITY_PPS

    @property
    def loads(self) -> Path:
        """The file with the current load of its routers."""
        return self.directory / "loads.json"

    @property
    def log(self) -> Path:
        """The log of its daemon."""
        return self.directory / "log"

    @property
    def requests(self) -> str:
        """The request socket of its daemon."""
        return f"ipc://{self.directory / REQUESTS}"

    @property
    def telemetry(self) -> str:
        """The telemetry socket of its daemon."""
        return f"ipc://{self.directory / TELEMETRY}"

    def listens(self) -> bool:
        """Whether its daemon's request socket exists."""
        return (self.directory / REQUESTS).exists()

    def runs(self) -> bool:
        """Whether its daemon answers."""
        if not self.listens():
            return False
        with Client(self.directory, timeout=ANSWER_S) as client:
            try:
                client.call(Status())
            except Unreachable:
                return False
        return True

    def config(self) -> Config:
        """Return the configuration of its daemon."""
        return Config(
            daemon=DaemonSection(
                state_dir=str(self.directory / "state"), runtime_dir=str(self.directory)
            ),
            log=LogSection(format="console"),
            router={
                name: RouterSection(actuator=SimulatedSpec(name), interfaces=(interface_of(name),))
                for name in self.usual
            },
        )


def places(directory: Path, hosts: int) -> list[HostPlace]:
    """Return the hosts of a sandbox.

    Raises:
        ConfigError: the directory's path is too long for the sockets in it.
    """
    root = directory.absolute()
    found = [HostPlace(f"sim{n}", usual(n), root / f"sim{n}") for n in range(1, hosts + 1)]
    longest = max(len(str(one.directory / TELEMETRY).encode()) for one in found)
    if longest > LONGEST_SOCKET:
        problem = f"{root}: its sockets would have paths of {longest} bytes"
        fix = f"at most {LONGEST_SOCKET} are possible: name a shorter one, such as /tmp/sandbox"
        raise ConfigError("--directory", problem, fix)
    return found


def usual(number: int) -> dict[str, float]:
    """Return the initial load of a host's routers, by its number from 1 on."""
    if number <= len(_NAMED):
        return dict(_NAMED[number - 1])
    return {f"vr{number}{letter}": pps for letter, pps in zip("abc", _LOADS, strict=True)}

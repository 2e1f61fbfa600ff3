"""Simulated hosts behind real sockets, which can die, hang, lie, replay and flood.

Every host is a real manager over simulated routers and a real server (ipc, or TCP with CURVE). Its
clock moves on by a period with every tick. All run in one thread, since a socket belongs to one;
`FleetRig.do` has something done there. Ticks come by hand (`tick`), or by themselves in real time.
"""

import heapq
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import zmq
import zmq.auth
from manager_rig import PERIOD
from simulated_rig import Rig, plan

from policer.contracts.host import Host
from policer.link import Keys, load_keys
from xtc.daemon.server import REQUESTS, TELEMETRY, CurveKeys, Listen, Server
from xtc.wire import Reply, Report, Telemetry, encode

T = TypeVar("T")
ANY_PORT = "tcp://127.0.0.1:*"
TURN_S = 0.2
"""How long the thread waits at most for something to do."""
MOST_TICKS = 16
"""Between two looks at requests and work, however late the hosts are."""
CAPACITY = 150e3
"""What a simulated host can forward, packets/s."""


class FleetKeys:
    """Key files of the policer, of a stranger, and of the daemons, which share a pair."""

    def __init__(self, directory: Path) -> None:
        self.authorised = directory / "authorised"
        self.authorised.mkdir(parents=True)
        self.daemon = _secret(directory, "daemon")
        self.stranger = load_keys(_secret(directory, "stranger"))
        _, secret = zmq.auth.create_certificates(self.authorised, "policer")
        self.policer_file = Path(secret).rename(directory / "policer.key_secret")
        self.policer_file.chmod(0o600)
        self.policer: Keys = load_keys(self.policer_file)
        self.curve = CurveKeys(self.daemon, self.authorised)

    @property
    def server_key(self) -> str:
        """The daemons' public key, as an operator enters it."""
        return zmq.auth.load_certificate(self.daemon)[0].decode()


def _secret(directory: Path, name: str) -> Path:
    _, secret = zmq.auth.create_certificates(directory, name)
    path = Path(secret)
    path.chmod(0o600)
    return path


class SimulatedDaemon:
    """One host; everything but `entry` is for the rig's thread alone."""

    def __init__(
        self, name: str, directory: Path, routers: Iterable[str], keys: FleetKeys | None
    ) -> None:
        self.name, self._keys = name, keys
        self.directory = directory
        self.rig = Rig(directory / "state", {vr: plan(vr) for vr in routers})
        self.alter: Callable[[Telemetry], Telemetry] = _as_it_is
        """Makes of the truth what is told: a lie."""
        self.frozen = False
        """Whether it neither serves nor ticks, though its sockets are there."""
        self.messages = 0
        """Requests that came, a batch being one."""
        self.ticks = 0
        self._told: list[bytes] = []
        self._tcp = (ANY_PORT, ANY_PORT) if keys else (None, None)
        self.server: Server | None = None
        self.start()

    def start(self) -> None:
        """Open the sockets, where they were before if there was a before."""
        curve = self._keys.curve if self._keys else None
        self.server = Server(Listen(self.directory / "run", *self._tcp, curve), self._handle)
        self.server.open()
        if self._keys:
            ends = (self.server.request_sockets[1], self.server._telemetry[1])
            self._tcp = tuple(end.get_string(zmq.LAST_ENDPOINT) for end in ends)

    def _handle(self, raw: bytes) -> Reply:
        self.messages += 1
        return self.rig.manager.handle(raw)

    def kill(self) -> None:
        """Die as by kill -9: nothing is said, nothing put back."""
        assert self.server is not None
        self.server.close()
        self.server = None
        self.rig.crash()

    def revive(self) -> None:
        """Start a daemon on the state of the one that was killed."""
        self.rig.start()
        self.start()

    def entry(self) -> Host:
        """Return the host as an operator enters it; on TCP where it has keys."""
        run = self.directory / "run"
        local = (f"ipc://{run / REQUESTS}", f"ipc://{run / TELEMETRY}")
        requests, telemetry = self._tcp if self._keys else local
        return Host(
            name=self.name,
            requests=str(requests),
            telemetry=str(telemetry),
            capacity_pps=CAPACITY,
            server_key=self._keys.server_key if self._keys else None,
        )

    def tick(self) -> None:
        """Let a period pass, and tell of it."""
        self.rig.tick()
        self.ticks += 1
        telemetry = Telemetry(self.rig.clock.now(), self.ticks, self._reports())
        self.publish(encode(self.alter(telemetry)))

    def _reports(self) -> tuple[Report, ...]:
        return self.rig.manager.reports(self.rig.clock.now())

    def publish(self, raw: bytes) -> None:
        """Stream any bytes to whoever listens."""
        self._told = [*self._told[-9:], raw]
        for stream in () if self.server is None else self.server._telemetry:
            stream.send(raw, zmq.NOBLOCK)

    def replay(self) -> None:
        """Stream the oldest of the last ten messages once more."""
        self.publish(self._told[0])

    def flood(self, count: int) -> None:
        """Stream so many ticks at once, a microsecond apart by the host's clock."""
        now = self.rig.clock.now()
        for number in range(count):
            self.ticks += 1
            self.publish(encode(Telemetry(now + number * 1e-6, self.ticks, self._reports())))


def _as_it_is(telemetry: Telemetry) -> Telemetry:
    return telemetry


def lying(**fields: object) -> Callable[[Telemetry], Telemetry]:
    """Return a lie: every report with these fields instead of the true ones."""

    def alter(telemetry: Telemetry) -> Telemetry:
        reports = [msgspec.structs.replace(report, **fields) for report in telemetry.routers]
        return msgspec.structs.replace(telemetry, routers=tuple(reports))

    return alter


class FleetRig:
    """Hosts by name, in a thread of their own."""

    def __init__(
        self,
        directory: Path,
        hosts: int = 1,
        routers: int = 2,
        *,
        keys: FleetKeys | None = None,
        period_s: float | None = None,
    ) -> None:
        """Make hosts h0, h1 ... with routers a0, a1 ...

        Args:
            directory: for states and sockets; short, since a socket's path must be.
            hosts: how many.
            routers: how many each.
            keys: puts them on TCP with CURVE.
            period_s: real seconds between two ticks of a host; None ticks by hand.
        """
        self._names = [f"h{number}" for number in range(hosts)]
        self._routers = [f"a{number}" for number in range(routers)]
        self._directory, self._keys, self._period = directory, keys, period_s
        self.hosts: Mapping[str, SimulatedDaemon] = {}
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._bell, self._ear = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="fleet", daemon=True)
        self._stopping = False
        self._poller: zmq.Poller | None = None
        self._servers: dict[object, Server] = {}
        self._due: list[tuple[float, str]] = []
        """When each host ticks next, as a heap."""

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._make)
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._end)
        self._thread.join()
        self._bell.close()
        self._ear.close()

    def __getitem__(self, name: str) -> SimulatedDaemon:
        return self.hosts[name]

    def do(self, work: Callable[[], T]) -> T:
        """Have something done in the hosts' thread, and wait until it is."""
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(work())
            except BaseException as error:  # noqa: BLE001  carried to the caller, who raises it
                outcome.set_exception(error)

        self._work.put(run)
        self._bell.send(b"!")
        return outcome.result(60)

    def tick(self, periods: int = 1) -> None:
        """Let periods pass on every host that lives and does not hang."""
        self.do(lambda: [host.tick() for _ in range(periods) for host in self._lively()])

    def _make(self) -> None:
        self.hosts = {
            name: SimulatedDaemon(name, self._directory / name, self._routers, self._keys)
            for name in self._names
        }
        if self._period is not None:
            now, apart = time.monotonic(), self._period / len(self._names)
            self._due = [(now + apart * number, name) for number, name in enumerate(self._names)]

    def _end(self) -> None:
        self._stopping = True
        for host in self.hosts.values():
            if host.server is not None:
                host.kill()

    def _lively(self) -> list[SimulatedDaemon]:
        return [h for h in self.hosts.values() if h.server is not None and not h.frozen]

    def _run(self) -> None:
        while not self._stopping:
            self._serve()
            while not self._work.empty():
                self._work.get()()
                self._poller = None
            for _ in range(MOST_TICKS):
                if self._stopping or not self._due or self._due[0][0] > time.monotonic():
                    break
                self._tick_first()

    def _serve(self) -> None:
        """Wait for requests or work, and answer the requests."""
        if self._poller is None:
            self._poller = self._new_poller()
        wait = self._due[0][0] - time.monotonic() if self._due else TURN_S
        for ready, _ in self._poller.poll(max(0, round(min(wait, TURN_S) * 1000))):
            if ready in self._servers:
                self._servers[ready].serve()
            else:
                self._ear.recv(4096)

    def _new_poller(self) -> zmq.Poller:
        poller = zmq.Poller()
        poller.register(self._ear, zmq.POLLIN)
        lively = [host.server for host in self._lively() if host.server is not None]
        self._servers = {requests: one for one in lively for requests in one.request_sockets}
        for requests in self._servers:
            poller.register(requests, zmq.POLLIN)
        return poller

    def _tick_first(self) -> None:
        """Tick the host whose time has come, unless it is dead or hangs."""
        assert self._period is not None
        at, name = heapq.heappop(self._due)
        heapq.heappush(self._due, (max(at + self._period, time.monotonic()), name))  # never made up
        host = self.hosts[name]
        if host.server is not None and not host.frozen:
            host.tick()


assert PERIOD == 1.0  # a host's clock moves on by this with every tick

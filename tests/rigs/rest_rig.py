"""The REST service on a real store and a fleet that the test fills; in process, or on a port."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from litestar import Litestar
from litestar.testing import TestClient
from support.services import connected
from support.stores import hurried, with_tables

from common.clock import FakeClock
from common.units import Seconds
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.ladder import Punishment, Step
from policer.decide.evidence import Evidence
from policer.decide.state import HostState, Order, RouterState
from policer.decide.telemetry import HostTelemetry
from policer.fleet.inbox import Inbox
from policer.fleet.live import Fleet, HostLive, Leadership
from policer.rest import RestSettings
from policer.store import Event, Store, open_store
from policer.store.database import records
from xtc.modes import Finding, Mode
from xtc.wire import Report

PATIENCE_S = 45.0
SCOPES = ("read", "operate", "admin")
GOLD = Host(
    name="gold",
    requests="ipc:///run/xtc/manager.sock",
    telemetry="ipc:///run/xtc/telemetry.sock",
    capacity_pps=100_000,
)
SILVER = Host(
    name="silver",
    requests="ipc:///run/xtc2/manager.sock",
    telemetry="ipc:///run/xtc2/telemetry.sock",
    capacity_pps=50_000,
)
PROMISE = Contract(guarantee_pps=20_000, ceiling_pps=50_000)


def report(vr: str, throughput: float, setpoint: float | None = None) -> Report:
    """Return what a daemon says of a router that forwards all that it is offered."""
    return Report(
        vr=vr,
        active=setpoint is not None,
        mode=Mode.CLOSED_LOOP,
        finding=Finding.NONE,
        setpoint_pps=setpoint,
        throughput_pps=throughput,
        offered_pps=throughput,
        cap=0.4,
        used=0.3,
        binding=False,
        lease_remaining_s=12.0,
        sample_age_s=0.1,
        interfaces=(f"{vr}.0",),
    )


class Today:
    """A time of day that the test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def after(self, **span: float) -> str:
        return (self.now + timedelta(**span)).isoformat()


@dataclass
class Rig:
    """One service, and what a test may reach into."""

    store: Store
    fleet: Fleet
    clock: FakeClock
    inbox: Inbox
    app: Litestar
    secrets: Mapping[str, str]
    """A token's secret for each scope."""

    def headers(self, scope: str = "admin") -> dict[str, str]:
        """Return what a request of that scope must carry."""
        return {"Authorization": f"Bearer {self.secrets[scope]}"}

    def client(self, scope: str | None = "admin") -> TestClient[Litestar]:
        """Return a client with a token of that scope, or without any."""
        client = TestClient(self.app)
        if scope is not None:
            client.headers.update(self.headers(scope))
        return client

    def show(self, host: Host, *reports: Report, **changes: Any) -> None:
        """Let the fleet see a host whose daemon has just said this."""
        telemetry = HostTelemetry(heard_at=self.clock.now(), routers={r.vr: r for r in reports})
        self.fleet.put(HostLive(host, telemetry=telemetry, **changes))

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.sleep(Seconds(seconds))

    def note(self, count: int, kind: str = "engaged", host: str = "gold") -> None:
        """Let events happen."""
        self.store.events.add([Event(host, kind, f"words {i}") for i in range(count)])


@contextmanager
def opened(
    where: Path | str, *, busy_s: float = 5.0, today: records.Clock = records.now, **settings: Any
) -> Iterator[Rig]:
    """Make a service on an empty store; its fleet has no hosts, and it leads.

    Args:
        where: the folder of a file of SQLite's, or the URL of a database.
        busy_s: how long it waits for who changes the database.
        today: tells the time of day.
        settings: of REST.
    """
    url = where if isinstance(where, str) else with_tables(where / "policer.db")
    store = hurried(open_store(url, busy_s=busy_s, clock=today))
    clock, inbox, fleet = FakeClock(1000.0), Inbox(), Fleet()
    fleet.leadership = Leadership(leading=True, epoch=7, holder="here")
    wanted = RestSettings(inbox=inbox, clock=clock.now, today=today)
    secrets = {scope: store.tokens.add(scope, [scope], None, "test")[1] for scope in SCOPES}
    try:
        with connected(store, fleet, replace(wanted, **settings)) as app:
            yield Rig(store, fleet, clock, inbox, app, secrets)
    finally:
        store.close()


def filled(rig: Rig) -> None:
    """Enter two hosts, promise two routers something, and let one of them misbehave."""
    for host in (GOLD, SILVER):
        rig.store.hosts.add(host, "test")
    rig.store.contracts.put("gold", "r1", PROMISE, None, "test")
    rig.store.contracts.put("silver", "r1", PROMISE, None, "test")
    guilty = RouterState(
        Evidence((True, True, None, True, True), guilty=True),
        Punishment(2, rig.clock.now() - 5.0, guilty=True, step=Step.LOWER),
        saved=100.0,
    )
    rig.show(
        GOLD,
        report("r1", 30_000.0, 20_000.0),
        report("r2", 10_000.0),
        contracts={"r1": PROMISE},
        state=HostState(at=rig.clock.now(), routers={"r1": guilty}),
        orders={"r1": Order(20_000.0, punishment=True, limit_pps=22_000.0), "r2": Order()},
    )
    rig.show(SILVER, report("r1", 1_000.0), contracts={"r1": PROMISE})


@contextmanager
def serving(app: Litestar) -> Iterator[str]:
    """Serve an application on a port of this machine; yield its address."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # asyncio sets TCP_NODELAY only where the protocol is given
    config = uvicorn.Config(
        app, log_config=None, lifespan="on", timeout_graceful_shutdown=1, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    address = "http://{}:{}".format(*listener.getsockname())
    try:
        # The port listens already: this waits. It is no TLS, whose certificates take long to read.
        httpx.get(f"{address}/livez", timeout=PATIENCE_S, verify=False)
        yield address
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()
        assert not thread.is_alive()

"""The daemon tells the UUIDs of the routers that are domains, for as long as they run here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_libvirt import LIMIT_S, FakeHost
from manager_rig import FakeLimiter
from virt_rig import idle_threads, quiet, until

from common.clock import FakeClock
from common.units import Seconds
from xtc.config.file import parse_config
from xtc.config.plan import plans
from xtc.daemon.build import opener
from xtc.daemon.loop import Daemon
from xtc.daemon.metrics import Metrics
from xtc.daemon.server import Listen, Server
from xtc.libvirt import pool
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.manager import Manager
from xtc.measure.meter import Snapshot
from xtc.simulation.host import SimulatedHost
from xtc.state.journal import Journal
from xtc.wire import Answer, Envelope, Reply, Status, encode

URI = "qemu:///system"
TEXT = f"""
[router.gold]
actuator = {{ kind = "libvirt", domain = "gold", uri = "{URI}" }}
[router.group]
actuator = {{ kind = "simulated", plant = "group" }}
interfaces = ["group.0"]
"""


class Bench:
    """A daemon over a fake hypervisor, whose ticks come by hand; it meters nothing."""

    def __init__(self, directory: Path) -> None:
        self.clock, self.host = FakeClock(100.0), FakeHost("QEMU")
        self.host.add("gold")
        self.hypervisors = Hypervisors(self.clock, self.host.load)
        self.journal = Journal(directory / "state")
        self.journal.open()
        path = directory / "xtc.toml"
        path.write_text(TEXT)
        config = parse_config(TEXT)
        self.manager = Manager(
            plans(config),
            journal=self.journal,
            clock=self.clock,
            open_actuator=opener(SimulatedHost(), self.hypervisors),
            limiter=FakeLimiter(),
            period=Seconds(1.0),
        )
        self.server = Server(Listen(directory / "run"), self._handle)
        self.server.open()
        self.daemon = Daemon(
            config,
            path=path,
            clock=self.clock,
            source=self,
            manager=self.manager,
            server=self.server,
            metrics=Metrics(),
            hypervisors=self.hypervisors,
        )
        self.daemon._follow()
        self.hypervisors.settle(Seconds(LIMIT_S))

    def _handle(self, raw: bytes) -> Reply:
        return self.daemon.handle(raw)

    def read(self, now: Seconds) -> Snapshot:
        """Return a host without interfaces."""
        return Snapshot(now, b"")

    def close(self) -> None:
        """Nothing is held open."""

    def uuids(self) -> dict[str, str]:
        """Let a period pass; return what is told of each router."""
        for session in self.hypervisors._sessions.values():
            quiet(session)
        self.clock.sleep(Seconds(1.0))
        self.daemon._tick(self.clock.now())
        answer = self.daemon.handle(encode(Envelope(Status()))).result
        assert isinstance(answer, Answer)
        return {report.vr: report.uuid for report in answer.routers}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    bench = Bench(tmp_path)
    boards = [session._mailbox for session in bench.hypervisors._sessions.values()]
    yield bench
    bench.host.thaw()
    bench.hypervisors.close()
    for mailbox in boards:
        until(mailbox, lambda: idle_threads() == 0)
    bench.server.close()
    bench.journal.close()


def test_a_running_domain_has_a_uuid_and_a_stopped_one_has_none(bench: Bench) -> None:
    uuid = bench.host.guests["gold"].uuid
    assert bench.uuids() == {"gold": uuid, "group": ""}
    bench.host.destroy("gold")
    assert bench.uuids() == {"gold": "", "group": ""}
    bench.host.start("gold")
    assert bench.uuids() == {"gold": uuid, "group": ""}


def test_a_domain_that_migrated_has_its_uuid_where_it_is(bench: Bench) -> None:
    uuid = bench.host.guests["gold"].uuid
    assert bench.uuids()["gold"] == uuid
    bench.host.migrate("gold", FakeHost("QEMU"))
    assert bench.uuids()["gold"] == ""


def test_a_uuid_outlives_libvirtd(bench: Bench) -> None:
    before = bench.uuids()
    bench.host.crash()
    bench.clock.sleep(Seconds(1.0))
    bench.daemon._tick(bench.clock.now())
    answer = bench.daemon.handle(encode(Envelope(Status()))).result
    assert isinstance(answer, Answer)
    assert {report.vr: report.uuid for report in answer.routers} == before


def test_a_router_that_a_reload_brings_is_known_at_once(bench: Bench) -> None:
    bench.host.add("silver")
    path = bench.daemon._path
    assert path is not None
    path.write_text(TEXT + TEXT.partition("[router.group]")[0].replace("gold", "silver"))
    bench.daemon.reload()
    bench.hypervisors.settle(Seconds(LIMIT_S))
    assert bench.uuids()["silver"] == bench.host.guests["silver"].uuid

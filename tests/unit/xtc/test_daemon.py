"""The daemon: its ticks one by one, and as a process between its signals."""

import gc
import json
import os
import signal
import socket
import weakref
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Timer

import pytest
from manager_rig import PAPER, FakeLimiter
from msgspec import structs
from running_daemon import RunningDaemon
from structlog.testing import capture_logs

from common.clock import FakeClock
from common.errors import ConfigError
from common.units import CapFraction, Seconds
from xtc.actuator.base import CapLimits
from xtc.config.file import parse_config
from xtc.config.plan import plans
from xtc.config.schema import DaemonSection
from xtc.daemon import loop as daemon_module
from xtc.daemon import wakes as wakes_module
from xtc.daemon.build import opener
from xtc.daemon.client import Client
from xtc.daemon.loop import Daemon, _next
from xtc.daemon.metrics import Metrics
from xtc.daemon.server import Listen, Server
from xtc.errors import MeterError
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.manager import Manager
from xtc.measure.collector import Binding
from xtc.measure.host_drops import HostWatch
from xtc.measure.meter import Snapshot
from xtc.simulation.host import SimulatedHost
from xtc.state.journal import Journal
from xtc.wire import (
    Activate,
    Answer,
    Batch,
    Deactivate,
    Envelope,
    HostDrops,
    Outcomes,
    Refusal,
    Reply,
    Request,
    Status,
    Telemetry,
    encode,
)

ROUTERS = """
[router.{0}]
actuator = {{ kind = "simulated", plant = "{0}" }}
interfaces = ["{0}.0"]
"""


class Bench:
    """A daemon of which every part is real but the clock and the host."""

    def __init__(self, directory: Path, host: SimulatedHost | None = None) -> None:
        self.path = directory / "xtc.toml"
        self.path.write_text("".join(map(ROUTERS.format, "ab")))
        self.clock, self.metrics = FakeClock(100.0), Metrics()
        self.host = host or SimulatedHost()
        for name in "ab":
            self.host.routers.get(name) or self.host.add(name, PAPER)
        self.blind = False
        self.softnet, self.dropped_at_eth0 = directory / "softnet_stat", 0
        self.drop_in_backlog(0)
        self.journal = Journal(directory / "state")
        self.journal.open()
        config = parse_config(self.path.read_text())
        self.manager = Manager(
            plans(config),
            journal=self.journal,
            clock=self.clock,
            open_actuator=opener(self.host, None),
            limiter=FakeLimiter(),
            period=Seconds(1.0),
        )
        self.server = Server(Listen(directory / "run"), self._handle)
        self.server.open()
        self.daemon = Daemon(
            config,
            path=self.path,
            clock=self.clock,
            source=self,
            manager=self.manager,
            server=self.server,
            metrics=self.metrics,
            hypervisors=Hypervisors(self.clock),
            watch=HostWatch(self.softnet, card=lambda name: name in {"eth0", "b.0"}),
        )

    def _handle(self, raw: bytes) -> Reply:
        return self.daemon.handle(raw)

    def read(self, now: Seconds) -> Snapshot:
        """Show the simulated host and its network card, unless the meter is blind."""
        if self.blind:
            raise MeterError(0, "cannot be read")
        card = f"eth0: 0 0 0 {self.dropped_at_eth0}{12 * ' 0'}\n"
        return Snapshot(now, self.host.read(now).raw + card.encode())

    def drop_in_backlog(self, packets: int) -> None:
        """Let the kernel have dropped so many packets in all."""
        self.softnet.write_text(f"00000000 {packets:08x}{' 00000000' * 11}\n")

    def close(self) -> None:
        """Nothing is held open."""

    def tick(self, times: int = 1, *, apart: float = 1.0) -> None:
        """Do what run() does when a period is over."""
        for _ in range(times):
            self.clock.sleep(Seconds(apart))
            now = self.clock.now()
            self.daemon._read(now)
            self.daemon._let_fall(now)
            self.daemon._guarded("tick", partial(self.daemon._timed_tick, now))

    def ask(self, request: Request) -> Answer | Outcomes | Refusal:
        """Send a request as its bytes."""
        return self.daemon.handle(encode(Envelope(request))).result

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of a metric, 0 where it has not been counted."""
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.server.close()
    bench.journal.close()
    gc.unfreeze()


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield receiver


def test_ticks_hold_a_router_and_show_it(bench: Bench) -> None:
    bench.ask(Activate("a", 20e3))
    bench.tick(9)
    assert bench.metric("xtc_vr_throughput_packets_per_second", vr="a") == pytest.approx(2e4, 0.02)
    assert bench.metric("xtc_tick_duration_seconds_count") == 9


def test_a_blind_meter_is_counted_and_left_to_the_ladder(
    bench: Bench, systemd: socket.socket
) -> None:
    """A watchdog that a blind meter starved would restart the daemon before it could release."""
    bench.blind = True
    bench.tick(3)
    assert bench.metric("xtc_meter_errors_total") == 3
    assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3


def test_a_late_tick_is_counted_and_one_far_too_late_says_nothing(bench: Bench) -> None:
    bench.tick(2)
    bench.tick(apart=2.5)
    assert bench.metric("xtc_tick_overruns_total") == 1
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is not None
    bench.tick(apart=3.5)
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is None


def test_a_tick_soon_after_the_start_or_a_late_one_joins_the_next_sample(bench: Bench) -> None:
    bench.daemon._begin()
    bench.tick(apart=0.006)
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is None
    bench.tick(2)
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is not None
    bench.tick(apart=1.7)
    bench.tick(apart=0.3)
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is None
    bench.tick()
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is not None


def test_an_adopted_cap_stays_until_a_period_has_shown_something(
    bench: Bench, tmp_path: Path
) -> None:
    bench.ask(Activate("a", 20e3))
    bench.tick(2)
    left = bench.host.routers["a"].cap
    bench.server.close()
    bench.journal.close()
    after = Bench(tmp_path, bench.host)
    assert after.manager.start() == []
    after.daemon._begin()
    after.tick(apart=0.006)
    assert after.host.routers["a"].cap == left is not None
    after.tick()
    assert after.host.routers["a"].cap not in {left, None}
    after.server.close()
    after.journal.close()


def test_a_reading_that_failed_at_a_tick_is_repeated_once_and_begins_the_next_sample(
    bench: Bench,
) -> None:
    bench.tick(2)
    bench.blind = True
    bench.tick()
    bench.blind = False
    bench.clock.sleep(Seconds(0.1))
    bench.daemon._read(bench.clock.now())
    bench.tick(apart=0.9)
    assert bench.manager.reports(bench.clock.now())[0].throughput_pps is not None


@pytest.mark.parametrize(("delay", "shows"), [(0.503, True), (0.7, False)])
def test_a_sample_that_begins_with_a_late_repeated_reading_counts_if_it_is_long_enough(
    bench: Bench, delay: float, shows: bool
) -> None:
    bench.tick(2)
    bench.blind = True
    bench.tick()
    bench.blind = False
    bench.clock.sleep(Seconds(delay))
    bench.daemon._read(bench.clock.now())
    bench.tick(apart=1 - delay)
    assert (bench.manager.reports(bench.clock.now())[0].throughput_pps is not None) == shows


class Polls:
    """Lets time pass instead of waiting for requests, and notes how much."""

    def __init__(self, bench: Bench, until: float) -> None:
        self.waits: list[int] = []
        self._bench, self._until = bench, until

    def register(self, *_: object) -> None:
        """Nobody asks."""

    def poll(self, wait: int) -> list[object]:
        """Return when the time is up; end the daemon's run after some seconds."""
        self.waits.append(wait)
        self._bench.clock.sleep(Seconds(wait / 1e3))
        if self._bench.clock.now() >= self._until:
            self._bench.daemon._stopping = True
        return []


@pytest.mark.parametrize(("blind", "reads"), [(False, 7), (True, 12)])
def test_interfaces_are_counted_at_ticks_and_once_more_where_that_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, blind: bool, reads: int
) -> None:
    """And once at the start. Nor does the daemon spin while it waits for the next tick."""
    seen: list[Seconds] = []
    read, bench.blind = bench.read, blind
    monkeypatch.setattr(bench, "read", lambda now: (seen.append(now), read(now))[1])
    monkeypatch.setattr(bench.daemon, "_catch_signals", lambda: None)
    polls = Polls(bench, until=105.0005)
    monkeypatch.setattr(wakes_module.zmq, "Poller", lambda: polls)
    bench.daemon.run()
    assert len(seen) == reads
    assert [wait for wait in polls.waits[1:] if not wait] == []


def test_a_signal_is_heard_within_a_long_period(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next tick is a minute away, which this test would not outlive."""
    config = bench.daemon._config
    bench.daemon._config = structs.replace(config, daemon=DaemonSection(period_s=60.0))
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    stop = Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(bench.server, "publish", lambda _: stop.start())
    bench.daemon.run()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handlers[number])
    assert bench.metric("xtc_tick_duration_seconds_count") == 1


def test_ticks_missed_are_never_made_up_for() -> None:
    assert _next(Seconds(10.0), Seconds(10.0), 1.0) == Seconds(11.0)
    assert _next(Seconds(10.0), Seconds(14.2), 1.0) == Seconds(15.0)


@pytest.mark.filterwarnings("ignore")
def test_an_unforeseen_error_is_survived_and_counted(
    bench: Bench, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(bench.manager, "tick", lambda *_: 1 / 0)
        bench.tick()
    assert bench.metric("xtc_unexpected_errors_total", where="tick") == 1
    with pytest.raises(BlockingIOError):
        systemd.recv(100)
    bench.tick()
    assert systemd.recv(100) == b"WATCHDOG=1"


def test_refusals_are_counted_by_their_reason(bench: Bench) -> None:
    bench.ask(Status("nobody"))
    bench.daemon.handle(b"\xff")
    assert bench.metric("xtc_messages_rejected_total", reason="unknown_router") == 1
    assert bench.metric("xtc_messages_rejected_total", reason="bad_message") == 1


def test_what_is_refused_within_a_batch_is_counted(bench: Bench) -> None:
    batch = Batch((Deactivate("x"), Activate("a", 20e3), Deactivate("y")))
    bench.daemon.handle(encode(Envelope(batch)))
    assert bench.metric("xtc_messages_rejected_total", reason="unknown_router") == 2


def test_keys_that_cannot_be_read_refuse_a_reload(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> None:
        raise ConfigError("server.authorised_keys_dir", "no key")

    with monkeypatch.context() as broken:
        broken.setattr(bench.server, "reload_keys", unreadable)
        bench.daemon.reload()
        assert bench.metric("xtc_config_last_reload_successful") == 0
    bench.daemon.reload()
    assert bench.metric("xtc_config_last_reload_successful") == 1


def test_what_the_host_drops_is_told_to_all_who_ask(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card that belongs to a router is the router's affair, though sysfs calls it a card."""
    published: list[Telemetry] = []
    monkeypatch.setattr(bench.server, "publish", published.append)
    bench.tick(3)
    bench.dropped_at_eth0 += 500
    bench.drop_in_backlog(300)
    bench.tick()
    drops = HostDrops({"eth0": 500.0}, 300.0)
    assert published[-1].drops == drops
    answer = bench.ask(Status())
    assert isinstance(answer, Answer)
    assert answer.drops == drops
    assert bench.metric("xtc_host_card_drops_packets_per_second", interface="eth0") == 500
    assert bench.metric("xtc_host_backlog_drops_packets_per_second") == 300
    bench.tick()
    assert published[-1].drops == HostDrops({"eth0": 0.0}, 0.0)


def test_what_the_host_drops_is_not_known_while_the_meter_is_blind(bench: Bench) -> None:
    bench.tick(3)
    bench.blind = True
    bench.tick()
    answer = bench.ask(Status())
    assert isinstance(answer, Answer)
    assert answer.drops is None
    name = "xtc_host_backlog_drops_packets_per_second"
    assert bench.metrics.registry.get_sample_value(name) is None


def test_no_loop_acts_on_what_the_host_drops(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "calm").mkdir()
    calm = Bench(tmp_path / "calm")
    for one in (bench, calm):
        one.ask(Activate("a", 20e3))
        one.tick(3)
    caps = []
    for second in range(1, 6):
        bench.dropped_at_eth0 = second * 1_000_000
        bench.drop_in_backlog(second * 1_000_000)
        bench.tick()
        calm.tick()
        caps.append((bench.host.routers["a"].cap, calm.host.routers["a"].cap))
    calm.server.close()
    calm.journal.close()
    assert all(with_drops == without is not None for with_drops, without in caps)


def test_a_reload_takes_routers_over(bench: Bench, systemd: socket.socket) -> None:
    bench.ask(Activate("a", 20e3))
    bench.tick(3)
    bench.path.write_text(ROUTERS.format("b") + "setpoint = 30000")
    bench.daemon.reload()
    notices = [systemd.recv(200) for _ in range(5)]
    assert [n.split(b"\n")[0] for n in notices[-2:]] == [b"RELOADING=1", b"READY=1"]
    assert bench.host.routers["a"].cap is None
    bench.tick(8)
    assert bench.host.routers["b"].state.throughput == pytest.approx(30e3, 0.02)
    assert bench.metric("xtc_config_last_reload_successful") == 1


def restarts_needed(bench: Bench, text: str) -> list[str]:
    """Reload with more tables, and return why the log asks for a restart."""
    bench.path.write_text("".join(map(ROUTERS.format, "ab")) + text)
    with capture_logs() as logs:
        bench.daemon.reload()
    assert bench.metric("xtc_config_last_reload_successful") == 1
    return [entry["problem"] for entry in logs if entry["event"] == "restart_needed"]


def test_what_takes_effect_with_a_reload_asks_for_no_restart(bench: Bench) -> None:
    daemon = "[daemon]\nfloors = false\nmax_release_share = 1.0\n"
    assert restarts_needed(bench, daemon + "[limiter]\nshield = false\n") == []
    assert {managed.plan.weight for managed in bench.manager.routers.values()} == {"keep"}


def test_a_change_that_waits_for_a_restart_names_what_does_not(bench: Bench) -> None:
    (problem,) = restarts_needed(bench, '[daemon]\non_exit = "keep"\nfloors = false\n')
    at_once = ("[router]", "daemon.floors", "daemon.max_release_share", "limiter.shield")
    assert all(key in problem for key in at_once)


def test_no_collection_looks_through_what_lasts_and_what_a_reload_drops_goes(bench: Bench) -> None:
    """A cycle that was left alone could never be freed."""
    bench.daemon.reload()
    assert gc.get_freeze_count() > 10_000
    dropped = bench.manager.routers["a"]
    dropped.cycle = dropped  # type: ignore[attr-defined]
    gone = weakref.ref(dropped)
    del dropped
    bench.path.write_text(ROUTERS.format("b"))
    bench.daemon.reload()
    assert gone() is None


@pytest.mark.parametrize(
    "text", ["[nonsense", "router = 3", "[deamon]", "[router.c]", f"x = {'[' * 1500}"]
)
def test_a_bad_file_keeps_the_last_good_one(bench: Bench, text: str) -> None:
    bench.ask(Activate("a", 20e3))
    bench.tick(3)
    bench.path.write_text(text)
    bench.daemon.reload()
    bench.tick(5)
    assert bench.metric("xtc_config_last_reload_successful") == 0
    assert bench.host.routers["a"].state.throughput == pytest.approx(20e3, 0.02)


def test_a_mistake_in_the_configuration_keeps_no_key_admitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bool] = []
    monkeypatch.setattr(bench.server, "reload_keys", lambda: read.append(True))
    bench.path.write_text("[router.a]\nsetpoit = 3\n")
    bench.daemon.reload()
    assert (read, bench.metric("xtc_config_last_reload_successful")) == ([True], 0)


@pytest.mark.parametrize("claim", ["a.0", "*.0", "[ab].?"])
def test_a_reload_that_claims_another_router_s_interface_is_refused(
    bench: Bench, claim: str
) -> None:
    bench.ask(Activate("a", 20e3))
    bench.tick(3)
    claims_too = ROUTERS.format("c").replace("c.0", claim)
    bench.path.write_text("".join(map(ROUTERS.format, "ab")) + claims_too)
    bench.daemon.reload()
    bench.tick(5)
    assert bench.metric("xtc_config_last_reload_successful") == 0
    assert bench.host.routers["a"].state.throughput == pytest.approx(20e3, 0.02)
    assert bench.metric("xtc_vr_throughput_packets_per_second", vr="a") == pytest.approx(2e4, 0.02)


def test_a_reload_may_leave_a_conflict_that_was_there(bench: Bench) -> None:
    """It must be possible to change other routers meanwhile."""
    text = "".join(map(ROUTERS.format, "ab"))
    for managed in bench.manager.routers.values():
        managed.plan = replace(managed.plan, binding=Binding(("a.0",)))
    bench.tick(2)
    bench.path.write_text(text.replace('"b.0"', '"a.0"') + ROUTERS.format("c"))
    bench.daemon.reload()
    assert bench.metric("xtc_config_last_reload_successful") == 1


@pytest.mark.filterwarnings("ignore")
def test_no_reload_ends_the_daemon(
    bench: Bench, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "load_config", lambda _: 1 / 0)
    bench.daemon._guarded("reload", bench.daemon.reload)
    assert bench.metric("xtc_unexpected_errors_total", where="reload") == 1
    assert bench.metric("xtc_config_last_reload_successful") == 0
    assert systemd.recv(200).startswith(b"RELOADING=1")
    assert systemd.recv(200).startswith(b"READY=1")


def test_a_file_that_forgot_most_routers_is_refused(bench: Bench) -> None:
    for name in "ab":
        bench.ask(Activate(name, 20e3))
    bench.tick(3)
    bench.path.write_text("")
    bench.daemon.reload()
    assert bench.metric("xtc_config_last_reload_successful") == 0
    assert all(router.cap is not None for router in bench.host.routers.values())


def test_a_cap_released_within_the_period_does_not_fall_back(bench: Bench) -> None:
    """Whole percents alternate within a period; what was to fall is not if it was released."""
    bench.host.routers["a"].limits = CapLimits(CapFraction(0.01), CapFraction(1.0), 0.01)
    bench.ask(Activate("a", 8.3e3))
    bench.tick(6)
    assert bench.daemon._falls
    bench.ask(Deactivate("a"))
    bench.ask(Activate("a", 200e3))
    bench.clock.sleep(Seconds(0.9))
    bench.daemon._let_fall(bench.clock.now())
    assert bench.host.routers["a"].cap == 0.1


# As a process


@pytest.fixture
def process(tmp_path: Path) -> Iterator[RunningDaemon]:
    with RunningDaemon(tmp_path) as process:
        yield process


def asked(process: RunningDaemon, request: Request) -> float | None:
    """Send a request to the process, and return the setpoint that it then holds."""
    with Client(process.run, timeout=10) as client:
        return client.call(request)[0].setpoint_pps


def ticked(process: RunningDaemon) -> None:
    """Wait until a tick has begun and ended that knows of every request so far."""
    with Client(process.run, timeout=10) as client:
        for _, _ in zip(range(2), client.telemetry(), strict=False):
            continue


def test_signals_reload_and_stop(process: RunningDaemon) -> None:
    process.start()
    assert asked(process, Status()) is None
    process.configure(router="setpoint = '20kpps'")
    process.signal(signal.SIGHUP)
    process.heard("RELOADING=1")
    process.heard("READY=1")
    assert asked(process, Status()) == 20e3
    process.configure(router="setpoint = 'fast'")
    process.signal(signal.SIGHUP)
    process.heard("RELOADING=1")
    process.heard("READY=1")
    assert asked(process, Status()) == 20e3
    process.heard("WATCHDOG=1")
    process.signal(signal.SIGTERM)
    process.heard("STOPPING=1")
    assert process.ended() == 0
    events = [json.loads(line)["event"] for line in process.log.read_text().splitlines()]
    assert [e for e in events if e != "router"] == [
        "simulated",
        "started",
        "reloaded",
        "reload_refused",
        "stopped",
    ]
    with Journal(process.state) as journal:
        assert not journal.ledger.entries


def test_what_is_doubtful_on_this_host_is_logged_at_the_start(process: RunningDaemon) -> None:
    process.configure(router="floor = 8000")
    process.start()
    process.signal(signal.SIGTERM)
    assert process.ended() == 0
    first, *_ = (json.loads(line) for line in process.log.read_text().splitlines())
    assert first["event"] == "configuration_doubtful"
    assert "router.a.floor: 800000% is more than the" in first["problem"]


def test_after_kill_9_leases_are_held_on_with(process: RunningDaemon) -> None:
    process.start()
    asked(process, Activate("a", 20e3, epoch=4, sequence=2))
    ticked(process)
    process.signal(signal.SIGKILL)
    assert process.ended() == -signal.SIGKILL
    process.start()
    assert asked(process, Status("a")) == 20e3


def test_on_exit_keep_leaves_the_journal_to_the_next(process: RunningDaemon) -> None:
    process.configure(daemon="on_exit = 'keep'")
    process.start()
    asked(process, Activate("a", 20e3))
    ticked(process)
    process.signal(signal.SIGTERM)
    assert process.ended() == 0
    with Journal(process.state) as journal:
        assert journal.ledger.leases["a"].target == 20e3

"""The daemon's loop: reads counters, ticks, answers requests and notifies systemd."""

import gc
import math
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

import msgspec
import structlog

from common.clock import Clock
from common.errors import ConfigError, Mistakes
from common.notify import notify
from common.units import Seconds
from xtc.actuator.places import place_of
from xtc.config.file import load_config, located
from xtc.config.plan import RouterPlan, plans
from xtc.config.schema import Config
from xtc.config.timing import EARLY, LATE, check_followed
from xtc.control.dither import SLOTS
from xtc.daemon.durable_first import DurableFirst
from xtc.daemon.metrics import Metrics
from xtc.daemon.server import Server
from xtc.daemon.wakes import Wake, Wakes
from xtc.errors import MeterError, Refused, TakenOver
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.manager import Manager
from xtc.manager.router import ManagedRouter
from xtc.measure.claims import added, claim_mistakes, contested
from xtc.measure.collector import Binding, Collector, Reading
from xtc.measure.host_cpu import CpuWatch
from xtc.measure.host_drops import HostWatch
from xtc.measure.meter import Snapshot, rates
from xtc.modes import Finding, Mode
from xtc.spec import LibvirtSpec
from xtc.wire import Answer, HostDrops, Outcomes, Refusal, Reply, Report, Telemetry

SETTLE_S = Seconds(5.0)
"""How long the start waits for hypervisors to report their domains."""
STOP_S = Seconds(10.0)
"""How long the exit waits for hypervisors to restore caps; TimeoutStopSec must be longer."""
STOP_PAUSE_S = Seconds(0.2)
NEVER = Seconds(math.inf)
RESTART_NEEDED = (
    "only [router], daemon.floors, daemon.max_release_share and limiter.shield take effect with a "
    "reload"
)
MAX_LEAD = 0.4
"""Earliest time before a tick to query hypervisors, as a share of the period."""

log = structlog.get_logger()


class SnapshotSource(Protocol):
    """The source of interface counters: the kernel's file, or a simulated host."""

    def read(self, now: Seconds) -> Snapshot:
        """Return a snapshot taken at the instant given."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Daemon:
    """Connects meter, collector, manager, server and metrics, and runs them by the clock."""

    def __init__(
        self,
        config: Config,
        *,
        path: Path | None,
        clock: Clock,
        source: SnapshotSource,
        manager: Manager,
        server: Server,
        metrics: Metrics,
        hypervisors: Hypervisors,
        watch: HostWatch | None = None,
        simulated: bool = False,
        cpus: CpuWatch | None = None,
    ) -> None:
        self._config, self._path = config, path
        self._simulated = simulated
        self._clock, self._source = clock, source
        self._manager, self._server, self._metrics = manager, server, metrics
        self._hypervisors, self._watch, self._cpus = hypervisors, watch, cpus
        self._requests = DurableFirst(manager, self.handle)
        self._collector = Collector(
            self._bindings(), unexpected=lambda where: metrics.unexpected.labels(where).inc()
        )
        self._identify()
        self._before: Snapshot | None = None
        """The snapshot of the previous tick."""
        self._latest: Snapshot | None = None
        self._drops: HostDrops | None = None
        """What the host dropped in the last period; None where unknown."""
        self._seen: dict[str, tuple[Mode, Finding, str]] = {}
        self._falls: list[tuple[Seconds, ManagedRouter]] = []
        self._tick_count = 0
        self._stopping = self._reload = False

    def run(self) -> None:
        """Run until a signal; then release or keep the caps, as configured."""
        with Wake() as wake:
            self._run(wake)

    def _run(self, wake: Wake) -> None:
        self._catch_signals()
        self._follow()
        self._hypervisors.settle(SETTLE_S)
        for trouble in self._manager.start():
            log.error("release_failed", problem=trouble)
        wakes = Wakes(wake, self._server.request_sockets, self._manager.wakes)
        self._begin()
        _keep_from_collector()
        notify("READY=1", self._status())
        if self._simulated:
            log.warning("simulated", problem="no router of this daemon is real")
        log.info("started", routers=len(self._manager.routers))
        now = self._clock.now()
        next_ask = next_tick = now
        next_try = NEVER
        while not self._stopping:
            wait = min(next_try, next_ask, next_tick, *(at for at, _ in self._falls)) - now
            asked, written = wakes.sleep(wait, hearing=not self._server.waiting)
            self._check_held()
            if written:
                self._guarded("journal", self._manager.go_on)
            if asked or self._server.waiting:
                self._guarded("serve", self._server.serve)
            if self._reload:
                self._guarded("reload", self.reload)
            now = self._clock.now()
            if now >= min(next_try, next_tick):
                again = not self._read(now) and now >= next_tick
                next_try = Seconds(now + self._config.daemon.meter_period_s) if again else NEVER
            self._let_fall(now)
            if now >= next_ask:
                self._hypervisors.ask()
                next_ask = NEVER
            if now >= next_tick:
                self._guarded("tick", partial(self._timed_tick, now))
                next_tick = _next(next_tick, now, self._config.daemon.period_s)
                next_ask = Seconds(next_tick - self._lead())
        self._stop()

    def _begin(self) -> None:
        """Shield and cap configured routers at the start, before the first period has ended."""
        self._manager.begin(self._collector.owned(self._present()))

    def _check_held(self) -> None:
        """Continue only while this daemon owns the state directory: a new owner has restored caps.

        Raises:
            TakenOver: another owns it; nothing is written, capped or restored.
        """
        try:
            self._manager.check_held()
        except TakenOver:
            notify("STOPPING=1")
            self._hypervisors.close()
            self._source.close()
            raise

    def _lead(self) -> float:
        """Return how long before a tick hypervisors are queried."""
        return min(self._hypervisors.lead, MAX_LEAD * self._config.daemon.period_s)

    def _follow(self) -> None:
        """Pass the domains to follow to the hypervisors."""
        specs = (managed.plan.spec for managed in self._manager.routers.values())
        self._hypervisors.use(specs, also=self._manager.places)

    def _bindings(self) -> dict[str, Binding]:
        """Return each router's interfaces: configured, or as the hypervisor reports them now."""
        return {name: self._binding(m.plan) for name, m in self._manager.routers.items()}

    def _binding(self, plan: RouterPlan) -> Binding:
        if plan.domain is None:
            return plan.binding
        return self._hypervisors.binding(plan.domain)

    def _identify(self) -> None:
        """Store the UUIDs of routers that are domains and run here."""
        for managed in self._manager.routers.values():
            spec = managed.plan.spec
            if isinstance(spec, LibvirtSpec):
                managed.uuid = self._hypervisors.running_uuid(spec)

    def _catch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGHUP, self._ask_to_reload)

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _ask_to_reload(self, _number: int, _frame: FrameType | None) -> None:
        self._reload = True

    def _stop(self) -> None:
        notify("STOPPING=1")
        for trouble in self._released():
            log.error("release_failed", problem=trouble)
        self._hypervisors.close()
        self._source.close()
        log.info("stopped", on_exit=self._config.daemon.on_exit)

    def _released(self) -> list[str]:
        """Release as configured; pending releases get the time that a hypervisor may take."""
        release = self._config.daemon.on_exit == "release"
        until = self._clock.now() + STOP_S
        troubles = self._manager.stop(release=release)
        while troubles and self._hypervisors.states() and self._clock.now() < until:
            self._clock.sleep(STOP_PAUSE_S)
            self._hypervisors.supervise()
            troubles = self._manager.stop(release=release)
        return troubles

    def _read(self, now: Seconds) -> bool:
        """Take a snapshot; if that fails, the loops go blind."""
        try:
            self._latest = self._source.read(now)
        except MeterError as error:
            self._metrics.meter_errors.inc()
            if self._latest is not None:
                log.warning("meter_blind", problem=str(error))
            self._latest = None
            return False
        self._before = self._before or self._latest  # after a failure, rates start here
        return True

    def _let_fall(self, now: Seconds) -> None:
        """Lower the caps that alternate within the period."""
        due = [fall for fall in self._falls if fall[0] <= now]
        self._falls = [fall for fall in self._falls if fall[0] > now]
        for _, managed in due:
            self._manager.fall(managed)

    def _timed_tick(self, now: Seconds) -> None:
        """Tick, and notify systemd: blind meters concern the ladder, not the watchdog."""
        with self._metrics.ticks.time():
            self._tick(now)
        notify("WATCHDOG=1")

    def _guarded(self, where: str, work: Callable[[], object]) -> None:
        """Call a function; the only place that catches, counts and survives unforeseen errors."""
        try:
            work()
        except Exception:  # the loop's firewall: one bad tick or message must not stop all loops
            self._metrics.unexpected.labels(where).inc()
            log.exception("unexpected_error", where=where)

    def _tick(self, now: Seconds) -> None:
        """Carry out one tick."""
        changed = self._hypervisors.supervise()
        if changed:
            self._collector.rebind(self._bindings())
            self._identify()
            self._manager.retry()
        self._manager.release_marked(self._hypervisors.is_marked, changed=changed)
        readings = self._readings(now)
        self._manager.tick(readings, now)
        self._server.listen_again()
        period = self._config.daemon.period_s
        self._falls = [
            (Seconds(now + slot * period / SLOTS), managed)
            for slot, managed in self._manager.falling_caps()
        ]
        self._report(now)

    def _readings(self, now: Seconds) -> Mapping[str, Reading]:
        """Return each router's rates since the last tick; nothing if that was too long ago.

        The first tick follows the start within milliseconds, and one after a late tick may as well:
        rates of so short a time say nothing, and would change caps.
        """
        before, self._before = self._before, self._latest
        self._drops = None
        if before is None or self._latest is None or before is self._latest:
            return {}
        period = self._config.daemon.period_s
        if now - before.at < EARLY * period:
            self._before = before
            return {}
        if now - before.at > 2 * period:
            self._metrics.overruns.inc()
        if now - before.at > LATE * period:
            return {}
        try:
            found = rates(before, self._latest)
        except MeterError as error:
            self._metrics.meter_errors.inc()
            log.warning("meter_blind", problem=str(error))
            self._before = None
            return {}
        readings = self._collector.aggregate(found)
        if self._watch is not None:
            owned = {name for reading in readings.values() for name in reading.interfaces}
            self._drops = self._watch.look(now, found, owned)
        return readings

    def _report(self, now: Seconds) -> None:
        self._tick_count += 1
        reports = self._manager.reports(now)
        self._metrics.show(reports)
        self._metrics.drops = self._drops
        self._metrics.show_connections(self._hypervisors.states())
        self._metrics.listening = self._server.listening
        self._metrics.journal_ok.set(not self._manager.journal_problem)
        for report in reports:
            self._log_change(report)
        self._metrics.busiest_cpu = None if self._cpus is None else self._cpus.look(now)
        told = Telemetry(
            now,
            self._tick_count,
            reports,
            drops=self._drops,
            highest_epoch=self._manager.highest_epoch,
            busiest_cpu=self._metrics.busiest_cpu,
            simulated=self._simulated,
        )
        self._server.publish(told)

    def _log_change(self, report: Report) -> None:
        """Log a router only when its mode, finding or problem changes."""
        stands = (report.mode, report.finding, report.problem)
        if stands == self._seen.get(report.vr):
            return
        known = self._seen.get(report.vr)
        self._seen[report.vr] = stands
        settling = {Finding.NONE, Finding.SETTLING}
        if known and not report.problem and {known[1], report.finding} <= settling:
            return
        speak = log.warning if report.problem else log.info
        speak(
            "router",
            vr=report.vr,
            mode=report.mode.value,
            finding=report.finding.value,
            problem=report.problem or None,
        )

    def answer(self, raw: bytes) -> Reply | None:
        """Answer a request once the journal holds what it must hold first; None until then."""
        return self._requests.answer(raw)

    def handle(self, raw: bytes) -> Reply:
        """Answer a request, count refusals, and add the host's drops."""
        reply = self._manager.handle(raw)
        result = reply.result
        for one in result.refusals if isinstance(result, Outcomes) else (result,):
            if isinstance(one, Refusal):
                self._metrics.rejected.labels(one.code).inc()
        if isinstance(result, Answer):
            told = msgspec.structs.replace(result, drops=self._drops)
            return msgspec.structs.replace(reply, result=told)
        return reply

    def reload(self) -> None:
        """Read the configuration again; an invalid one only changes the reported error."""
        self._reload = False
        if self._path is None:
            return
        notify("RELOADING=1", f"MONOTONIC_USEC={round(self._clock.now() * 1e6)}")
        try:
            self._server.reload_keys()  # first: keys must change despite other errors
            self._take_over(self._path)
        except (ConfigError, Refused) as error:
            self._metrics.reload_ok.set(0)
            for line in str(error).split("\n"):
                log.error("reload_refused", problem=line)  # noqa: TRY400  the words say it all
        except Exception:
            self._metrics.reload_ok.set(0)
            raise
        finally:
            notify("READY=1", self._status())

    def _take_over(self, path: Path) -> None:
        """Read a configuration and apply its routers.

        Raises:
            ConfigError: it has a mistake.
            Refused: it would release too many routers.
        """
        config = load_config(path)
        with located(path):
            routers = plans(config, place=partial(place_of, uuid_of=self._hypervisors.uuid_of))
            check_followed(routers, Seconds(self._config.daemon.period_s))
            self._check_claims(routers)
        self._manager.reconfigure(routers, max_release_share=config.daemon.max_release_share)
        in_force = _reloaded(self._config, config)
        if config != in_force:
            log.warning("restart_needed", problem=RESTART_NEEDED)
        self._config = in_force
        self._follow()
        self._collector.rebind(self._bindings(), forget=True)
        self._identify()
        self._metrics.configured(msgspec.json.encode(config))
        _keep_from_collector()
        log.info("reloaded", routers=len(self._manager.routers))

    def _check_claims(self, routers: Mapping[str, RouterPlan]) -> None:
        """Refuse routers that would claim the interfaces of others, which would lose control.

        Raises:
            ConfigError: an interface that exists, or is named, would be newly claimed by several
                routers.
        """
        bindings = {name: self._binding(plan) for name, plan in routers.items()}
        present = self._present()
        conflicts = added(contested(self._bindings(), present), contested(bindings, present))
        Mistakes(claim_mistakes(conflicts, bindings)).check()

    def _present(self) -> frozenset[str]:
        """Return the existing interfaces; none where they cannot be read."""
        self._read(self._clock.now())
        try:
            return frozenset(self._latest.counters if self._latest is not None else ())
        except MeterError:
            return frozenset()  # names and globs are compared anyway

    def _status(self) -> str:
        return f"STATUS=holding {len(self._manager.routers)} routers"


def _reloaded(before: Config, config: Config) -> Config:
    """Return what is in force after a reload; other keys take effect at the next start."""
    replace, daemon = msgspec.structs.replace, config.daemon
    return replace(
        before,
        router=config.router,
        daemon=replace(
            before.daemon, floors=daemon.floors, max_release_share=daemon.max_release_share
        ),
        limiter=replace(before.limiter, shield=config.limiter.shield),
    )


def _next(due: Seconds, now: Seconds, period: float) -> Seconds:
    """Return the next instant on the grid: late ticks are skipped, not made up for."""
    missed = max(0, int((now - due) / period))
    return Seconds(due + (missed + 1) * period)


def _keep_from_collector() -> None:
    """Exclude objects that live as long as the configuration from garbage collection.

    Scanning all of them takes tens of milliseconds in an unpredictable tick.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()

"""Builds a daemon from its configuration, and releases what one left behind."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import structlog

from common.clock import MonotonicClock
from common.errors import ConfigError
from common.logs import set_up_logging
from common.notify import watchdog_timeout
from common.units import PacketsPerSecond, Seconds
from models import paper_host
from xtc.actuator.base import Actuator
from xtc.actuator.factory import open_actuator
from xtc.actuator.places import place_of
from xtc.config.check import doubts
from xtc.config.file import located
from xtc.config.plan import RouterPlan, exempted, plans
from xtc.config.schema import Config, ServerSection
from xtc.config.timing import check_followed, check_timing
from xtc.daemon.loop import Daemon
from xtc.daemon.metrics import Metrics
from xtc.daemon.release import ROUND_S, all_released
from xtc.daemon.server import CurveKeys, Listen, Server
from xtc.errors import ActuatorError, JournalError
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.ifindex import renamed
from xtc.manager.learned import Remembered, cpu_model
from xtc.manager.manager import Manager
from xtc.manager.router import OpenActuator
from xtc.measure.host_cpu import CpuWatch
from xtc.measure.host_drops import HostWatch
from xtc.measure.meter import ProcNetDev
from xtc.shield.interface import Shield
from xtc.shield.limiter import BestLimiter
from xtc.shield.router import RouterShields
from xtc.simulation.host import SimulatedHost
from xtc.simulation.plant import LAG_S, Plant
from xtc.simulation.shared_host import SharedHost
from xtc.spec import ActuatorSpec, Original, SimulatedSpec
from xtc.state.journal import Journal, boot_id
from xtc.state.repair import unrepaired
from xtc.state.starts import OBSERVED, Starts
from xtc.state.writer import WriteBehind
from xtc.wire import Reply

log = structlog.get_logger()

RELEASE_S = Seconds(10.0)
"""How long a release without a daemon waits, for all hypervisors together."""

LOST = (
    "caps of an earlier daemon may still be in force: run `xtc journal repair`, or restore the "
    "caps that `xtc journal show` names"
)
"""What a damaged journal means."""


def run_daemon(config: Config, path: Path | None, sandbox: SharedHost | None = None) -> None:
    """Run a daemon until it is stopped.

    Args:
        config: the merged files.
        path: the file, which SIGHUP reads again.
        sandbox: a simulated host to use instead, with its shields and limits.

    Raises:
        ConfigError: the configuration cannot be carried out on this host.
        Busy: another daemon holds the state directory.
        JournalError: the state directory cannot be used.
    """
    set_up_logging(json=_json_logs(config), level=config.log.level)
    daemon_section = config.daemon
    period = Seconds(daemon_section.period_s)
    with located(path):
        check_timing(period, Seconds(daemon_section.meter_period_s), watchdog_timeout())
        routers = plans(config)
        check_followed(routers, period)
    for doubt in doubts(config, routers, path):
        log.warning("configuration_doubtful", problem=str(doubt))
    clock = MonotonicClock()
    simulated = sandbox or simulated_host(routers)
    if sandbox is not None:
        routers = {name: replace(plan, shield=True) for name, plan in routers.items()}
    with ExitStack() as stack:
        journal = stack.enter_context(WriteBehind(Path(daemon_section.state_dir)))
        if journal.quarantined is not None:
            log.error("journal_set_aside", path=str(journal.quarantined), problem=LOST)
        starts = Starts(Path(daemon_section.state_dir))
        hypervisors = Hypervisors(clock)
        metrics = Metrics()
        metrics.configured(msgspec.json.encode(config))
        shields = RouterShields(*exempted(config.limiter))
        if simulated is None and any(plan.shield for plan in routers.values()):
            shields.load_ahead()
        manager = Manager(
            routers,
            journal=journal,
            clock=clock,
            open_actuator=opener(simulated, hypervisors, loop_s=period),
            limiter=sandbox.limits if sandbox else BestLimiter(Shield(*exempted(config.limiter))),
            shield=sandbox.shields if sandbox else shields,
            period=period,
            remembered=Remembered(journal, cpu=cpu_model()),
            place=partial(place_of, uuid_of=hypervisors.uuid_of),
            unexpected=lambda where: metrics.unexpected.labels(where).inc(),
        )
        late: list[Daemon] = []

        def handle(raw: bytes) -> Reply | None:
            return late[0].answer(raw)

        server = stack.enter_context(
            Server(_listen(config), handle, on_refused_key=metrics.refused_keys.inc)
        )
        if config.metrics.listen is not None:
            stack.callback(metrics.listen(config.metrics.listen).shutdown)
        daemon = Daemon(
            config,
            path=path,
            clock=clock,
            source=simulated or ProcNetDev(daemon_section.proc_net_dev),
            manager=manager,
            server=server,
            metrics=metrics,
            hypervisors=hypervisors,
            watch=_watch(daemon_section.proc_net_dev, simulated),
            simulated=simulated is not None,
            cpus=None if simulated else CpuWatch(),
        )
        late.append(daemon)
        manager.observe = _why_observe(_begun(starts, clock.now()), daemon_section.observe)
        daemon.run()
        _ended(starts)


def _begun(starts: Starts, now: Seconds) -> bool:
    """Note a start, even on a full disk; return whether it may only observe."""
    try:
        return starts.begin(now)
    except OSError as error:
        log.warning("starts_unknown", problem=str(error))
        return False


def _ended(starts: Starts) -> None:
    try:
        starts.end()
    except OSError as error:
        log.warning("starts_unknown", problem=str(error))


def _why_observe(unclean: bool, configured: bool) -> str:
    """Return why caps are only computed and shown; empty if they are written."""
    if unclean:
        log.error("observing", problem=OBSERVED)
        return OBSERVED
    return "only observed: daemon.observe is set" if configured else ""


def _watch(proc_net_dev: str, simulated: SimulatedHost | None) -> HostWatch | None:
    """Return the watcher of the host's drops; a simulated host has no drops before its routers."""
    return None if simulated else HostWatch(Path(proc_net_dev).parent / "softnet_stat")


def opener(
    simulated: SimulatedHost | None, hypervisors: Hypervisors | None, *, loop_s: float = 1.0
) -> OpenActuator:
    """Return the function that opens actuators for this process and its loop's period."""

    def open_one(spec: ActuatorSpec, original: Original | None) -> Actuator:
        find = None if simulated is None else simulated.actuator
        return open_actuator(spec, original, simulated=find, domains=hypervisors, loop_s=loop_s)

    return open_one


def simulated_host(routers: Mapping[str, RouterPlan]) -> SimulatedHost | None:
    """Return a simulated host if all routers of the configuration are simulated.

    Raises:
        ConfigError: simulated and real routers are mixed.
    """
    simulated = {n: p.spec for n, p in routers.items() if isinstance(p.spec, SimulatedSpec)}
    if not simulated:
        return None
    if len(simulated) < len(routers):
        raise ConfigError("router", "simulated and real routers are mixed", "use two daemons")
    host = SimulatedHost()
    for name, spec in simulated.items():
        model = routers[name].model or paper_host()
        offered = spec.offered_pps or model.curve.offered or model.curve.top
        plant = Plant(model.curve, PacketsPerSecond(offered), model.lag_at(LAG_S))
        router = host.add(spec.plant, plant)
        router.stolen, router.stolen_after = spec.stolen, Seconds(spec.stolen_after_s)
    return host


def release_all(state_dir: Path, *, force: bool = False) -> dict[str, str]:
    """Restore everything in the journal, without a daemon or a configuration.

    With `force`, take over from a daemon that holds the state directory and does not answer.
    Originals then stay in the journal, since that daemon may write one more cap before it notices.

    Returns:
        For every router: "released", or why not. For every journal that was set aside and not
        repaired: what to do.

    Raises:
        Busy: a daemon runs, and must be asked instead.
        JournalError: the journal cannot be read or written.
    """
    limiter = BestLimiter()
    with Journal(state_dir, force=force) as journal, _hypervisors() as hypervisors:
        if journal.quarantined is not None:
            raise JournalError(
                "the journal could not be trusted and was set aside as "
                f"{journal.quarantined}; {LOST}"
            )
        ledger = journal.ledger
        hypervisors.use(entry.spec for entry in ledger.entries.values())
        hypervisors.settle(RELEASE_S)
        outcome = all_released(ledger.entries, hypervisors, MonotonicClock(), RELEASE_S)
        limits = _left(limiter, _by_all_names(ledger.limits, ledger.numbers))
        shields = _left(RouterShields(), _by_all_names(ledger.shields, ledger.numbers))
        outcome |= {f"{vr}'s limit": "; ".join(still.values()) for vr, still in limits.items()}
        outcome |= {f"{vr}'s shield": "; ".join(still.values()) for vr, still in shields.items()}
        kept, limited, shielded = ledger.entries, ledger.limits, ledger.shields
        if not force:
            kept = {vr: e for vr, e in kept.items() if outcome[vr] != "released"}
            limited = {vr: tuple(still) for vr, still in limits.items()}
            shielded = {vr: tuple(still) for vr, still in shields.items()}
        left = msgspec.structs.replace(ledger, entries=kept, limits=limited, shields=shielded)
        journal.store(msgspec.structs.replace(left, leases={}))
        # Their caps are not released, even if all of the journal's are.
        aside = unrepaired(journal.descriptor, boot_id())
    return outcome | {str(state_dir / name): f"set aside; {LOST}" for name in aside}


def _hypervisors() -> "closing[Hypervisors]":
    """Return hypervisors for callers that can wait for them."""
    return closing(Hypervisors(MonotonicClock(), patience=ROUND_S))


def _by_all_names(
    borne: Mapping[str, Iterable[str]], numbers: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """Return interfaces by their former and current names, by router."""
    return {
        vr: (*names, *renamed({name: numbers[name] for name in names if name in numbers}))
        for vr, names in borne.items()
    }


def _left(
    limiter: BestLimiter | RouterShields, borne: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, str]]:
    """Remove settings from interfaces; return, by router, where that failed, and why."""
    left: dict[str, dict[str, str]] = {}
    for vr, interfaces in borne.items():
        for interface in interfaces:
            try:
                limiter.lift(interface)
            except ActuatorError as error:
                left.setdefault(vr, {})[interface] = str(error)
    return left


def _listen(config: Config) -> Listen:
    server = config.server
    return Listen(
        directory=Path(config.daemon.runtime_dir),
        tcp_requests=server.tcp,
        tcp_telemetry=server.tcp_telemetry,
        curve=_curve(server),
    )


def _curve(server: ServerSection) -> CurveKeys | None:
    if server.secret_key_file is None or server.authorised_keys_dir is None:
        return None
    return CurveKeys(Path(server.secret_key_file), Path(server.authorised_keys_dir))


def _json_logs(config: Config) -> bool:
    if config.log.format == "auto":
        return not sys.stderr.isatty()
    return config.log.format == "json"

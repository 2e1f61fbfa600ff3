"""Where to measure a router: in a private lab, or among the configured routers of this host."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.clock import Clock, MonotonicClock
from common.dirlock import hold
from common.errors import Busy, ConfigError
from common.suggest import did_you_mean
from common.units import Seconds
from lab.plan import RouterKind
from lab.programs.processes import payload_of
from lab.programs.source import HEADERS, PAYLOAD
from lab.routers.router import Router
from lab.routers.topology import Lab
from lab.system import requirements
from training.sweep.bench import Bench
from training.sweep.load import FIRST_RATE, Command, Load, check_alive
from training.sweep.watch import MeasureError, Stop, Watch
from xtc.config.file import load_config
from xtc.config.plan import RouterPlan, plans
from xtc.control.laws import DEFAULT
from xtc.daemon.build import LOST, opener, simulated_host
from xtc.daemon.loop import SETTLE_S, SnapshotSource
from xtc.errors import JournalError
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.router import OpenActuator
from xtc.measure.collector import Binding
from xtc.measure.meter import ProcNetDev
from xtc.spec import ActuatorSpec, CgroupSpec, DeadlineSpec
from xtc.state.journal import Journal

LAB_STATE = Path("/run/xtc-train")
"""Journal and lock of sweeps in a lab: no daemon has their routers."""
LAB_PREFIX = "xtctrain"
LAB_LOCK = Path("/run/xtc-train-lab")
"""Lock of the lab of that prefix: another process would remove it."""
LAB_ROUTER = "vr"


@dataclass(frozen=True)
class Site:
    """One router with everything needed to measure it, locked until the context ends."""

    plan: RouterPlan
    period: Seconds
    watch: Watch
    journal: Journal
    open_actuator: OpenActuator
    hypervisors: Hypervisors
    load: Load | None
    """None if the operator's own traffic is used."""
    packet_bytes: int | None = None
    """Size of the frames that it sends, without checksum; None if unknown."""

    def bench(self) -> Bench:
        """Return the router under meter and actuator."""
        return Bench(
            self.plan,
            watch=self.watch,
            journal=self.journal,
            open_actuator=self.open_actuator,
            hypervisors=self.hypervisors,
        )


@contextmanager
def lab_site(
    kind: RouterKind,
    period: Seconds,
    state_dir: Path,
    stop: Stop,
    packet_bytes: int = HEADERS + PAYLOAD,
) -> Iterator[Site]:
    """Make a lab with one router, flooded with packets of a size in bytes of the frame.

    Raises:
        BadRequestError: the lab sends no packets of that size.
        LabError: this machine cannot hold a lab.
        MeasureError: another process has the lab; within the context, a program of the lab has
            ended.
        Busy: a daemon or another xtc-train holds the state directory.
        JournalError: the state directory cannot be used.
    """
    payload = payload_of(packet_bytes)
    requirements.check()  # report what is missing before creating a directory fails
    with ExitStack() as stack:
        stack.callback(os.close, _lab_lock())
        journal = stack.enter_context(_journal(state_dir, "--lab-state-dir"))
        lab = stack.enter_context(Lab(LAB_PREFIX))
        router = lab.add_router(LAB_ROUTER, kind)
        source = router.flood(FIRST_RATE, payload)
        meter = ProcNetDev(f"/proc/{source.pid}/net/dev")  # the source is in the lab's Dom0
        yield _site(
            _plan_of(router),
            period=period,
            clock=MonotonicClock(),
            meter=stack.enter_context(closing(meter)),
            journal=journal,
            hypervisors=stack.enter_context(closing(Hypervisors(MonotonicClock()))),
            open_actuator=opener(None, None),
            stop=stop,
            load=source,
            check=partial(_check_lab, lab, source),
            packet_bytes=packet_bytes,
        )


@contextmanager
def configured_site(
    path: Path,
    name: str | None,
    source: str | None,
    stop: Stop,
    clock: Clock | None = None,
    *,
    packet_bytes: int | None = None,
) -> Iterator[Site]:
    """Take a router of this host's configuration as the daemon would.

    Raises:
        ConfigError: the configuration cannot be used, or has no such router.
        Busy: a daemon or another xtc-train holds the state directory.
        JournalError: the state directory cannot be used.
        MeasureError: within the context, the source has ended by itself.
    """
    config, clock = load_config(path), clock or MonotonicClock()
    known = plans(config)
    plan, simulated = _named(known, name, path), simulated_host(known)
    with ExitStack() as stack:
        state_dir = Path(config.daemon.state_dir)
        journal = stack.enter_context(_journal(state_dir, "daemon.state_dir"))
        meter = simulated or ProcNetDev(config.daemon.proc_net_dev)
        hypervisors = stack.enter_context(closing(Hypervisors(clock)))
        hypervisors.use([plan.spec])
        hypervisors.settle(SETTLE_S)
        load = None if source is None else Command(source, packet_bytes)
        if load is not None:
            stack.callback(load.stop)
        yield _site(
            plan,
            period=Seconds(config.daemon.period_s),
            clock=clock,
            meter=stack.enter_context(closing(meter)),
            journal=journal,
            hypervisors=hypervisors,
            open_actuator=opener(simulated, hypervisors),
            stop=stop,
            load=load,
            check=partial(check_alive, load),
            packet_bytes=packet_bytes,
        )


def _site(
    plan: RouterPlan,
    *,
    period: Seconds,
    clock: Clock,
    meter: SnapshotSource,
    journal: Journal,
    hypervisors: Hypervisors,
    open_actuator: OpenActuator,
    stop: Stop,
    load: Load | None,
    check: Callable[[], object],
    packet_bytes: int | None,
) -> Site:
    watch = Watch(
        plan,
        clock=clock,
        source=meter,
        period=period,
        hypervisors=hypervisors,
        stop=stop,
        check=check,
    )
    return Site(plan, period, watch, journal, open_actuator, hypervisors, load, packet_bytes)


@contextmanager
def _journal(directory: Path, key: str) -> Iterator[Journal]:
    """Lock a state directory; ``key`` is the setting that names it.

    Raises:
        Busy: a daemon or another xtc-train holds it.
        JournalError: it cannot be used, or its journal cannot be trusted.
    """
    journal = Journal(directory)
    try:
        journal.open()
    except Busy:
        holder = "a daemon or another xtc-train holds it"
        raise Busy(f"{directory}: {holder}; stop that, or give another {key}") from None
    with closing(journal):
        if journal.quarantined is not None:
            raise JournalError(
                f"{directory}: the journal could not be trusted and was set aside as "
                f"{journal.quarantined}; {LOST}"
            )
        yield journal


def _lab_lock() -> int:
    """Take the lab until the descriptor is closed.

    Raises:
        MeasureError: another process has it.
        JournalError: the lock cannot be made.
    """
    try:
        LAB_LOCK.mkdir(exist_ok=True)
        return hold(LAB_LOCK, "")
    except Busy:
        fix = "wait for it, or stop it"
        raise MeasureError("--lab", "another xtc-train runs its lab", fix) from None
    except OSError as error:
        raise JournalError(f"{LAB_LOCK}: {error.strerror}") from error


def _check_lab(lab: Lab, source: Load) -> None:
    """Refuse to measure once the router's forwarder or source has ended: it would forward nothing.

    Raises:
        MeasureError: one has ended; the error says which.
    """
    check_alive(source)
    if dead := lab.died():
        fix = "find out why, then run again: a sweep goes on where it stopped"
        raise MeasureError("the lab", f"{', '.join(dead)} ended by itself", fix)


def _named(known: Mapping[str, RouterPlan], name: str | None, path: Path) -> RouterPlan:
    if name is not None and name in known:
        return known[name]
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    fix = did_you_mean(name or "", known, f"--router is one of {', '.join(sorted(known))}")
    problem = "several routers" if name is None else f"there is no router {name}"
    raise ConfigError(str(path), problem, fix)


def _plan_of(router: Router) -> RouterPlan:
    """Return the plan of a router of the lab, as from a configuration."""
    spec: ActuatorSpec
    if router.cgroup is None:
        spec = DeadlineSpec(netns=router.netns, interfaces=router.inner_interfaces)
    else:
        spec = CgroupSpec(path=str(router.cgroup))
    return RouterPlan(
        name=router.name,
        spec=spec,
        binding=Binding(router.host_interfaces),
        law=DEFAULT,
        model=None,
        setpoint=None,
        floor=None,
        ceiling=None,
        safe_cap=None,
    )

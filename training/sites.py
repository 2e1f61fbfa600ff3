"""Where a router is measured: in a lab of our own, or among the configured routers of this host."""

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import requirements
from lab.plan import RouterKind
from lab.router import Router
from lab.topology import Lab
from training.bench import Bench
from training.load import FIRST_RATE, Command, Load
from training.watch import Stop, Watch
from xtc.actuator.spec import ActuatorSpec, CgroupSpec, DeadlineSpec
from xtc.assemble import LOST, opener, simulated_host
from xtc.clock import Clock, MonotonicClock
from xtc.collector import Binding
from xtc.configfile import load_config
from xtc.daemon import SETTLE_S, SnapshotSource
from xtc.errors import Busy, ConfigError, JournalError
from xtc.held import hold
from xtc.journal import Journal
from xtc.laws import DEFAULT
from xtc.managed import OpenActuator
from xtc.meter import ProcNetDev
from xtc.routers import RouterPlan, plans
from xtc.units import Seconds
from xtc.virt.hypervisors import Hypervisors

LAB_STATE = Path("/run/xtc-train")
"""Journal and lock of sweeps in a lab: their routers are no daemon's."""
LAB_PREFIX = "xtctrain"
LAB_LOCK = Path("/run/xtc-train-lab")
"""Held by whoever has the lab of that prefix: another would tear it down."""
LAB_ROUTER = "vr"


@dataclass(frozen=True)
class Site:
    """One router with all that is needed to measure it, held until the context ends."""

    plan: RouterPlan
    period: Seconds
    watch: Watch
    journal: Journal
    open_actuator: OpenActuator
    hypervisors: Hypervisors
    load: Load | None
    """None where the operator's own traffic is used."""

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
def lab_site(kind: RouterKind, period: Seconds, state_dir: Path, stop: Stop) -> Iterator[Site]:
    """Make a lab with one flooded router.

    Raises:
        LabError: this machine cannot hold a lab.
        Busy: a daemon or another sweep holds the state directory, or another has the lab.
    """
    with ExitStack() as stack:
        journal = stack.enter_context(_journal(state_dir))
        stack.callback(os.close, _lab_lock())
        lab = stack.enter_context(Lab(LAB_PREFIX))
        router = lab.add_router(LAB_ROUTER, kind)
        source = router.flood(FIRST_RATE)
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
        )


@contextmanager
def configured_site(
    path: Path, name: str | None, source: str | None, stop: Stop, clock: Clock | None = None
) -> Iterator[Site]:
    """Take a router of this host's configuration as the daemon would.

    Raises:
        ConfigError: the configuration cannot be used, or has no such router.
        Busy: a daemon or another sweep holds the state directory.
        JournalError: the state directory cannot be used.
    """
    config, clock = load_config(path), clock or MonotonicClock()
    known = plans(config)
    plan, simulated = _named(known, name, path), simulated_host(known)
    with ExitStack() as stack:
        journal = stack.enter_context(_journal(Path(config.daemon.state_dir)))
        meter = simulated or ProcNetDev(config.daemon.proc_net_dev)
        hypervisors = stack.enter_context(closing(Hypervisors(clock)))
        hypervisors.use([plan.spec])
        hypervisors.settle(SETTLE_S)
        load = None if source is None else Command(source)
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
) -> Site:
    watch = Watch(
        plan, clock=clock, source=meter, period=period, hypervisors=hypervisors, stop=stop
    )
    return Site(plan, period, watch, journal, open_actuator, hypervisors, load)


@contextmanager
def _journal(directory: Path) -> Iterator[Journal]:
    """Hold a state directory.

    Raises:
        Busy: a daemon or another sweep holds it.
        JournalError: it cannot be used, or its journal cannot be trusted.
    """
    with Journal(directory) as journal:
        if journal.quarantined is not None:
            raise JournalError(
                f"{directory}: the journal could not be trusted and was set aside as "
                f"{journal.quarantined}; {LOST}"
            )
        yield journal


def _lab_lock() -> int:
    requirements.check()  # says what is missing before a directory cannot be made
    LAB_LOCK.mkdir(exist_ok=True)
    try:
        return hold(LAB_LOCK, "")
    except Busy:
        raise Busy("another xtc-train runs its lab; wait for it, or stop it") from None


def _named(known: Mapping[str, RouterPlan], name: str | None, path: Path) -> RouterPlan:
    if name is not None and name in known:
        return known[name]
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    near = difflib.get_close_matches(name or "", known, n=1)
    fix = f"did you mean {near[0]}?" if near else f"--router is one of {', '.join(sorted(known))}"
    problem = "several routers" if name is None else f"there is no router {name}"
    raise ConfigError(str(path), problem, fix)


def _plan_of(router: Router) -> RouterPlan:
    """Return the plan of a router of the lab, as a configuration would give it."""
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

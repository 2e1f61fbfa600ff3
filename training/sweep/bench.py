"""One router under meter and actuator: apply caps, return samples, and preserve the original cap.

The rules are the daemon's: it locks the state directory, makes the original durable before the
first cap, and restores it at the end. After a crash the journal still has the original, so that
`xtc release --all`, the next sweep or the next daemon removes the cap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from common.units import CapFraction, Seconds
from training.recording.sweep_model import Span
from training.sweep.watch import PATIENCE, MeasureError, Period, Watch
from xtc.actuator.base import Actuator
from xtc.actuator.places import takes_over
from xtc.config.plan import RouterPlan
from xtc.control.binding import binds
from xtc.errors import Gone, Permanent
from xtc.libvirt.hypervisors import Hypervisors
from xtc.manager.cap import CapController, CapView
from xtc.manager.router import OpenActuator
from xtc.spec import ActuatorSpec, DeadlineSpec, Original
from xtc.state.journal import Entry, Journal, Ledger

RESTORE_S = Seconds(10.0)
"""How long to wait at the end for a hypervisor to restore the cap."""
UNDERWAY_S = Seconds(10.0)
"""How long a cap may take to come into force, however short the period is."""
PAUSE_S = Seconds(0.2)
CHECK = "check its interfaces with `xtc config check`"
AGAIN = "see whether its hypervisor hangs, and run the sweep again: it goes on where it stopped"


@dataclass(frozen=True, slots=True)
class Measured:
    """Result of one period."""

    at: Seconds
    """Its end, on the monotonic clock."""
    throughput: float
    """Packets/s."""
    offered: float | None
    cap: CapFraction | None
    used: CapFraction | None
    binding: bool | None


class OwnPart(Journal):
    """A journal in which this program owns one place's entry, and leaves all others alone.

    An earlier configuration may have written the place in another way: another path or name of it,
    or other settings of its actuator.
    """

    def __init__(self, whole: Journal, spec: ActuatorSpec) -> None:
        self._whole, self._spec = whole, spec

    @property
    def ledger(self) -> Ledger:
        """The journal with this program's entry alone, and no lease, limit or shield."""
        return self._ours(self._whole.ledger)

    @property
    def certain(self) -> Ledger:
        """The durable content of this program's entry."""
        return self._ours(self._whole.certain)

    def _ours(self, whole: Ledger) -> Ledger:
        entries = {n: e for n, e in whole.entries.items() if self._owns(e)}
        return replace(whole, entries=entries, leases={}, limits={}, shields={})

    def _owns(self, entry: Entry) -> bool:
        return takes_over(self._spec, entry.spec, entry.original)

    def check_held(self) -> None:
        """Check that this program still holds the whole journal. Raises TakenOver."""
        self._whole.check_held()

    def keep(self, name: str, data: bytes) -> None:
        """Store nothing: the daemon does not use what a measurement's loop learns."""

    def store(self, ledger: Ledger) -> None:
        """Make this program's entry durable; leases of a measurement end with it.

        Raises:
            JournalError: the disk is full or read-only.
        """
        whole = self._whole.ledger
        others = {n: e for n, e in whole.entries.items() if not self._owns(e)}
        ours: dict[str, Entry] = {}
        for name, entry in ledger.entries.items():
            free = name
            while free in others:
                free += "'"  # no router of a configuration can have such a name
            ours[free] = entry
        self._whole.store(replace(whole, entries=others | ours))


class Bench:
    """Caps one router and samples it; entering releases what an earlier run left capped.

    Raises:
        ActuatorError: the router cannot be capped.
        JournalError: the original cannot be made durable.
    """

    def __init__(
        self,
        plan: RouterPlan,
        *,
        watch: Watch,
        journal: Journal,
        open_actuator: OpenActuator,
        hypervisors: Hypervisors,
    ) -> None:
        self._plan, self._watch = plan, watch
        self._journal, self._hypervisors = OwnPart(journal, plan.spec), hypervisors
        self._open_actuator = open_actuator
        self._actuator: Actuator | None = None
        self._controller = CapController(plan.spec, self._open)
        self._wanted: CapFraction | None = None
        self._underway = False
        """Whether the last period ended before the cap was in force."""

    def _open(self, spec: ActuatorSpec, original: Original | None) -> Actuator:
        self._actuator = self._open_actuator(spec, original)
        return self._actuator

    def __enter__(self) -> Self:
        clear(self._plan, self._journal, self._open_actuator, self._watch, self._hypervisors)
        self._retried(self._controller.prepare)
        self._remember()
        return self

    def __exit__(self, *_: object) -> None:
        restored(self._plan.name, self._controller, self._watch, self._hypervisors)
        self._journal.store(replace(self._journal.ledger, entries={}))

    def _remember(self) -> bool:
        """Make the original durable; return whether it changed.

        Raises:
            JournalError: the disk is full or read-only.
        """
        original = self._controller.original
        assert original is not None  # prepare() has captured it
        entry = Entry(self._plan.spec, original)
        if entry in self._journal.ledger.entries.values():
            return False
        self._journal.store(replace(self._journal.ledger, entries={self._plan.name: entry}))
        return True

    def _set(self, cap: CapFraction) -> None:
        """Write a cap once the current one is durable: it may have changed since the capture."""
        if not self._controller.prepare():
            return
        self._remember()
        if (
            not self._controller.set(cap)
            and self._controller.original is not None
            and self._remember()
        ):
            self._controller.set(cap)

    def _retried(self, work: Callable[[], object]) -> None:
        """Retry for some periods an operation that may still succeed.

        Raises:
            ActuatorError: it did not.
        """
        for _ in range(PATIENCE):
            self._controller.retry()
            work()
            problem = self._controller.problem
            if problem is None:
                return
            if isinstance(problem, Permanent | Gone):
                raise problem
            self._watch.next()
        assert self._controller.problem is not None  # every try failed
        raise self._controller.problem

    @property
    def span(self) -> Span:
        """The allowed caps: at most the router's original cap.

        Raises:
            ActuatorError: the original cannot be read.
        """
        assert self._actuator is not None  # __enter__ has opened it
        assert self._controller.limits is not None
        limits, found = self._controller.limits, self._actuator.applied()
        floor = max(limits.floor, self._plan.floor or limits.floor)
        most = (limits.ceiling, self._plan.ceiling, found)
        ceiling = min(cap for cap in most if cap is not None)
        return Span(min(floor, ceiling), ceiling, limits.quantum)

    def cap(self, cap: CapFraction) -> None:
        """Put a cap in force.

        Raises:
            ActuatorError: it cannot be.
            JournalError: the original changed, and cannot be made durable.
        """
        self._wanted = cap
        self._retried(lambda: self._set(cap))

    def sample(self) -> Measured:
        """Return the sample of the next period with the cap in force from beginning to end.

        Raises:
            Stopped: a stop was requested.
            MeasureError: there is no throughput, the cap does not come into force, or another
                program changes it.
            ActuatorError: the cap cannot be read.
        """
        problems: tuple[str, ...] = ("the meter is late",)
        fix, nothing = CHECK, None
        for period in self._periods():
            view, reading = self._view(period), period.reading
            if not self._in_force():
                problems, fix = ("the cap is still under way",), AGAIN
            elif reading is not None and reading.throughput is not None and view is not None:
                throughput, offered = reading.throughput, reading.offered
                binding = binds(view.evidence(throughput, offered, cap=view.cap))
                seen = (view.cap, view.used, binding)
                measured = Measured(period.at, throughput, offered, *seen)
                if throughput > 0:
                    return measured
                nothing = measured  # a dying router forwards nothing before it is detected
            else:
                problems, fix = (reading and reading.problems) or problems, CHECK
        if nothing is not None:
            return nothing
        if self._controller.problem is not None:
            raise self._controller.problem
        raise MeasureError(self._plan.name, "; ".join(problems), fix)

    def _periods(self) -> Iterator[Period]:
        """Yield some periods; a hypervisor gets seconds to apply a cap, however short they are.

        Raises:
            Stopped: a stop was requested.
            MeasureError: the source, or a program of the lab, has ended by itself.
        """
        until, tries = self._watch.clock.now() + UNDERWAY_S, 0
        while tries < PATIENCE:
            yield self._watch.next()
            tries += not (self._underway and self._watch.clock.now() < until)

    def _in_force(self) -> bool:
        """Whether the cap was in force during the whole period: a hypervisor may be slow."""
        before = self._underway
        self._underway = self._actuator is not None and not self._actuator.settle()
        return not before and not self._underway

    def _view(self, period: Period) -> CapView | None:
        self._controller.begin_period()
        view = self._controller.view(period.at)
        if self._controller.yielded:
            fix = "find out who, and run the sweep again: it goes on where it stopped"
            raise MeasureError(self._plan.name, "another process keeps changing the cap", fix)
        if isinstance(self._controller.problem, Permanent | Gone):
            raise self._controller.problem
        self._hold()
        return view

    def _hold(self) -> None:
        """Apply the cap again if it is no longer in force, as a loop does every period."""
        if self._wanted is None or self._actuator is None:
            return
        self._set(self._wanted)
        if isinstance(self._plan.spec, DeadlineSpec):
            self._actuator.apply(self._wanted)  # applying it determines its threads' shares


def clear(
    plan: RouterPlan,
    journal: Journal,
    open_actuator: OpenActuator,
    watch: Watch,
    hypervisors: Hypervisors,
) -> None:
    """Release what an earlier run, or a daemon, left in this router's entry.

    Raises:
        ActuatorError: it cannot be released.
        JournalError: the journal cannot be written.
    """
    for name, entry in journal.ledger.entries.items():
        if takes_over(plan.spec, entry.spec, entry.original):
            controller = CapController(entry.spec, open_actuator, original=entry.original)
            restored(name, controller, watch, hypervisors)
            rest = {n: e for n, e in journal.ledger.entries.items() if n != name}
            journal.store(replace(journal.ledger, entries=rest))


def restored(name: str, controller: CapController, watch: Watch, hypervisors: Hypervisors) -> None:
    """Restore the original; a hypervisor gets some seconds for it.

    Raises:
        MeasureError: it could not be restored; the journal still has it.
    """
    clock = watch.clock
    until = clock.now() + RESTORE_S
    while not controller.release():
        if clock.now() > until or isinstance(controller.problem, Permanent):
            fix = "fix that, then run `xtc release --all`"
            raise MeasureError(name, f"is still capped: {controller.problem}", fix)
        clock.sleep(PAUSE_S)
        hypervisors.supervise()

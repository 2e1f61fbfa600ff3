"""The manager through any history: what it caps is in the journal, and can always be put back."""

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from manager_rig import PAPER
from simulated_rig import Faults, FaultyActuator, Rig, plan

from common.units import CapFraction, Seconds
from xtc.actuator.base import Actuator
from xtc.errors import Admission, Denied, Permanent, Transient, Unsupported
from xtc.lease import Kind
from xtc.manager.cap import MAX_BACKOFF
from xtc.manager.reports import report as report_of
from xtc.modes import Mode
from xtc.spec import ActuatorSpec, Original, SimulatedSpec
from xtc.state.journal import Journal, _decode
from xtc.wire import Activate, Answer, Deactivate, Envelope, Limit, Pause, Request, Resume, encode

NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
caps = st.none() | st.floats(0.05, 1.0).map(CapFraction)
errors = st.sampled_from([Transient, Permanent, Unsupported, Denied, Admission])


class Witness:
    """Sees every write to the plant, and knows what stood there before our first."""

    def __init__(self) -> None:
        self.captured: dict[str, Original] = {}
        self.owned: dict[str, Original] = {}


class WitnessedActuator(FaultyActuator):
    """A simulated actuator under the eyes of the witness."""

    def __init__(self, name: str, real: Actuator, faults: Faults, witness: Witness) -> None:
        super().__init__(name, real, faults)
        self._witness = witness

    def capture(self) -> Original:
        original = super().capture()
        assert self._name not in self._witness.owned, "a cap of ours is taken for an original"
        self._witness.captured[self._name] = original
        return original

    def apply(self, cap: CapFraction) -> CapFraction:
        got = super().apply(cap)
        assert self.limits.floor <= got <= self.limits.ceiling
        self._witness.owned.setdefault(self._name, self._witness.captured[self._name])
        return got

    def restore(self, original: Original) -> None:
        super().restore(original)
        assert self._witness.owned.pop(self._name, original) == original


class WitnessedRig(Rig):
    """A rig whose actuators are all witnessed."""

    def __init__(self, directory: Path) -> None:
        self.witness = Witness()
        super().__init__(directory, {"a": plan("a"), "b": plan("b", 30e3), "c": plan("c")})

    def open(self, spec: ActuatorSpec, original: Original | None) -> Actuator:
        assert isinstance(spec, SimulatedSpec)
        super().open(spec, original)
        if original is not None:  # the journal's, which outlives a release that was not durable
            self.witness.captured[spec.plant] = original
        real = self.plant.actuator(spec.plant)
        return WitnessedActuator(spec.plant, real, self.faults, self.witness)


class ManagerMachine(RuleBasedStateMachine):
    """Routers come and go, actuators fail, disks fill up, and daemons die at any point."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.rig = WitnessedRig(Path(self.directory.name))
        self.full = patch.object(os, "fsync", side_effect=OSError(28, "No space left on device"))
        self.disk_is_full = False
        self.epoch = self.sequence = 0

    def teardown(self) -> None:
        self.mend_everything()
        self.rig.crash()
        self.directory.cleanup()

    def ask(self, request: Request) -> bool:
        """Send a request; whether it was carried out."""
        return isinstance(self.rig.manager.handle(encode(Envelope(request))).result, Answer)

    def mend_everything(self) -> None:
        self.rig.faults.errors.clear()
        self.rig.limiter.error = None
        if self.disk_is_full:
            self.full.stop()
            self.disk_is_full = False

    @rule(periods=st.sampled_from([1, 2, 6, 33]))
    def time_passes(self, periods: int) -> None:
        self.rig.tick(periods)

    @rule(vr=names, setpoint=st.floats(1e3, 9e4), ttl=st.none() | st.floats(2, 40))
    def the_leader_activates(self, vr: str, setpoint: float, ttl: float | None) -> None:
        """Its orders are in order, so that only a host that cannot do it says no."""
        self.sequence += 1
        self.ask(Activate(vr, setpoint, self.epoch, self.sequence, ttl))
        self.rig.tick(2)

    @rule(
        vr=names,
        epoch=st.integers(0, 3),
        sequence=st.integers(0, 3),
        ttl=st.none() | st.floats(2, 40),
        kind=st.sampled_from(Kind),
    )
    def somebody_activates(
        self, vr: str, epoch: int, sequence: int, ttl: float | None, kind: Kind
    ) -> None:
        if self.ask(Activate(vr, 2e4, epoch, sequence, ttl, kind)):
            assert epoch >= self.epoch, "a lower epoch was obeyed"
            self.epoch = epoch

    @rule(vr=names)
    def deactivate(self, vr: str) -> None:
        self.ask(Deactivate(vr))

    @rule(vr=names, paused=st.booleans())
    def pause_or_resume(self, vr: str, paused: bool) -> None:
        self.ask(Pause(vr) if paused else Resume(vr))

    @rule(vr=names, rate=st.none() | st.floats(1e3, 1e6))
    def limit(self, vr: str, rate: float | None) -> None:
        self.ask(Limit(vr, rate))

    @rule(vr=names, cap=caps)
    def somebody_else_sets_a_cap(self, vr: str, cap: CapFraction | None) -> None:
        self.rig.plant.routers[vr].cap = cap

    @rule(
        vr=names,
        call=st.sampled_from(["restore", "apply", "applied", "capture", "open"]),
        kind=errors,
    )
    def an_actuator_fails(self, vr: str, call: str, kind: type[Transient | Permanent]) -> None:
        self.rig.faults.errors[vr, call] = kind(vr, "on purpose")

    @rule(vr=names, kind=errors)
    def a_release_fails(self, vr: str, kind: type[Transient | Permanent]) -> None:
        self.the_leader_activates(vr, 2e4, None)
        self.an_actuator_fails(vr, "restore", kind)
        self.deactivate(vr)

    @rule()
    def a_limiter_fails(self) -> None:
        self.rig.limiter.error = Transient("eth0", "on purpose")

    @precondition(lambda self: not self.disk_is_full)
    @rule()
    def the_disk_fills_up(self) -> None:
        self.full.start()
        self.disk_is_full = True

    @rule()
    def everything_is_mended(self) -> None:
        self.mend_everything()

    @rule(vr=names, cap=caps)
    def a_router_is_replaced(self, vr: str, cap: CapFraction | None) -> None:
        """It stays away until that was noticed, as an actuator knows a router only by its name."""
        self.rig.plant.routers.pop(vr, None)
        self.rig.witness.owned.pop(vr, None)
        self.mend_everything()
        self.rig.tick(MAX_BACKOFF + 1)
        self.rig.plant.add(vr, PAPER).cap = cap

    @rule(vr=names)
    def counters_are_reset(self, vr: str) -> None:
        self.rig.plant.routers[vr].forwarded = 0.0

    @rule(periods=st.sampled_from([1, 6, 33]))
    def the_meter_is_blind(self, periods: int) -> None:
        self.rig.blind = True
        self.rig.tick(periods)
        self.rig.blind = False

    @rule(configured=st.sets(names, min_size=1), setpoint=st.none() | st.floats(1e3, 9e4))
    def reload(self, configured: set[str], setpoint: float | None) -> None:
        self.rig.plans = {name: plan(name, setpoint) for name in sorted(configured)}
        self.rig.manager.reconfigure(self.rig.plans, max_release_share=1.0)

    @rule(away=st.sampled_from([0.0, 30.0]))
    def crash_and_restart(self, away: float) -> None:
        self.rig.crash()
        self.rig.clock.sleep(Seconds(away))
        self.rig.start()

    @rule()
    def stop_and_release(self) -> None:
        self.mend_everything()
        assert self.rig.manager.stop(release=True) == []
        self.rig.tick(MAX_BACKOFF)
        self.nothing_is_owned()
        self.rig.restart()

    @rule()
    def crash_and_release_all(self) -> None:
        """What `xtc release --all` does: the journal alone is enough to put everything back."""
        self.mend_everything()
        self.rig.crash()
        with Journal(self.rig.directory) as journal:
            for entry in journal.ledger.entries.values():
                assert isinstance(entry.spec, SimulatedSpec)
                self.rig.open(entry.spec, entry.original).restore(entry.original)
        self.nothing_is_owned()
        self.rig.start()

    def nothing_is_owned(self) -> None:
        assert self.rig.witness.owned == {}

    @invariant()
    def every_cap_of_ours_is_in_the_journal_with_its_true_original(self) -> None:
        if not self.rig.witness.owned:
            return
        raw = (self.rig.directory / "journal").read_bytes()
        entries = [(entry.spec, entry.original) for entry in _decode(raw).entries.values()]
        for name, original in self.rig.witness.owned.items():
            assert (SimulatedSpec(name), original) in entries

    @invariant()
    def what_is_called_released_is_released_or_said_to_be_in_trouble(self) -> None:
        for name, managed in self.rig.manager.routers.items():
            report = report_of(managed, self.rig.clock.now())
            if report.mode is Mode.RELEASED and name in self.rig.witness.owned:
                assert report.problem


TestManager = ManagerMachine.TestCase
TestManager.settings = settings(deadline=None, stateful_step_count=40)

"""Whatever befalls hypervisors, domains and daemons: every cap can be undone, and in the end is."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import structlog
from fake_guest import FakeLibvirtError
from fake_libvirt import FakeHost
from hypothesis import example, given
from hypothesis import strategies as st
from libvirt_rig import LibvirtRig, plan
from virt_rig import idle_threads, until

from xtc.libvirt import pool
from xtc.libvirt.session import CALL_DEADLINE_S
from xtc.manager.cap import MAX_BACKOFF
from xtc.wire import Activate, Answer, Deactivate, Envelope, Pause, Request, Resume, encode

HOST = "qemu:///system"
NAMES = ("gold", "silver")
FREE = {"vcpu_period": 100_000, "vcpu_quota": -1}
OWN = {"vcpu_period": 100_000, "vcpu_quota": 50_000}
CALLS = (
    "lookupByUUIDString",
    "setMetadata",
    "setSchedulerParametersFlags",
    "schedulerParametersFlags",
    "XMLDesc",
    "metadata",
    "info",
    "listAllDomains",
)

REQUESTS: dict[str, Callable[[str], Request]] = {
    "activate": lambda name: Activate(name, 20e3),
    "deactivate": Deactivate,
    "pause": Pause,
    "resume": Resume,
}
names, calls = st.sampled_from(NAMES), st.sampled_from(CALLS)
times = st.integers(min_value=1, max_value=3)
steps = st.one_of(
    st.tuples(st.just("tick"), st.integers(min_value=1, max_value=4)),
    st.tuples(st.just("tick"), st.just(int(CALL_DEADLINE_S) + 2)),
    st.tuples(st.sampled_from(sorted(REQUESTS)), names),
    st.tuples(st.just("restart"), names, st.booleans(), st.booleans()),
    st.tuples(st.just("stop"), names),
    st.tuples(st.just("meddle"), names),
    st.tuples(st.just("fail"), calls, st.sampled_from([1, 3, 38, 42, 55, 68, 88]), times),
    st.tuples(st.just("drop"), calls, st.sampled_from(["before", "after"])),
    st.tuples(st.just("lie"), names),
    st.tuples(st.just("freeze"), calls),
    st.just(("thaw",)),
    st.just(("libvirtd",)),
    st.just(("daemon",)),
)


class Story(LibvirtRig):
    """Two domains of one hypervisor, to which things happen."""

    def __init__(self, directory: Path) -> None:
        self.fake = FakeHost("QEMU")
        self.own = dict.fromkeys(NAMES, FREE)
        """What each domain had before xtc, in the run that it has."""
        plans = {name: plan(name, HOST) for name in NAMES}
        super().__init__(directory, {HOST: self.fake}, plans, patience=0.0)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The hypervisors that must not be waited for."""
        frozen = any(fault.thawed for fault in self.fake.faults.values())
        return () if self.fake.up and not frozen else (HOST,)

    def do(self, step: tuple[object, ...]) -> None:
        """Let one thing happen."""
        match step:
            case ("tick", int(periods)):
                self.tick(periods, hung=self.stuck)
            case ("daemon",) if not self.stuck:
                self.crash()
                until(self.boards[-1], lambda: idle_threads() == 0)
                self.start()
            case (str(what), str(name)) if what in REQUESTS:
                self.manager.handle(encode(Envelope(REQUESTS[what](name))))
            case ("restart", str(name), bool(own), bool(silent)):
                self.begin(name, own=own, silent=silent)
            case ("stop", str(name)):
                self.fake.destroy(name)
            case ("meddle", str(name)) if self.mark(name):
                self.guest(name).parameters |= {"vcpu_quota": 9000}
            case ("daemon",) | ("meddle", _):
                pass  # not now
            case _:
                self.do_to_libvirtd(step)

    def do_to_libvirtd(self, step: tuple[object, ...]) -> None:
        """Let something go wrong, or come right again."""
        match step:
            case ("fail", str(call), int(code), int(count)):
                self.fake.fail("*", call, error=FakeLibvirtError(code, "on purpose"), times=count)
            case ("drop", str(call), str(when)):
                self.fake.fail("*", call, drop=when, times=1)
            case ("lie", str(name)):
                self.fake.fail(name, "setSchedulerParametersFlags", lie={}, times=2)
            case ("freeze", str(call)):
                self.fake.thaw()
                self.fake.freeze("*", call)
            case ("thaw",):
                self.fake.thaw()
            case ("libvirtd",):
                self.fake.crash() if self.fake.up else self.fake.come_back()
            case _:
                raise AssertionError(step)

    def begin(self, name: str, *, own: bool, silent: bool) -> None:
        """Start a domain anew, with a cap of its own or without; the event may be missed."""
        self.fake.silent = silent
        self.fake.destroy(name)
        self.fake.start(name)
        self.own[name] = OWN if own else FREE
        self.guest(name).parameters |= self.own[name]
        self.fake.silent = False

    def check(self) -> None:
        """Every cap that is not the domain's own can be undone: journal or mark know what was."""
        for name in NAMES:
            if self.guest(name).domid < 0 or self.as_it_was(name):
                continue
            assert self.own[name] in (self.entry(name), self.mark(name)), name

    def as_it_was(self, name: str) -> bool:
        return self.guest(name).parameters.items() >= self.own[name].items()

    def come_to_rest(self) -> None:
        """End all that is wrong, and ask for a release; it may take as long as a backoff."""
        self.fake.thaw()
        self.fake.come_back()
        self.answers()
        result = self.manager.handle(encode(Envelope(Deactivate(None)))).result
        self.answers()
        self.tick(MAX_BACKOFF + 4)
        if not isinstance(result, Answer):
            result = self.manager.handle(encode(Envelope(Deactivate(None)))).result
        assert isinstance(result, Answer), result


NO_DOMAIN = ("fail", "setSchedulerParametersFlags", 42, 1)
"""libvirt calls a domain gone that is there."""


@example([NO_DOMAIN, ("tick", 1), ("tick", 1)])
@example([("restart", "gold", False, False), NO_DOMAIN, ("tick", 3)])
@given(st.lists(steps, max_size=25))
def test_every_cap_can_be_undone_and_in_the_end_is(story: list[tuple[object, ...]]) -> None:
    tell([("activate", "gold"), ("tick", 3), *story])


def tell(story: list[tuple[object, ...]]) -> None:
    """Let a story happen, from a first router that is capped on."""
    pool.BACKOFF_S, before = (0.005,), pool.BACKOFF_S
    with (
        tempfile.TemporaryDirectory() as directory,
        structlog.testing.capture_logs() as logs,
    ):
        rig = Story(Path(directory))
        try:
            for step in story:
                rig.do(step)
                rig.check()
            assert rig.fake.made("setSchedulerParametersFlags")
            rig.come_to_rest()
            for name in NAMES:
                assert rig.guest(name).domid < 0 or rig.as_it_was(name), name
                assert rig.mark(name) is rig.entry(name) is None, name
            assert not [entry for entry in logs if entry["event"] == "unexpected_error"]
            assert rig.calls_of_this_thread() == []
        finally:
            rig.end()
            pool.BACKOFF_S = before

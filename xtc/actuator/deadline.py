"""SCHED_DEADLINE on threaded NAPI: caps routers that forward in the host's kernel."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from common.clock import Clock, MonotonicClock
from common.units import CapFraction, Seconds
from xtc.actuator.base import CapLimits, CpuUsage
from xtc.actuator.explain import explain_admission, explain_namespace, explain_scheduling
from xtc.actuator.share import is_worth, split
from xtc.errors import ActuatorError, Admission, Gone, Permanent, Transient
from xtc.kernel import forwarding
from xtc.kernel.cputime import ThreadTimes
from xtc.kernel.following import Following, steadily
from xtc.kernel.namespaces import cookie, in_namespace
from xtc.kernel.reserved import reserved
from xtc.kernel.rtlink import Link
from xtc.kernel.scheduling import (
    SCHED_DEADLINE,
    deadline_policy,
    get_policy,
    set_policy,
)
from xtc.spec import (
    DeadlineOriginal,
    DeadlineSpec,
    InterfaceOriginal,
    Original,
    ThreadPolicy,
)

THREAD_FLOOR: Final = 0.0005
"""The smallest share of one thread: an idle interface keeps it to answer a first packet."""
_FLOOR: Final = 0.001
_MIN_RUNTIME_NS: Final = 5_000  # well above the kernel's 1024 ns, and above one packet's cost
_FAIR_SERVER: Final = 0.05  # the kernel's own reservation for each CPU's ordinary threads,
_FAIR_SINCE: Final = (6, 12)  # since this Linux (kernel/sched/fair.c, fair_server_init)
_NUMBERS: Final = re.compile("[0-9]+")
_QUIET: Final = 0.005  # 5 us in each ms: an occasional packet waits no longer than that
_LOOK_S: Final = Seconds(0.9)  # every tick of 1 s, despite jitter: the tenant may undo them
_CHECK_S: Final = Seconds(5.0)  # the other ends belong to the host or to another tenant
_TAKEN: Final = "another network namespace has taken this name"
_WINDOW: Final = Seconds(0.2)  # usage measured over a shorter time says little about need

_Result = TypeVar("_Result")


class DeadlineActuator:
    """Caps the NAPI threads of a router's interfaces (Linux, sched-deadline.rst, napi.rst).

    The cap is split over the threads by measured need. It is a reservation as well as a cap: the
    kernel reserves at most 95 % of the CPUs in all and refuses more.
    """

    def __init__(
        self,
        spec: DeadlineSpec,
        original: DeadlineOriginal | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Check the namespace; ``original`` is its journal entry, if any.

        Raises:
            Gone: there is no such namespace, or not the one in the journal.
            Denied: the daemon may not enter it.
            Unsupported: the kernel is older than Linux 5.14.
        """
        self._spec, self._original = spec, original
        self._clock = clock or MonotonicClock()
        self._times = ThreadTimes()
        self._cap: CapFraction | None = None
        """The last cap applied."""
        self._shares: dict[int, float] = {}
        """Each thread's share of it, as the kernel accepted it."""
        self._doubtful = False
        """Whether the kernel may have given threads shares other than these."""
        self._checked = self._clock.now()
        """When the switches of the interfaces' other ends were last checked."""
        self._looked = self._checked
        """When the switches of its own interfaces were last checked."""
        self._complete = False  # whether every interface's threads are followed
        self._since, self._used_then = self._clock.now(), dict[int, Seconds]()
        self._following, self._indexes = Following(spec.interfaces), frozenset[int]()
        self._cookie = self._inside(cookie, identified=False)
        if original is not None:
            if original.cookie not in {0, self._cookie}:
                raise Gone(spec.netns, _TAKEN)
            self._following.know({item.interface: item.ifindex for item in original.interfaces})
        self._limits, self._thread_ceiling = _limits(len(spec.interfaces))
        self._room = room_of(os.cpu_count() or 1, self._thread_ceiling, os.uname().release)

    @property
    def limits(self) -> CapLimits:
        """0.1 % (0.05 % an interface) to what the kernel reserves for deadline threads."""
        return self._limits

    @property
    def slow(self) -> bool:
        """False: a call takes microseconds, or a few milliseconds after threads have changed."""
        return False

    def settle(self) -> bool:
        """Return True: caps take effect immediately."""
        return True

    def capture(self) -> DeadlineOriginal:
        """Return GRO, threaded NAPI and thread policy of each interface before xtc.

        Settings in the journal take precedence: the current ones may be xtc's own.
        """
        known = self._original.interfaces if self._original else ()
        captured = {item.interface for item in known}
        fresh: tuple[InterfaceOriginal, ...] = ()
        if not captured.issuperset(self._spec.interfaces):
            fresh = self._on_links(partial(_capture, captured))
        return DeadlineOriginal((*known, *fresh), self._spec.netns, self._cookie)

    def applied(self) -> CapFraction | None:
        """Return the sum of the threads' shares, None where one of them is not capped.

        A thread that ended since the cap was applied still counts: a router that takes an interface
        down does not change the shares of the others.
        """
        self._follow(forwarding.threads)
        try:
            policies = {tid: self._on_thread(get_policy, tid) for tid in self._times.tids}
        except ProcessLookupError:
            return None  # ended just now; its successor is not capped yet
        given = {
            tid: share_of(p) if p.policy == SCHED_DEADLINE else None for tid, p in policies.items()
        }
        self._doubtful |= any(given[tid] != self._shares.get(tid) for tid in given)
        if not policies or None in given.values():
            return None
        ended = (share for tid, share in self._shares.items() if tid not in policies)
        return CapFraction(sum(map(share_of, policies.values())) + sum(ended))

    def apply(self, cap: CapFraction) -> CapFraction:
        """Split a cap, as a fraction of one CPU, over the threads; return the value read back.

        Switches GRO and threaded NAPI on where they are off, and finds threads that were created
        again (`ip link set down` and `up` does that).

        Raises:
            Gone: the namespace or every interface no longer exists, or one was never there.
            Admission: the kernel has no CPU time left to reserve.
            Denied: no CAP_SYS_NICE, or a thread is pinned to some of the CPUs.
            Transient: none of the interfaces is up, or they keep changing.
            Unsupported: an interface has no NAPI, or this kernel lacks something needed.
        """
        wanted = self._limits.bound(cap, target=self._spec.netns)
        if wanted != self._cap or self._clock.now() - self._looked >= _LOOK_S:
            self._looked = self._clock.now()
            self._check_switches()
        self._follow(forwarding.enable)
        try:
            return self._cap_threads(wanted)
        except ProcessLookupError:
            self._complete = False  # ended just now: search again
        self._follow(forwarding.enable)
        try:
            return self._cap_threads(wanted)
        except ProcessLookupError as error:
            raise Transient(self._spec.netns, "its NAPI threads keep ending") from error

    def rebalance(self) -> CapFraction | None:
        """Split the cap in force again: the need of each thread may have changed."""
        return None if self._cap is None else self.apply(self._cap)

    def usage(self) -> CpuUsage:
        """Return the threads' CPU time since xtc began to follow them.

        This is the sum of all threads. A thread that uses up its share while others are idle needs
        a larger share, which it gets at the next tick, not a larger cap.
        """
        self._follow(forwarding.threads)
        if not self._times.tids:
            return CpuUsage(used=None, throttled=None)
        self._times.read()
        return CpuUsage(used=self._times.total, throttled=None)

    def _check_switches(self) -> None:
        """Check that the switches on which the cap depends are still on.

        The tenant may switch them off at any time in its own namespace, and so may the owner of the
        other ends.
        """
        if not self._complete:
            return  # they are corrected anyway
        peers = self._clock.now() - self._checked >= _CHECK_S
        if peers:
            self._checked = self._clock.now()
        self._complete = self._on_links(partial(self._stands, peers=peers))

    def _stands(self, links: Mapping[str, Link], *, peers: bool) -> bool:
        found = links.values()
        same = self._indexes == {link.index for link in found}
        return (
            same and forwarding.stands(found) and not (peers and not forwarding.peers_stand(found))
        )

    def restore(self, original: Original) -> None:
        """Restore policy, threaded NAPI and GRO; what no longer exists counts as restored.

        Raises:
            Permanent: the original belongs to another actuator.
            Transient: an interface is down, so that its NAPI cannot be switched.
        """
        if not isinstance(original, DeadlineOriginal):
            raise Permanent(self._spec.netns, f"cannot restore a {type(original).__name__}")
        self._times.follow(())
        self._cap, self._shares, self._complete = None, {}, False
        try:
            waiting = self._inside(partial(self._put_back, original.interfaces))
        except Gone:
            return  # it is gone, and our settings with it
        if waiting:
            names = ", ".join(waiting)
            raise Transient(self._spec.netns, f"{names}: threaded NAPI waits for ip link set up")

    def _put_back(self, originals: tuple[InterfaceOriginal, ...]) -> tuple[str, ...]:
        self._following.know({item.interface: item.ifindex for item in originals})
        names = tuple(item.interface for item in originals)
        return steadily(
            lambda: self._following.present(names),
            lambda links: forwarding.put_back(
                replace(item, interface=links[item.interface].name)
                for item in originals
                if item.interface in links
            ),
        )

    def _follow(self, find: Callable[[Iterable[str]], Mapping[str, tuple[int, ...]]]) -> None:
        """Make sure that all threads are followed."""
        before = self._times.tids
        if self._complete and len(self._times.read()) == len(before):
            return
        found = self._on_links(partial(self._found, find))
        self._times.follow(tid for tids in found.values() for tid in tids)
        if self._times.tids != before:  # their usage is measured from here on
            self._since, self._used_then = self._clock.now(), self._times.read()
        self._complete = all(found.values())

    def _found(
        self,
        find: Callable[[Iterable[str]], Mapping[str, tuple[int, ...]]],
        links: Mapping[str, Link],
    ) -> Mapping[str, tuple[int, ...]]:
        self._indexes = frozenset(link.index for link in links.values())
        return find([link.name for link in links.values()])

    def _cap_threads(self, cap: CapFraction) -> CapFraction:
        used = self._times.read()
        if not used:
            names = ", ".join(self._spec.interfaces)
            raise Transient(self._spec.netns, f"no NAPI thread: none of {names} is up")
        previous = [self._shares.get(tid, cap / len(used)) for tid in used]
        usages = self._usages(used)
        floor = least_share(cap, len(used))
        shares = split(cap, usages or previous, previous, floor, self._thread_ceiling)
        known = not self._doubtful and self._shares.keys() == used.keys()
        stands = known and cap == self._cap
        if stands and not (usages and is_worth(shares, usages, previous)):
            return CapFraction(sum(previous))
        self._doubtful = True
        self._give(dict(zip(used, shares, strict=True)))
        self._shares = {tid: share_of(self._on_thread(get_policy, tid)) for tid in used}
        self._cap, self._doubtful = cap, False
        return CapFraction(sum(self._shares.values()))

    def _give(self, shares: Mapping[int, float]) -> None:
        """Give each thread its share; if the kernel refuses any, all keep their previous shares."""
        # shares that shrink come first, so that the sum never exceeds the reservation limit
        order = sorted(shares, key=lambda tid: shares[tid] - self._shares.get(tid, 0.0))
        try:
            for tid in order:
                self._give_one(tid, shares[tid])
        except Admission as refused:
            for tid in reversed(order):
                if tid in self._shares:
                    self._give_one(tid, self._shares[tid])
            raise self._no_room(shares) from refused

    def _no_room(self, shares: Mapping[int, float]) -> ActuatorError:
        """Return the meaning of the kernel's refusal, with the room that other threads leave."""
        others = reserved(shares)
        wanted = sum(shares.values())
        return explain_admission(self._spec.netns, wanted, others=others, room=self._room)

    def _give_one(self, tid: int, share: float) -> None:
        self._on_thread(set_policy, tid, policy_for(share, self._spec.period_us))

    def _usages(self, used: Mapping[int, Seconds]) -> list[float]:
        """Return each thread's recent CPU usage; nothing while the measurement is too short."""
        elapsed = self._clock.now() - self._since
        if elapsed < _WINDOW:
            return []
        then, self._since, self._used_then = self._used_then, self._clock.now(), dict(used)
        return [(now - then.get(tid, 0.0)) / elapsed for tid, now in used.items()]

    def _on_links(self, work: Callable[[Mapping[str, Link]], _Result]) -> _Result:
        """Work on the router's existing interfaces, by their current names, in its namespace."""
        return self._inside(partial(steadily, self._following.current, work))

    def _inside(self, work: Callable[[], _Result], *, identified: bool = True) -> _Result:
        """Work in the namespace, after checking that it is still the same one."""
        path = self._spec.netns
        try:
            if identified:
                return in_namespace(path, partial(self._same_namespace, work))
            return in_namespace(path, work)
        except OSError as error:
            raise explain_namespace(path, error) from error

    def _same_namespace(self, work: Callable[[], _Result]) -> _Result:
        if cookie() != self._cookie:
            raise Gone(self._spec.netns, _TAKEN)
        return work()

    def _on_thread(self, call: Callable[..., _Result], tid: int, *arguments: object) -> _Result:
        try:
            return call(tid, *arguments)
        except ProcessLookupError:
            raise
        except OSError as error:
            raise explain_scheduling(self._spec.netns, error) from error


def _capture(known: set[str], links: Mapping[str, Link]) -> tuple[InterfaceOriginal, ...]:
    """Return the settings of each interface that is not known, by their configured names."""
    fresh = {link.name: name for name, link in links.items() if name not in known}
    found = forwarding.capture(fresh)
    return tuple(replace(item, interface=fresh[item.interface]) for item in found)


def least_share(cap: CapFraction, threads: int) -> float:
    """Return the share that a thread keeps even if idle, at most an eighth of an equal part.

    An occasional packet in a quiet direction then waits for a period of 1 ms, instead of the long
    period that a tiny share would need.
    """
    return max(THREAD_FLOOR, min(_QUIET, cap / (8 * threads)))


def policy_for(share: float, period_us: int) -> ThreadPolicy:
    """Return the policy that holds a share of one CPU.

    The period is the given one, longer where the runtime would be below 5 us.
    """
    period_ns = max(period_us * 1000, round(_MIN_RUNTIME_NS / share))
    return deadline_policy(runtime_ns=int(share * period_ns), period_ns=period_ns)


def share_of(policy: ThreadPolicy) -> float:
    """Return the share of one CPU that a deadline policy holds."""
    return policy.runtime_ns / policy.period_ns


def ceiling_of(interfaces: int, cpus: int, thread: float, release: str) -> CapFraction:
    """Return the most CPU that the threads of some interfaces can reserve if no others do.

    Args:
        interfaces: how many, with one thread each.
        cpus: of the host.
        thread: the largest share of a CPU that a thread may have, and all threads of all CPUs.
        release: of Linux, from uname(2).
    """
    return CapFraction(min(thread * interfaces, room_of(cpus, thread, release)))


def room_of(cpus: int, thread: float, release: str) -> CapFraction:
    """Return the most CPU that the kernel reserves for all deadline threads of a host."""
    version = tuple(map(int, _NUMBERS.findall(release)[:2]))
    ordinary = _FAIR_SERVER if version >= _FAIR_SINCE else 0.0
    return CapFraction((thread - ordinary) * cpus)


def _limits(interfaces: int) -> tuple[CapLimits, float]:
    kernel = Path("/proc/sys/kernel")
    runtime = int((kernel / "sched_rt_runtime_us").read_text())
    period = int((kernel / "sched_rt_period_us").read_text())
    # -1 switches admission off; even then a deadline thread must leave CPU time to others
    thread = 0.95 if runtime < 0 else min(0.95, runtime / period)
    floor = CapFraction(max(_FLOOR, THREAD_FLOOR * interfaces))
    ceiling = ceiling_of(interfaces, os.cpu_count() or 1, thread, os.uname().release)
    return CapLimits(floor=floor, ceiling=ceiling, volatile=True), thread

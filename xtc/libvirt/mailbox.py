"""The exchange between the loop and the threads, under one lock: orders in, views out.

The loop never waits here for a hypervisor: it posts orders, and reads published views. Threads take
one domain at a time, orders first. A domain has at most one call in progress, so that a hung domain
blocks only one thread. Slow or hung domains are in quarantine, and others continue.
"""

import threading
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from common.clock import Clock
from common.units import Seconds
from xtc.errors import ActuatorError, Gone, Overtaken, Transient
from xtc.libvirt.domains import DomainView, HostView, Operation, Order, Outcome
from xtc.libvirt.quarantine import OVERDUE_S, Quarantine

WORKERS: Final = 4
"""Worker threads, in addition to those blocked by slow or hung domains."""
MOST_WORKERS: Final = 64
"""Maximum worker threads, including those blocked by a hung domain until its call is given up."""
SLOW_AT_ONCE: Final = WORKERS - 1
"""Maximum domains known to be slow that are polled concurrently."""
_SURVEY: Final = "survey"
_NO_TIME: Final = Seconds(0.0)
_IN_DOUBT: Final = "a call timed out; its effect is unknown"
_HANGS: Final = "its calls to libvirt hang: xtc can neither read nor write until one returns"
ANSWER_MEMORY: Final = 0.9
"""Decay per answer of the longest answer time."""


class Mailbox:
    """One connection's mailbox. It accepts one pool and one link of it, and ignores others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._pool: object = None
        self._link: object = None
        self._orders: dict[str, Order] = {}
        self._operations: dict[str, Operation] = {}
        """In progress, over the current link."""
        self._lost: dict[str, Operation] = {}
        """Abandoned and not returned: such an operation may still take effect."""
        self._quarantine = Quarantine()
        self._outcomes: dict[str, Outcome] = {}
        self._outdated: dict[str, Outcome] = {}
        """By domain, the last order that found its original changed: no other of its capture may
        be carried out, even if it comes before the loop knows."""
        self._describe: dict[str, None] = {}
        self._asked: dict[str, Seconds] = {}
        """Domains to poll, with the instant of the request."""
        self._busy: dict[str, Seconds] = {}
        """Start of each operation in progress."""
        self._steps: dict[str, Seconds] = {}
        """Work on connections, not on domains, with its start."""
        self._workers = 0
        """Worker threads on the current link, without those that were given up."""
        self._idle = 0
        """How many of them wait for a domain."""
        self._survey = False
        self._lost_sight = False
        """Whether a domain differed from the list; the next request lists domains again."""
        self._wanted: Callable[[DomainView], bool] = lambda _view: False
        self.view = HostView()
        """What is known; replaced as a whole, and so readable without the lock."""
        self.answer_time = Seconds(0.0)
        """How long a poll of all requested domains takes: the recent maximum."""
        self.version = 0
        """Incremented when domains or their interfaces change."""

    # Called by the loop.

    def want(self, wanted: Callable[[DomainView], bool]) -> None:
        """Set which domains are followed closely."""
        with self._changed:
            self._wanted, self._survey = wanted, True
            self._changed.notify_all()

    def post(self, order: Order) -> None:
        """Queue an order; it replaces one for the same domain that has not begun."""
        with self._changed:
            outdated = self._outdated.get(order.uuid)
            if outdated is not None and _relies_on(order, outdated.order):
                self._settle_outdated(order, outdated)
            elif order.uuid in self.view.domains:
                self._orders[order.uuid] = _instead(self._orders.get(order.uuid), order)
            else:
                self._fail(order, self.view.problem or Gone(order.uuid, "no such domain"))
            self._changed.notify_all()

    def pending(self, uuid: str) -> Order | None:
        """Return a domain's order that is not carried out yet."""
        with self._changed:
            operation = self._operations.get(uuid)
            return self._orders.get(uuid) or (None if operation is None else operation.order)

    def outcome(self, uuid: str) -> Outcome | None:
        """Return the outcome of a domain's last completed order."""
        with self._changed:
            return self._outcomes.get(uuid)

    def wait_until(self, holds: Callable[[], bool], patience: Seconds) -> bool:
        """Wait for a condition that these threads bring about; return whether it holds."""
        with self._changed:
            return self._changed.wait_for(holds, patience)

    def ask(self) -> None:
        """Poll every running domain that is wanted."""
        now = self._clock.now()
        with self._changed:
            for uuid, view in self.view.domains.items():
                if view.active and self._wanted(view):
                    self._asked.setdefault(uuid, now)
            self._survey, self._lost_sight = self._survey or self._lost_sight, False
            self._changed.notify_all()

    def unanswered(self, uuid: str) -> Seconds:
        """Return for how long a domain has not answered a poll."""
        now = self._clock.now()
        with self._changed:
            return Seconds(now - min(self._asked.get(uuid, now), self._busy.get(uuid, now)))

    def longest(self) -> Seconds:
        """Return the duration of the longest work on a connection, not on a domain."""
        now = self._clock.now()
        with self._changed:
            return Seconds(now - min(self._steps.values(), default=now))

    def give_up(self, deadline: Seconds) -> tuple[str, ...]:
        """Give up operations older than the deadline; return the names of their domains."""
        now = self._clock.now()
        with self._changed:
            late = [uuid for uuid, since in self._busy.items() if now - since >= deadline]
            names = tuple(self._give_up(uuid) for uuid in late)
            self._changed.notify_all()
            return names

    def _give_up(self, uuid: str) -> str:
        operation = self._lost[uuid] = self._operations.pop(uuid)
        del self._busy[uuid]
        self._workers -= 1
        self._quarantine.give_up(uuid)
        name = operation.known.name
        if operation.order is not None:
            self._fail(operation.order, Transient(name, _IN_DOUBT))
        view = self.view.domains.get(uuid)
        if view is not None:
            view = replace(view, described=False, problem=Transient(name, _HANGS))
            self.view = replace(self.view, domains={**self.view.domains, uuid: view})
        return name

    def in_doubt(self, uuid: str) -> bool:
        """Whether an abandoned order of a domain has not returned: it may still take effect."""
        with self._changed:
            operation = self._lost.get(uuid)
            return operation is not None and operation.order is not None

    def to_describe(self) -> bool:
        """Whether a wanted domain has not been described yet."""
        with self._changed:
            unseen = (v for v in self.view.domains.values() if v.active and self._wanted(v))
            return any(not view.visited for view in unseen)

    # Called by libvirt's events.

    def note_change(self, uuid: str | None) -> None:
        """Request a new description of a domain, and a new list of domains."""
        with self._changed:
            if uuid is not None and uuid in self.view.domains:
                self._describe[uuid] = None
            self._survey = True
            self._changed.notify_all()

    # Called by pools.

    def employ(self, pool: object) -> None:
        """Accept only this pool; operations of an earlier one are in doubt."""
        with self._changed:
            earlier, self._pool = self._pool, pool
            self._drop(None if earlier is None else Transient("libvirt", _IN_DOUBT))

    def employs(self, pool: object) -> bool:
        """Whether this pool is the current one."""
        return self._pool is pool

    def serves(self, link: object) -> bool:
        """Whether this link is the current one."""
        return self._link is link

    def connecting(self, pool: object) -> None:
        """Note that a connection is being opened or closed, which may block."""
        with self._changed:
            if self._pool is pool:
                self._steps[_SURVEY] = self._clock.now()

    def resting(self, pool: object) -> None:
        """Note that no blocking work is in progress."""
        with self._changed:
            if self._pool is pool:
                self._steps.pop(_SURVEY, None)

    def unreachable(self, pool: object, problem: ActuatorError) -> None:
        """Publish that no connection could be opened."""
        with self._changed:
            if self._pool is pool:
                self._drop(problem)

    def connected(self, pool: object, link: object, driver: str) -> None:
        """Publish a connection; the survey adds its domains."""
        with self._changed:
            if self._pool is pool:
                self._link, self._survey, self._workers = link, True, 0
                self._publish(HostView(driver, connected=True))

    def add_workers(self, link: object) -> int:
        """Return how many workers to add, so that enough are free; they count immediately.

        If all are blocked, each waiting domain gets a new worker, and one stays free.
        """
        now = self._clock.now()
        with self._changed:
            if self._link is not link:
                return 0
            free = self._workers - len(self._overdue(now))
            wanted = WORKERS if free > 0 else max(WORKERS, len(self._waiting(now)) + 1)
            more = max(0, min(wanted - free, MOST_WORKERS - self._workers))
            self._workers += more
            return more

    def keeps_worker(self, link: object) -> bool:
        """Whether a free worker should stay; otherwise it exits, and no longer counts."""
        now = self._clock.now()
        with self._changed:
            if self._link is not link:
                return False
            surplus = self._workers - len(self._overdue(now)) > WORKERS
            leaves = surplus and not self._waiting(now)
            self._workers -= leaves
            return not leaves

    def _overdue(self, now: Seconds) -> list[Seconds]:
        """Return the starts of all overdue operations."""
        return [since for since in self._busy.values() if now - since > OVERDUE_S]

    def _waiting(self, now: Seconds) -> set[str]:
        """Return the domains that need an operation and may have one."""
        wishes = {*self._orders, *self._describe, *self._asked} - self._operations.keys()
        return {
            uuid
            for uuid in wishes - self._lost.keys()
            if uuid in self.view.domains and not self._quarantine.bars(uuid, now)
        }

    def opening(self, link: object, worker: int) -> None:
        """Note that a worker of a link opens its own connection, which may block."""
        with self._changed:
            if self._link is link:
                self._steps[f"worker {worker}"] = self._clock.now()

    def opened(self, link: object, worker: int) -> None:
        """Note that it has opened it."""
        with self._changed:
            if self._link is link:
                self._steps.pop(f"worker {worker}", None)

    def lost(self, link: object, problem: ActuatorError) -> None:
        """Publish that the connection ended: nothing is known."""
        with self._changed:
            if self._link is link:
                self._drop(problem)

    def take_survey(self, link: object, patience: Seconds) -> bool:
        """Wait for a survey to be due; False if the link is no longer current."""
        with self._changed:
            if self._link is not link:
                return False
            self._steps.pop(_SURVEY, None)
            self._changed.wait_for(lambda: self._survey or self._link is not link, patience)
            if self._link is not link:
                return False
            self._survey = False
            self._steps[_SURVEY] = self._clock.now()
            return True

    def surveyed(self, link: object, found: Iterable[DomainView]) -> None:
        """Publish the list of domains; wanted ones are described again."""
        with self._changed:
            if self._link is not link:
                return
            known = self.view.domains
            domains = {new.uuid: _merged(known.get(new.uuid), new) for new in found}
            self._forget({*known, *domains, *self._lost})
            for order in [o for o in self._orders.values() if o.uuid not in domains]:
                self._fail(self._orders.pop(order.uuid), Gone(order.uuid, "no such domain"))
            wanted = [v.uuid for v in domains.values() if v.active and self._wanted(v)]
            self._describe = dict.fromkeys(wanted)
            self._asked = {uuid: at for uuid, at in self._asked.items() if uuid in wanted}
            self._publish(replace(self.view, domains=domains, surveyed=True))

    def _forget(self, kept: AbstractSet[str]) -> None:
        """Forget domains that are gone, after every loop could read the outcome of its order."""
        self._quarantine.keep(kept)
        self._outcomes = {uuid: one for uuid, one in self._outcomes.items() if uuid in kept}
        self._outdated = {uuid: one for uuid, one in self._outdated.items() if uuid in kept}

    def take(self, link: object, patience: Seconds) -> Operation | None:
        """Wait for a domain that needs an operation, and take it; None if there is none."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(
                lambda: self._link is not link or self._next() is not None, patience
            )
            uuid = self._next() if self._link is link else None
            self._idle -= 1
            return None if uuid is None else self._begin(uuid)

    def _begin(self, uuid: str) -> Operation:
        order, describe = self._orders.pop(uuid, None), uuid in self._describe
        self._describe.pop(uuid, None)
        self._busy[uuid] = self._clock.now()
        operation = self._operations[uuid] = Operation(
            self.view.domains[uuid], order, describe=describe
        )
        return operation

    def _next(self) -> str | None:
        """Return the next domain.

        If no more workers can be added, the last free one is reserved for domains that have
        answered since the oldest overdue operation began.
        """
        now = self._clock.now()
        may = self._waiting(now)
        if sum(map(self._quarantine.is_slow, self._operations)) >= SLOW_AT_ONCE:
            may = {uuid for uuid in may if not self._quarantine.is_slow(uuid)}
        overdue = self._overdue(now)
        if overdue and self._idle <= 1 and self._workers >= MOST_WORKERS:
            may = {uuid for uuid in may if self._quarantine.has_answered(uuid, min(overdue))}
        turns = (uuid for work in (self._orders, self._describe, self._asked) for uuid in work)
        return next((uuid for uuid in turns if uuid in may), None)

    def hears(self, link: object, operation: Operation) -> bool:
        """Whether an operation is still current: an abandoned one must not write."""
        with self._changed:
            return self._link is link and self._operations.get(operation.known.uuid) is operation

    def ended(self, operation: Operation) -> None:
        """Note that an operation has returned; without an answer, the connection has ended."""
        uuid, order = operation.known.uuid, operation.order
        with self._changed:
            self._come_back(operation, well=False)
            if self._operations.get(uuid) is operation:
                del self._operations[uuid], self._busy[uuid]
                if order is not None:
                    self._fail(order, Transient(operation.known.name, "the connection ended"))

    def _come_back(self, operation: Operation, *, well: bool) -> None:
        uuid = operation.known.uuid
        if self._lost.get(uuid) is operation:
            del self._lost[uuid]
            self._quarantine.came_back(uuid, self._clock.now(), well=well)
            self._changed.notify_all()

    def visited(
        self, link: object, operation: Operation, view: DomainView, outcome: Outcome | None
    ) -> bool:
        """Publish the result of an operation; False if it is no longer current."""
        with self._changed:
            if not self.hears(link, operation):
                self._come_back(operation, well=view.problem is None)
                return False
            uuid = view.uuid
            begun = self._busy.pop(uuid)
            del self._operations[uuid]
            self._note_answer(uuid, begun)
            if outcome is not None:
                self._note_outcome(outcome)
            self._lost_sight = self._lost_sight or view.domid != operation.known.domid
            present = self.view.domains.get(uuid)
            if present is not None and present.domid == operation.known.domid:
                self.version += _layout(view) != _layout(present)
                domains = {**self.view.domains, uuid: view}
                self.view = replace(self.view, domains=domains)
            self._changed.notify_all()
            return True

    def _note_outcome(self, outcome: Outcome) -> None:
        """Publish the outcome of an order; an overtaken one also ends the next of its capture."""
        uuid = outcome.order.uuid
        self._outcomes[uuid] = outcome
        if not isinstance(outcome.error, Overtaken):
            return
        self._outdated[uuid] = outcome
        following = self._orders.get(uuid)
        if following is not None and _relies_on(following, outcome.order):
            self._settle_outdated(self._orders.pop(uuid), outcome)

    def _settle_outdated(self, order: Order, outdated: Outcome) -> None:
        """End an order whose original turned out to be outdated, before it is carried out.

        A cap would overwrite a foreign change; a release restores what was not found changed.
        """
        found = outdated.order.expected or {}
        left = {key: value for key, value in order.parameters.items() if key not in found}
        if order.mark is not None:
            self._outcomes[order.uuid] = Outcome(order, outdated.error, _NO_TIME)
        elif left and order.uuid in self.view.domains:
            self._orders[order.uuid] = replace(order, parameters=left)
        else:
            self._outcomes[order.uuid] = Outcome(order, None, _NO_TIME)

    def _note_answer(self, uuid: str, begun: Seconds) -> None:
        """Time an answer; a slow domain must not make polls of all others earlier."""
        now = self._clock.now()
        self._quarantine.answered(uuid, Seconds(now - begun), now)
        if self._asked.get(uuid, begun) > begun:
            return  # polled again in between
        asked = self._asked.pop(uuid, None)
        if asked is not None and not self._quarantine.is_slow(uuid):
            took = now - asked
            self.answer_time = Seconds(max(took, ANSWER_MEMORY * self.answer_time))

    def _drop(self, problem: ActuatorError | None) -> None:
        """Discard all knowledge; pending orders have failed."""
        begun = [
            operation.order
            for operation in self._operations.values()
            if operation.order is not None
        ]
        for order in (*begun, *self._orders.values()):
            self._fail(order, problem or Transient(order.uuid, "not connected"))
        self._lost |= self._operations
        for work in (self._orders, self._operations, self._describe, self._asked, self._busy):
            work.clear()
        self._steps.clear()
        self._link, self._survey = None, True
        self._publish(HostView(self.view.driver, problem=problem))

    def _fail(self, order: Order, problem: ActuatorError) -> None:
        self._outcomes[order.uuid] = Outcome(order, problem, _NO_TIME)

    def _publish(self, view: HostView) -> None:
        before, self.view = self.view, view
        layouts = [{_layout(domain) for domain in v.domains.values()} for v in (before, view)]
        self.version += before.surveyed != view.surveyed or layouts[0] != layouts[1]
        self._changed.notify_all()


def _merged(known: DomainView | None, new: DomainView) -> DomainView:
    """Return the merged view of a domain; another run starts from scratch."""
    if known is None or known.domid != new.domid:
        return new
    return replace(known, name=new.name)


def _instead(dropped: Order | None, order: Order) -> Order:
    """Return an order that replaces one not begun, with what both expect.

    A weight's order carries a pending cap, and a cap's order a pending weight: each may be the
    first, which must not overwrite a setting that was changed after its original was read.
    """
    if dropped is None or dropped.domid != order.domid or order.mark is None:
        return order
    both = {**(dropped.expected or {}), **(order.expected or {})}
    return replace(order, expected=both or None)


def _relies_on(order: Order, outdated: Order) -> bool:
    """Whether an order relies on the same originals as one that found them changed."""
    return (order.domid, order.capture) == (outdated.domid, outdated.capture)


def _layout(view: DomainView) -> tuple[object, ...]:
    return (view.uuid, view.name, view.domid, view.visited, view.interfaces)

"""What the loop and the threads tell each other, under one lock: orders in, views out.

The loop never waits here for a hypervisor: it posts, and reads what was published. Threads take
one domain at a time, orders first, so that a domain that is slow holds up no other.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from xtc.clock import Clock
from xtc.errors import ActuatorError, Gone, Overtaken, Transient
from xtc.units import Seconds
from xtc.virt.domains import DomainView, HostView, Order, Outcome, Visit

_SURVEY: Final = "survey"
"""Stands among the domains that are worked on; no UUID is like it."""
_NO_TIME: Final = Seconds(0.0)
ANSWER_MEMORY: Final = 0.9
"""What is kept of a long answer's time with each later one."""


class Board:
    """One connection's board. It hears one crew and one link of it; what others say is void."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._crew: object = None
        self._link: object = None
        self._orders: dict[str, Order] = {}
        self._underway: dict[str, Order] = {}
        self._outcomes: dict[str, Outcome] = {}
        self._describe: dict[str, None] = {}
        self._asked: dict[str, Seconds] = {}
        """Domains to be looked at, with the instant at which that was asked for."""
        self._busy: dict[str, Seconds] = {}
        """What a thread works on, since when."""
        self._survey = False
        self._lost_sight = False
        """Whether a domain was not as it was listed; it is looked for with the next asking."""
        self._wanted: Callable[[DomainView], bool] = lambda _view: False
        self.view = HostView()
        """What is known; replaced as a whole, and so readable without the lock."""
        self.answer_time = Seconds(0.0)
        """How long it takes to look at everything that was asked for: the worst of late."""
        self.version = 0
        """Counts the changes of which domains there are, and of their interfaces."""

    # What the loop says and asks.

    def want(self, wanted: Callable[[DomainView], bool]) -> None:
        """Say which domains are to be followed closely."""
        with self._changed:
            self._wanted, self._survey = wanted, True
            self._changed.notify_all()

    def post(self, order: Order) -> None:
        """Have an order carried out; one for the same domain that has not begun is dropped."""
        with self._changed:
            if order.uuid in self.view.domains:
                self._orders[order.uuid] = _instead(self._orders.get(order.uuid), order)
            else:
                self._fail(order, self.view.problem or Gone(order.uuid, "no such domain"))
            self._changed.notify_all()

    def pending(self, uuid: str) -> Order | None:
        """Return the order of a domain that is not carried out yet."""
        with self._changed:
            return self._orders.get(uuid) or self._underway.get(uuid)

    def outcome(self, uuid: str) -> Outcome | None:
        """Return what became of the last order of a domain that came to an end."""
        with self._changed:
            return self._outcomes.get(uuid)

    def wait_until(self, holds: Callable[[], bool], patience: Seconds) -> bool:
        """Wait until something holds that these threads bring about; whether it does."""
        with self._changed:
            return self._changed.wait_for(holds, patience)

    def ask(self) -> None:
        """Have every running domain that is wanted looked at."""
        now = self._clock.now()
        with self._changed:
            for uuid, view in self.view.domains.items():
                if view.active and self._wanted(view):
                    self._asked.setdefault(uuid, now)
            self._survey, self._lost_sight = self._survey or self._lost_sight, False
            self._changed.notify_all()

    def unanswered(self, uuid: str) -> Seconds:
        """Return for how long a domain has been asked about in vain."""
        now = self._clock.now()
        with self._changed:
            return Seconds(now - min(self._asked.get(uuid, now), self._busy.get(uuid, now)))

    def longest(self) -> Seconds:
        """Return for how long the longest piece of work has lasted."""
        now = self._clock.now()
        with self._changed:
            return Seconds(now - min(self._busy.values(), default=now))

    def to_describe(self) -> bool:
        """Whether some domain that is wanted has not been described yet."""
        with self._changed:
            unseen = (v for v in self.view.domains.values() if v.active and self._wanted(v))
            return any(not view.visited for view in unseen)

    # What libvirt's events say.

    def note_change(self, uuid: str | None) -> None:
        """Have a domain described anew, and the list of domains with it."""
        with self._changed:
            if uuid is not None and uuid in self.view.domains:
                self._describe[uuid] = None
            self._survey = True
            self._changed.notify_all()

    # What crews say and ask.

    def employ(self, crew: object) -> None:
        """Hear this crew alone; what an earlier one has begun is in doubt."""
        with self._changed:
            earlier, self._crew = self._crew, crew
            given_up = Transient("libvirt", "a call was given up; what it did is in doubt")
            self._drop(None if earlier is None else given_up)

    def employs(self, crew: object) -> bool:
        """Whether this crew is the one that is heard."""
        return self._crew is crew

    def serves(self, link: object) -> bool:
        """Whether this link is the one that is heard."""
        return self._link is link

    def connecting(self, crew: object) -> None:
        """Note that a connection is being opened or closed, which may hang."""
        with self._changed:
            if self._crew is crew:
                self._busy[_SURVEY] = self._clock.now()

    def resting(self, crew: object) -> None:
        """Note that nothing is being done that may hang."""
        with self._changed:
            if self._crew is crew:
                self._busy.pop(_SURVEY, None)

    def unreachable(self, crew: object, problem: ActuatorError) -> None:
        """Publish that no connection could be opened."""
        with self._changed:
            if self._crew is crew:
                self._drop(problem)

    def connected(self, crew: object, link: object, driver: str) -> None:
        """Publish a connection; its domains follow with the survey."""
        with self._changed:
            if self._crew is crew:
                self._link, self._survey = link, True
                self._publish(HostView(driver, connected=True))

    def opening(self, link: object, hand: int) -> None:
        """Note that a hand of a link opens its own connection, which may hang."""
        with self._changed:
            if self._link is link:
                self._busy[f"hand {hand}"] = self._clock.now()

    def opened(self, link: object, hand: int) -> None:
        """Note that it has."""
        with self._changed:
            if self._link is link:
                self._busy.pop(f"hand {hand}", None)

    def lost(self, link: object, problem: ActuatorError) -> None:
        """Publish that the connection ended: nothing is known any more."""
        with self._changed:
            if self._link is link:
                self._drop(problem)

    def take_survey(self, link: object, patience: Seconds) -> bool:
        """Wait for a survey to be due; False where the link is not heard any more."""
        with self._changed:
            if self._link is not link:
                return False
            self._busy.pop(_SURVEY, None)
            self._changed.wait_for(lambda: self._survey or self._link is not link, patience)
            if self._link is not link:
                return False
            self._survey = False
            self._busy[_SURVEY] = self._clock.now()
            return True

    def surveyed(self, link: object, found: Iterable[DomainView]) -> None:
        """Publish which domains there are; those that are wanted are described anew."""
        with self._changed:
            if self._link is not link:
                return
            known = self.view.domains
            domains = {new.uuid: _merged(known.get(new.uuid), new) for new in found}
            for order in [o for o in self._orders.values() if o.uuid not in domains]:
                self._fail(self._orders.pop(order.uuid), Gone(order.uuid, "no such domain"))
            wanted = [v.uuid for v in domains.values() if v.active and self._wanted(v)]
            self._describe = dict.fromkeys(wanted)
            self._asked = {uuid: at for uuid, at in self._asked.items() if uuid in wanted}
            self._publish(replace(self.view, domains=domains, surveyed=True))

    def take(self, link: object, patience: Seconds) -> Visit | None:
        """Wait for a domain that needs a visit, and take it; None where there is none."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._link is not link or self._next() is not None, patience
            )
            uuid = self._next() if self._link is link else None
            if uuid is None:
                return None
            order = self._orders.pop(uuid, None)
            if order is not None:
                self._underway[uuid] = order
            describe = uuid in self._describe
            self._describe.pop(uuid, None)
            self._busy[uuid] = self._clock.now()
            return Visit(self.view.domains[uuid], order, describe=describe)

    def _next(self) -> str | None:
        for work in (self._orders, self._describe, self._asked):
            for uuid in work:
                if uuid not in self._busy and uuid in self.view.domains:
                    return uuid
        return None

    def visited(
        self, link: object, visit: Visit, view: DomainView, outcome: Outcome | None
    ) -> None:
        """Publish what a visit found and did."""
        with self._changed:
            if self._link is not link:
                return
            uuid = view.uuid
            begun = self._busy.pop(uuid)
            self._underway.pop(uuid, None)
            if outcome is not None:
                self._outcomes[uuid] = self._with_next(outcome)
            if self._asked.get(uuid, begun) <= begun:
                self._note_answer(self._asked.pop(uuid, None))
            self._lost_sight = self._lost_sight or view.domid != visit.known.domid
            present = self.view.domains.get(uuid)
            if present is not None and present.domid == visit.known.domid:
                self.version += _layout(view) != _layout(present)
                domains = {**self.view.domains, uuid: view}
                self.view = replace(self.view, domains=domains)
            self._changed.notify_all()

    def _with_next(self, outcome: Outcome) -> Outcome:
        """Return what became of an order; one that was overtaken takes the next along.

        That one goes by the same original, which is not what stands there: a cap would be written
        over what somebody changed, and a release has nothing of ours to undo.
        """
        if not isinstance(outcome.error, Overtaken):
            return outcome
        following = self._orders.get(outcome.order.uuid)
        if following is None or following.domid != outcome.order.domid:
            return outcome
        del self._orders[following.uuid]
        error = None if following.mark is None else outcome.error
        return replace(outcome, order=following, error=error)

    def _note_answer(self, asked: Seconds | None) -> None:
        if asked is not None:
            took = self._clock.now() - asked
            self.answer_time = Seconds(max(took, ANSWER_MEMORY * self.answer_time))

    def _drop(self, problem: ActuatorError | None) -> None:
        """Know nothing any more; orders that were not carried out have failed."""
        for order in (*self._underway.values(), *self._orders.values()):
            self._fail(order, problem or Transient(order.uuid, "not connected"))
        for work in (self._orders, self._underway, self._describe, self._asked, self._busy):
            work.clear()
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
    """Return what is known of a domain; another run of it starts from nothing."""
    if known is None or known.domid != new.domid:
        return new
    return replace(known, name=new.name)


def _instead(dropped: Order | None, order: Order) -> Order:
    """Return an order as it replaces one not begun: what that expected to find still holds."""
    if dropped is None or dropped.domid != order.domid or order.mark is None:
        return order
    return replace(order, expected=order.expected or dropped.expected)


def _layout(view: DomainView) -> tuple[object, ...]:
    return (view.uuid, view.name, view.domid, view.visited, view.interfaces)

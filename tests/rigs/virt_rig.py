"""What the tests of hypervisors share: sessions with real threads, ended whatever happens."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fake_libvirt import LIMIT_S, FakeHost

from common.clock import Clock
from common.units import Seconds
from xtc.libvirt.connection import Link
from xtc.libvirt.domain_ops import Executor, survey
from xtc.libvirt.domains import DomainView, Outcome
from xtc.libvirt.mailbox import Mailbox
from xtc.libvirt.session import Session

NO_TIME = Seconds(0.0)
SHORTLY = Seconds(0.01)


def until(mailbox: Mailbox, holds: Callable[[], bool]) -> None:
    """Wait until something holds, looking at every change on the board, and now and then."""
    end = time.monotonic() + LIMIT_S
    while not mailbox.wait_until(holds, SHORTLY):
        assert time.monotonic() < end, "what was waited for did not come"


def quiet(session: Session) -> None:
    """Wait until nothing is left to do: no order, no question, no survey."""
    mailbox = session._mailbox
    until(
        mailbox,
        lambda: (
            mailbox.view.surveyed
            and not mailbox._survey
            and not (mailbox._orders or mailbox._describe or mailbox._asked)
            and not (mailbox._busy or mailbox._steps or mailbox._lost)
        ),
    )


def blocked(session: Session, host: FakeHost) -> bool:
    """Whether every worker hangs, or has nothing that it may do before time passes."""
    mailbox = session._mailbox
    return (
        mailbox.view.surveyed
        and not (mailbox._survey or mailbox._steps)
        and mailbox._workers + len(mailbox._lost) == host.hanging + mailbox._idle
        and (mailbox._idle == 0 or mailbox._next() is None)
    )


def idle_threads() -> int:
    """Return how many threads of pools there are."""
    return sum(thread.name == "xtc-libvirt" for thread in threading.enumerate())


class ByHand:
    """A session whose threads are the test itself: nothing happens until `work`."""

    def __init__(self, host: FakeHost, clock: Clock) -> None:
        self.host, self.clock = host, clock
        self.session = Session(host.load, None, clock, NO_TIME)
        self.mailbox = self.session._mailbox
        self.session.want(lambda _view: True)
        self.mailbox.employ(self)
        self.connect()

    def connect(self) -> None:
        """Open a connection, and survey."""
        self.link = Link(self.host.load(), None, self.mailbox.note_change)
        self.mailbox.connected(self, self.link, self.link.driver)
        self.survey()

    def survey(self) -> None:
        """List the domains, if that is due."""
        if self.mailbox._survey and self.mailbox.take_survey(self.link, NO_TIME):
            self.mailbox.surveyed(self.link, survey(self.link))

    def work(self) -> None:
        """Do all that there is to do."""
        self.survey()
        executor = Executor(self.link, self.clock, lambda: self.mailbox.serves(self.link))
        while (operation := self.mailbox.take(self.link, NO_TIME)) is not None:
            self.mailbox.visited(self.link, operation, *executor.perform(operation))
        if self.mailbox._survey:
            self.work()

    def look(self) -> None:
        """Ask about every domain, and answer."""
        self.session.ask()
        self.work()

    def view(self, name: str) -> DomainView:
        """Return what is known of a domain."""
        found = self.session.view.find(name)
        assert found is not None
        return found


class Running:
    """A session over a fake host, with threads, that follows every domain."""

    def __init__(self, host: FakeHost, clock: Clock) -> None:
        self.host = host
        self.session = Session(host.load, None, clock)
        self.mailbox = self.session._mailbox
        self.session.want(lambda _view: True)
        self.session.start()

    def view(self, name: str) -> DomainView:
        found = self.session.view.find(name)
        assert found is not None
        return found

    def known(self, name: str) -> bool:
        found = self.session.view.find(name)
        return found is not None and found.visited and found.problem is None

    def look(self, name: str) -> DomainView:
        """Ask, and wait for the answer."""
        self.session.ask()
        uuid = self.host.guests[name].uuid
        until(self.mailbox, lambda: uuid not in self.mailbox._asked)
        return self.view(name)

    def outcome(self, name: str, number: int) -> Outcome:
        """Wait for what becomes of an order."""
        uuid = self.host.guests[name].uuid

        def ended() -> bool:
            outcome = self.session.outcome(uuid)
            return outcome is not None and outcome.order.number >= number

        until(self.mailbox, ended)
        outcome = self.session.outcome(uuid)
        assert outcome is not None
        return outcome


@contextmanager
def running(host: FakeHost, clock: Clock) -> Iterator[Running]:
    """Begin a session; at the end thaw what hangs, and wait for its threads."""
    scene = Running(host, clock)
    try:
        yield scene
    finally:
        host.thaw()
        scene.session.close()
        until(scene.mailbox, lambda: idle_threads() == 0)

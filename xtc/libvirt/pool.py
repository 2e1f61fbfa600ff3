"""The threads that make libvirt's calls: one lists domains and hears events, a few visit.

A thread that a slow domain holds is replaced, so that there are always some for the others; it ends
when it comes back.

Each thread has a connection of its own: the client of libvirt 9.0 crashes when threads share one
whose keepalive fails and whose libvirtd then wakes (8 of 8 processes did; 0 of 5 with one each).
"""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final

import structlog

from common.clock import Clock
from common.units import Seconds
from xtc.errors import ActuatorError, Transient
from xtc.libvirt.api import Api
from xtc.libvirt.connection import Link
from xtc.libvirt.domain_ops import Visitor, survey
from xtc.libvirt.domains import DomainView, Outcome, Visit
from xtc.libvirt.explain import explain
from xtc.libvirt.mailbox import Board

SURVEY_S: Final = Seconds(10.0)
"""The safety net below the events: how often everything is listed and described anew."""
BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between tries to connect; the last goes on."""
LULL_S: Final = Seconds(5.0)

log = structlog.get_logger()


class Pool:
    """Connects, surveys and visits for as long as the board employs it."""

    def __init__(self, api: Api, uri: str | None, board: Board, clock: Clock) -> None:
        self._api, self._board, self._clock = api, board, clock
        self._uri, self._name = uri, uri or "libvirt"
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._visiting: set[threading.Thread] = set()
        self._numbers = count()
        self._link: Link | None = None

    @property
    def working(self) -> bool:
        """Whether a thread has not come back from a connection; the board knows of visits."""
        return any(t.is_alive() and t not in self._visiting for t in self._threads)

    def begin(self) -> None:
        """Start; the board must employ it by now."""
        self._start(self._keep_connected)

    def _start(self, work: Callable[[], None]) -> None:
        # A call that hangs must not keep the daemon from ending.
        thread = threading.Thread(target=work, name="xtc-libvirt", daemon=True)
        with self._starting:
            self._threads = [*(t for t in self._threads if t.is_alive()), thread]
            thread.start()

    def _employed(self) -> bool:
        return self._board.employs(self)

    def _keep_connected(self) -> None:
        """Connect, serve, connect again; the wait between tries grows while none succeeds."""
        tries = 0
        while self._employed():
            self._board.connecting(self)
            link = self._connected()
            tries = tries + 1 if link is None else 0
            if link is not None:
                self._serve(link)
                self._board.connecting(self)  # to close may hang as well
                link.close()
                self._board.resting(self)
            rest = BACKOFF_S[min(tries, len(BACKOFF_S) - 1)]
            self._board.wait_until(lambda: not self._employed(), Seconds(rest))

    def _connected(self) -> Link | None:
        """Open a connection; why not is on the board."""
        try:
            return Link(self._api, self._uri, self._board.note_change)
        except self._api.errors as error:
            problem = explain(self._name, error)
        except Exception as error:  # the threads' firewall: whatever it is, try again
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
        self._board.unreachable(self, problem)
        return None

    def _unforeseen(self, error: Exception) -> ActuatorError:
        return Transient(self._name, f"{type(error).__name__}: {error}")

    def _serve(self, link: Link) -> None:
        """Survey while the connection stands; workers visit meanwhile."""
        if not self._employed():
            return
        self._board.connected(self, link, link.driver)
        log.info("libvirt_connected", uri=self._name, driver=link.driver)
        self._link = link
        self.reinforce()
        self._guarded(link, self._survey)

    def reinforce(self) -> None:
        """Start as many workers as are needed, so that some are free."""
        link = self._link
        if link is None:
            return
        for _ in range(self._board.add_workers(link)):
            visit = partial(self._visit, worker=next(self._numbers))
            self._start(partial(self._guarded, link, visit))

    def _guarded(self, link: Link, work: Callable[[Link], bool]) -> None:
        """Work until the connection ends; what nobody foresaw ends it, and is survived.

        The work tells whether it is the connection that ended.
        """
        problem: ActuatorError = Transient(self._name, "the connection ended")
        try:
            if not work(link):
                return
        except ActuatorError as error:
            problem = error
        except self._api.errors as error:
            problem = explain(self._name, error)
        except Exception as error:  # the threads' firewall: whatever it is, connect anew
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
        if self._board.serves(link):
            log.warning("libvirt_lost", uri=self._name, problem=str(problem))
            self._board.lost(link, problem)

    def _survey(self, link: Link) -> bool:
        while link.alive and self._board.take_survey(link, SURVEY_S):
            if link.alive:
                self._board.surveyed(link, survey(link))
        return True

    def _visit(self, link: Link, worker: int) -> bool:
        """Visit one domain after the other while both connections stand, this worker's and that."""
        self._board.opening(link, worker)
        with closing(Link(self._api, self._uri)) as own:
            self._board.opened(link, worker)
            while own.alive:
                if not self._board.keeps_worker(link):
                    return False
                visit = self._board.take(link, LULL_S)
                if visit is not None and not self._heard(link, own, visit):
                    return False
        return True

    def _heard(self, link: Link, own: Link, visit: Visit) -> bool:
        """Pay a visit and tell; whether it was heard, or else this worker has been replaced."""
        visitor = Visitor(own, self._clock, partial(self._board.hears, link, visit))
        self._visiting.add(threading.current_thread())
        try:
            return self._board.visited(link, visit, *self._paid(visitor, visit))
        except ActuatorError:
            if self._board.hears(link, visit):
                raise
            return False  # the connection of a call that was given up is its own affair
        finally:
            self._board.ended(visit)
            self._visiting.discard(threading.current_thread())

    def _paid(self, visitor: Visitor, visit: Visit) -> tuple[DomainView, Outcome | None]:
        """Pay a visit; what nobody foresaw of one domain costs no other."""
        try:
            return visitor.pay(visit)
        except ActuatorError:
            raise
        except Exception as error:  # the visits' firewall: it becomes the domain's problem
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
            view = replace(visit.known, visited=True, described=False, problem=problem)
            order = visit.order
            return view, None if order is None else Outcome(order, problem, Seconds(0.0))

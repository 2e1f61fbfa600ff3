"""The threads that call libvirt: one for the list of domains and for events, and workers.

A thread blocked by a slow domain is replaced, so that some are always free for the others; it exits
when its call returns.

Each thread has its own connection: the client of libvirt 9.0 crashes if threads share one, its
keepalive fails, and libvirtd then resumes (8 of 8 processes did; 0 of 5 with one each).
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
from xtc.libvirt.domain_ops import Executor, survey
from xtc.libvirt.domains import DomainView, Operation, Outcome
from xtc.libvirt.explain import explain
from xtc.libvirt.mailbox import Mailbox

SURVEY_S: Final = Seconds(10.0)
"""Fallback for lost events: interval at which everything is listed and described again."""
BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between attempts to connect; the last one repeats."""
LULL_S: Final = Seconds(5.0)

log = structlog.get_logger()


class Pool:
    """Connects, lists and operates on domains while it is the mailbox's current pool."""

    def __init__(self, api: Api, uri: str | None, mailbox: Mailbox, clock: Clock) -> None:
        self._api, self._mailbox, self._clock = api, mailbox, clock
        self._uri, self._name = uri, uri or "libvirt"
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._executing: set[threading.Thread] = set()
        self._numbers = count()
        self._link: Link | None = None

    @property
    def working(self) -> bool:
        """Whether a thread is busy with a connection; the mailbox tracks operations on domains."""
        return any(t.is_alive() and t not in self._executing for t in self._threads)

    def begin(self) -> None:
        """Start; the mailbox must already have this pool as its current one."""
        self._start(self._keep_connected)

    def _start(self, work: Callable[[], None]) -> None:
        # A hung call must not keep the daemon from exiting.
        thread = threading.Thread(target=work, name="xtc-libvirt", daemon=True)
        with self._starting:
            self._threads = [*(t for t in self._threads if t.is_alive()), thread]
            thread.start()

    def _employed(self) -> bool:
        return self._mailbox.employs(self)

    def _keep_connected(self) -> None:
        """Connect, serve, connect again; the backoff grows while no attempt succeeds."""
        tries = 0
        while self._employed():
            self._mailbox.connecting(self)
            link = self._connected()
            tries = tries + 1 if link is None else 0
            if link is not None:
                self._serve(link)
                self._mailbox.connecting(self)  # closing may block as well
                link.close()
                self._mailbox.resting(self)
            rest = BACKOFF_S[min(tries, len(BACKOFF_S) - 1)]
            self._mailbox.wait_until(lambda: not self._employed(), Seconds(rest))

    def _connected(self) -> Link | None:
        """Open a connection; the mailbox gets the error."""
        try:
            return Link(self._api, self._uri, self._mailbox.note_change)
        except self._api.errors as error:
            problem = explain(self._name, error)
        except Exception as error:  # isolates the thread: retry after any error
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
        self._mailbox.unreachable(self, problem)
        return None

    def _unforeseen(self, error: Exception) -> ActuatorError:
        return Transient(self._name, f"{type(error).__name__}: {error}")

    def _serve(self, link: Link) -> None:
        """List domains while the connection is alive; workers run concurrently."""
        if not self._employed():
            return
        self._mailbox.connected(self, link, link.driver)
        log.info("libvirt_connected", uri=self._name, driver=link.driver)
        self._link = link
        self.reinforce()
        self._guarded(link, self._survey)

    def reinforce(self) -> None:
        """Start as many workers as needed to have some free."""
        link = self._link
        if link is None:
            return
        for _ in range(self._mailbox.add_workers(link)):
            operation = partial(self._operation, worker=next(self._numbers))
            self._start(partial(self._guarded, link, operation))

    def _guarded(self, link: Link, work: Callable[[Link], bool]) -> None:
        """Work until the connection ends; an unforeseen error closes it, and the thread survives.

        The work returns whether the connection ended.
        """
        problem: ActuatorError = Transient(self._name, "the connection ended")
        try:
            if not work(link):
                return
        except ActuatorError as error:
            problem = error
        except self._api.errors as error:
            problem = explain(self._name, error)
        except Exception as error:  # isolates the thread: reconnect after any error
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
        if self._mailbox.serves(link):
            log.warning("libvirt_lost", uri=self._name, problem=str(problem))
            self._mailbox.lost(link, problem)

    def _survey(self, link: Link) -> bool:
        while link.alive and self._mailbox.take_survey(link, SURVEY_S):
            if link.alive:
                self._mailbox.surveyed(link, survey(link))
        return True

    def _operation(self, link: Link, worker: int) -> bool:
        """Operate on one domain after the other while both connections are alive."""
        self._mailbox.opening(link, worker)
        with closing(Link(self._api, self._uri)) as own:
            self._mailbox.opened(link, worker)
            while own.alive:
                if not self._mailbox.keeps_worker(link):
                    return False
                operation = self._mailbox.take(link, LULL_S)
                if operation is not None and not self._heard(link, own, operation):
                    return False
        return True

    def _heard(self, link: Link, own: Link, operation: Operation) -> bool:
        """Operate and publish; return whether it counted, otherwise the worker was replaced."""
        executor = Executor(own, self._clock, partial(self._mailbox.hears, link, operation))
        self._executing.add(threading.current_thread())
        try:
            return self._mailbox.visited(link, operation, *self._performed(executor, operation))
        except ActuatorError:
            if self._mailbox.hears(link, operation):
                raise
            return False  # after its call was given up, this connection no longer matters
        finally:
            self._mailbox.ended(operation)
            self._executing.discard(threading.current_thread())

    def _performed(
        self, executor: Executor, operation: Operation
    ) -> tuple[DomainView, Outcome | None]:
        """Operate; an unforeseen error of one domain does not affect others."""
        try:
            return executor.perform(operation)
        except ActuatorError:
            raise
        except Exception as error:  # isolates the operation: the error becomes the domain's problem
            log.exception("unexpected_error", where="libvirt")
            problem = self._unforeseen(error)
            view = replace(operation.known, visited=True, described=False, problem=problem)
            order = operation.order
            return view, None if order is None else Outcome(order, problem, Seconds(0.0))

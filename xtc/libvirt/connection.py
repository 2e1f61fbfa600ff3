"""One open connection to libvirt: keepalive, events, closing, and domains."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from xtc.errors import ActuatorError
from xtc.libvirt.api import Api, Connection, Domain, EventId

KEEPALIVE_S: Final = 2
KEEPALIVES: Final = 3
"""If libvirt hangs, its calls fail after (KEEPALIVES + 1) * KEEPALIVE_S seconds."""

log = structlog.get_logger()

Changed = Callable[[str | None], None]
"""Callback for a changed domain, by UUID; None means that the connection ended."""


class Link:
    """A connection, used only by the thread that opened it. Any call may block."""

    def __init__(self, api: Api, uri: str | None, changed: Changed | None = None) -> None:
        """Open it, and register callbacks for its end, and for events if there is a receiver.

        Raises:
            Exception: one of `Api.errors`; nothing is left open.
        """
        self.api = api
        self._changed = changed
        self._ended = False
        self._undo: list[Callable[[], object]] = []
        self.connection: Connection = api.open(uri)
        try:
            self.driver = self.connection.getType()
            self._listen()
        except BaseException:
            self.close()
            raise

    @property
    def troubles(self) -> tuple[type[Exception], ...]:
        """Everything that work on a domain raises: errors of libvirt, and of xtc."""
        return (ActuatorError, *self.api.errors)

    @property
    def alive(self) -> bool:
        """Whether the connection is alive, as far as its client knows."""
        return not self._ended and bool(self.connection.isAlive())

    def _listen(self) -> None:
        connection = self.connection
        self._try(lambda: connection.setKeepAlive(KEEPALIVE_S, KEEPALIVES))
        self._try(lambda: connection.registerCloseCallback(self._on_close, None))
        self._undo.append(connection.unregisterCloseCallback)
        for event in EventId if self._changed is not None else ():
            self._try(partial(self._listen_to, event))

    def _listen_to(self, event: EventId) -> None:
        number = self.connection.domainEventRegisterAny(None, event, self._on_event, None)
        self._undo.append(partial(self.connection.domainEventDeregisterAny, number))

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except self.api.errors as error:
            log.debug("libvirt_lacks", driver=self.driver, problem=str(error))

    def _on_event(self, _connection: object, domain: Domain, *_details: object) -> None:
        self._tell(domain.UUIDString())

    def _on_close(self, *_details: object) -> None:
        self._ended = True
        self._tell(None)

    def _tell(self, uuid: str | None) -> None:
        if self._changed is not None:
            self._changed(uuid)

    def list(self) -> list[Domain]:
        """Return every domain of the host."""
        return list(self.connection.listAllDomains(0))

    def look_up(self, uuid: str) -> Domain:
        """Return the current domain: an old object keeps its old ID."""
        return self.connection.lookupByUUIDString(uuid)

    def close(self) -> None:
        """Close the connection; ignore errors of a dead one.

        Callbacks keep the connection open, so they are removed first.
        """
        for undo in (*self._undo, self.connection.close):
            with suppress(*self.api.errors):
                undo()

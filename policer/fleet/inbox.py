"""Operators' requests to the running service: REST's threads add them, the loop takes them."""

from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class Pardon:
    """Forget a router's misbehaviour, and lift the measures against it."""

    host: str
    vr: str
    actor: str
    """Name of the requesting token."""


class Inbox:
    """Waiting requests; one pardon for each router, so that many clients cannot fill it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[str, str], Pardon] = {}

    def put(self, pardon: Pardon) -> None:
        """Add a request, unless an equal one waits already."""
        with self._lock:
            self._waiting.setdefault((pardon.host, pardon.vr), pardon)

    def take_all(self) -> tuple[Pardon, ...]:
        """Take the waiting requests, in the order of their arrival."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return tuple(taken.values())

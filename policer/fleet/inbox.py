"""What operators ask of the running service: REST's threads put it in, the loop takes it out."""

from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class Pardon:
    """Forget what a router did, and what was done about it."""

    host: str
    vr: str
    actor: str
    """Who asked: the name of a token."""


class Inbox:
    """Requests that wait; a router's pardon waits once, so that no crowd of clients can fill it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[str, str], Pardon] = {}

    def put(self, pardon: Pardon) -> None:
        """Leave a request; one that waits already is the same."""
        with self._lock:
            self._waiting.setdefault((pardon.host, pardon.vr), pardon)

    def take_all(self) -> tuple[Pardon, ...]:
        """Take what waits, in the order in which it came."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        return tuple(taken.values())

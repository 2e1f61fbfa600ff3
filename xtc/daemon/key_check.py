"""Checks the CURVE keys of peers (ZAP, ZeroMQ RFC 27), on a separate thread."""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import structlog
import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from common.errors import ConfigError

LINES_A_MINUTE = 10
"""Maximum keys logged in a minute; an unknown peer can generate any number."""
MAX_KEYS = 1000
"""Maximum keys remembered as logged."""
_CREDENTIALS = 7
"""Frames of a request with credentials; the address is the fourth."""

log = structlog.get_logger()


class Refusals:
    """Decides which refused keys to log: each once, and few a minute."""

    def __init__(self) -> None:
        self._logged: dict[bytes, None] = {}
        self._lines: deque[float] = deque(maxlen=LINES_A_MINUTE)

    def is_news(self, key: bytes, now: float) -> bool:
        """Whether to log a key refused at this instant, in seconds."""
        recent = len(self._lines) == LINES_A_MINUTE and now - self._lines[0] < 60.0
        if key in self._logged or recent:
            return False
        if len(self._logged) >= MAX_KEYS:
            del self._logged[next(iter(self._logged))]
        self._logged[key] = None
        self._lines.append(now)
        return True


class KeyCheck(ThreadAuthenticator):
    """Admits the keys in one directory, and logs those that it refuses."""

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        directory: Path,
        on_refused: Callable[[], object],
    ) -> None:
        super().__init__(context)
        self._directory, self._on_refused = directory, on_refused
        self._refusals = Refusals()

    def load(self) -> bool:
        """Read the directory; return whether an admitted key was removed.

        Raises:
            ConfigError: a file cannot be read or there is none; the previous keys stay.
        """
        before = self.certs.get("*", {})
        try:
            keys = zmq.auth.load_certificates(self._directory)
        except (OSError, ValueError) as error:
            raise ConfigError(
                "server.authorised_keys_dir",
                f"{self._directory}: {error}",
                "every .key file there must be a public key, as `xtc config keys` makes it",
            ) from error
        self.certs["*"] = keys
        self._refusals = Refusals()
        return not before.keys() <= keys.keys()

    async def handle_zap_message(self, msg: list[bytes]) -> None:
        """Answer libzmq, which asks about every handshake."""
        if len(msg) >= _CREDENTIALS:
            key, address = z85.encode(msg[6]), msg[3].decode("ascii", "replace")
            if key not in self.certs["*"]:
                self._refuse(key, address)
        await super().handle_zap_message(msg)

    def _refuse(self, key: bytes, address: str) -> None:
        self._on_refused()
        if self._refusals.is_news(key, time.monotonic()):
            log.warning("key_refused", key=key.decode("ascii"), address=address)

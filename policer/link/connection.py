"""Link to one host: passes telemetry to a listener and requests to the daemon; limits reports."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import structlog

from policer.contracts.host import Host
from policer.errors import LinkError
from policer.link.keys import Keys
from policer.link.requests import Requests
from policer.link.stream import FLOOD_PPS, GAP_S, Stream, Tally, decoded
from xtc.wire import Change, Refusal, Telemetry

DEADLINE_S = 2.0
"""A daemon answers in milliseconds; one that takes longer hangs, or is not running."""
SILENCE_S = 15.0
"""After this silence, the link reconnects."""
REST_S = 1.0
"""Delay between two connection attempts."""
AGAIN_S = 600.0
"""A persistent problem is reported again after this time."""

log = structlog.get_logger("policer.link")

OnTelemetry = Callable[[str, Telemetry], None]
OnTrouble = Callable[[str, LinkError], None]


class Link:
    """Receives from and sends to one daemon. No host can slow down the others."""

    def __init__(
        self,
        host: Host,
        keys: Keys | None,
        on_telemetry: OnTelemetry,
        *,
        on_trouble: OnTrouble | None = None,
        silence_s: float = SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the link without connecting.

        Args:
            host: addresses of its daemon.
            keys: the policer's own; required for TCP.
            on_telemetry: called with the host's name and its newest tick, in the loop's thread.
            on_trouble: called with the host's name and the problem; again only after a recovery, or
                once it has lasted for ten minutes.
            silence_s: seconds of silence after which the link reconnects.
            clock: monotonic seconds.
        """
        self._host, self._keys = host, keys
        self._on_telemetry, self._on_trouble = on_telemetry, on_trouble
        self._silence_s, self._clock = silence_s, clock
        self._requests = Requests(host, keys)
        self._silence = ""
        """The reported reason why the host is silent; empty while it is heard."""
        self._told: dict[str, float] = {}
        """When each other kind of problem was reported."""
        self._tally = Tally(clock())
        self.dropped = 0
        """Ticks that were skipped for a newer one."""
        self.bad = 0
        """Messages that were not telemetry."""

    async def run(self) -> None:
        """Receive from the host until cancelled; reports every error, and retries."""
        try:
            while True:
                try:
                    await self._hear()
                except LinkError as error:
                    self._miss(error)
                await asyncio.sleep(REST_S)
        finally:
            self._requests.close()

    async def send(
        self, changes: Sequence[Change], deadline_s: float = DEADLINE_S
    ) -> tuple[Refusal | None, ...]:
        """Send changes in their order; return for each the reason of a refusal, or None.

        After an error, the daemon may have carried out some of them: telemetry shows which.

        Raises:
            LinkTimeout: the host did not answer all of it within so many seconds.
            LinkRefused: it refused a batch as a whole, as an older daemon does.
            LinkError: its answer is invalid, or the connection failed.
        """
        return await self._requests.ask(changes, deadline_s)

    async def _hear(self) -> None:
        """Connect, and receive until the host falls silent."""
        with closing(Stream(self._host, self._keys)) as stream:
            while True:
                raw, dropped = await stream.newest(self._silence_s)
                self.dropped += dropped
                self._count(dropped + 1)
                self._take(raw)
                await asyncio.sleep(GAP_S)

    def _count(self, messages: int) -> None:
        """Report a flood while it lasts."""
        self._tally = self._tally.after(self._clock(), messages)
        if self._tally.flood:
            words = f"it sends more than {FLOOD_PPS:g} ticks a second; only the newest are read"
            self._tell_rarely("floods", LinkError(words))

    def _take(self, raw: bytes) -> None:
        """Pass a message on, or report that it is invalid."""
        try:
            telemetry = decoded(raw)
        except LinkError as error:
            self.bad += 1
            self._tell_rarely("babbles", error)
            return
        self._silence = ""
        try:
            self._on_telemetry(self._host.name, telemetry)
        except Exception:
            # The only catch-all of a link: a bug in a listener must not stop the reception.
            log.exception("telemetry_not_processed", host=self._host.name)

    def _miss(self, error: LinkError) -> None:
        """Report why the host is silent, once until it recovers or the reason changes."""
        if str(error) != self._silence:
            self._silence = str(error)
            self._tell("silent", error)

    def _tell_rarely(self, kind: str, error: LinkError) -> None:
        now = self._clock()
        if now - self._told.get(kind, float("-inf")) >= AGAIN_S:
            self._told[kind] = now
            self._tell(kind, error)

    def _tell(self, kind: str, error: LinkError) -> None:
        log.warning("link", host=self._host.name, kind=kind, problem=str(error))
        if self._on_trouble is not None:
            self._on_trouble(self._host.name, error)

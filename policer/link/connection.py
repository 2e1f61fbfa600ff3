"""One host's link: telemetry to whoever listens, requests to the daemon; troubles are told once."""

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
"""A daemon answers in milliseconds; one that takes longer hangs, or is not there."""
SILENCE_S = 15.0
"""After so long without a word, the host is dialled anew."""
REST_S = 1.0
"""Between two dials."""
AGAIN_S = 600.0
"""A trouble that goes on is told again after so long."""

log = structlog.get_logger("policer.link")

OnTelemetry = Callable[[str, Telemetry], None]
OnTrouble = Callable[[str, LinkError], None]


class Link:
    """Hears and asks one daemon. Whatever a host does costs the other hosts nothing."""

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
        """Nothing is dialled yet.

        Args:
            host: where its daemon listens.
            keys: the policer's own; TCP takes them.
            on_telemetry: told the host's name and its newest tick, in the loop's thread.
            on_trouble: told the host's name and what is wrong; again only when it was mended, or
                has lasted for ten minutes.
            silence_s: seconds without a word after which the host is dialled anew.
            clock: monotonic seconds.
        """
        self._host, self._keys = host, keys
        self._on_telemetry, self._on_trouble = on_telemetry, on_trouble
        self._silence_s, self._clock = silence_s, clock
        self._requests = Requests(host, keys)
        self._silence = ""
        """Why the host is not heard, as it was told; empty while it is heard."""
        self._told: dict[str, float] = {}
        """When each other kind of trouble was told."""
        self._tally = Tally(clock())
        self.dropped = 0
        """Ticks that were not looked at, since a newer one had come."""
        self.bad = 0
        """Messages that were no telemetry."""

    async def run(self) -> None:
        """Hear the host until cancelled; whatever goes wrong is told, and tried anew."""
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
        """Have changes carried out in their order; return for each why it was refused, or None.

        After an error, some of them may have been carried out: telemetry shows which.

        Raises:
            LinkTimeout: the host did not answer all of it within so many seconds.
            LinkRefused: it refused a batch as a whole, as an older daemon does.
            LinkError: what it answered is no answer, or it cannot be dialled.
        """
        return await self._requests.ask(changes, deadline_s)

    async def _hear(self) -> None:
        """Dial, and hear until the host falls silent."""
        with closing(Stream(self._host, self._keys)) as stream:
            while True:
                raw, dropped = await stream.newest(self._silence_s)
                self.dropped += dropped
                self._count(dropped + 1)
                self._take(raw)
                await asyncio.sleep(GAP_S)

    def _count(self, messages: int) -> None:
        """Tell of a flood while it lasts."""
        self._tally = self._tally.after(self._clock(), messages)
        if self._tally.flood:
            words = f"it sends more than {FLOOD_PPS:g} ticks a second; only the newest are read"
            self._tell_rarely("floods", LinkError(words))

    def _take(self, raw: bytes) -> None:
        """Hand a message on, or tell that it is none."""
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
            # The one firewall of a link: a listener that trips a bug must not make the host deaf.
            log.exception("telemetry was not taken", host=self._host.name)

    def _miss(self, error: LinkError) -> None:
        """Tell why the host is not heard, once until it is or the reason is another."""
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

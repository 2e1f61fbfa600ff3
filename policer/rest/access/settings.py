"""What the REST service is told when it is made."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

from policer.fleet.inbox import Inbox
from policer.history.retention import Retention
from policer.page import STATIC
from policer.rest.access.identity import Verifies
from policer.rest.http.clients import Proxies
from policer.store.database import records
from policer.webhooks.courier import Courier
from policer.webhooks.rules import Rules


def _always_alive() -> float:
    return 0.0


def _nobody_counts(_client: str) -> None:
    return None


def _nobody_observes(_method: str, _route: str, _status: int, _seconds: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class RestSettings:
    """How the service answers; times in seconds."""

    inbox: Inbox = field(default_factory=Inbox)
    """Where the running service finds what operators ask of it."""
    heartbeat: Callable[[], float] = _always_alive
    """Seconds since the policer's loop last went round."""
    store_wait_s: float = 3.0
    """How long readiness waits for the store."""
    dead_after_s: float = 10.0
    """A loop that was silent for so long is not ready."""
    clock: Callable[[], float] = time.monotonic
    """The policer's clock, by which `Fleet` is dated."""
    today: records.Clock = records.now
    """The time of day, by which overrides and tokens end."""
    wall: Callable[[], float] = time.time
    """The time of day, seconds since 1970."""
    retention: Callable[[], Retention] = Retention
    """How long history is kept, now."""
    courier: Courier = field(default_factory=lambda: Courier(Rules))
    """Tries webhooks that an administrator tests."""
    registry: CollectorRegistry | None = None
    """What /metrics shows; None shows nothing."""
    metrics_open: bool = True
    """Whether /metrics is for everybody who reaches the service; else it takes a token."""
    observe: Callable[[str, str, int, float], None] = _nobody_observes
    """Told method, route, status and seconds of every request; metrics listen here."""
    page: Path | None = STATIC
    """The folder of the page; None serves none."""
    rate_per_s: float = 100.0
    """Requests that a token may make in the long run, and an address without one."""
    rate_burst: float = 500.0
    """Requests that it may make at once."""
    plans_per_s: float = 0.2
    """Plans that a token may have made, in the long run: a large one takes a CPU for seconds."""
    plans_burst: float = 10.0
    """Plans that it may have made in a row."""
    throttled: Callable[[str], None] = _nobody_counts
    """Told of every request that came too often: of a token, an address, or a guess."""
    trusted_proxies: Proxies = field(default_factory=Proxies)
    """Proxies that are believed who their clients are (X-Forwarded-For)."""
    issuer: Verifies | None = None
    """Who signs tokens that are taken next to the policer's own; None takes no others."""
    strict_transport: bool = False
    """Whether browsers are told to come by HTTPS alone from now on (RFC 6797)."""
    max_streams: int = 32
    """Clients that may stream at the same time."""
    max_streams_each: int = 8
    """Of them, those of one token."""
    stream_tick_s: float = 1.0
    """How often streams look for news."""
    stream_heartbeat_s: float = 10.0
    """After so much silence a stream says that it is alive."""
    stream_life_s: float = 3600.0
    """A stream ends after so long, and its client resumes it."""
    send_s: float = 30.0
    """A client that takes nothing for so long is hung up on."""
    max_body: int = 64 * 1024
    """Bytes."""

"""Settings of the REST service."""

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
    """Settings of the service; times in seconds."""

    inbox: Inbox = field(default_factory=Inbox)
    """Queue of operators' requests for the running service."""
    heartbeat: Callable[[], float] = _always_alive
    """Seconds since the policer's loop last ran."""
    store_wait_s: float = 3.0
    """How long readiness waits for the store."""
    dead_after_s: float = 10.0
    """A loop that was silent for this time is not ready."""
    clock: Callable[[], float] = time.monotonic
    """The policer's clock, which dates `Fleet`."""
    today: records.Clock = records.now
    """The time of day, by which overrides and tokens expire."""
    wall: Callable[[], float] = time.time
    """The time of day, seconds since 1970."""
    retention: Callable[[], Retention] = Retention
    """How long history is kept at present."""
    courier: Courier = field(default_factory=lambda: Courier(Rules))
    """Delivers test messages of webhooks for administrators."""
    registry: CollectorRegistry | None = None
    """Metrics of /metrics; None disables it."""
    metrics_open: bool = True
    """Whether /metrics is open to all clients; otherwise it takes a token."""
    observe: Callable[[str, str, int, float], None] = _nobody_observes
    """Called with method, route, status and seconds of every request; used by the metrics."""
    page: Path | None = STATIC
    """Directory of the page; None serves none."""
    rate_per_s: float = 100.0
    """Requests per second of a token, or of an address without one, in the long run."""
    rate_burst: float = 500.0
    """Requests in a burst."""
    plans_per_s: float = 0.2
    """Plans per second of a token, in the long run: a large one takes a CPU for seconds."""
    plans_burst: float = 10.0
    """Plans of a token in a burst."""
    throttled: Callable[[str], None] = _nobody_counts
    """Called for every throttled request: of a token, an address, or a guess."""
    trusted_proxies: Proxies = field(default_factory=Proxies)
    """Proxies whose X-Forwarded-For is trusted."""
    issuer: Verifies | None = None
    """Issuer of tokens accepted besides the policer's own; None accepts no others."""
    strict_transport: bool = False
    """Whether to require HTTPS of browsers from now on (RFC 6797)."""
    max_streams: int = 32
    """Clients that may stream at the same time."""
    max_streams_each: int = 8
    """Of them, those of one token."""
    stream_tick_s: float = 1.0
    """Interval at which streams check for news."""
    stream_heartbeat_s: float = 10.0
    """After this silence a stream sends a heartbeat."""
    stream_life_s: float = 3600.0
    """A stream ends after this time, and its client resumes it."""
    send_s: float = 30.0
    """A client that reads nothing for this time is disconnected."""
    max_body: int = 64 * 1024
    """Bytes."""

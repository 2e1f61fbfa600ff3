"""policer serve: store, service, REST and page in one process.

REST answers in the main thread's loop. The service has a loop in its own thread, so no request,
however slow, delays a round.
"""

import asyncio
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

import msgspec
import structlog
import uvicorn

from common.logs import set_up_logging
from common.notify import notify
from policer.config.file import listen_address, load_settings, store_url
from policer.config.schema import (
    OidcSection,
    ServerSection,
    Settings,
    policy_of,
    retention_of,
    webhook_rules_of,
)
from policer.daemon.connection_limits import Crowd, CrowdLimits
from policer.daemon.connections import BoundedProtocol, allow_files, close_overdue
from policer.daemon.interpreter import share_interpreter
from policer.daemon.metrics import Health, Metrics
from policer.daemon.worker import Worker
from policer.errors import ListenError, PolicerError, SettingsError, StoreError
from policer.extra import oidc_needed
from policer.fleet.live import Fleet
from policer.link import Keys, load_keys
from policer.rest import RestSettings, create_app
from policer.rest.http.clients import Proxies
from policer.service.service import Service, ServiceSettings
from policer.store import Store, open_store
from policer.webhooks.courier import Courier
from policer.webhooks.notifier import Notifier, Ports

if TYPE_CHECKING:
    from policer.oidc import Issuer

LOOK_EVERY_S = 1.0
DEAD_AFTER_S = 8.0
"""After this silence of the service loop, the watchdog is no longer notified."""
STREAMS_END_S = 2
"""Time that open event streams get to end."""
PRUNE_EVERY_S = 86400.0
FIRST_PRUNE_S = 60.0
BACKLOG = 512
DEAD_PEER_MS = 30_000
"""A client that acknowledges nothing for this time is disconnected (tcp(7), TCP_USER_TIMEOUT)."""

log = structlog.get_logger("policer.serve")


def serve(settings: Settings, path: Path) -> None:
    """Run a policer until it is stopped.

    Raises:
        SettingsError: the settings cannot be carried out on this machine.
        ListenError: the address is not this machine's, or is in use.
        StoreError: the database cannot be used.
        PolicerError: the service ended by itself, which is a defect.
    """
    log_as(settings)
    check_tls(settings.server)
    allow_files()
    keys = None if settings.link.secret_key_file is None else keys_of(settings.link.secret_key_file)
    with bound(settings.server) as listening:
        store = open_store(store_url(settings.store))
        with closing(store):
            _warn_if_empty(store)
            asyncio.run(Serving(settings, path, store, keys, listening).run())


def _warn_if_empty(store: Store) -> None:
    """Warn if there are no tokens: a new database, or not the intended one."""
    if not store.tokens.all():
        log.warning("nobody_may_use_it", fix="policer token add NAME --scope admin, or store.url")


class Serving:
    """A running policer."""

    def __init__(
        self,
        settings: Settings,
        path: Path,
        store: Store,
        keys: Keys | None,
        listening: socket.socket,
    ) -> None:
        self._settings, self._path, self._store = settings, path, store
        self._listening = listening
        self._fleet = Fleet()
        self.metrics = Metrics(self._fleet, time.monotonic)
        self.service = Service(store, self._fleet, service_settings(settings), keys, time.monotonic)
        self.service.rounds.append(self.metrics.rounds.observe)
        self._worker = Worker(self.service.run)
        courier = Courier(lambda: webhook_rules_of(self._settings))
        ports = Ports(self._leads, self.metrics.tried, self.metrics.dead_letters.inc)
        self._notifying = Worker(Notifier(store, courier, ports).run, "webhooks")
        limits = CrowdLimits(settings.server.max_connections, settings.server.max_connections_each)
        self._crowd: Crowd[BoundedProtocol] = Crowd(limits)
        self._issuer = issuer_in(settings.oidc)
        self._server = uvicorn.Server(self._uvicorn())
        self._asked_to_stop = False

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until the service has died.

        Raises:
            PolicerError: it died.
        """
        self._listen_for_signals()
        share_interpreter()
        self._worker.start()
        self._notifying.start()
        looking = asyncio.create_task(self._look_after())
        pruning = asyncio.create_task(self._prune())
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            notify("STOPPING=1")
            for task in (looking, pruning):
                task.cancel()
            ended = await asyncio.gather(looking, pruning, return_exceptions=True)
            if self._issuer is not None:
                await self._issuer.close()
            await asyncio.to_thread(self._notifying.stop)
            await asyncio.to_thread(self._worker.stop)
            _told(ended)
        if self._worker.problem:
            raise PolicerError(f"the service ended: {self._worker.problem}")

    def _listen_for_signals(self) -> None:
        """Handle the signals: uvicorn raises them again when it has ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._asked_to_stop = True

    async def _look_after(self) -> None:
        """Report the state to systemd and the metrics; end all when one part has ended."""
        ready = False
        while True:
            if self._worker.problem or self._asked_to_stop:
                self._server.should_exit = True
            if self._server.started and not ready:
                ready = notify("READY=1") or True
                log.info("serving", listen=self._settings.server.listen)
            close_overdue(self._crowd, time.monotonic())
            self.metrics.look(self._health())
            if self._worker.silent_for() < DEAD_AFTER_S:
                notify("WATCHDOG=1", f"STATUS={self._status()}")
            await asyncio.sleep(LOOK_EVERY_S)

    def _leads(self) -> int:
        """Return the epoch in which this policer leads; 0 while it does not."""
        leadership = self._fleet.leadership
        return leadership.epoch if leadership.leading else 0

    def _health(self) -> Health:
        writer = self.service.writer
        return Health(
            heartbeat_age_s=self.service.heartbeat_age(),
            store_ok=not self.service.store_problem,
            events_waiting=writer.waiting,
            events_dropped=writer.dropped,
            history_waiting=self.service.history_writer.waiting,
            history_dropped=self.service.history_writer.dropped,
        )

    def _status(self) -> str:
        """Return one line for `systemctl status`."""
        leads = self._fleet.leadership
        lives = self._fleet.hosts.values()
        heard = sum(live.telemetry.reachable(time.monotonic()) for live in lives)
        who = f"leads in epoch {leads.epoch}" if leads.leading else "follows"
        return f"{who}; {heard} of {len(lives)} hosts heard"

    async def _prune(self) -> None:
        """Remove old rows once a day."""
        wait = FIRST_PRUNE_S
        while True:
            await asyncio.sleep(wait)
            try:
                kept = self._settings.store
                reported = self.service.history_writer.retention.oldest(time.time()).day
                days = kept.keep_days, kept.keep_audit_days, reported
                await asyncio.to_thread(self._store.prune, *days)
            except StoreError as error:
                log.warning("old_rows_not_removed", problem=str(error))
            wait = PRUNE_EVERY_S

    def reload(self) -> None:
        """Reload the settings; a mistake changes nothing."""
        try:
            settings = load_settings(self._path)
        except SettingsError as error:
            log.error("reload_refused", problem=str(error))  # noqa: TRY400  the words say it all
            self.metrics.reload_ok.set(0)
            return
        if not self._renew_certificate(settings.server):
            return
        changed = list(of_the_start(self._settings, settings))
        log_as(settings)
        self.service.take(service_settings(settings))
        self._settings = settings
        self.metrics.reload_ok.set(1)
        log.info("reloaded", restart_needed=changed)

    def _renew_certificate(self, server: ServerSection) -> bool:
        """Load a certificate that was renewed in place; return whether it can be used."""
        context = self._server.config.ssl
        if context is None or server.tls_cert is None or server.tls_key is None:
            return True
        try:
            check_tls(server)  # first in a separate context: a half loaded one is useless
        except SettingsError as error:
            log.error("reload_refused", problem=str(error))  # noqa: TRY400  the words say it all
            self.metrics.reload_ok.set(0)
            return False
        context.load_cert_chain(server.tls_cert, server.tls_key)
        return True

    def _uvicorn(self) -> uvicorn.Config:
        rest = RestSettings(
            inbox=self.service.inbox,
            heartbeat=self.service.heartbeat_age,
            clock=time.monotonic,
            retention=lambda: self.service.history_writer.retention,
            courier=Courier(lambda: webhook_rules_of(self._settings)),
            registry=self.metrics.registry,
            metrics_open=self._settings.server.open_metrics,
            observe=self.metrics.answered,
            strict_transport=self._settings.server.tls_cert is not None,
            max_streams=self._settings.server.max_streams,
            max_streams_each=self._settings.server.max_streams_each,
            rate_per_s=self._settings.server.requests_per_s,
            rate_burst=self._settings.server.burst,
            throttled=self.metrics.throttled,
            issuer=self._issuer,
            trusted_proxies=Proxies(self._settings.server.trusted_proxies),
        )
        return uvicorn.Config(
            create_app(self._store, self._fleet, rest),
            # uvicorn wants a class, and calls it.
            http=cast(
                "type[BoundedProtocol]",
                partial(BoundedProtocol, crowd=self._crowd, clock=time.monotonic),
            ),
            ssl_certfile=self._settings.server.tls_cert,
            ssl_keyfile=self._settings.server.tls_key,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=STREAMS_END_S,
        )


def of_the_start(before: Settings, after: Settings) -> Iterator[str]:
    """Yield the changed tables that take effect only at the next start."""
    kept = msgspec.structs.replace(
        before.store,
        keep_days=after.store.keep_days,
        keep_audit_days=after.store.keep_audit_days,
    )
    before = msgspec.structs.replace(before, store=kept)
    for name in ("server", "oidc", "store", "link", "lease"):
        if getattr(after, name) != getattr(before, name):
            yield name


def service_settings(settings: Settings) -> ServiceSettings:
    """Return the service's part of the settings."""
    return ServiceSettings(
        name=settings.server.name or socket.gethostname(),
        policy=policy_of(settings),
        ttl_s=settings.lease.ttl_s,
        retention=retention_of(settings),
    )


def issuer_in(section: OidcSection) -> "Issuer | None":
    """Return the verifier for the tokens of the configured issuer; None without one.

    Raises:
        SettingsError: the library for it is not installed.
    """
    if section.issuer is None:
        return None
    with oidc_needed():
        from policer.oidc import issuer_of  # noqa: PLC0415  part of an extra of its own
    return issuer_of(section, time.monotonic)


def keys_of(path: str) -> Keys:
    """Return the policer's own keys.

    Raises:
        SettingsError: the file has no keys, or others can read it.
    """
    return load_keys(Path(path))


def log_as(settings: Settings) -> None:
    """Configure logging by the settings."""
    kind = settings.log.format
    json = kind == "json" or (kind == "auto" and not sys.stderr.isatty())
    set_up_logging(json=json, level=settings.log.level)


def bound(server: ServerSection) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ListenError: the address is not this machine's, perhaps not yet, or is in use.
    """
    host, port = listen_address(server.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers immediately (TCP_NODELAY) only if the protocol is given.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_PEER_MS)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ListenError(server.listen, error.strerror or str(error)) from error
    return listening


def check_tls(server: ServerSection) -> None:
    """Make sure that certificate and key can be used.

    Raises:
        SettingsError: they cannot.
    """
    if server.tls_cert is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            server.tls_cert, server.tls_key
        )
    except OSError as error:  # ssl.SSLError is one
        problem = f"{server.tls_cert}, {server.tls_key}: {error.strerror or error}"
        fix = "give a PEM chain and the key that belongs to it"
        raise SettingsError("server.tls_cert", problem, fix) from error


def _told(ended: Iterable[object]) -> None:
    """Log the failure of a task, unless it was cancelled."""
    for outcome in ended:
        if isinstance(outcome, Exception):
            log.error("task_failed", exc_info=outcome)

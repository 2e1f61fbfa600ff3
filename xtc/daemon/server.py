"""The manager's sockets: requests on ROUTERs, telemetry on PUBs; local, and TCP with CURVE.

A TCP address without CURVE keys and an allow-list is refused: libzmq accepts any client that speaks
CURVE unless a ZAP handler says otherwise.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import structlog
import zmq
import zmq.auth

from common.directories import open_directory
from common.dirlock import hold_within
from common.errors import Busy, ConfigError
from xtc.daemon.key_check import KeyCheck
from xtc.wire import MAX_MESSAGE, Outcomes, Reply, Telemetry, encode

REQUESTS = "manager.sock"
TELEMETRY = "telemetry.sock"
BURST = 256
"""Requests answered between two checks of the clock, so that a flood delays no tick."""
QUEUE = 1000
HANDSHAKE_MS = 5000
REBIND_S = 1.0
"""How long to wait for a TCP address to become free, before ticks continue without it."""
SAFE_LIBZMQ = (4, 3, 5)
"""Older libraries carry CVE-2019-13132, CVE-2020-15166 or CVE-2021-20237."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CurveKeys:
    """The keys of a TCP listener: its own secret and the public keys of authorised peers."""

    server_secret: Path
    """A key file as `zmq.auth.create_certificates` writes it, readable only by the daemon."""
    authorised: Path
    """A directory with the public key files of the policers."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the manager listens."""

    directory: Path
    """For the local sockets; created with mode 0750."""
    tcp_requests: str | None = None
    tcp_telemetry: str | None = None
    curve: CurveKeys | None = None


class Server:
    """Receives requests and publishes telemetry; `handle` turns a request's bytes into a reply.

    A request without a reply blocks those behind it: each call of `serve` gives it to `handle`
    again.
    """

    def __init__(
        self,
        listen: Listen,
        handle: Callable[[bytes], Reply | None],
        *,
        on_refused_key: Callable[[], object] = lambda: None,
    ) -> None:
        self._listen = listen
        self._handle, self._on_refused_key = handle, on_refused_key
        self._context = zmq.Context()
        self._sockets: list[zmq.Socket[bytes]] = []
        """All of them, bound or not."""
        self._files: list[Path] = []
        self._opened = self._lock = -1
        """The runtime directory, and its lock; -1 while they are not open."""
        self._requests: list[zmq.Socket[bytes]] = []
        self._waiting: tuple[zmq.Socket[bytes], list[bytes]] | None = None
        """The request that has no reply yet, with its socket and frames."""
        self._telemetry: list[zmq.Socket[bytes]] = []
        self._key_check: KeyCheck | None = None
        self._own_keys: tuple[bytes, bytes] | None = None
        self._tcp_ends: list[_TcpEnd] = []

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def request_sockets(self) -> "list[zmq.Socket[bytes]]":
        """The sockets to poll for requests."""
        return self._requests

    @property
    def waiting(self) -> bool:
        """Whether a request waits for its reply, so that no other is read."""
        return self._waiting is not None

    def open(self) -> None:
        """Bind the sockets.

        Raises:
            Busy: another daemon listens there.
            ConfigError: an address cannot be bound, or TCP lacks its keys.
        """
        try:
            self._open(self._listen.directory)
        except (ConfigError, Busy):
            self.close()  # otherwise the thread that checks keys would continue
            raise

    def _open(self, directory: Path) -> None:
        check_listen(self._listen)
        try:
            self._opened = open_directory(directory, mode=0o750, group_may_write=True)
            # libzmq takes over a socket file from any process
            self._lock = hold_within(self._opened, directory, "runtime_dir")
        except OSError as error:
            raise ConfigError("daemon.runtime_dir", f"{directory}: {error.strerror}") from error
        self._admit_only_known_keys()
        self._requests.append(self._local(zmq.ROUTER, directory / REQUESTS))
        self._telemetry.append(self._local(zmq.PUB, directory / TELEMETRY))
        if self._listen.tcp_requests is not None:
            self._requests.append(self._tcp(zmq.ROUTER, self._listen.tcp_requests))
        if self._listen.tcp_telemetry is not None:
            self._telemetry.append(self._tcp(zmq.PUB, self._listen.tcp_telemetry))

    def close(self) -> None:
        """Close the sockets and remove their files."""
        for socket in self._sockets:
            socket.close(linger=0)
        self._sockets, self._requests, self._telemetry = [], [], []
        self._tcp_ends = []
        if self._key_check is not None:
            self._key_check.stop()
            self._key_check = None
        self._context.term()
        for path in self._files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=self._opened)
        self._files = []
        for descriptor in (self._lock, self._opened):
            if descriptor >= 0:
                os.close(descriptor)
        self._opened = self._lock = -1

    def serve(self) -> int:
        """Answer up to BURST waiting requests; return how many."""
        done = 0 if self._waiting is None else self._answer(*self._waiting)
        return done + sum(self._serve(socket) for socket in self._requests)

    def _serve(self, socket: "zmq.Socket[bytes]") -> int:
        done = 0
        while done < BURST and self._waiting is None:
            try:
                message = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            done += self._answer(socket, message)
        return done

    def _answer(self, socket: "zmq.Socket[bytes]", message: list[bytes]) -> int:
        """Answer a message, or let it wait; return how many requests were done."""
        peer, *frames = message
        self._waiting = None  # also after an error
        reply = self._handle(frames[-1] if frames else b"")
        if reply is None:
            self._waiting = socket, message
            return 0
        # A peer that does not read its replies loses them: the ROUTER never waits for it.
        socket.send_multipart([peer, *frames[:-1], encode(reply)], zmq.NOBLOCK)
        return _work(reply)

    def publish(self, telemetry: Telemetry) -> None:
        """Stream a tick; a slow subscriber loses ticks, and costs the daemon no time.

        This happens even without subscribers: libzmq handles what they send upstream, counts
        subscriptions and drops every other byte.
        """
        raw = encode(telemetry)
        for socket in self._telemetry:
            socket.send(raw, zmq.NOBLOCK)

    def _socket(self, kind: int) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        self._sockets.append(socket)
        socket.set(zmq.LINGER, 0)
        socket.set(zmq.MAXMSGSIZE, MAX_MESSAGE)
        socket.set(zmq.SNDHWM, QUEUE)
        socket.set(zmq.RCVHWM, QUEUE)
        socket.set(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        return socket

    def _admit_only_known_keys(self) -> None:
        curve = self._listen.curve
        if curve is None:
            return
        self._own_keys = _own_keys(curve.server_secret)
        self._key_check = KeyCheck(self._context, curve.authorised, self._on_refused_key)
        self._key_check.load()
        self._key_check.start()

    def reload_keys(self) -> None:
        """Read the authorised keys and the server's own again.

        libzmq checks a key when a peer connects, and cannot drop a single peer. If keys were only
        added, every connection stays. If one was removed or the server's own changed, all TCP
        connections are closed, and authorised peers reconnect by themselves.

        `listen_again` retries an address that another process took in between.

        Raises:
            ConfigError: a key cannot be read, and the previous keys stay.
        """
        if self._key_check is None or self._listen.curve is None:
            return
        check_listen(self._listen)
        own = _own_keys(self._listen.curve.server_secret)
        removed = self._key_check.load()
        if removed or own != self._own_keys:
            self._own_keys = own
            for end in self._tcp_ends:
                _wear(end.socket, own)
                end.reopen()

    def listen_again(self) -> None:
        """Try once to bind an address that a reload could not bind again."""
        for end in self._tcp_ends:
            if end.problem and end.bind():
                log.info("listening", address=end.endpoint)

    @property
    def listening(self) -> Mapping[str, bool]:
        """Whether each TCP address is bound."""
        return {end.endpoint: not end.problem for end in self._tcp_ends}

    def _local(self, kind: int, path: Path) -> "zmq.Socket[bytes]":
        """Bind a local socket for owner and group."""
        socket = self._socket(kind)
        before = os.umask(0o117)
        try:
            socket.bind(f"ipc://{path}")
        except zmq.ZMQError as error:
            raise ConfigError("daemon.runtime_dir", f"{path}: {error.strerror}") from error
        finally:
            os.umask(before)
        self._files.append(path)
        return socket

    def _tcp(self, kind: int, address: str) -> "zmq.Socket[bytes]":
        """Bind a separate TCP socket: CURVE belongs to a socket, and local peers need none."""
        assert self._own_keys is not None  # check_listen() has checked
        socket = self._socket(kind)
        socket.set(zmq.CURVE_SERVER, 1)
        _wear(socket, self._own_keys)
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            raise ConfigError("server.tcp", f"{address}: {error.strerror}") from error
        self._tcp_ends.append(_TcpEnd(socket, socket.get_string(zmq.LAST_ENDPOINT)))
        return socket


def _wear(socket: "zmq.Socket[bytes]", keys: tuple[bytes, bytes]) -> None:
    """Set the keys that a socket presents from the next bind on."""
    public, secret = keys
    socket.set(zmq.CURVE_PUBLICKEY, public)
    socket.set(zmq.CURVE_SECRETKEY, secret)


@dataclass
class _TcpEnd:
    """A TCP socket and its address."""

    socket: "zmq.Socket[bytes]"
    endpoint: str
    problem: str = ""
    """Why it is not bound; empty while it is."""

    def reopen(self) -> None:
        """Close every connection and listen again, once libzmq has freed the address."""
        with contextlib.suppress(zmq.ZMQError):  # an earlier reload could not bind it
            self.socket.unbind(self.endpoint)
        until = time.monotonic() + REBIND_S
        while not self.bind() and time.monotonic() < until:
            time.sleep(0.01)
        if self.problem:
            again = (
                "no policer can connect until the address is free; the daemon retries every period"
            )
            log.error("not_listening", address=self.endpoint, problem=f"{self.problem}: {again}")

    def bind(self) -> bool:
        """Try to listen; return whether it succeeded."""
        try:
            self.socket.bind(self.endpoint)
        except zmq.ZMQError as error:
            self.problem = str(error.strerror)
            return False
        self.problem = ""
        return True


def _work(reply: Reply) -> int:
    """Return how many requests an answer covers: a batch counts all of its own."""
    return max(1, len(reply.result.refusals)) if isinstance(reply.result, Outcomes) else 1


def check_listen(listen: Listen) -> None:
    """Refuse to listen on TCP unencrypted, unauthenticated, or with a vulnerable library.

    Raises:
        ConfigError: names what is missing.
    """
    if listen.tcp_requests is None and listen.tcp_telemetry is None:
        return
    if zmq.zmq_version_info() < SAFE_LIBZMQ:
        raise ConfigError(
            "server.tcp", f"libzmq {zmq.zmq_version()} has known vulnerabilities", "update it"
        )
    curve = listen.curve
    if curve is None:
        raise ConfigError(
            "server.tcp",
            "a TCP address needs server.secret_key_file and server.authorised_keys_dir",
            "make keys with `xtc config keys`, or keep to the local socket",
        )
    _check_secret(curve.server_secret)
    if not curve.authorised.is_dir() or not any(curve.authorised.glob("*.key")):
        raise ConfigError(
            "server.authorised_keys_dir",
            f"{curve.authorised} holds no public key, so no client could connect",
            "put the policer's .key file there",
        )


def _own_keys(path: Path) -> tuple[bytes, bytes]:
    try:
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise ConfigError("server.secret_key_file", f"{path}: {error}") from error
    if secret is None:
        problem = f"{path} holds no secret key"
        raise ConfigError("server.secret_key_file", problem, "name the file NAME.key_secret")
    return public, secret


def _check_secret(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigError("server.secret_key_file", f"{path}: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            "server.secret_key_file", f"{path} can be read by others", f"chmod 600 {path}"
        )

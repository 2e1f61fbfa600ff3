"""Endpoints on this machine that do what endpoints do: take, refuse, hang, reset, drip."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from policer.webhooks.rules import Rules, network_of

LOOPBACK = (network_of("127.0.0.0/8"), network_of("::1/128"))
TRUSTING = Rules(allow_http=True, networks=LOOPBACK, timeout_s=10.0)
"""Rules that let tests reach their own endpoints."""


@dataclass(frozen=True)
class Got:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> str:
        """The message's id."""
        return self.headers["webhook-id"]

    @property
    def data(self) -> Any:
        """The event."""
        return json.loads(self.body)["data"]


@dataclass
class Endpoint:
    """One endpoint, and what came to it."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answer: Callable[["Exchange"], None] = field(default=lambda exchange: exchange.say(204))
    """What it does with a request."""
    released: threading.Event = field(default_factory=threading.Event)
    """Lets go of all that hangs."""

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def words(self) -> list[str]:
        """What the events that came say."""
        return [got.data["words"] for got in self.got]


class Exchange(BaseHTTPRequestHandler):
    """Takes one request."""

    endpoint: Endpoint

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # its sender was stopped in the middle of it
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.endpoint.got.append(Got(self.path, headers, body))
        self.endpoint.answer(self)

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang(self) -> None:
        """Say nothing until the test ends."""
        self.endpoint.released.wait(60)

    def reset(self) -> None:
        """Break off, as a machine does whose program died."""
        gone = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, gone)
        self.connection.close()

    def drip(self, status: bytes = b"HTTP/1.1 200 OK\r\n") -> None:
        """Begin an answer, and send a byte of a header now and then."""
        self.wfile.write(status + b"X-Slow: ")
        while not self.endpoint.released.wait(0.05):
            try:
                self.wfile.write(b"a")
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def endpoint(
    answer: Callable[[Exchange], None] | None = None, *, tls: ssl.SSLContext | None = None
) -> Iterator[Endpoint]:
    """Serve an endpoint; it takes whatever comes, unless it is told what to do."""
    here = Endpoint()
    if answer is not None:
        here.answer = answer
    handler = type("Handler", (Exchange,), {"endpoint": here})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[assignment]  # a client may hang up
    here.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield here
    finally:
        here.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def verify(secret: str, got: Got, *, tolerance_s: float = 300.0) -> Any:
    """Check a message as its receiver does, by the words of the specification alone.

    Standard Webhooks 1.0.0, "Verifying signatures": the key is what follows `whsec_` in base64;
    id, timestamp and body are signed, joined by full stops; one of the signatures must fit.
    """
    prefix, _, encoded = secret.partition("_")
    assert prefix == "whsec"
    key = base64.b64decode(encoded)
    at = got.headers["webhook-timestamp"]
    assert abs(time.time() - int(at)) < tolerance_s
    signed = b".".join((got.headers["webhook-id"].encode(), at.encode(), got.body))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [one.split(",", 1) for one in got.headers["webhook-signature"].split(" ")]
    assert any(name == "v1" and hmac.compare_digest(mark, expected) for name, mark in given)
    return json.loads(got.body)

"""A gNMI server of the published schema, with TLS, and certificates for both of its ends."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

grpc = pytest.importorskip("grpc", reason="pygnmi is not installed")
pb2 = pytest.importorskip("pygnmi.spec.v080.gnmi_pb2", reason="pygnmi is not installed")
services = pytest.importorskip("pygnmi.spec.v080.gnmi_pb2_grpc", reason="pygnmi is not installed")

from cryptography import x509  # noqa: E402  pygnmi depends on it
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402
from cryptography.hazmat.primitives.hashes import SHA256  # noqa: E402
from cryptography.hazmat.primitives.serialization import (  # noqa: E402
    Encoding,
    NoEncryption,
    PrivateFormat,
)

Notifications = list[list[Any]]
"""Updates, by the notification in which they are sent."""


def whole(path: Any, count: int) -> Notifications:
    """Return a port's counters as JSON of the container."""
    return [[container(path, counters(count))]]


def split(path: Any, count: int) -> Notifications:
    """Return a port's counters leaf by leaf, each in a notification of its own."""
    return [[leaf(path, name, int(value))] for name, value in counters(count).items()]


def counters(count: int) -> dict[str, str]:
    """Return what a port has counted, in OpenConfig's names."""
    return {"out-octets": str(100 * count), "out-pkts": str(count), "out-discards": "2"}


def container(path: Any, value: Any) -> Any:
    """Return an update in JSON."""
    return pb2.Update(path=path, val=pb2.TypedValue(json_ietf_val=json.dumps(value).encode()))


def leaf(path: Any, name: str, value: int) -> Any:
    """Return an update of one leaf below a path."""
    below = pb2.Path(elem=[*path.elem, pb2.PathElem(name=name)])
    return pb2.Update(path=below, val=pb2.TypedValue(uint_val=value))


@dataclass
class GnmiSwitch(services.gNMIServicer):  # type: ignore[misc]
    """Counts up with each sample, and with each Get."""

    notifications: Callable[[Any, int], Notifications] = whole
    refusal: Any = None
    """Status code with which Subscribe is refused."""
    get_refusal: Any = None
    """Status code with which Get is refused."""
    clock_error_ns: int = 0
    count: int = 0
    gets: int = 0
    subscribed: list[Any] = field(default_factory=list)
    users: list[dict[str, str]] = field(default_factory=list)
    silent: Event = field(default_factory=Event)
    stopping: Event = field(default_factory=Event)

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802  the service names it
        self.gets += 1
        self.count += 1
        self.users.append(dict(context.invocation_metadata()))
        if self.get_refusal is not None:
            context.abort(self.get_refusal, "as the test says")
        answer = pb2.GetResponse()
        for path in request.path:
            answer.notification.add().update.append(container(path, counters(self.count)))
        return answer

    def Subscribe(self, requests: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        wanted = next(requests).subscribe
        self.subscribed.append(wanted)
        self.users.append(dict(context.invocation_metadata()))
        if self.refusal is not None:
            context.abort(self.refusal, "as the test says")
        yield from self._sample(wanted)
        yield pb2.SubscribeResponse(sync_response=True)
        every_s = wanted.subscription[0].sample_interval / 1e9
        while not self.stopping.wait(every_s) and context.is_active():
            if not self.silent.is_set():
                yield from self._sample(wanted)

    def _sample(self, wanted: Any) -> Iterator[Any]:
        self.count += 1
        stamp = time.time_ns() + self.clock_error_ns
        for one in wanted.subscription:
            for updates in self.notifications(one.path, self.count):
                sent = pb2.Notification(timestamp=stamp, update=updates)
                yield pb2.SubscribeResponse(update=sent)


@contextmanager
def serving(switch: GnmiSwitch, credentials: Any = None, port: int = 0) -> Iterator[int]:
    """Run the server; yield its port."""
    switch.stopping.clear()
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    services.add_gNMIServicer_to_server(switch, server)
    address = f"127.0.0.1:{port}"
    if credentials is None:
        bound = server.add_insecure_port(address)
    else:
        bound = server.add_secure_port(address, credentials)
    server.start()
    try:
        yield bound
    finally:
        switch.stopping.set()
        server.stop(None).wait()


@dataclass(frozen=True)
class Pair:
    """Files of a certificate and its key."""

    cert: Path
    key: Path

    def content(self) -> tuple[bytes, bytes]:
        """Return the key and the certificate, as gRPC takes them."""
        return self.key.read_bytes(), self.cert.read_bytes()


class Authority:
    """Signs certificates into a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(name, name, self._key.public_key(), timedelta(days=30))
        signed = made.add_extension(x509.BasicConstraints(True, None), critical=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(signed.sign(self._key, SHA256()).public_bytes(Encoding.PEM))

    def issue(self, name: str, ends: timedelta = timedelta(days=1)) -> Pair:
        """Return a certificate for a name, valid until some time from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        made = _certificate(name, self._name, key.public_key(), ends)
        signed = made.add_extension(names, critical=False).sign(self._key, SHA256())
        pair = Pair(*(self._folder / f"{self._name}-{name}.{end}" for end in ("crt", "key")))
        pair.cert.write_bytes(signed.public_bytes(Encoding.PEM))
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        pair.key.touch(mode=0o600)
        pair.key.write_bytes(secret)
        return pair

    def server(self, pair: Pair, clients: "Authority | None" = None) -> Any:
        """Return credentials of a server, which asks for certificates of `clients` if given."""
        roots = clients.file.read_bytes() if clients else None
        return grpc.ssl_server_credentials([pair.content()], roots, clients is not None)


def _certificate(name: str, issuer: str, key: Any, ends: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + ends)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

"""A small issuer of OpenID Connect on a port of this machine, with real keys and real HTTP."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

AUDIENCE = "policer"
Signs = RSAKey | ECKey | OKPKey


@cache
def rsa(kid: str, bits: int = 2048) -> RSAKey:
    """Return an RSA key of that name, made once."""
    return RSAKey.generate_key(bits, {"kid": kid, "use": "sig", "alg": "RS256"})


@cache
def ec(kid: str) -> ECKey:
    """Return an elliptic key of that name, made once."""
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


def published(*keys: Signs) -> bytes:
    """Return a JWK set of the public halves."""
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def signed(
    key: Signs | OctKey, claims: dict[str, Any], algorithm: str = "RS256", **header: Any
) -> str:
    """Return a token; None in its header leaves that out."""
    full = {"alg": algorithm, "kid": key.kid, **header}
    given = {name: value for name, value in full.items() if value is not None}
    registry = JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jwt.encode(given, claims, key, registry=registry, default_type=None)


class Issuer:
    """What the server answers, and who asked."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: tuple[Signs, ...] = (rsa("first"),)
        self.discovery: dict[str, Any] = {}
        """What its discovery document says differently."""
        self.raw: bytes | None = None
        """Its JWK set, where it is not of `keys`."""
        self.status = 200
        self.asked: list[str] = []
        """Paths, in their order."""
        self.answer = threading.Event()
        """Clear, and it hangs."""
        self.answer.set()

    def token(self, key: Signs | None = None, algorithm: str = "RS256", **changes: Any) -> str:
        """Return a token of somebody's; None leaves a claim out."""
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": "7b1e",
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + 300,
            "groups": ["acme-operators"],
            "preferred_username": "ann",
            **changes,
        }
        given = {name: value for name, value in claims.items() if value is not None}
        return signed(key or self.keys[0], given, algorithm)

    def body(self, path: str) -> bytes:
        """Return what is at a path."""
        if path.endswith("openid-configuration"):
            known = {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.discovery}
            return json.dumps(known).encode()
        return published(*self.keys) if self.raw is None else self.raw


@contextmanager
def issuing() -> Iterator[Issuer]:
    """Run an issuer."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            issuer.answer.wait(30.0)
            body = issuer.body(self.path)
            self.send_response(issuer.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield issuer
    finally:
        issuer.answer.set()
        server.shutdown()
        thread.join()
        server.server_close()

"""One attempt against real endpoints: whatever they do, it ends in time and says what happened."""

import asyncio
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from webhook_rig import LOOPBACK, TRUSTING, Endpoint, Exchange, endpoint, verify

from policer.webhooks import courier as module
from policer.webhooks.courier import Courier, Letter
from policer.webhooks.outcomes import Outcome
from policer.webhooks.rules import Rules
from policer.webhooks.signing import new_secret

SECRET = new_secret()
SHORT = Rules(allow_http=True, networks=LOOPBACK, timeout_s=1.0)


def attempt(url: str, rules: Rules = TRUSTING) -> Outcome:
    """Try once to deliver to a URL."""
    letter = Letter(url, SECRET, "evt_1_2", b'{"data": {"words": "hello"}}')
    return asyncio.run(Courier(lambda: rules).attempt(letter))


def outcome_of(answer: Callable[[Exchange], None], rules: Rules = TRUSTING) -> Outcome:
    with endpoint(answer) as here:
        return attempt(here.url(), rules)


def test_what_is_taken_was_signed_and_whole() -> None:
    with endpoint() as here:
        assert attempt(here.url("/a/b?c=d")) == Outcome("delivered", status=204)
    (got,) = here.got
    assert got.path == "/a/b?c=d"
    assert got.headers["host"] == f"127.0.0.1:{here.port}"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("xtc-policer/")
    assert verify(SECRET, got) == {"data": {"words": "hello"}}


def test_a_signature_of_another_body_does_not_fit() -> None:
    with endpoint() as here:
        attempt(here.url())
    (got,) = here.got
    with pytest.raises(AssertionError):
        verify(SECRET, type(got)(got.path, got.headers, got.body + b" "))
    with pytest.raises(AssertionError):
        verify(new_secret(), got)


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_answer_that_is_no_success_is_a_refusal(status: int) -> None:
    outcome = outcome_of(lambda exchange: exchange.say(status, b"sorry", Retry_After="77"))
    assert (outcome.kind, outcome.status, outcome.retry_after_s) == ("refused", status, 77.0)
    assert not outcome.final


def test_an_endpoint_that_is_gone_wants_no_more() -> None:
    assert outcome_of(lambda exchange: exchange.say(410)).final


@pytest.mark.parametrize("after", ["soon", "-5", "1e9", "9" * 50, "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wait_that_is_no_number_of_seconds_is_none(after: str) -> None:
    assert outcome_of(lambda e: e.say(503, Retry_After=after)).retry_after_s == 0.0


def test_a_redirect_is_not_followed() -> None:
    with endpoint() as inside:
        outcome = outcome_of(lambda exchange: exchange.say(307, Location=inside.url("/secret")))
    assert (outcome.kind, outcome.status) == ("refused", 307)
    assert "redirect" in outcome.words
    assert inside.got == []


def test_an_endpoint_that_hangs_is_left_in_time() -> None:
    began = time.monotonic()
    outcome = outcome_of(Exchange.hang, SHORT)
    assert outcome == Outcome("timeout", "no answer within 1 s")
    assert time.monotonic() - began < 20


def test_an_answer_that_drips_is_left_in_time() -> None:
    """Each byte comes before any deadline for one byte."""
    assert outcome_of(Exchange.drip, SHORT).kind == "timeout"


def test_answers_before_the_answer_without_end_are_left_in_time() -> None:
    def early(exchange: Exchange) -> None:
        while not exchange.endpoint.released.wait(0.05):
            exchange.wfile.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    assert outcome_of(early, SHORT).kind == "timeout"


def test_headers_without_end_are_too_many() -> None:
    def huge(exchange: Exchange) -> None:
        exchange.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * (1 << 20))

    assert outcome_of(huge).kind == "unreachable"


def test_a_body_is_not_read() -> None:
    sent = []

    def large(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.end_headers()
        while len(sent) < 4096 and not exchange.endpoint.released.is_set():
            try:
                exchange.wfile.write(b"a" * 65536)
            except OSError:
                return
            sent.append(1)

    assert outcome_of(large).kind == "delivered"
    assert len(sent) < 1000  # what the kernel holds for a connection, of 256 MiB


def test_a_connection_that_breaks_is_unreachable() -> None:
    assert outcome_of(Exchange.reset).kind == "unreachable"


def test_what_answers_something_else_is_unreachable() -> None:
    assert outcome_of(lambda e: e.wfile.write(b"220 mail.example ESMTP\r\n") and None).kind == (
        "unreachable"
    )


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with endpoint() as here:
        pass
    outcome = attempt(here.url())
    assert outcome.kind == "unreachable"
    assert outcome.words


# --- the guard, at the moment of connecting


def test_loopback_is_not_reached_unless_it_is_allowed() -> None:
    with endpoint() as here:
        outcome = attempt(here.url(), Rules(allow_http=True))
        assert outcome.kind == "forbidden"
        assert "127.0.0.1 is no public address" in outcome.words
        assert attempt(here.url(), Rules(networks=LOOPBACK)).kind == "forbidden"  # not by http
    assert here.got == []


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "localhost", "[::ffff:7f00:1]"])
def test_no_way_of_writing_loopback_gets_by(host: str) -> None:
    with endpoint() as here:
        outcome = attempt(here.url(host=host), Rules(allow_http=True))
    assert outcome.kind in {"forbidden", "unreachable"}
    assert here.got == []


class Names:
    """A resolver that says what it is told to; addresses are looked up as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> None:
        self.asked = 0
        self._answers, self._real = list(answers), socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: Any, port: Any, *given: Any, **more: Any) -> Any:
        if host != "hooks.example":
            return self._real(host, port, *given, **more)
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in answer]


def test_a_name_that_stands_for_something_else_later_gets_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: the name is asked about once, and what it said then is connected to."""
    rules = Rules(allow_http=True, networks=(LOOPBACK[0],))
    names = Names(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    with endpoint() as here:
        assert attempt(here.url(host="hooks.example"), rules).kind == "delivered"
        assert (names.asked, here.got[0].headers["host"]) == (1, f"hooks.example:{here.port}")
        outcome = attempt(here.url(host="hooks.example"), rules)
    assert outcome.kind == "forbidden"
    assert "169.254.169.254" in outcome.words


def test_of_several_addresses_only_the_allowed_ones_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Names(monkeypatch, ["10.0.0.1", "127.0.0.2", "127.0.0.1"])
    rules = Rules(allow_http=True, networks=(LOOPBACK[0],))
    with endpoint() as here:  # nobody listens at 127.0.0.2
        assert attempt(here.url(host="hooks.example"), rules).kind == "delivered"


def test_a_resolver_that_hangs_has_one_thread_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs, real, asked = threading.Event(), socket.getaddrinfo, []

    def slow(host: Any, *given: Any, **more: Any) -> Any:
        if host == "hooks.example":
            asked.append(host)
            hangs.wait(30)
        return real("127.0.0.1" if host == "hooks.example" else host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def together(here: Endpoint) -> list[Outcome]:
        courier = Courier(lambda: TRUSTING)
        letter = Letter(here.url(host="hooks.example"), SECRET, "evt_1", b"{}")
        hanging = [courier.attempt(letter, 1.0) for _ in range(3)]
        others = [courier.attempt(letter._replace(url=here.url())) for _ in range(3)]
        return await asyncio.gather(*hanging, *others)

    with endpoint() as here:
        outcomes = asyncio.run(together(here))
    hangs.set()
    assert [one.kind for one in outcomes] == ["timeout"] * 3 + ["delivered"] * 3
    assert len(asked) == 1


def test_a_name_that_nobody_knows_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    outcome = attempt("https://hooks.example/")
    assert (outcome.kind, "not known" in outcome.words) == ("unreachable", True)


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of hooks.example, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    names = ["-subj", "/CN=hooks.example", "-addext", "subjectAltName=DNS:hooks.example"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    ("host", "trusted", "kind"),
    [
        ("hooks.example", True, "delivered"),
        ("hooks.example", False, "unreachable"),
        ("127.0.0.1", True, "unreachable"),
    ],
)
def test_a_certificate_must_be_the_names_and_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, host: str, trusted: bool, kind: str
) -> None:
    Names(monkeypatch, ["127.0.0.1"])
    trust = ssl.create_default_context()
    if trusted:
        trust.load_verify_locations(certificate / "cert.pem")
    monkeypatch.setattr(module, "_trust", lambda: trust)
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with endpoint(tls=context) as here:
        outcome = attempt(f"https://{host}:{here.port}/", Rules(networks=LOOPBACK))
    assert outcome.kind == kind, outcome
    assert asked == (["hooks.example"] if host == "hooks.example" else [None])

"""Webhooks' pure parts: signatures, guard, schedule, kinds of events."""

import ast
import base64
import ipaddress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import policer
from policer.event_kinds import KINDS
from policer.store import EventRow
from policer.webhooks.guard import address_problem, url_problems
from policer.webhooks.message import message_of
from policer.webhooks.rules import Rules, network_of
from policer.webhooks.schedule import JITTER, LONGEST_S, wait_s
from policer.webhooks.signing import key_of, new_secret, signed

PUBLIC = Rules()
VECTOR = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


# --- signatures


def test_a_signature_is_that_of_the_specifications_other_implementations() -> None:
    """The vector of the reference libraries' own tests."""
    headers = signed(VECTOR, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_secrets_are_random_and_of_the_specifications_length() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(key_of(secret)) for secret in made} == {32}


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_!!!!",
        base64.b64encode(bytes(32)).decode(),
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
    ],
)
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        key_of(secret)


def test_no_id_of_a_message_has_a_full_stop() -> None:
    """Else what is signed could be cut up in two ways."""
    at = datetime(2026, 11, 23, 12, 0, 0, 123456, tzinfo=UTC)
    row = EventRow(17, at, "a.b", "punished", "words.", "r.1", "policer")
    message = message_of(row)
    assert message.id == "evt_17_1795435200123"
    assert "." not in message.id
    assert message_of(row) == message


# --- the guard


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:53aa:64c::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "feff::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
    ],
)
def test_an_address_that_is_not_public_is_not_reached(address: str) -> None:
    assert address_problem(address, PUBLIC) == f"{address} is no public address"


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is_reached(address: str) -> None:
    assert address_problem(address, PUBLIC) == ""


@given(st.ip_addresses(network="10.0.0.0/8") | st.ip_addresses(network="fd12::/16"))
def test_a_network_that_is_allowed_is_reached_and_no_other(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    allowed = Rules(networks=(network_of("10.0.0.0/9"), network_of("fd12::/17")))
    inside = any(address in network for network in allowed.networks)
    assert (address_problem(str(address), allowed) == "") is inside
    assert address_problem("127.0.0.1", allowed)


@given(st.ip_addresses(v=4))
def test_no_way_of_writing_an_ipv4_address_gets_by(address: ipaddress.IPv4Address) -> None:
    problem = bool(address_problem(str(address), PUBLIC))
    for written in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert bool(address_problem(written, PUBLIC)) is problem
    in_6to4 = ipaddress.IPv6Address((0x2002 << 112) | (int(address) << 80))
    assert bool(address_problem(str(in_6to4), PUBLIC)) is problem


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://hooks.example/", "unencrypted"),
        ("ftp://hooks.example/", "not https"),
        ("hooks.example", "names no host"),
        ("https:///path", "names no host"),
        ("https://user:secret@hooks.example/", "password"),
        ("https://user@hooks.example/", "password"),
        ("https://hooks.example/#here", "fragment"),
        ("https://hooks.example:99999/", "no URL"),
        ("https://[::1/", "no URL"),
        ("https://hooks.example/a b", "no URL has"),
        ("https://h\N{LATIN SMALL LETTER O WITH DIAERESIS}ks.example/", "no URL has"),
        ("https://hooks.example/\r\nX: y", "no URL has"),
        ("https://127.0.0.1/", "no public address"),
        ("https://[::ffff:10.0.0.1]/", "no public address"),
    ],
)
def test_a_url_that_cannot_be_is_refused_in_words(url: str, problem: str) -> None:
    found = list(url_problems(url, PUBLIC))
    assert any(problem in one.problem for one in found), found
    assert {one.field for one in found} == {"url"}


def test_a_url_of_an_endpoint_is_taken() -> None:
    assert list(url_problems("https://hooks.example:8443/a/b?token=1", PUBLIC)) == []
    assert list(url_problems("http://hooks.example/", Rules(allow_http=True))) == []


@given(st.text(max_size=60))
def test_no_text_as_a_url_raises(text: str) -> None:
    for url in (text, f"https://{text}", f"https://hooks.example/{text}"):
        list(url_problems(url, PUBLIC))


# --- the schedule


@given(st.integers(1, 1000), st.floats(0, 1, exclude_max=True), st.floats(0, 1e9))
def test_waits_grow_and_are_bounded(attempts: int, luck: float, asked: float) -> None:
    wait = wait_s(attempts, luck, asked)
    assert 0 < wait <= LONGEST_S * (1 + JITTER)
    assert wait >= (1 - JITTER) * min(asked, LONGEST_S)
    assert wait_s(attempts + 1, luck) >= wait_s(attempts, luck)


def test_ten_attempts_last_about_a_day() -> None:
    hours = sum(wait_s(attempt, 0.5) for attempt in range(1, 10)) / 3600
    assert 20 < hours < 30
    assert wait_s(1, 0.0) < 5 < wait_s(1, 0.99)


# --- the kinds of events


def noted() -> set[str]:
    """Return every kind of event that the program's text names."""
    found = set()
    for path in Path(policer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                found |= set(_kinds(node))
            elif isinstance(node, ast.Assign):
                found |= set(_assigned(node.targets[0], node.value))
    return found


def _assigned(target: ast.expr, value: ast.expr) -> list[str]:
    """Return what a name `kind` is given."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=True)
        return [kind for pair in pairs for kind in _assigned(*pair)]
    either = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    given = [one.value for one in either if isinstance(one, ast.Constant)]
    return [kind for kind in given if _name(target) == "kind" and isinstance(kind, str)]


def _kinds(call: ast.Call) -> list[str]:
    place = {
        "Note": 0,
        "_note": 0,
        "_note_rarely": 0,
        "_note_of_host": 0,
        "_override_event": 0,
        "Event": 1,
    }.get(_name(call.func))
    if place is None or len(call.args) <= place:
        return []
    given = call.args[place]
    return [given.value] if isinstance(given, ast.Constant) and given.value else []


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def test_every_kind_of_event_that_is_noted_can_be_chosen_and_no_other() -> None:
    assert noted() == set(KINDS)

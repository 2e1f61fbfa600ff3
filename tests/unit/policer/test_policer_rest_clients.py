"""Who asks, behind which proxies, and how often: no header lets a client be somebody else."""

import ipaddress
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_rig import Rig, filled, opened, serving

from policer.daemon.metrics import Metrics
from policer.fleet.live import Fleet
from policer.rest.access.gate import shows_token
from policer.rest.http.clients import MOST_HOPS, Proxies, client_address, group_of
from policer.token_bucket import MOST, Buckets

PROXIES = Proxies(("10.0.0.0/28", "2001:db8:1::/48"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.1", ["198.51.100.9"], "192.0.2.1"),  # no proxy of ours: it says what it likes
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["203.0.113.1, 198.51.100.9"], "198.51.100.9"),  # the left one is made up
        ("10.0.0.1", ["203.0.113.1", "198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["198.51.100.9, 10.0.0.2"], "198.51.100.9"),
        ("10.0.0.1", ["198.51.100.9", "10.0.0.2 ,10.0.0.3"], "198.51.100.9"),
        ("10.0.0.1", ["10.0.0.5, 10.0.0.2"], "10.0.0.5"),  # a proxy asks for itself
        ("10.0.0.1", ["198.51.100.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.9, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.9,"], "10.0.0.1"),
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.9:4711"], "198.51.100.9"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("10.0.0.1", ["[2001:db8::7]"], "2001:db8::7"),
        ("10.0.0.1", ["2001:DB8:0:0::7"], "2001:db8::7"),
        ("10.0.0.1", ["fe80::1%eth0"], "10.0.0.1"),
        ("10.0.0.1", ["1" * 1000], "10.0.0.1"),
        ("10.0.0.1", ["010.0.0.2"], "10.0.0.1"),
        ("10.0.0.1", ["3232235777"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["198.51.100.9"], "198.51.100.9"),
        ("10.0.0.1", ["198.51.100.9, ::ffff:10.0.0.2"], "198.51.100.9"),
        ("2001:db8:1::1", ["198.51.100.9"], "198.51.100.9"),
        ("testclient", ["198.51.100.9"], "testclient"),
    ],
)
def test_the_right_most_address_that_is_no_proxy_asks(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert client_address(peer, forwarded, PROXIES) == client
    assert client_address(peer, forwarded, Proxies()) == peer


def test_only_so_many_hops_are_looked_at() -> None:
    many = ["198.51.100.9", *["10.0.0.2"] * MOST_HOPS]
    assert client_address("10.0.0.1", [", ".join(many)], PROXIES) == "10.0.0.2"
    assert client_address("10.0.0.1", [", ".join(many[:-1])], PROXIES) == "198.51.100.9"


@given(made_up=st.text(max_size=60), real=st.ip_addresses())
def test_nothing_that_a_client_sends_changes_who_it_is(
    made_up: str, real: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    """A proxy appends the address that it sees; all before that is the client's."""
    alone = client_address("10.0.0.1", [str(real)], PROXIES)
    if str(real) in PROXIES:
        return
    assert client_address("10.0.0.1", [f"{made_up}, {real}"], PROXIES) == alone
    assert client_address("10.0.0.1", [made_up, str(real)], PROXIES) == alone


def test_clients_of_one_network_of_ipv6_are_one() -> None:
    assert group_of("2001:db8::1") == group_of("2001:db8::ffff:1") != group_of("2001:db8:0:1::1")
    assert group_of("192.0.2.1") == group_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert group_of("192.0.2.1") != group_of("192.0.2.2")
    assert group_of("testclient") == "testclient"
    assert group_of("") == ""


def test_buckets_take_no_more_memory_than_they_may() -> None:
    buckets = Buckets(1.0, 2.0)
    for number in range(MOST + 500):
        buckets.wait(0.0, str(number))
        buckets.wait(0.0, "steady")
        assert len(buckets) <= MOST
    assert buckets.wait(0.0, "steady") > 0  # who goes on asking is not forgotten
    assert buckets.wait(0.0, "0") == 0.0


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ([], False),
        (["Bearer xtcp_0123456789ab_abc"], True),
        (["bearer  xtcp_0123456789ab_abc"], True),
        (["Bearer a.b.c"], True),
        (["Bearer a.b"], False),
        (["Bearer xtcp_a b"], False),
        (["Basic YTpi"], False),
        (["Bearer a.b.c", "Bearer a.b.c"], False),
        (["Bearer a.b.c\n"], False),
    ],
)
def test_what_looks_like_a_token(lines: list[str], *, shown: bool) -> None:
    assert shows_token(lines) is shown


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_per_s=1.0, rate_burst=10.0) as rig:
        filled(rig)
        yield rig


@pytest.mark.parametrize("path", ["/", "/v1/hosts", "/v1/mystery", "/v1/openapi.json", "/metrics"])
def test_an_address_without_a_token_is_slowed_down_on_every_path(rig: Rig, path: str) -> None:
    client = rig.client(None)
    statuses = [client.get(path).status_code for _ in range(12)]
    assert 429 not in statuses[:10]
    assert statuses[10:] == [429, 429]
    refused = client.get(path)
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["x-request-id"] in refused.json()["instance"]
    assert refused.json()["type"] == "urn:xtc:problem:too-many-requests"
    assert rig.client("read").get("/v1/hosts").status_code == 200
    assert rig.client(None).get("/livez").status_code == 200
    assert rig.client(None).get("/readyz").status_code == 200
    rig.wait(1.0)
    assert client.get(path).status_code == statuses[0]


def test_headers_that_are_no_token_do_not_help(rig: Rig) -> None:
    client = rig.client(None)
    for number, header in enumerate(["Basic YTpi", "Bearer none", "", "Bearer xtcp_!"] * 3):
        status = client.get("/v1/hosts", headers={"Authorization": header}).status_code
        assert status == (401 if number < 10 else 429)


def test_a_token_on_what_takes_none_does_not_help(rig: Rig) -> None:
    client = rig.client(None)
    statuses = [
        client.get("/v1/openapi.json", headers={"Authorization": f"Bearer a.b.{n}"}).status_code
        for n in range(12)
    ]
    assert statuses == [200] * 10 + [429] * 2


def test_two_tokens_in_one_request_are_none(rig: Rig) -> None:
    """A proxy and the policer might take different ones."""
    two = [("Authorization", f"Bearer {rig.secrets[one]}") for one in ("read", "admin")]
    with serving(rig.app) as address, httpx.Client(base_url=address) as client:
        refused = client.get("/v1/hosts", headers=two)
    assert refused.status_code == 401
    assert "one Authorization" in refused.json()["detail"]


def test_addresses_behind_a_proxy_are_counted_one_by_one_and_audited(tmp_path: Path) -> None:
    proxies = Proxies(("127.0.0.0/8",))
    with (
        opened(tmp_path, rate_burst=10.0, trusted_proxies=proxies) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address) as client,
    ):
        filled(rig)
        for number in range(12):
            fooled = {"X-Forwarded-For": f"203.0.113.{number}, 198.51.100.1"}
            status = client.get("/", headers=fooled).status_code
            assert status == (200 if number < 10 else 429)
        other = client.get("/", headers={"X-Forwarded-For": "198.51.100.2"})
        assert other.status_code == 200
        client.headers.update(rig.headers("admin"))
        who = client.get("/v1/token", headers={"X-Forwarded-For": "1.2.3.4, 198.51.100.3"})
        assert who.json()["address"] == "198.51.100.3"
        client.delete(
            "/v1/hosts/gold/contracts/r1",
            headers={"If-Match": "*", "X-Forwarded-For": "198.51.100.3"},
        )
        row = client.get("/v1/audit?limit=1").json()["items"][0]
        assert (row["actor"], row["address"]) == ("admin", "198.51.100.3")
        assert row["actor_id"] == rig.secrets["admin"].split("_")[1]


def test_without_trusted_proxies_the_header_says_nothing(rig: Rig) -> None:
    forged = {"X-Forwarded-For": "198.51.100.3", "Forwarded": "for=198.51.100.3"}
    who = rig.client("read").get("/v1/token", headers=forged)
    assert who.json()["address"] == "testclient"


def test_what_came_too_often_is_counted_by_what_it_was(tmp_path: Path) -> None:
    metrics = Metrics(Fleet(), lambda: 0.0)
    with opened(tmp_path, rate_burst=30.0, throttled=metrics.throttled) as rig:
        filled(rig)
        for _ in range(31):
            rig.client("read").get("/v1/hosts")
            rig.client(None).get("/v1/hosts")
        guess = rig.client(None)
        for number in range(25):
            guess.headers["Authorization"] = f"Bearer xtcp_0123456789ab_{number:043d}"
            guess.get("/v1/hosts")
    value = metrics.registry.get_sample_value
    name = "policer_rest_throttled_total"
    assert value(name, {"client": "token"}) == 1.0
    assert value(name, {"client": "address"}) == 1.0
    assert value(name, {"client": "guess"}) == 4.0

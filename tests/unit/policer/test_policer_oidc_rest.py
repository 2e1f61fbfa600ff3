"""People of an issuer at the service: a real issuer, real tokens, and all that goes wrong."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from oidc_rig import AUDIENCE, Issuer, ec, issuing, published, rsa
from reach_rig import scene
from rest_rig import Rig, filled, opened, serving
from structlog.testing import capture_logs

from common.clock import FakeClock
from common.units import Seconds
from policer.config.schema import GrantSection, OidcSection
from policer.oidc import issuer_of
from policer.oidc.keyring import AGAIN_S, STALE_S
from policer.rest.access.gate import LONGEST_JWT, REMEMBERED_S
from policer.rest.access.identity import Verifies

GRANTS = (
    GrantSection(value="fleet-admins", scope="admin"),
    GrantSection(value="acme-operators", scope="operate", tenants=("acme",)),
    GrantSection(value="watchers", scope="read"),
)


class Door:
    """A service whose issuer is real."""

    def __init__(self, rig: Rig, issuer: Issuer, clock: FakeClock, client: httpx.Client) -> None:
        self.rig, self.issuer, self.clock, self.client = rig, issuer, clock, client

    def get(self, token: str, path: str = "/v1/token") -> httpx.Response:
        """Ask with a token."""
        return self.client.get(path, headers={"Authorization": f"Bearer {token}"})

    def wait(self, seconds: float) -> None:
        """Let time pass, for the service and for its keys."""
        self.rig.wait(seconds)
        self.clock.sleep(Seconds(seconds))

    def refused(self, token: str, status: int = 401) -> str:
        """Ask with a token that is refused; return why."""
        answer = self.get(token)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert token not in answer.text
        return str(answer.json()["detail"])


@pytest.fixture(scope="module")
def started() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def issuer(started: Issuer) -> Issuer:
    started.keys, started.discovery, started.raw, started.status = (rsa("first"),), {}, None, 200
    started.answer.set()
    started.asked.clear()
    return started


@pytest.fixture
def door(tmp_path: Path, issuer: Issuer) -> Iterator[Door]:
    clock = FakeClock(5000.0)
    section = OidcSection(issuer=issuer.url, audience=AUDIENCE, grants=GRANTS)
    verifies = issuer_of(section, clock.now)
    with (
        scene(tmp_path, issuer=verifies) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address, timeout=20.0) as client,
    ):
        yield Door(rig, issuer, clock, client)
        issuer.answer.set()


def test_a_person_is_known_by_issuer_and_subject(door: Door) -> None:
    who = door.get(door.issuer.token()).json()
    assert who["id"] == f"{door.issuer.url}-7b1e"
    assert (who["name"], who["scopes"]) == ("ann", ["operate"])
    assert who["reach"] == {"hosts": [], "routers": [], "tenants": ["acme"]}
    assert who["expires_at"]


def test_what_is_granted_is_what_may_be_done(door: Door) -> None:
    acme = door.get(door.issuer.token(), "/v1/contracts").json()
    assert [item["vr"] for item in acme["items"]] == ["acme-1"]
    assert door.get(door.issuer.token(), "/v1/audit").status_code == 403
    admin = door.issuer.token(groups=["watchers", "fleet-admins"])
    assert door.get(admin, "/v1/audit").status_code == 200
    watcher = door.issuer.token(groups=["watchers"])
    assert door.get(watcher, "/v1/hosts").status_code == 200
    assert door.get(watcher, "/v1/audit").status_code == 403


def test_what_is_changed_is_under_the_persons_id(door: Door) -> None:
    token = door.issuer.token()
    headers = {"Authorization": f"Bearer {token}", "If-Match": "*"}
    where = "/v1/hosts/edge-1/contracts/acme-1"
    body = {"guarantee_pps": 5, "tenant": "acme"}
    assert door.client.put(where, json=body, headers=headers).status_code == 200
    row = door.rig.store.audit.page(None, 1)[0]
    assert row.actor == "ann"
    assert row.actor_id == f"{door.issuer.url}-7b1e"
    assert row.address == "127.0.0.1"


def test_who_has_no_grant_is_told_so(door: Door) -> None:
    for groups in (["others"], [], "acme-operators,fleet-admins", None):
        words = door.refused(door.issuer.token(groups=groups), 403)
        assert "groups" in words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aud": "others"}, "another audience"),
        ({"exp": 1}, "has expired"),
        ({"nbf": 2**33}, "not valid yet"),
        ({"iss": "https://id.example"}, "another issuer"),
        ({"sub": "a\nb"}, "sub"),
        ({"sub": 300 * "x"}, "sub"),
    ],
    ids=str,
)
def test_what_is_not_for_here_and_now_is_refused(
    door: Door, changes: dict[str, object], words: str
) -> None:
    assert words in door.refused(door.issuer.token(**changes))


def test_huge_tokens_are_refused_unread(door: Door) -> None:
    # Small enough for the server, which takes headers of 64 KiB.
    token = door.issuer.token(groups=["x" * LONGEST_JWT])
    assert "longer than" in door.refused(token)
    assert door.issuer.asked == []
    large = door.issuer.token(groups=["acme-operators", *(f"group-{n}" for n in range(600))])
    assert door.get(large).status_code == 200


def test_a_key_that_is_rotated_in_is_found_and_one_that_is_withdrawn_ends(door: Door) -> None:
    old = door.issuer.token()
    assert door.get(old).status_code == 200
    door.issuer.keys = (rsa("second"), rsa("first"))
    new = door.issuer.token()
    assert "not published" in door.refused(new)  # asked for less than a minute ago
    door.wait(AGAIN_S)
    assert door.get(new).status_code == 200
    assert door.get(old).status_code == 200
    door.issuer.keys = (rsa("second"),)
    door.wait(STALE_S + 1)
    assert door.get(new).status_code == 200
    assert "not published" in door.refused(old)


def test_unknown_keys_do_not_make_the_policer_ask_again_and_again(door: Door) -> None:
    assert door.get(door.issuer.token()).status_code == 200
    asked = len(door.issuer.asked)
    for number in range(30):
        door.refused(door.issuer.token(key=rsa("made-up"), jti=str(number)))
    assert len(door.issuer.asked) == asked


def test_an_issuer_that_is_down_leaves_own_tokens_working(door: Door) -> None:
    door.issuer.status = 500
    answer = door.get(door.issuer.token())
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert answer.json()["type"] == "urn:xtc:problem:issuer"
    assert "answered 500" in answer.json()["detail"]
    assert door.get(door.rig.secrets["read"]).status_code == 200
    door.issuer.status = 200
    door.wait(AGAIN_S)
    assert door.get(door.issuer.token()).status_code == 200


def test_an_issuer_that_hangs_holds_up_nobody_else(door: Door) -> None:
    door.issuer.answer.clear()
    statuses: list[int] = []

    def ask() -> None:
        answer = httpx.get(
            door.client.base_url.join("/v1/token"),
            headers={"Authorization": f"Bearer {door.issuer.token()}"},
            timeout=30.0,
        )
        statuses.append(answer.status_code)

    waiting = [threading.Thread(target=ask) for _ in range(5)]
    for thread in waiting:
        thread.start()
    while not door.issuer.asked:
        time.sleep(0.01)
    began, answered = time.monotonic(), list[float]()
    while not statuses:  # they wait still
        assert door.get(door.rig.secrets["read"]).status_code == 200
        assert door.client.get("/livez").status_code == 200
        answered.append(time.monotonic() - began)
    # A request that was held up would be answered about when theirs were.
    assert answered[0] < 0.75 * answered[-1]
    for thread in waiting:
        thread.join()
    assert statuses == [503] * 5
    assert len(door.issuer.asked) == 1


def test_keys_that_were_had_outlive_the_issuer_for_a_while(door: Door) -> None:
    assert door.get(door.issuer.token()).status_code == 200
    door.issuer.status = 500
    door.wait(STALE_S / 2)
    assert door.get(door.issuer.token(jti="later")).status_code == 200
    door.wait(STALE_S)
    assert door.get(door.issuer.token(jti="too late")).status_code == 503


@contextmanager
def _opened(folder: Path, verifies: Verifies, today: "Days") -> Iterator[Rig]:
    """Open a service whose gate goes by that time of day."""
    with opened(folder, stream_tick_s=0.02, issuer=verifies) as rig:
        gate = rig.app.state.gate
        gate._today = today
        yield rig


class Days:
    """A time of day that can be moved ahead."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def test_a_token_ends_though_it_is_remembered_and_so_does_its_stream(
    tmp_path: Path, issuer: Issuer
) -> None:
    today = Days()
    section = OidcSection(issuer=issuer.url, audience=AUDIENCE, grants=GRANTS)
    verifies = issuer_of(section, FakeClock(1.0).now)
    with (
        _opened(tmp_path, verifies, today) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address, timeout=20.0) as client,
    ):
        filled(rig)
        door = Door(rig, issuer, FakeClock(1.0), client)
        token = issuer.token()
        with client.stream(
            "GET", "/v1/events/stream", headers={"Authorization": f"Bearer {token}"}
        ) as answer:
            assert answer.status_code == 200
            lines = answer.iter_lines()
            assert "from here on" in next(lines)
            today.ahead = timedelta(seconds=300)
            assert door.get(token).status_code == 200
            today.ahead = timedelta(seconds=340)
            assert "expired" in door.refused(token)
            assert list(lines) is not None  # to its end, which comes


def test_who_sends_many_tokens_that_are_none_waits_and_others_of_that_address_do_not(
    tmp_path: Path, issuer: Issuer
) -> None:
    section = OidcSection(issuer=issuer.url, audience=AUDIENCE, grants=GRANTS)
    verifies = issuer_of(section, FakeClock(1.0).now)
    with (
        opened(tmp_path, issuer=verifies, rate_burst=10.0) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address, timeout=20.0) as client,
    ):
        filled(rig)
        door = Door(rig, issuer, FakeClock(1.0), client)
        bad = [door.get(issuer.token(aud="x", jti=str(n))).status_code for n in range(12)]
        assert bad[0] == 401
        assert bad[-1] == 429
        assert door.get(issuer.token(jti="good")).status_code == 200
        mine = [door.get(issuer.token(jti=str(n))).status_code for n in range(12)]
        assert mine[-1] == 429  # by the person, not by the token
        assert door.get(issuer.token(sub="another")).status_code == 200


def test_no_token_is_in_the_log(door: Door) -> None:
    with capture_logs() as logs:
        good, bad = door.issuer.token(), door.issuer.token(aud="x")
        door.get(good)
        door.get(bad)
        door.issuer.status = 500
        door.wait(AGAIN_S)
        door.get(door.issuer.token(key=rsa("third")))
    text = repr(logs)
    assert f"{door.issuer.url}-7b1e" in text
    for token in (good, bad):
        for part in token.split("."):
            assert part not in text


def test_without_an_issuer_no_such_token_is_taken(tmp_path: Path, issuer: Issuer) -> None:
    with scene(tmp_path) as rig:
        client = rig.client(None)
        client.headers["Authorization"] = f"Bearer {issuer.token()}"
        refused = client.get("/v1/token")
        assert refused.status_code == 401
        assert "xtcp_" in refused.json()["detail"]


def test_keys_in_a_file_take_no_network(tmp_path: Path, issuer: Issuer) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(published(rsa("first"), ec("curve")))
    section = OidcSection(
        issuer="https://id.example",
        audience=AUDIENCE,
        jwks_file=str(path),
        claim="realm_access.roles",
        grants=(GrantSection(value="ops", scope="operate", hosts=("edge-*",)),),
    )
    clock = FakeClock(1.0)
    roles = {"iss": "https://id.example", "realm_access": {"roles": ["ops"]}}
    with (
        scene(tmp_path, issuer=issuer_of(section, clock.now)) as rig,
        serving(rig.app) as address,
        httpx.Client(base_url=address, timeout=20.0) as client,
    ):
        door = Door(rig, issuer, clock, client)
        for key, algorithm in ((rsa("first"), "RS256"), (ec("curve"), "ES256")):
            who = door.get(issuer.token(key, algorithm, **roles))
            assert who.json()["reach"] == {"hosts": ["edge-*"], "routers": [], "tenants": []}
        path.write_bytes(published(rsa("second")))
        door.wait(AGAIN_S + REMEMBERED_S)
        assert door.get(issuer.token(rsa("second"), **roles)).status_code == 200
    assert issuer.asked == []

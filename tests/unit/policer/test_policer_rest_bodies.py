"""What comes in over the wire: bodies that are no JSON, bombs, wrong types, methods and sizes."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.routes import HTTPRoute
from rest_rig import Rig, filled, opened
from structlog.testing import capture_logs

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.rest.http import queries
from policer.rest.http.queries import MOST_PARAMETERS, MOST_PROBLEMS

PATH = "/v1/hosts/gold/contracts/r5"
JSON = {"Content-Type": "application/json", "If-None-Match": "*"}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("bodies")
    with opened(folder, rate_burst=1e6) as rig:
        filled(rig)
        yield rig


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"nonsense", 400),
        (b"\xff\xfe", 400),
        (b'{"guarantee_pps":1', 400),
        (b'{"guarantee_pps":NaN}', 400),
        (b'{"guarantee_pps":Infinity}', 400),
        (b'{"guarantee_pps":1e999}', None),
        (b'{"guarantee_pps":%s}' % (b"9" * 60_000), None),
        (b'{"guarantee_pps":1,"x":%s}' % (b"[" * 60_000), None),
        (b"[" * 60_000, None),
        (b'{"a":' * 10_000, None),
        (b'{"guarantee_pps":1,"measures":["\\ud800"]}', None),
        (b'{"guarantee_pps":1,"measures":["\xed\xa0\x80"]}', None),
        (b"null", 422),
        (b"[]", 422),
        (b'"words"', 422),
        (b'{"guarantee":1}', 422),
    ],
    ids=range(17),
)
def test_no_body_does_harm(rig: Rig, raw: bytes, status: int | None) -> None:
    answer = rig.client("operate").put(PATH, content=raw, headers=JSON)
    assert answer.status_code in ({400, 422} if status is None else {status}), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 2000
    assert "r5" not in rig.store.contracts.all()["gold"]


def test_a_body_that_is_too_large_is_refused_unread(rig: Rig) -> None:
    big = b'{"guarantee_pps":1,"x":"%s"}' % (b"x" * 70_000)
    answer = rig.client("operate").put(PATH, content=big, headers=JSON)
    assert answer.status_code == 413
    parts = iter([b'{"x":"'] + 100 * [1000 * b"x"])
    chunked = rig.client("operate").put(PATH, content=parts, headers=JSON)
    assert chunked.status_code == 413


@pytest.mark.parametrize(
    "query",
    ["&".join(f"limi{number}" for number in range(MOST_PARAMETERS + 1)), "kind=" + 8200 * "x"],
    ids=["many", "long"],
)
def test_a_query_that_is_too_long_is_refused_unread(
    rig: Rig, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()
    monkeypatch.setattr(queries, "_problems", lambda name, *_: read.append(name) or ())
    answer = rig.client("read").get(f"/v1/events?{query}")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["query"]
    assert read == []


def test_of_many_misspelt_parameters_some_are_named(rig: Rig) -> None:
    query = "&".join(f"limi{number}=1" for number in range(MOST_PARAMETERS))
    answer = rig.client("read").get(f"/v1/events?{query}")
    assert answer.status_code == 422
    fields = [error["field"] for error in answer.json()["errors"]]
    assert len(fields) == MOST_PROBLEMS
    assert set(fields) <= {f"limi{number}" for number in range(MOST_PARAMETERS)}


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data", ""])
def test_a_body_of_another_media_type_is_refused(rig: Rig, kind: str) -> None:
    headers = JSON | {"Content-Type": kind}
    answer = rig.client("operate").put(PATH, content=b'{"guarantee_pps":1}', headers=headers)
    assert answer.status_code == 415


def test_a_wrong_method_is_told_the_right_ones(rig: Rig) -> None:
    answer = rig.client().patch("/v1/hosts")
    assert answer.status_code == 405
    assert {"GET", "POST"} <= set(answer.headers["allow"].replace(" ", "").split(","))
    assert "Allow" in answer.json()["detail"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_options_names_every_method(rig: Rig) -> None:
    for path, methods in (
        ("/v1/hosts", "GET, OPTIONS, POST"),
        ("/v1/hosts/gold", "DELETE, GET, OPTIONS, PUT"),
    ):
        answer = rig.client(None).options(path)
        assert (answer.status_code, answer.headers["allow"]) == (204, methods)


def test_a_path_that_is_not_there_is_a_problem_too(rig: Rig) -> None:
    answer = rig.client().get("/v1/mystery")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:xtc:problem:unknown"
    assert "/v1/openapi.json" in answer.json()["detail"]
    assert answer.headers["x-request-id"] in answer.json()["instance"]


def test_head_is_get_without_a_body(rig: Rig) -> None:
    got, head = rig.client().get("/v1/hosts/gold"), rig.client().head("/v1/hosts/gold")
    assert head.status_code == got.status_code == 200
    assert head.content == b""
    assert head.headers["etag"] == got.headers["etag"]
    assert head.headers["content-length"] == str(len(got.content))
    assert rig.client(None).head("/v1/hosts").status_code == 401


def test_every_answer_carries_the_headers_that_all_have(rig: Rig) -> None:
    for path in ("/v1/hosts", "/v1/mystery", "/livez", "/v1/hosts/lead"):
        headers = rig.client().get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-request-id"]


def test_an_unforeseen_error_is_logged_once_and_shown_by_its_id_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("the secret reason")

    monkeypatch.setattr(rig.store.classes, "all", broken)
    with capture_logs() as logs:
        answer = rig.client().get("/v1/classes")
    assert answer.status_code == 500
    assert "secret reason" not in answer.text
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert len(errors) == 1
    assert errors[0]["id"] in answer.json()["instance"]
    assert isinstance(errors[0]["exc_info"], ZeroDivisionError)


def test_the_log_has_the_request_and_never_the_secret(rig: Rig) -> None:
    with capture_logs() as logs:
        made = rig.client().post("/v1/tokens", json={"name": "logged", "scope": "read"})
    assert made.status_code == 201
    entry = next(entry for entry in logs if entry["event"] == "request")
    assert (entry["method"], entry["path"], entry["status"]) == ("POST", "/v1/tokens", 201)
    assert entry["token"] == "admin"
    for secret in (made.json()["secret"], rig.secrets["admin"]):
        assert secret not in str(logs)


def test_types_are_read_before_there_are_threads(rig: Rig) -> None:
    """Two threads that use a type first at the same instant crash msgspec 0.22."""
    routes = [route for route in rig.app.routes if isinstance(route, HTTPRoute)]
    models = [handler.signature_model for route in routes for handler in route.route_handlers]
    for kind in (Contract, Host, *models):
        known = {type(one).__name__ for one in gc.get_referents(kind)}
        assert "StructInfo" in known, kind

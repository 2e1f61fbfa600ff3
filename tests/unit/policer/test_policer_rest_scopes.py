"""Every operation of the OpenAPI document against every kind of token: none can be forgotten."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from history_filled import NOW
from rest_rig import SCOPES, Rig, Today, filled, opened

from policer.rest.openapi import EXAMPLES

TOO_LITTLE = {"read": (), "operate": ("read",), "admin": ("read", "operate")}
ID = "0123456789ab"
METHODS = {"get", "put", "post", "delete"}


@pytest.fixture(scope="module")
def today() -> Today:
    """The present, as for the parts of the service whose time of day no test sets."""
    today = Today()
    today.now = datetime.now(UTC)
    return today


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory, today: Today) -> Iterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("scopes")
    bursts = {"rate_burst": 1e6, "plans_burst": 1e6}
    with opened(folder, today=today, stream_life_s=0.0, wall=lambda: NOW, **bursts) as rig:
        filled(rig)
        yield rig


def operations(rig: Rig) -> list[tuple[str, str, dict[str, Any]]]:
    """Return every operation that there is, as the document has it."""
    document = rig.client(None).get("/v1/openapi.json").json()
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def asked(rig: Rig, method: str, path: str, operation: dict[str, Any], secret: str | None) -> int:
    """Ask with plausible values; return the status."""
    name = operation["operationId"]
    with rig.client(None) as client:
        answer = client.request(
            method,
            path.format(
                host="gold",
                vr="r1",
                token=ID,
                webhook=ID,
                month="2026-11",
                name="silver",
                plan=32 * "0",
            ),
            json=EXAMPLES.get(name),
            headers={"If-Match": '"v99"'}
            | ({"Authorization": f"Bearer {secret}"} if secret else {}),
        )
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    return answer.status_code


def test_the_document_has_every_route_of_the_application(rig: Rig) -> None:
    documented = {(method.upper(), path) for method, path, _ in operations(rig)}
    there = {
        (method, route.path_format)
        for route in rig.app.routes
        for method in getattr(route, "methods", ())
        if method.lower() in METHODS
    }
    hidden = {path for _, path in there - documented}
    assert hidden <= {"/", "/{file}", "/v1", "/v1/openapi.json"}
    assert documented <= there
    assert len(documented) > 25


def test_every_operation_is_closed_to_those_who_may_not(rig: Rig, today: Today) -> None:
    soon = today.now + timedelta(milliseconds=5)
    _, expired = rig.store.tokens.add("expired", ["admin"], soon, "test")
    today.now += timedelta(seconds=1)
    row, revoked = rig.store.tokens.add("revoked", ["admin"], None, "test")
    rig.store.tokens.revoke(row.id, "test")
    unknown = "xtcp_0123456789ab_" + 43 * "A"
    for method, path, operation in operations(rig):
        if not operation["security"]:
            assert asked(rig, method, path, operation, None) == 200, path
            continue
        rig.wait(60.0)  # who sends too many such tokens is not looked up for a while
        for secret in (None, unknown, expired, revoked, "nonsense"):
            assert asked(rig, method, path, operation, secret) == 401, (method, path, secret)
        for scope in TOO_LITTLE[needed(operation)]:
            assert asked(rig, method, path, operation, rig.secrets[scope]) == 403, (method, path)


def test_every_operation_is_open_to_those_who_may(rig: Rig) -> None:
    for method, path, operation in operations(rig):
        if not operation["security"]:
            continue
        least = needed(operation)
        for scope in SCOPES[SCOPES.index(least) :]:
            status = asked(rig, method, path, operation, rig.secrets[scope])
            if operation["operationId"] == "changeHost" and scope != "admin":
                assert status == 403  # the example moves it to another daemon
                continue
            assert status not in {401, 403, 405}, (method, path)
            assert status < 500, (method, path)
            assert str(status) in operation["responses"], (method, path, status)


def test_every_operation_says_what_it_does_and_what_may_go_wrong(rig: Rig) -> None:
    names = [operation["operationId"] for _, _, operation in operations(rig)]
    assert len(set(names)) == len(names)
    for method, path, operation in operations(rig):
        assert len(operation["summary"].split()) > 2, path
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                content = response["content"]["application/problem+json"]
                assert content["schema"]["$ref"].endswith("/ProblemDocument")
                assert content["examples"], (method, path, status)
        body = operation.get("requestBody")
        if body:
            assert body["content"]["application/json"]["examples"], (method, path)


def test_only_health_and_metrics_take_no_token(rig: Rig) -> None:
    unguarded = {path for _, path, operation in operations(rig) if not operation["security"]}
    assert unguarded == {"/livez", "/readyz", "/metrics"}


def needed(operation: dict[str, Any]) -> str:
    """Return the scope that the description names."""
    return next(s for s in SCOPES if f"scope `{s}`" in operation["description"])

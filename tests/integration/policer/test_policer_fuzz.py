"""The OpenAPI document fuzzed in process: every operation, good and bad data, all checks.

A stream lasts no longer than its first message here, or it would never be an answer.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from history_filled import NOW
from hypothesis import HealthCheck, Phase, settings
from litestar.types import Receive, Scope, Send
from rest_rig import PROMISE, Rig, filled, opened
from schemathesis.config import SchemathesisConfig

from policer.contracts.overrides import Override
from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.rest.app import describe
from policer.rest.openapi import EXAMPLES as BODIES

FOLLOWED = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11"
"""The document's example of a router that a contract follows."""
EXAMPLES = 40
"""Of each operation, beside those that its document's boundaries give."""
CONFIG = {
    "generation": {"mode": "all", "max-examples": EXAMPLES},
    "checks": {
        # Data of the right form may still meet what is there, or what was promised.
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", 404, 409, 412, 422, 428],
        },
        # Of an If-Match that is none, this service says that it does not fit (412).
        "negative_data_rejection": {
            "expected-statuses": [400, 401, 404, 405, 412, 413, 415, 422, 428],
        },
        "missing_required_header": {"expected-statuses": [401, 422, 428]},
    },
}


class Later:
    """The application, which is there only when the tests run; operations are read before."""

    def __init__(self) -> None:
        self.rig: Rig | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        assert self.rig is not None
        await self.rig.app(scope, receive, send)


STATUSES: dict[tuple[str, str], set[int]] = defaultdict(set)
"""What each operation answered."""


def seen(method: str, route: str, status: int, _seconds: float) -> None:
    """Keep what an operation answered."""
    STATUSES[method, route].add(status)


later = Later()
schema = schemathesis.openapi.from_dict(describe(), config=SchemathesisConfig.from_dict(CONFIG))
schema.app = later


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with opened(
        folder,
        stream_life_s=0.0,
        wall=lambda: NOW,
        rate_burst=1e9,
        plans_burst=1e9,
        observe=seen,
    ) as rig:
        filled(rig)
        rig.store.contracts.put("gold", "customer-7", PROMISE, None, "test")
        rig.store.tenants.put("acme", Tenant(), None, "test")
        override(rig)
        rig.store.classes.put("silver", PROMISE, None, "test")
        rig.store.contracts.put(ANYWHERE, FOLLOWED, PROMISE, None, "test")
        rig.note(10)
        later.rig = rig
        yield rig
        later.rig = None
    check_accepted()


def override(rig: Rig) -> None:
    """Set an override of each kind that has an address of its own, to be read."""
    until = datetime.now(UTC) + timedelta(days=1)
    for wanted in (
        Override("suspension", "suspended", "gold"),
        Override("exemption", "exempt", "gold", "customer-7", until),
    ):
        rig.store.overrides.put(wanted, None, "test")


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_to_its_document(rig: Rig, case: schemathesis.Case[Any]) -> None:
    guarded = case.operation.definition.raw["security"]
    case.call_and_validate(headers=rig.headers("admin") if guarded else {})


def test_a_contract_of_the_documents_example_is_accepted(rig: Rig) -> None:
    case = schema["/v1/contracts"]["POST"].Case(body={**BODIES["addContract"], "vr": "another"})
    answer = case.call_and_validate(headers=rig.headers("admin"))
    assert answer.status_code < 300


def test_a_plan_of_the_documents_example_is_made_read_and_applied(rig: Rig) -> None:
    token = rig.headers("admin")
    case = schema["/v1/plans"]["POST"].Case(body=BODIES["makePlan"])
    made = case.call_and_validate(headers=token)
    assert made.status_code == 201
    plan, tag = made.json()["id"], {"If-Match": made.headers["etag"][0]}
    read = schema["/v1/plans/{plan}"]["GET"].Case(path_parameters={"plan": plan})
    assert read.call_and_validate(headers=token).json() == made.json()
    applied = schema["/v1/plans/{plan}/apply"]["POST"].Case(path_parameters={"plan": plan})
    assert applied.call_and_validate(headers=token | tag).json()["version"] == 2


@pytest.mark.parametrize(
    ("name", "path"),
    [("putClass", {"name": "bronze"}), ("putFollowing", {"vr": "roaming"})],
)
def test_an_example_that_may_be_new_is_accepted(rig: Rig, name: str, path: dict[str, str]) -> None:
    where = {"putClass": "/v1/classes/{name}", "putFollowing": "/v1/routers/{vr}/contract"}[name]
    case = schema[where]["PUT"].Case(body=BODIES[name], path_parameters=path)
    answer = case.call_and_validate(headers=rig.headers("admin") | {"If-None-Match": "*"})
    assert answer.status_code == 201


def check_accepted() -> None:
    """Check, once all is done, that what was fuzzed was not only refused."""
    refused = {
        f"{method} {route}"
        for method, route in STATUSES
        if method in {"GET", "POST"} and not any(s < 300 for s in STATUSES[method, route])
    }
    # Ids of tokens, webhooks and plans cannot be guessed, and the one router with a name
    # misbehaves not.
    assert refused - {"GET none", "POST none"} <= {
        "GET /v1/tokens/{token}",
        "GET /v1/plans/{plan}",
        "POST /v1/plans/{plan}/apply",
        "GET /v1/webhooks/{webhook}",
        "GET /v1/webhooks/{webhook}/dead",
        "POST /v1/webhooks/{webhook}/redeliver",
        "POST /v1/webhooks/{webhook}/test",
        "POST /v1/hosts/{host}/routers/{vr}/pardon",
    }

"""Lists by cursor: complete and without duplicates while rows are added; bad ones refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_rig import GOLD, Rig, filled, opened, report

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.rest.http.cursor import pack


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_burst=1e6) as rig:
        filled(rig)
        yield rig


def walked(rig: Rig, path: str, between: Callable[[], None] = lambda: None) -> list[Any]:
    """Return all items of a list, page by page; something happens between any two of them."""
    client, items, after = rig.client(), [], ""
    for _ in range(1000):
        page = client.get(f"{path}limit=3{after}").json()
        assert len(page["items"]) <= 3
        items += page["items"]
        if page["next"] is None:
            return items
        after = f"&after={page['next']}"
        between()
    raise AssertionError("the list has no end")


def test_events_come_each_once_while_more_happen(rig: Rig) -> None:
    rig.note(20)
    ids = [row["id"] for row in walked(rig, "/v1/events?", lambda: rig.note(1))]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == len(set(ids)) == 20


def test_events_are_filtered(rig: Rig) -> None:
    rig.note(4, kind="engaged")
    rig.note(5, kind="released", host="silver")
    assert len(walked(rig, "/v1/events?kind=released&")) == 5
    assert len(walked(rig, "/v1/events?host=gold&")) == 4


def test_contracts_come_each_once_while_more_are_made(rig: Rig) -> None:
    for i in range(20):
        rig.store.contracts.put("gold", f"m{i:02}", Contract(guarantee_pps=0.0), None, "test")
    later = iter(range(100))

    def more() -> None:
        name = f"{'az'[next(later) % 2]}{next(later):02}"
        rig.store.contracts.put("gold", name, Contract(guarantee_pps=0.0), None, "test")

    names = [(row["host"], row["vr"]) for row in walked(rig, "/v1/contracts?", more)]
    assert names == sorted(set(names))
    assert {("gold", f"m{i:02}") for i in range(20)} <= set(names)


def test_routers_come_each_once(rig: Rig) -> None:
    rig.show(GOLD, *(report(f"m{i:02}", 1.0) for i in range(20)))
    names = [(row["host"], row["vr"]) for row in walked(rig, "/v1/routers?")]
    assert names == sorted(set(names))
    assert len(names) == 21


def test_hosts_tokens_and_the_audit_log_come_whole(rig: Rig) -> None:
    for i in range(7):
        host = Host(f"h{i}", f"ipc:///run/{i}/requests", f"ipc:///run/{i}/telemetry", 1000.0)
        rig.store.hosts.add(host, "test")
        rig.store.tokens.add(f"t{i}", ["read"], None, "test")
    assert len(walked(rig, "/v1/hosts?")) == 9
    assert len({row["id"] for row in walked(rig, "/v1/tokens?")}) == 10
    assert len({row["id"] for row in walked(rig, "/v1/audit?")}) == 4 + 14 + 3


def test_a_cursor_of_a_token_that_is_not_there_does_not_begin_again(rig: Rig) -> None:
    answer = rig.client().get("/v1/tokens", params={"after": pack("0123456789ab")})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "after"


def test_what_no_kind_of_event_can_be_is_said_in_words(rig: Rig) -> None:
    answer = rig.client().get("/v1/events", params={"kind": "No-Kind"})
    assert answer.status_code == 422
    assert "such as punished" in answer.json()["errors"][0]["fix"]
    assert "regex" not in answer.text


@pytest.mark.parametrize("path", ["/v1/events", "/v1/hosts/gold/contracts/r1/history"])
@pytest.mark.parametrize(
    "after",
    [
        "!",
        "AAAA",
        "%00",
        pack("no number"),
        pack(-1),
        pack(2**63),
        pack(2**80),
        pack({"a": [1]}),
        "W" * 500,
        "\N{SNOWMAN}",
    ],
)
def test_a_cursor_that_is_none_of_ours_is_refused(rig: Rig, path: str, after: str) -> None:
    answer = rig.client().get(path, params={"after": after})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "after"


@pytest.mark.parametrize("limit", ["0", "501", "-1", "many", "1e3", "", "9" * 5000])
def test_a_limit_that_cannot_be_is_refused(rig: Rig, limit: str) -> None:
    answer = rig.client().get("/v1/events", params={"limit": limit})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limit"

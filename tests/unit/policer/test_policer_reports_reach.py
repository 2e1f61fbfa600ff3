"""Reports and history for limited tokens: only of contracts that were theirs all of the time."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from history_filled import lead, told
from rest_rig import Rig

from policer.contracts.contract import Contract
from policer.contracts.reach import Reach
from policer.contracts.tenant import Tenant
from policer.store import Change, ContractDays, DayRow, Kept
from policer.store.limited.history import was_seen

DAYS = date(2026, 11, 1), date(2026, 12, 1)
ACME, BETA = Reach(tenants=("acme",)), Reach(tenants=("beta",))
REPORT = "/v1/reports/2026-11"


def change(day: int, tenant: str | None, version: int, month: int = 11) -> Change:
    at = datetime(2026, month, day, tzinfo=UTC)
    return Change(at, msgspec.json.encode(Contract(tenant=tenant)).decode(), version)


def removed(day: int, version: int, month: int = 11) -> Change:
    return Change(datetime(2026, month, day, tzinfo=UTC), None, version)


def days(*changes: Change, host: str = "gold", hosts: tuple[str, ...] = ()) -> ContractDays:
    return ContractDays(host, "r1", Kept(1.0), list(changes), hosts)


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ([change(1, "acme", 1, month=9)], True),
        ([change(20, "acme", 1)], True),
        ([change(1, "acme", 1, 9), change(20, "acme", 2), removed(25, 3)], True),
        ([change(1, "beta", 1, 9), removed(1, 2, 10), change(20, "acme", 3)], True),
        ([change(1, "beta", 1, 9), change(1, "acme", 2)], True),
        ([change(1, "acme", 1, 9), change(1, "beta", 2, month=12)], True),
        ([change(1, "beta", 1, 9), change(20, "acme", 2)], False),
        ([change(1, "acme", 1, 9), change(20, "beta", 2)], False),
        ([change(1, "acme", 1, 9), change(20, None, 2)], False),
        ([change(2, "acme", 2)], False),  # whose it was before is no longer kept
        ([change(1, "acme", 2, 10)], True),
        ([removed(1, 2, 10)], False),
        ([], False),
    ],
)
def test_a_tenant_sees_what_was_its_own_all_of_the_time(
    changes: list[Change],
    *,
    seen: bool,
) -> None:
    assert was_seen(days(*changes), DAYS, ACME) is seen
    assert not was_seen(days(*changes), DAYS, BETA)
    assert was_seen(days(*changes), DAYS, Reach(hosts=("gold",)))
    assert not was_seen(days(*changes), DAYS, Reach(hosts=("silver",), tenants=("acme",)))


def test_contracts_that_follow_are_of_tokens_that_see_all_their_hosts() -> None:
    moved = days(change(1, "acme", 1), host="", hosts=("gold", "silver"))
    assert was_seen(moved, DAYS, ACME)
    assert was_seen(moved, DAYS, Reach(hosts=("gold", "s*")))
    assert not was_seen(moved, DAYS, Reach(hosts=("gold",)))
    assert not was_seen(moved, DAYS, Reach(hosts=("gold",), tenants=("acme",)))
    assert not was_seen(moved, DAYS, Reach(routers=("*/r1",)))
    assert not was_seen(days(change(1, "acme", 1), host=""), DAYS, Reach(hosts=("*",)))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A service with days of three contracts, two of which are acme's."""
    with told(tmp_path) as rig:
        for tenant in ("acme", "beta"):
            rig.store.tenants.put(tenant, Tenant(), None, "test")
        for vr, tenant in (("r2", "acme"), ("r3", "beta"), ("r4", "acme")):
            rig.store.contracts.put("gold", vr, Contract(tenant=tenant), None, "test")
        kept = [DayRow("gold", vr, date(2026, 11, 5), 1, data_s=9.0) for vr in ("r1", "r2", "r3")]
        assert rig.store.sla.put(kept, lead(rig))
        yield rig


def as_limited(rig: Rig, reach: Reach) -> dict[str, str]:
    """Return the header of a token with a reach."""
    secret = rig.store.tokens.add("limited", ["read"], None, "test", reach)[1]
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    ("reach", "routers"),
    [
        (ACME, ["r2", "r4"]),
        (BETA, ["r3"]),
        (Reach(tenants=("gamma",)), []),
        (Reach(hosts=("gold",)), ["r1", "r2", "r3", "r4"]),
        (Reach(hosts=("silver",)), []),
        (Reach(routers=("gold/r2",)), ["r2"]),
    ],
    ids=str,
)
def test_reports_and_exports_have_what_a_token_reaches(
    rig: Rig, reach: Reach, routers: list[str]
) -> None:
    headers = as_limited(rig, reach)
    client = rig.client(None)
    items = client.get(REPORT, headers=headers).json()["items"]
    assert [item["vr"] for item in items] == routers
    pages = client.get(f"{REPORT}?limit=1", headers=headers).json()
    assert [item["vr"] for item in pages["items"]] == routers[:1]
    assert (pages["next"] is None) is (len(routers) <= 1)
    lines = client.get(f"{REPORT}?format=csv", headers=headers).text.splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == routers


def test_history_is_of_tokens_that_see_its_host(rig: Rig) -> None:
    where = "/v1/hosts/gold/routers/r2/history"
    for reach, status in ((Reach(hosts=("g*",)), 200), (Reach(hosts=("s*",)), 404), (ACME, 404)):
        assert rig.client(None).get(where, headers=as_limited(rig, reach)).status_code == status

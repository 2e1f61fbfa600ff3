"""Whose routers are, by contracts on their hosts and those that follow them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from following_rig import UUID
from rest_rig import report

from policer.contracts.contract import Contract
from policer.contracts.promised import ANYWHERE, Promises

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OVER = NOW - timedelta(days=1)


def promised(own: Contract | None, follows: Contract | None) -> dict[str, str]:
    promises = Promises(0.0)
    entered = {
        "edge-1": {} if own is None else {"r": own},
        ANYWHERE: {} if follows is None else {"r": follows},
    }
    promises.take(entered, {}, {})
    promises.whereabouts.heard("edge-1", {"r": report("r", 1.0)}, 1.0)
    return dict(promises.on("edge-1", NOW).tenants)


@pytest.mark.parametrize("until", [None, OVER])
def test_a_router_is_its_tenants_whether_its_contract_holds_or_not(until: datetime | None) -> None:
    acmes = Contract(guarantee_pps=1, tenant="acme", valid_until=until)
    assert promised(acmes, None) == {"r": "acme"}
    assert promised(None, acmes) == {"r": "acme"}


def test_a_router_by_uuid_has_no_name_until_its_host_is_heard() -> None:
    promises = Promises(0.0)
    homes = {UUID: "edge-1", "named": "edge-1"}
    promises.take({ANYWHERE: dict.fromkeys(homes, Contract(tenant="beta"))}, {}, homes)
    assert promises.on("edge-1", NOW).unnamed == {UUID}
    assert promises.on("core-9", NOW).unnamed == set()
    known = msgspec.structs.replace(report("r", 1.0), uuid=UUID.upper())
    promises.whereabouts.heard("edge-1", {"r": known}, 1.0)
    assert promises.on("edge-1", NOW).unnamed == set()
    assert promises.on("edge-1", NOW).tenants == {"r": "beta", "named": "beta"}


def test_the_contract_on_its_host_comes_first_and_may_name_nobody() -> None:
    acmes, betas = Contract(tenant="acme"), Contract(tenant="beta")
    assert promised(acmes, betas) == {"r": "acme"}
    assert promised(Contract(), betas) == {}
    assert promised(None, None) == {}

"""A plan that is applied and all others that write wait for each other in no circle."""

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from store_values import host, promise
from support.races import at_once

from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.errors import PlanStale, PolicerError
from policer.fleetfile.document import Entered, file_of
from policer.store import PlanRow, PunishmentRow, Store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

ROUNDS = 15
CONTRACT = promise(1e3, tenant="acme")
FLEET = Entered(
    {"acme": Tenant("Acme Ltd.")},
    {"silver": promise(1.0)},
    {"gold": host(), "iron": host("iron")},
    {("gold", "r1"): CONTRACT, (ANYWHERE, "r9"): promise(1e3)},
)


@pytest.fixture
def epoch(store: Store) -> int:
    """The epoch of a policer that leads."""
    epoch = store.leadership("ann").acquire()
    assert epoch is not None
    return epoch


def make(store: Store, goal: Entered, *, keep: bool = True) -> PlanRow:
    how: dict[str, Any] = {"actor": "ann", "maker": "t", "seen": lambda _: {}}
    return store.plans.make(file_of(goal), keep=keep, **how)


def test_plans_leaders_hosts_classes_and_contracts_wait_in_no_circle(
    backend: "Backend", store: Store, epoch: int
) -> None:
    stores = [backend.open(busy_s=60.0) for _ in range(6)]
    store.plans.apply(make(store, FLEET).id, 1, "ann", "admin")
    row = PunishmentRow("gold", "r1", 1, guilty=True, since=backend.clock.now, step="warn")
    for number in range(1, ROUNDS):
        new = Entered(hosts={f"new{number}": host(f"new{number}")})
        plan = make(store, new)
        way = {"requests": f"ipc:///run/{number}/a", "telemetry": f"ipc:///run/{number}/b"}
        outcomes = at_once(
            partial(stores[0].plans.apply, plan.id, 1, "ann", "admin"),
            partial(stores[1].homes.set, {"r9": ("gold", "iron")[number % 2]}, epoch),
            partial(stores[2].punishments.set, [row], [], epoch),
            partial(stores[3].hosts.replace, msgspec.structs.replace(host(), **way), number, "ann"),
            partial(stores[4].classes.put, "silver", promise(1.0 + number), number, "ann"),
            partial(stores[5].contracts.put, "gold", "r1", CONTRACT, number, "ann"),
        )
        errors = [one for one in outcomes if isinstance(one, PolicerError)]
        # A host that was moved meanwhile makes the plan stale, and that is all.
        assert [one for one in errors if not isinstance(one, PlanStale)] == []

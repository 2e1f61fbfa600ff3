"""The fleet as a file, for any fleet: nothing is lost in it, and edits lead where they should."""

import tempfile
from functools import cache
from pathlib import Path

from fleet_values import NOW, fleets
from hypothesis import given, settings
from hypothesis import strategies as st

from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.contracts.promised import ANYWHERE
from policer.contracts.tenant import Tenant
from policer.fleetfile.document import Entered, FleetFile, file_of, wanted
from policer.fleetfile.edits import edits
from policer.fleetfile.plan import draft, planned
from policer.fleetfile.rates import read, written
from policer.fleetfile.reading import read_text
from policer.fleetfile.writing import json_of, toml_of
from policer.store import Store, open_store

EMPTY = Entered()
# Examples of several fleets take long to make.
FEWER = settings(max_examples=settings().max_examples // 4, deadline=None)


@given(fleets())
def test_a_file_gives_back_the_fleet_that_it_was_written_of(fleet: Entered) -> None:
    for text in (toml_of(file_of(fleet)), json_of(file_of(fleet))):
        file = read_text(text).file
        assert wanted(file, EMPTY, keep=False) == fleet
        assert file == file_of(fleet)


@given(fleets())
def test_a_file_is_the_same_whatever_the_order_in_which_things_were_entered(
    fleet: Entered,
) -> None:
    turned = Entered(*(dict(reversed(one.items())) for one in fleet))
    assert toml_of(file_of(turned)) == toml_of(file_of(fleet))


@given(st.sampled_from(["guarantee_pps", "guarantee_bps", "burst"]), st.floats(0, 1e12))
def test_a_rate_is_read_as_it_was_written(key: str, rate: float) -> None:
    assert read(written(rate, key), key) == rate


@FEWER
@given(fleets(), fleets())
def test_edits_turn_one_fleet_into_the_other(before: Entered, after: Entered) -> None:
    assert carried_out(before, after) == after
    assert edits(after, after) == ()
    for edit in edits(before, after):
        assert edit.before != edit.after


@FEWER
@given(fleets(), fleets())
def test_what_a_file_does_not_name_is_kept_where_that_is_asked_for(
    before: Entered, named: Entered
) -> None:
    kept = wanted(file_of(named), before, keep=True)
    for was, now, given_ in zip(before, kept, named, strict=True):
        assert now == {**was, **given_}
    assert all(edit.after is not None for edit in edits(before, kept))


@FEWER
@given(fleets(), fleets())
def test_a_fleet_that_could_be_entered_has_no_problems(before: Entered, after: Entered) -> None:
    made = draft(file_of(after), before, {}, keep=False)
    assert planned(file_of(after), made, {}, NOW).problems == ()


@FEWER
@given(fleets(), fleets(), fleets())
def test_plans_that_rest_on_the_same_do_the_same(
    one: Entered, other: Entered, goal: Entered
) -> None:
    first, second, again = (draft(file_of(goal), was, {}, keep=False) for was in (one, other, one))
    assert first.basis == again.basis
    if first.basis == second.basis:
        assert first.edits == second.edits


def carried_out(before: Entered, after: Entered) -> Entered:
    """Return what is left when each edit is made."""
    tenants: dict[str, Tenant] = dict(before.tenants)
    classes: dict[str, Contract] = dict(before.classes)
    hosts: dict[str, Host] = dict(before.hosts)
    contracts = dict(before.contracts)
    named = {"tenant": tenants, "class": classes, "host": hosts}
    for edit in edits(before, after):
        place = contracts if edit.kind == "contract" else named[edit.kind]
        key = edit.key if edit.kind == "contract" else edit.name
        assert place.get(key) == edit.before
        if edit.after is None:
            del place[key]
        else:
            place[key] = edit.after
    return Entered(tenants, classes, hosts, contracts)


@cache
def empty() -> bytes:
    """Return an empty database, made once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        open_store(f"sqlite:///{path}").close()
        return path.read_bytes()


def apply(store: Store, file: FleetFile) -> int:
    """Make the fleet as a file says; return how many changes that took."""
    plan = store.plans.make(file, keep=False, actor="ann", maker="t", seen=lambda _: {})
    assert plan.planned.problems == ()
    store.plans.apply(plan.id, 1, "ann", "admin")
    return len(plan.planned.changes)


# Every example is several transactions on a disk.
@FEWER
@given(st.lists(fleets(), min_size=1, max_size=3))
def test_export_apply_export_is_a_fixed_point(history: list[Entered]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policer.db"
        path.write_bytes(empty())
        store = open_store(f"sqlite:///{path}", create=False)
        try:
            for fleet in history:
                apply(store, file_of(fleet))
                exported = toml_of(store.plans.fleet())
                assert exported == toml_of(file_of(fleet))
                assert apply(store, read_text(exported).file) == 0
                assert toml_of(store.plans.fleet()) == exported
                check_each_alone(store, fleet)
        finally:
            store.close()


def check_each_alone(store: Store, fleet: Entered) -> None:
    """Check that what was applied is there as if it had been entered one by one."""
    assert {one.value.name: one.value for one in store.hosts.all()} == fleet.hosts
    found = {
        (host, vr): (stored.value, stored.version.number)
        for host, contracts in store.contracts.all().items()
        for vr, stored in contracts.items()
    }
    assert {key: contract for key, (contract, _) in found.items()} == fleet.contracts
    for (host, vr), (contract, version) in found.items():
        last = store.contracts.history(host, vr)[0]
        assert (last.contract, last.version) == (contract, version)
    assert ANYWHERE not in {one.value.name for one in store.hosts.all()}

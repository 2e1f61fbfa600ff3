"""The store through any history: it gives back what a dictionary would, and never less or more.

So does who reads only what was changed, after any number of changes, and over restored backups.
"""

import sqlite3
import tempfile
from contextlib import closing
from copy import deepcopy
from functools import cache
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from store_values import host, promise

from policer.contracts.admission import promised_pps
from policer.contracts.contract import Contract
from policer.errors import Invalid, PolicerError, Stale, Taken, Unknown
from policer.store import Entered, open_store

CAPACITY = 100.0
hosts = st.sampled_from(["a", "b"])
routers = st.sampled_from(["r1", "r2", "r3"])
rates = st.sampled_from([0.0, 10.0, 40.0, 60.0, 100.0, 101.0])
contracts = st.builds(promise, rates, cost=st.sampled_from([0.5, 1.0, 2.0]))
behind = st.sampled_from([0, 0, 0, 1, -1])
"""How far the version that a client names is from the last one: mostly it is right."""


@cache
def _empty() -> bytes:
    """Return an empty database, made once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        open_store(f"sqlite:///{path}").close()
        return path.read_bytes()


class StoreMachine(RuleBasedStateMachine):
    """Clients who know the last version, or do not, against a dictionary that knows them all."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "policer.db"
        path.write_bytes(_empty())
        self.url = f"sqlite:///{path}"
        self.store = open_store(self.url, create=False)
        self.hosts: dict[str, list[float | None]] = {}
        """Every capacity that a host ever had; None is removed."""
        self.revisions: dict[tuple[str, str], list[Contract | None]] = {}
        """Every state that a contract was ever in; None is removed."""
        self.changes = 0
        self.read = Entered()
        """What was read up to some time ago."""
        self.backups: list[tuple[Path, object]] = []
        """Copies of the database, with the dictionaries of their time."""

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def capacity(self, name: str) -> float | None:
        return self.hosts.get(name, [None])[-1]

    def contract(self, name: str, vr: str) -> Contract | None:
        return self.revisions.get((name, vr), [None])[-1]

    def promised(self, name: str) -> dict[str, Contract]:
        found = {vr: self.contract(host, vr) for host, vr in self.revisions if host == name}
        return {vr: contract for vr, contract in found.items() if contract is not None}

    @rule(name=hosts)
    def add_host(self, name: str) -> None:
        there = self.capacity(name) is not None
        expected = Taken if there else None
        if self.succeeds(expected, lambda: self.store.hosts.add(host(name, CAPACITY), "ann")):
            self.hosts.setdefault(name, []).append(CAPACITY)

    @rule(name=hosts, capacity=st.sampled_from([50.0, 100.0, 200.0]), off=behind)
    def replace_host(self, name: str, capacity: float, off: int) -> None:
        version = len(self.hosts.get(name, [])) + off
        expected = self.expected_of_host(name, off)
        if expected is None and promised_pps(self.promised(name)) > capacity:
            expected = Invalid
        changed = host(name, capacity)
        if self.succeeds(expected, lambda: self.store.hosts.replace(changed, version, "ann")):
            self.hosts[name].append(capacity)

    @rule(name=hosts, off=behind)
    def remove_host(self, name: str, off: int) -> None:
        version = len(self.hosts.get(name, [])) + off
        expected = self.expected_of_host(name, off)
        if expected is None and self.promised(name):
            expected = Invalid
        if self.succeeds(expected, lambda: self.store.hosts.remove(name, version, "ann")):
            self.hosts[name].append(None)

    @rule(name=hosts, vr=routers, contract=contracts, off=behind)
    def put(self, name: str, vr: str, contract: Contract, off: int) -> None:
        there = self.contract(name, vr) is not None
        version = len(self.revisions[name, vr]) + off if there else None
        self.put_as(name, vr, contract, version, Stale if there and off else None)

    @rule(name=hosts, vr=routers, contract=contracts)
    def put_as_if_nothing_were_there(self, name: str, vr: str, contract: Contract) -> None:
        there = self.contract(name, vr) is not None
        self.put_as(name, vr, contract, None, Taken if there else None)

    @rule(name=hosts, vr=routers, contract=contracts, version=st.integers(0, 9))
    def put_in_place_of_nothing(self, name: str, vr: str, contract: Contract, version: int) -> None:
        if self.contract(name, vr) is None:
            self.put_as(name, vr, contract, version, Stale)

    def put_as(
        self,
        name: str,
        vr: str,
        contract: Contract,
        version: int | None,
        expected: type[PolicerError] | None,
    ) -> None:
        capacity = self.capacity(name)
        if capacity is None:
            expected = Unknown
        elif expected is None:
            others = {other: c for other, c in self.promised(name).items() if other != vr}
            too_much = promised_pps({**others, vr: contract}) > capacity
            expected = Invalid if too_much else None
        if self.succeeds(
            expected, lambda: self.store.contracts.put(name, vr, contract, version, "ann")
        ):
            self.revisions.setdefault((name, vr), []).append(contract)

    @rule(name=hosts, vr=routers, off=behind)
    def remove(self, name: str, vr: str, off: int) -> None:
        there = self.contract(name, vr) is not None
        version = len(self.revisions.get((name, vr), [])) + off
        expected = (Stale if off else None) if there else Unknown
        if self.succeeds(expected, lambda: self.store.contracts.remove(name, vr, version, "ann")):
            self.revisions[name, vr].append(None)

    @precondition(lambda self: self.changes % 5 == 4)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = open_store(self.url, create=False)

    @rule()
    def read_what_was_changed(self) -> None:
        before, self.read = self.read, self.store.changes.since(self.read)
        hosts = {name: found.capacity_pps for name, found in self.read.hosts.items()}
        assert hosts == {name: all_[-1] for name, all_ in self.hosts.items() if all_[-1]}
        promised = {name: self.promised(name) for name in self.hosts}
        assert self.read.contracts == {name: found for name, found in promised.items() if found}
        assert self.store.changes.since(self.read) is self.read
        for name in {"a", "b"} - self.read.changed(before):
            assert self.read.hosts.get(name) == before.hosts.get(name)
            assert self.read.contracts.get(name) == before.contracts.get(name)

    @rule()
    def back_up(self) -> None:
        target = Path(self.folder.name) / f"copy{len(self.backups)}.db"
        self.store.backup(target)
        self.backups.append((target, deepcopy((self.hosts, self.revisions, self.changes))))

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        copy, then = data.draw(st.sampled_from(self.backups))
        path = self.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(path)) as target:
            source.backup(target)
        self.hosts, self.revisions, self.changes = deepcopy(then)  # type: ignore[misc]

    def expected_of_host(self, name: str, off: int) -> type[PolicerError] | None:
        if self.capacity(name) is None:
            return Unknown
        return Stale if off else None

    def succeeds(self, expected: type[PolicerError] | None, change: object) -> bool:
        """Whether a change was made; it must be, or be refused as is expected."""
        assert callable(change)
        outcome: type[PolicerError] | None = None
        try:
            change()
        except PolicerError as error:
            outcome = type(error)
        assert outcome is expected
        self.changes += expected is None
        return expected is None

    @invariant()
    def hosts_are_as_they_should_be(self) -> None:
        found = {
            stored.value.name: (stored.value.capacity_pps, stored.version.number)
            for stored in self.store.hosts.all()
        }
        assert found == {
            name: (states[-1], len(states))
            for name, states in self.hosts.items()
            if states[-1] is not None
        }

    @invariant()
    def contracts_are_as_they_should_be(self) -> None:
        found = {
            (name, vr): (stored.value, stored.version.number)
            for name, routers in self.store.contracts.all().items()
            for vr, stored in routers.items()
        }
        assert found == {
            key: (states[-1], len(states))
            for key, states in self.revisions.items()
            if states[-1] is not None
        }

    @invariant()
    def nothing_that_ever_was_is_forgotten(self) -> None:
        for (name, vr), states in self.revisions.items():
            history = self.store.contracts.history(name, vr)
            assert [revision.contract for revision in history] == states
        assert self.store.generation() == len(self.store.audit.page(None, 9999)) == self.changes


TestStore = StoreMachine.TestCase
# Every step is several transactions on a disk.
EXAMPLES = settings().max_examples // 6
TestStore.settings = settings(deadline=None, max_examples=EXAMPLES, stateful_step_count=30)

"""The journal for any ledger and any damage: the same again, or set aside; never something else."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from common.setpoint import Setpoint, Unit
from xtc.lease import Kind, Lease
from xtc.spec import (
    CgroupOriginal,
    CgroupSpec,
    DeadlineOriginal,
    DeadlineSpec,
    InterfaceOriginal,
    SimulatedOriginal,
    SimulatedSpec,
    ThreadPolicy,
)
from xtc.state.journal import Entry, Journal, Ledger, boot_id

names = st.text(min_size=1, max_size=8).filter(lambda name: name.isprintable())
whole = st.integers(0, 2**62 - 1)
policies = st.builds(ThreadPolicy, whole, whole, whole, whole, whole, whole)
interfaces = st.builds(InterfaceOriginal, names, st.booleans(), st.booleans(), st.none() | policies)
entries = st.one_of(
    st.builds(
        Entry,
        st.builds(SimulatedSpec, names),
        st.builds(SimulatedOriginal, st.none() | st.floats(1e-3, 64)),
    ),
    st.builds(
        Entry,
        st.builds(CgroupSpec, names.map("/".__add__)),
        st.builds(CgroupOriginal, st.none() | whole, whole, names, whole),
    ),
    st.builds(
        Entry,
        st.builds(DeadlineSpec, names.map("/".__add__), st.just(("eth0",))),
        st.builds(DeadlineOriginal, st.lists(interfaces, max_size=2).map(tuple), names, whole),
    ),
)
setpoints = st.one_of(
    st.floats(1e-3, 1e9).map(Setpoint),
    st.builds(Setpoint, st.floats(1e3, 1e12), st.just(Unit.BITS)),
)
leases = st.builds(
    Lease.of,
    setpoints,
    epoch=whole,
    sequence=whole,
    expires_at=st.none() | st.floats(0, 1e9),
    kind=st.sampled_from(Kind),
    configured=st.booleans(),
)
ledgers = st.builds(
    Ledger,
    boot_id=st.just(boot_id()),
    entries=st.dictionaries(names, entries, max_size=4),
    leases=st.dictionaries(names, leases, max_size=4),
    limits=st.dictionaries(names, st.lists(names, max_size=3).map(tuple), max_size=3),
    highest_epoch=whole,
)


@settings(deadline=None)
@given(ledger=ledgers)
def test_any_ledger_is_read_back(ledger: Ledger) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Journal(Path(directory)) as journal:
            journal.store(ledger)
        with Journal(Path(directory)) as journal:
            assert journal.ledger == ledger


@settings(deadline=None)
@given(
    ledger=ledgers, at=st.integers(0, 3000), junk=st.binary(max_size=4), cut=st.integers(0, 3000)
)
def test_any_damage_is_noticed(ledger: Ledger, at: int, junk: bytes, cut: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "journal"
        with Journal(Path(directory)) as journal:
            journal.store(ledger)
        whole = path.read_bytes()
        path.write_bytes((whole[:at] + junk + whole[at + len(junk) :])[: max(cut, at)])
        intact = path.read_bytes() == whole
        with Journal(Path(directory)) as journal:
            assert (journal.quarantined is None) is intact
            assert journal.ledger == (ledger if intact else Ledger(boot_id()))

"""Damaged journals: what can be read of them, and what is made of several."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtc.lease import Lease
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.state import journal as module
from xtc.state.journal import Entry, Ledger
from xtc.state.repair import planned, with_epoch
from xtc.state.salvage import DAMAGED, Salvaged, salvage

BOOT = "this boot"


def entry(place: str, cap: float | None = None) -> Entry:
    return Entry(SimulatedSpec(place), SimulatedOriginal(cap))


WHOLE = Ledger(
    BOOT,
    {"a": entry("a", 0.5), "b": entry("b")},
    {"a": Lease(2e4, epoch=7, sequence=3)},
    {"a": ("a.0", "a.1")},
    9,
)


def written(ledger: Ledger) -> bytes:
    body = msgspec.json.encode(ledger)
    return module._MAGIC + module._checksum(body) + b"\n" + body


def test_a_whole_journal_is_read_without_doubt() -> None:
    assert salvage(written(WHOLE)) == Salvaged(WHOLE)


def test_a_value_that_was_changed_is_shown_and_doubted() -> None:
    found = salvage(written(WHOLE).replace(b"20000", b"30000"))
    assert found.ledger.leases["a"].target == 3e4
    assert found.problems == (DAMAGED,)


def test_of_a_journal_cut_off_every_whole_part_is_read() -> None:
    raw = written(WHOLE)
    found = salvage(raw[: raw.index(b'"limits"')])
    assert found.ledger == Ledger(BOOT, WHOLE.entries, WHOLE.leases, {}, 7)
    assert "the highest epoch cannot be read" in " ".join(found.problems)


def test_one_damaged_entry_hides_no_other_part() -> None:
    raw = written(WHOLE).replace(b'"plant":"a"', b'"plant":a"', 1)
    found = salvage(raw)
    assert found.ledger.entries == {"b": entry("b")}
    assert (found.ledger.leases, found.ledger.limits) == (WHOLE.leases, WHOLE.limits)
    assert found.ledger.highest_epoch == 9
    assert any(problem.startswith("entry of a: ") for problem in found.problems)


@given(raw=st.binary(max_size=200))
def test_whatever_the_bytes_something_is_said_of_them(raw: bytes) -> None:
    assert salvage(raw).problems


@given(at=st.integers(0, 600), junk=st.binary(max_size=4))
def test_no_damage_is_taken_for_a_whole_journal(at: int, junk: bytes) -> None:
    raw = written(WHOLE)
    damaged = raw[:at] + junk + raw[at + len(junk) :]
    assert (salvage(damaged).problems == ()) is (damaged == raw)


# Repairs


def test_what_was_set_aside_joins_what_is_there() -> None:
    present = Ledger(BOOT, {"c": entry("c")}, {"c": Lease(1e4, epoch=2)}, {"c": ("c.0",)}, 2)
    plan = planned({"journal.corrupt-1": Salvaged(WHOLE), "journal": Salvaged(present)}, BOOT)
    assert plan.ledger == Ledger(
        BOOT, WHOLE.entries | present.entries, present.leases, WHOLE.limits | present.limits, 9
    )
    assert plan.notes == ()


@pytest.mark.parametrize(("newer", "original"), [(False, 0.5), (True, 0.1)])
def test_of_two_originals_of_a_place_the_older_is_taken_and_both_are_told(
    newer: bool, original: float
) -> None:
    present = Ledger(BOOT, {"renamed": entry("a", 0.1)})
    found = {"journal.corrupt-1": Salvaged(WHOLE), "journal": Salvaged(present)}
    plan = planned(found, BOOT, newer_wins=newer)
    (taken,) = (e for e in plan.ledger.entries.values() if e.spec == SimulatedSpec("a"))
    assert taken.original == SimulatedOriginal(original)
    (note,) = plan.notes
    assert "0.5" in note
    assert "0.1" in note


def test_two_places_of_one_name_are_both_kept() -> None:
    present = Ledger(BOOT, {"a": entry("elsewhere")})
    plan = planned({"journal.corrupt-1": Salvaged(WHOLE), "journal": Salvaged(present)}, BOOT)
    places = [e.spec for e in plan.ledger.entries.values()]
    assert sorted(spec.plant for spec in places if isinstance(spec, SimulatedSpec)) == [
        "a",
        "b",
        "elsewhere",
    ]


def test_of_another_boot_the_epoch_and_endless_leases_stay() -> None:
    ending = Lease(1e4, epoch=1, expires_at=5.0)
    before = Ledger("before", WHOLE.entries, WHOLE.leases | {"b": ending}, WHOLE.limits, 9)
    plan = planned({"journal.corrupt-1": Salvaged(before)}, BOOT)
    assert plan.ledger == Ledger(BOOT, {}, WHOLE.leases, {}, 9)
    assert "another boot" in " ".join(plan.notes)


def test_where_the_boot_cannot_be_read_no_original_is_lost() -> None:
    raw = written(WHOLE).replace(b"boot_id", b"boot_ix")
    plan = planned({"journal.corrupt-1": salvage(raw)}, BOOT)
    assert plan.ledger.entries == WHOLE.entries


@given(
    ledgers=st.lists(
        st.dictionaries(st.sampled_from("xyz"), st.builds(entry, st.sampled_from("abcd"))),
        max_size=4,
    )
)
def test_no_place_is_ever_lost(ledgers: list[dict[str, Entry]]) -> None:
    found = {f"journal.corrupt-{n}": Salvaged(Ledger(BOOT, e)) for n, e in enumerate(ledgers)}
    places = {entry.spec for entries in ledgers for entry in entries.values()}
    kept = [entry.spec for entry in planned(found, BOOT).ledger.entries.values()]
    assert set(kept) == places
    assert len(kept) == len(places)


def test_a_lowered_epoch_covers_the_leases() -> None:
    lowered = with_epoch(WHOLE, 3)
    assert lowered.highest_epoch == 3
    assert lowered.leases == {"a": Lease(2e4, epoch=3, sequence=0)}
    assert (lowered.entries, lowered.limits) == (WHOLE.entries, WHOLE.limits)
    assert with_epoch(WHOLE, 8).leases == WHOLE.leases

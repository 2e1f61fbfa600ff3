"""A daemon that keeps dying only observes; a clean stop forgets it."""

import os
from pathlib import Path

import pytest

from common.units import Seconds
from xtc.state.starts import MOST, WINDOW_S, Record, Starts, begun


def test_the_fourth_start_without_a_clean_stop_only_observes(tmp_path: Path) -> None:
    starts = [Starts(tmp_path).begin(Seconds(100.0 + n)) for n in range(MOST + 2)]
    assert starts == [False] * MOST + [True] * 2


def test_a_clean_stop_forgets_what_was_before(tmp_path: Path) -> None:
    for n in range(3 * MOST):
        assert not Starts(tmp_path).begin(Seconds(100.0 + n))
        if n % MOST == MOST - 1:
            Starts(tmp_path).end()


@pytest.mark.parametrize(("later", "observes"), [(0.0, True), (0.1, False)])
def test_only_the_last_ten_minutes_count(later: float, *, observes: bool) -> None:
    first = 1000.0
    before = Record("boot", (first, first + 1, first + 2))
    _, found = begun(before, "boot", Seconds(first + WINDOW_S + later))
    assert found is observes


def test_starts_of_another_boot_do_not_count() -> None:
    before = Record("boot", (1.0, 2.0, 3.0))
    assert begun(before, "another", Seconds(4.0)) == (Record("another", (4.0,)), False)


def test_the_record_does_not_grow() -> None:
    record = None
    for n in range(100):
        record, _ = begun(record, "boot", Seconds(float(n)))
    assert record is not None
    assert len(record.at) <= MOST + 1


@pytest.mark.parametrize("damage", [b"", b"{", b'{"boot_id": 7}', b"\xff"])
def test_a_damaged_record_is_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "starts").write_bytes(damage)
    assert not Starts(tmp_path).begin(Seconds(1.0))


def test_a_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    for name in ("starts", f"starts.{os.getpid()}.new"):
        (tmp_path / name).symlink_to(target)
    Starts(tmp_path).begin(Seconds(1.0))
    assert target.read_text() == "precious"

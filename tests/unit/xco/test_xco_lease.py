"""The lease: one holder at a time, and epochs that only rise, whatever is lost in between."""

import os
import re
from pathlib import Path

import pytest

from xco.errors import ControllerError
from xco.leader.base import Lease
from xco.leader.lease import FileLease, make_lease
from xco.leader.postgres import PostgresLease


def lease(folder: Path, now_ns: int = 1000) -> FileLease:
    return FileLease(folder, clock=lambda: now_ns)


def test_one_holds_it_and_the_other_waits(tmp_path: Path) -> None:
    first, second = lease(tmp_path), lease(tmp_path)
    assert first.acquire() == 1000
    assert second.acquire() is None
    assert (first.still(), second.still()) == (True, False)
    first.release()
    assert not first.still()
    assert second.acquire() == 1001
    second.release()


def test_two_leases_by_mistake_do_not_give_the_same_epoch(tmp_path: Path) -> None:
    leases = [FileLease(tmp_path / name) for name in ("first", "second")]
    epochs = [lease.acquire() for lease in leases]
    assert None not in epochs
    assert len(set(epochs)) == 2
    for one in leases:
        one.release()


def test_a_holder_gets_another_epoch(tmp_path: Path) -> None:
    holder = lease(tmp_path)
    assert [holder.acquire() for _ in range(3)] == [1000, 1001, 1002]
    holder.release()


def test_an_epoch_is_at_least_the_time_since_1970_and_above_all_before(tmp_path: Path) -> None:
    ahead = lease(tmp_path, now_ns=5000)
    assert ahead.acquire() == 5000
    ahead.release()
    behind = lease(tmp_path, now_ns=10)
    assert behind.acquire() == 5001, "a clock that went back gives no lower epoch"
    behind.release()


@pytest.mark.parametrize("text", ["", "many", "-3", "9" * 30])
def test_an_epoch_that_cannot_be_read_counts_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "epoch").write_text(text)
    holder = lease(tmp_path)
    assert holder.acquire() == 1000
    assert (tmp_path / "epoch").read_text() == "1000\n"
    holder.release()


def test_a_lock_file_that_was_replaced_is_held_no_more(tmp_path: Path) -> None:
    first, second = lease(tmp_path), lease(tmp_path)
    first.acquire()
    (tmp_path / "lease").unlink()
    assert not first.still(), "another one would lock another file"
    assert second.acquire() == 1001
    first.release()
    second.release()


def test_a_lease_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0 if lease(tmp_path).acquire() == 1000 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    after = lease(tmp_path)
    assert after.acquire() == 1001
    after.release()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    holder: Lease = make_lease(str(tmp_path / "file"), "here")
    with pytest.raises(ControllerError, match=re.escape(str(tmp_path / "file"))):
        holder.acquire()
    assert not holder.still()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///epochs", "sqlite has no advisory locks"),
        ("nosuch://host/database", "nosuch"),
    ],
)
def test_a_url_that_is_not_postgresqls_is_refused(url: str, said: str) -> None:
    with pytest.raises(ControllerError, match=said):
        make_lease(url, "here")


def test_a_database_that_does_not_answer_says_so() -> None:
    holder = PostgresLease("postgresql+psycopg://nobody@127.0.0.1:1/none", "here")
    with pytest.raises(ControllerError, match="see that the database answers"):
        holder.acquire()
    assert not holder.still()

"""Who leads: one at a time, with epochs that only rise, on both databases."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from policer.errors import StoreBusy, StoreError, StoreGone
from policer.store import Holder, Leadership, Store, open_store

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]

ON_SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)

ANOTHER = """
import sys
from policer.store import open_store
store = open_store(sys.argv[1])
leadership = store.leadership("another")
print(leadership.acquire(), flush=True)
sys.stdin.read()
"""


class AnotherPolicer:
    """A process of its own that tries to lead, and goes on until it is killed."""

    def __init__(self, url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ANOTHER, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def another(backend: "Backend", store: Store) -> Iterator[AnotherPolicer]:
    store.check()
    policer = AnotherPolicer(backend.url)
    yield policer
    policer.kill()


def _durable_epoch(backend: "Backend") -> int:
    return int(backend.aside().execute("SELECT epoch FROM leadership").fetchone()[0])


def test_one_leads_and_the_other_is_told_who(backend: "Backend", store: Store) -> None:
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    assert first.holder() == Holder("", 0)
    epoch = first.acquire()
    assert epoch is not None
    assert second.acquire() is None
    assert (first.still(), second.still()) == (True, False)
    assert first.holder() == second.holder() == ("ann", epoch)


def test_the_lead_is_given_back(backend: "Backend", store: Store) -> None:
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    epoch = first.acquire()
    first.release()
    assert first.holder() == ("", epoch)
    assert first.still() is False
    following = second.acquire()
    assert epoch is not None
    assert following is not None
    assert following > epoch
    first.release()
    assert second.still()
    assert first.holder() == ("ben", following)


def test_an_epoch_is_on_disk_before_anybody_has_it(backend: "Backend", store: Store) -> None:
    leadership = store.leadership("ann")
    for _ in range(3):
        assert leadership.acquire() == _durable_epoch(backend)
    assert leadership.still()


def test_epochs_rise_though_the_clock_goes_back(backend: "Backend", store: Store) -> None:
    leadership = store.leadership("ann")
    first = leadership.acquire()
    backend.clock.forward(days=-400)
    second = leadership.acquire()
    assert first is not None
    assert second == first + 1


def test_epochs_rise_though_the_database_was_lost(backend: "Backend", store: Store) -> None:
    """Daemons refuse lower epochs for ever: a policer with a new database must be obeyed."""
    first = store.leadership("ann")
    epoch = first.acquire()
    first.release()
    backend.aside().execute("UPDATE leadership SET epoch = 0, holder = ''")
    backend.clock.forward(seconds=10)
    following = first.acquire()
    assert epoch is not None
    assert following is not None
    assert following > epoch


def test_who_cannot_write_the_epoch_down_does_not_lead(backend: "Backend", store: Store) -> None:
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    aside = backend.aside()
    aside.execute("ALTER TABLE leadership RENAME TO away")
    with pytest.raises(StoreError):
        first.acquire()
    assert first.still() is False
    aside.execute("ALTER TABLE away RENAME TO leadership")
    assert _acquired(second, backend) == _durable_epoch(backend)
    assert first.acquire() is None


def test_a_leader_that_is_killed_is_followed(
    backend: "Backend", store: Store, another: AnotherPolicer
) -> None:
    leadership = store.leadership("ann")
    assert leadership.acquire() is None
    assert leadership.holder() == ("another", int(another.said))
    another.kill()
    assert _durable_epoch(backend) == int(another.said)
    epoch = _acquired(leadership, backend)
    assert epoch is not None
    assert epoch > int(another.said)


def _acquired(leadership: Leadership, backend: "Backend") -> int | None:
    """Take over from a connection that has ended."""
    epoch = leadership.acquire()
    while epoch is None and not backend.is_sqlite:
        # PostgreSQL's server takes a moment to notice; pytest's timeout bounds it.
        epoch = leadership.acquire()
    return epoch


def test_of_many_that_try_at_once_one_leads(backend: "Backend", store: Store) -> None:
    store.check()
    tries = [backend.open().leadership(str(number)) for number in range(6)]
    for _ in range(5):
        epochs: list[int | None] = []
        barrier = threading.Barrier(len(tries))

        def attempt(number: int, barrier: threading.Barrier, epochs: list[int | None]) -> None:
            barrier.wait()
            epochs.append(tries[number].acquire())

        threads = [
            threading.Thread(target=attempt, args=(number, barrier, epochs))
            for number in range(len(tries))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [epoch for epoch in epochs if epoch is not None] == [_durable_epoch(backend)]
        assert [one.still() for one in tries].count(True) == 1
        for one in tries:
            one.release()


@ON_SQLITE
def test_a_lock_file_that_is_removed_ends_the_lead(backend: "Backend", store: Store) -> None:
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    first.acquire()
    backend.path.with_name("policer.db.lock").unlink()
    assert first.still() is False
    assert second.acquire() is not None
    assert first.acquire() is None


@ON_SQLITE
def test_another_name_of_the_database_is_no_other_lead(backend: "Backend", store: Store) -> None:
    first = store.leadership("ann")
    assert first.acquire() is not None
    link = backend.path.with_name("link.db")
    link.symlink_to(backend.path)
    with closing(open_store(f"sqlite:///{link}")) as other:
        assert other.leadership("ben").acquire() is None
    link.unlink()
    link.hardlink_to(backend.path)
    with closing(open_store(f"sqlite:///{link}")) as other, pytest.raises(StoreGone, match="names"):
        other.leadership("ben").acquire()


@ON_SQLITE
def test_a_later_epoch_in_the_database_ends_the_lead(backend: "Backend", store: Store) -> None:
    first = store.leadership("ann")
    epoch = first.acquire()
    assert epoch is not None
    assert first.still()
    aside = backend.aside()
    aside.execute("UPDATE leadership SET epoch = ?", (epoch + 1,))
    aside.commit()
    assert not first.still()


def test_an_epoch_can_be_taken_above_one_that_hosts_obey(store: Store) -> None:
    first = store.leadership("ann")
    epoch = first.acquire()
    assert epoch is not None
    assert first.acquire(epoch + 1000) == epoch + 1001
    assert first.since == epoch
    assert first.still()


@ON_SQLITE
def test_a_lock_file_that_cannot_be_made_is_said(backend: "Backend", store: Store) -> None:
    backend.path.with_name("policer.db.lock").mkdir()
    with pytest.raises(StoreGone, match=r"policer\.db\.lock"):
        store.leadership("ann").acquire()


def test_a_leader_whose_database_is_locked_leads_on(backend: "Backend", store: Store) -> None:
    """A writer that keeps the database delays the next epoch, not the lead that there is."""
    leadership = store.leadership("ann")
    epoch = leadership.acquire()
    aside = backend.aside()
    aside.execute("BEGIN IMMEDIATE" if backend.is_sqlite else "BEGIN")
    aside.execute("UPDATE leadership SET holder = 'nobody'")
    assert leadership.still()
    with pytest.raises(StoreBusy):
        leadership.acquire()
    aside.execute("ROLLBACK")
    assert leadership.still() is False
    following = leadership.acquire()
    assert epoch is not None
    assert following is not None
    assert following > epoch


def test_a_leader_knows_since_when_nobody_else_has_led(backend: "Backend", store: Store) -> None:
    """Also where it never heard of the epoch that it took: the answer came too late."""
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    began = first.acquire()
    assert first.since == began
    first.acquire()
    first.release()
    first.acquire()
    assert first.since == began
    first.release()
    other = second.acquire()
    assert second.since == other
    second.release()
    again = first.acquire()
    assert first.since == again
    assert again != began

"""What PostgreSQL alone can do to a store: end sessions, stop, start again, take many clients."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running_daemon import RunningDaemon
from store_values import host, promise
from support.holding import SILENCE_S

from benchmarks.policer.obedience import Tap, not_rising
from benchmarks.policer.rig import Policer, enter
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from policer.errors import Invalid, StoreBusy, StoreGone
from policer.store import Leadership, Store, open_store
from policer.store.database import schema
from xtc.daemon.client import Client
from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.errors import Refused
from xtc.state.journal import Journal
from xtc.wire import Activate, Status

if TYPE_CHECKING:
    from store_rig import Backend

    from benchmarks.policer.postgres import PostgresServer

pytest_plugins = ["store_rig"]
pytestmark = pytest.mark.timeout(600)

ON_POSTGRESQL = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
END_LEADERS_SESSION = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_locks
    WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def _end_session_of(aside: Any) -> None:
    """End the leader's session, and wait until its lock is gone (pytest's timeout bounds it)."""
    assert aside.execute(END_LEADERS_SESSION).fetchone() == (1,)
    while aside.execute(END_LEADERS_SESSION).fetchone() != (0,):
        pass


@ON_POSTGRESQL
def test_a_leader_whose_session_ended_is_followed_and_knows(
    backend: "Backend", store: Store
) -> None:
    first, second = store.leadership("ann"), backend.open().leadership("ben")
    epoch = first.acquire()
    assert epoch is not None
    assert second.acquire() is None
    _end_session_of(backend.aside())
    assert first.still() is False
    following = second.acquire()
    assert following is not None
    assert following > epoch
    assert first.acquire() is None
    assert first.still() is False
    assert second.still()


@ON_POSTGRESQL
def test_a_leader_that_lost_its_session_never_takes_the_lock_back_unseen(
    backend: "Backend", store: Store
) -> None:
    """Its epoch is over: the connection must not be made anew behind its back."""
    leadership = store.leadership("ann")
    epoch = leadership.acquire()
    _end_session_of(backend.aside())
    assert leadership.still() is False
    assert leadership.still() is False
    following = leadership.acquire()
    assert epoch is not None
    assert following is not None
    assert following > epoch
    assert leadership.still()


@ON_POSTGRESQL
def test_who_was_overtaken_knows(backend: "Backend", store: Store) -> None:
    """A session that lives says nothing where the epoch is another's: a restored copy, say."""
    leadership = store.leadership("ann")
    leadership.acquire()
    backend.aside().execute("UPDATE leadership SET epoch = epoch + 1")
    assert leadership.still() is False


@ON_POSTGRESQL
def test_a_lead_is_given_back_though_its_session_ended(backend: "Backend", store: Store) -> None:
    leadership = store.leadership("ann")
    leadership.acquire()
    _end_session_of(backend.aside())
    leadership.release()
    assert backend.open().leadership("ben").acquire() is not None


@ON_POSTGRESQL
def test_connections_that_were_ended_are_made_anew(backend: "Backend", store: Store) -> None:
    store.hosts.add(host(), "ann")
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    backend.aside().execute(f"{ended} AND datname = current_database()")
    assert store.hosts.get("gold").value == host()


@ON_POSTGRESQL
def test_changes_survive_a_server_that_stops(store: Store, postgres: "PostgresServer") -> None:
    store.hosts.add(host(), "ann")
    leadership = store.leadership("ann")
    epoch = leadership.acquire()
    postgres.stop()
    try:
        for ask in (store.check, store.hosts.all, store.generation, leadership.acquire):
            with pytest.raises(StoreGone):
                ask()
        assert leadership.still() is False
    finally:
        postgres.start()
    store.check()
    assert store.hosts.get("gold").value == host()
    following = leadership.acquire()
    assert epoch is not None
    assert following is not None
    assert following > epoch


@ON_POSTGRESQL
def test_a_standby_that_only_reads_is_gone_for_changes(backend: "Backend", store: Store) -> None:
    aside = backend.aside()
    (name,) = aside.execute("SELECT current_database()").fetchone()
    aside.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    other = backend.open()
    with pytest.raises(StoreGone, match="read-only"):
        other.hosts.add(host(), "ann")
    with pytest.raises(StoreGone, match="read-only"):
        other.leadership("ann").acquire()
    store.hosts.add(host(), "ann")
    assert other.hosts.get("gold").value == host()


@ON_POSTGRESQL
def test_a_server_that_answers_nothing_is_busy(backend: "Backend", store: Store) -> None:
    """A lock on whole tables stops even readers; a leader is asked within its patience."""
    leadership = store.leadership("ann")
    leadership.acquire()
    aside = backend.aside()
    aside.execute("BEGIN")
    aside.execute("LOCK TABLE hosts, leadership IN ACCESS EXCLUSIVE MODE")
    asks: list[Callable[[], object]] = [store.hosts.all, leadership.still]
    for ask in asks:
        with pytest.raises(StoreBusy):
            ask()
    aside.execute("ROLLBACK")
    assert leadership.still()


@ON_POSTGRESQL
def test_a_second_question_does_not_wait_for_a_first_that_hangs(
    backend: "Backend", store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first question is to hang for as long as the lock is there.
    monkeypatch.setattr("policer.store.service.leadership._PATIENCE_S", 30.0)
    leadership: Leadership = store.leadership("ann")
    leadership.acquire()
    monkeypatch.setattr("policer.store.service.leadership._PATIENCE_S", 0.1)
    aside = backend.aside()
    aside.execute("BEGIN")
    aside.execute("LOCK TABLE leadership IN ACCESS EXCLUSIVE MODE")
    hanging = threading.Thread(target=_ignoring_busy, args=(leadership.still,))
    hanging.start()
    while not aside.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
        pass
    with pytest.raises(StoreBusy, match="has not answered"):
        leadership.still()
    aside.execute("ROLLBACK")
    hanging.join()
    assert leadership.still()


def _ignoring_busy(ask: Callable[[], object]) -> None:
    try:
        ask()
    except StoreBusy:
        return


@ON_POSTGRESQL
def test_many_policers_promise_no_more_than_there_is(backend: "Backend", store: Store) -> None:
    """Four clients fill one host; what they are granted is what fits, and all of it."""
    store.hosts.add(host(capacity_pps=100.0), "ann")
    stores = [backend.open(busy_s=30.0) for _ in range(4)]
    refused: list[str] = []

    def fill(number: int) -> None:
        for turn in range(10):
            vr = f"r{number}-{turn}"
            try:
                stores[number].contracts.put("gold", vr, promise(7.0), None, "ann")
            except Invalid:
                refused.append(vr)

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.contracts.all()["gold"]) == 14
    assert len(refused) == 40 - 14
    assert store.generation() == 15
    assert [row.id for row in store.audit.page(None, 99)] == list(range(15, 0, -1))


OPEN = """
import sys
from policer.store import open_store
open_store(sys.argv[1], busy_s=60.0).check()
"""
"""To make the tables takes seconds on a busy machine, and the last one waits for two others."""


def test_policers_that_start_at_once_make_one_database(backend: "Backend") -> None:
    command = [sys.executable, "-c", OPEN, backend.url]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, said
    open_store(backend.url, create=False).close()


@ON_POSTGRESQL
def test_who_finds_another_making_the_tables_waits(backend: "Backend") -> None:
    aside = backend.aside()
    aside.execute("SELECT pg_advisory_lock(%s)", [schema._ADVISORY_KEY])
    with pytest.raises(StoreBusy):
        backend.open()
    aside.execute("SELECT pg_advisory_unlock(%s)", [schema._ADVISORY_KEY])
    backend.open().check()


CAPACITY, CEILING, TTL_S = 90e3, 30e3, 12.0
"""Of a host whose one router is offered far more than its ceiling; and of a lease, in seconds."""


def _held(daemon: RunningDaemon) -> float | None:
    """Return what the daemon holds its router at; None where it does not."""
    with Client(daemon.run, timeout=SILENCE_S) as client:
        (report,) = client.call(Status("a"))
    return report.setpoint_pps if report.active else None


def _watched(daemon: RunningDaemon, until: Callable[[], bool]) -> list[float | None]:
    """Return what the router is held at, again and again, until something is so."""
    seen, deadline = [_held(daemon)], time.monotonic() + 60.0
    while not until():
        assert time.monotonic() < deadline, seen[-1]
        time.sleep(0.05)
        seen.append(_held(daemon))
    return seen


@ON_POSTGRESQL
def test_a_leader_that_is_killed_loses_no_setpoint_and_none_is_obeyed_twice(
    backend: "Backend", tmp_path: Path
) -> None:
    """Two policers and a daemon, each a process of its own; the daemon's answers are the proof."""
    with ExitStack() as stack:
        daemon = stack.enter_context(RunningDaemon(tmp_path))
        daemon.start()
        daemon.hang_up()
        tap = stack.enter_context(Tap(tmp_path / "tap", f"ipc://{daemon.run / REQUESTS}"))
        entry = Host("h", tap.address, f"ipc://{daemon.run / TELEMETRY}", CAPACITY)
        terms = Contract(guarantee_pps=20e3, ceiling_pps=CEILING, dry_run=True)
        secret = enter(backend.url, [entry], {"h": {"a": terms}})
        policers = {
            name: stack.enter_context(
                Policer(
                    tmp_path / name, backend.url, secret, name, more=f"[lease]\nttl_s = {TTL_S}"
                )
            )
            for name in ("one", "two")
        }
        _watched(daemon, lambda: len(tap.obeyed) >= 2)
        first = tap.last()["a"]
        leader = policers["one"].get("/v1/leadership")["holder"]
        policers[leader].kill()
        seen = _watched(daemon, lambda: tap.last()["a"].epoch > first.epoch)
        following = tap.last()["a"]
        seen += _watched(daemon, lambda: tap.last()["a"].sequence > following.sequence)
        assert seen == [pytest.approx(CEILING, rel=0.1)] * len(seen)
        last = tap.last()["a"]
        with Client(tap.folder, timeout=SILENCE_S) as late:
            for lease, code in ((tap.obeyed[0], "stale_epoch"), (last, "stale_sequence")):
                again = Activate("a", 1e3, lease.epoch, lease.sequence, 60.0)
                with pytest.raises(Refused) as caught:
                    late.call(again)
                assert caught.value.code == code
    assert not_rising(tap.obeyed) == []
    assert {lease.epoch for lease in tap.obeyed} == {first.epoch, last.epoch}
    with Journal(daemon.state) as journal:
        durable = journal.ledger.leases["a"]
        assert (durable.epoch, durable.sequence) in [lease.order for lease in tap.obeyed[-3:]]

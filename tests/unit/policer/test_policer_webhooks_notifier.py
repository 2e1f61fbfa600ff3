"""The notifier with a real store and real endpoints: each event comes, whoever dies meanwhile."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.stores import with_tables
from support.waiting import eventually
from webhook_rig import TRUSTING, Endpoint, Exchange, endpoint, verify

from policer.daemon.worker import Worker
from policer.errors import StoreGone
from policer.store import Event, Store, WebhookRow, open_store
from policer.webhooks import notifier as module
from policer.webhooks.courier import Courier
from policer.webhooks.notifier import Notifier, Ports
from policer.webhooks.rules import Rules
from policer.webhooks.signing import new_secret

SECRET = new_secret()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(module, "AGAIN_S", 0.02)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(with_tables(tmp_path / "policer.db"))
    yield made
    made.close()


class Running:
    """A policer's notifier at work."""

    def __init__(self, store: Store, rules: Rules = TRUSTING, *, leads: bool = True) -> None:
        self.outcomes: Counter[str] = Counter()
        self.died = 0
        self.ahead_s = 0.0
        """By how much its time of day is ahead: retries are then due."""
        self.epoch = _taken(store) if leads else 0
        self.looks = 0
        ports = Ports(
            leads=self._leads,
            tried=lambda kind: self.outcomes.update([kind]),
            died=self._count,
            wall=lambda: time.time() + self.ahead_s,
            luck=lambda: 0.5,
        )
        self.worker = Worker(
            Notifier(store, Courier(lambda: rules, ports.wall), ports).run, "webhooks"
        )

    def _leads(self) -> int:
        self.looks += 1
        return self.epoch

    def look(self) -> None:
        """Wait until it has looked for work some times."""
        until = self.looks + 5
        wait(lambda: self.looks >= until)

    def _count(self) -> None:
        self.died += 1


def _taken(store: Store) -> int:
    leadership = store.leadership("test")
    epoch = leadership.acquire()
    leadership.release()
    assert epoch is not None
    return epoch


@contextmanager
def running(store: Store, rules: Rules = TRUSTING, *, leads: bool = True) -> Iterator[Running]:
    here = Running(store, rules, leads=leads)
    here.worker.start()
    try:
        yield here
        assert here.worker.problem == ""
    finally:
        here.worker.stop()


def hook(store: Store, to: Endpoint, *kinds: str, name: str = "pager") -> WebhookRow:
    return store.webhooks.add(name, to.url(), kinds or ("*",), SECRET, "ann")


def happen(store: Store, *words: str, kind: str = "punished") -> None:
    store.events.add([Event("gold", kind, one, "r1") for one in words])


def wait(condition: Callable[[], Any], state: Callable[[], object] | None = None) -> Any:
    return eventually(condition, state=state)


def test_what_happens_is_told_signed_and_once(store: Store) -> None:
    happen(store, "before")
    with endpoint() as here:
        made = hook(store, here)
        happen(store, "a", "b")
        with running(store) as policer:
            wait(lambda: len(here.got) == 2)
            happen(store, "c")
            wait(lambda: store.webhooks.get(made.id).position == 4)
    assert sorted(here.words) == ["a", "b", "c"]
    assert policer.outcomes == {"delivered": 3}
    (first,) = [got for got in here.got if got.data["words"] == "a"]
    body = verify(SECRET, first)
    event = store.events.fresh(1, 1, None)[0]
    assert body["type"] == "policer.punished"
    assert datetime.fromisoformat(body["timestamp"]) == event.at
    assert body["data"] == {
        "id": event.id,
        "kind": "punished",
        "host": "gold",
        "vr": "r1",
        "words": "a",
        "actor": "policer",
    }


def test_only_the_kinds_that_were_chosen_are_told(store: Store) -> None:
    with endpoint() as here:
        made = hook(store, here, "brake", "gone")
        happen(store, "no")
        happen(store, "yes", kind="brake")
        happen(store, "no", kind="released")
        happen(store, "yes too", kind="gone")
        with running(store):
            wait(lambda: store.webhooks.get(made.id).position == 4)
    assert sorted(here.words) == ["yes", "yes too"]


def test_many_are_told_each_once(store: Store) -> None:
    with endpoint() as here:
        hook(store, here)
        happen(store, *map(str, range(100)))
        with running(store):
            wait(lambda: len(here.got) >= 100)
    assert sorted(map(int, here.words)) == list(range(100))


def test_what_is_not_taken_is_tried_again_under_the_same_id(store: Store) -> None:
    answers = iter([500, 503])
    with endpoint(lambda exchange: exchange.say(next(answers, 200))) as here:
        made = hook(store, here)
        happen(store, "a")
        with running(store) as policer:
            for count in (1, 2):
                wait(lambda n=count: len(here.got) == n and store.webhooks.get(made.id).waiting)
                policer.ahead_s += 3600.0
            wait(lambda: len(here.got) == 3 and not store.webhooks.get(made.id).waiting)
    assert {got.message for got in here.got} == {here.got[0].message}
    assert len({got.headers["webhook-signature"] for got in here.got}) >= 2
    assert policer.outcomes == {"refused": 2, "delivered": 1}


def test_what_is_never_taken_dies_and_is_sent_again_when_someone_wants_it(store: Store) -> None:
    with endpoint(lambda exchange: exchange.say(500)) as here:
        made = hook(store, here)
        happen(store, "a")
        with running(store, replace(TRUSTING, attempts=3)) as policer:

            def later() -> int:
                policer.ahead_s += 40_000.0
                return policer.died  # is counted after it is stored

            wait(later)
            assert (len(here.got), policer.died) == (3, 1)
            assert store.webhooks.get(made.id).dead == 1
            (letter,) = store.letters.dead(made.id, None, 9)
            assert (letter.attempts, letter.problem) == (3, "it answers: 500")
            here.answer = lambda exchange: exchange.say(200)
            store.letters.redeliver(made.id, None, "ann")
            wait(lambda: len(here.got) == 4 and not store.webhooks.get(made.id).waiting)
    assert store.letters.dead(made.id, None, 9) == []
    assert len({got.message for got in here.got}) == 1


def test_who_wants_no_more_is_tried_once(store: Store) -> None:
    with endpoint(lambda exchange: exchange.say(410)) as here:
        made = hook(store, here)
        happen(store, "a")
        with running(store):
            wait(lambda: store.webhooks.get(made.id).dead)
    assert len(here.got) == 1


@pytest.mark.parametrize("answer", [Exchange.hang, Exchange.drip, Exchange.reset])
def test_an_endpoint_that_fails_delays_no_other(
    store: Store, answer: Callable[[Exchange], None]
) -> None:
    """The other's messages come long before the bad one's first attempts have ended."""
    with endpoint(answer) as bad, endpoint() as good:
        hook(store, bad, name="bad")
        hook(store, good, name="good")
        with running(store, replace(TRUSTING, timeout_s=60.0)):
            for number in range(20):
                happen(store, str(number))
                wait(lambda n=number: str(n) in good.words)
    assert sorted(map(int, good.words)) == list(range(20))


def test_a_redirect_to_this_machine_is_not_followed(store: Store) -> None:
    with endpoint() as inside:
        with endpoint(lambda exchange: exchange.say(302, Location=inside.url())) as here:
            made = hook(store, here)
            happen(store, "a")
            with running(store):
                wait(lambda: store.webhooks.get(made.id).waiting)
        assert inside.got == []


def test_an_endpoint_that_is_forbidden_now_gets_nothing(store: Store) -> None:
    with endpoint() as here:
        made = hook(store, here)
        happen(store, "a")
        with running(store, Rules(allow_http=True)) as policer:
            row = wait(lambda: (row := store.webhooks.get(made.id)).waiting and row)
    assert "no public address" in row.problem
    assert (here.got, set(policer.outcomes)) == ([], {"forbidden"})


# --- who dies, and who leads


def test_a_policer_that_is_started_again_goes_on_where_it_was(store: Store) -> None:
    with endpoint() as here:
        hook(store, here)
        happen(store, "a")
        with running(store):
            wait(lambda: store.webhooks.all()[0].position == 1)
        happen(store, "b")
        with running(store):
            wait(lambda: store.webhooks.all()[0].position == 2)
    assert here.words == ["a", "b"]


def test_what_was_sent_by_a_policer_that_died_then_is_sent_again(store: Store) -> None:
    """At least once: nobody knows that the message was taken."""
    with endpoint(Exchange.hang) as here:
        hook(store, here)
        happen(store, "a")
        with running(store):
            wait(lambda: here.got)  # and the policer stops with the attempt under way
        here.answer = lambda exchange: exchange.say(200)
        with running(store):
            wait(lambda: store.webhooks.all()[0].position == 1)
    assert here.words == ["a", "a"]
    assert here.got[0].message == here.got[1].message


def test_who_does_not_lead_sends_nothing(store: Store) -> None:
    with endpoint() as here:
        hook(store, here)
        happen(store, "a")
        with running(store) as leader:
            wait(lambda: store.webhooks.all()[0].position == 1)
            leader.epoch = 0
            leader.look()  # a look that still has the old epoch would send what happens now
            with running(store, leads=False) as other:
                happen(store, "b")
                other.look()
                assert here.words == ["a"]
                other.epoch = _taken(store)
                wait(lambda: store.webhooks.all()[0].position == 2)
    assert here.words == ["a", "b"]


def test_a_leader_that_was_cut_off_loses_nothing_of_the_next_ones(store: Store) -> None:
    """Both believe that they lead; what the old one writes down counts for nothing."""
    with endpoint(lambda exchange: exchange.say(500)) as here:
        made = hook(store, here)
        with running(store, replace(TRUSTING, attempts=1)) as old:
            _taken(store)
            happen(store, "a")
            wait(lambda: old.outcomes)
            old.look()
            row = store.webhooks.get(made.id)
            assert (row.position, row.dead, old.died) == (0, 0, 0)
        here.answer = lambda exchange: exchange.say(200)
        with running(store):
            wait(lambda: store.webhooks.get(made.id).position == 1)
    assert set(here.words) == {"a"}


def test_a_store_that_fails_for_a_while_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REST_S", 0.05)
    broken, real = threading.Event(), store.letters.settle

    def settle(*given: Any) -> bool:
        if broken.is_set():
            raise StoreGone("the database cannot be written")
        return real(*given)

    monkeypatch.setattr(store.letters, "settle", settle)
    broken.set()
    with endpoint() as here:
        made = hook(store, here)
        happen(store, "a", "b")
        with running(store):
            wait(lambda: len(here.got) > 4)
            broken.clear()
            wait(lambda: store.webhooks.get(made.id).position == 2)
    assert len({got.message for got in here.got}) == 2


def test_a_message_that_trips_a_bug_stops_no_other_webhook(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.message_of

    def broken(event: Any) -> Any:
        if event.kind == "brake":
            raise KeyError("a bug")
        return real(event)

    monkeypatch.setattr(module, "message_of", broken)
    with endpoint() as bad, endpoint() as good:
        hook(store, bad, name="bad")
        hook(store, good, "punished", name="good")
        happen(store, "x", kind="brake")
        with running(store):
            for words in "abc":
                happen(store, words)
                wait(lambda w=words: w in good.words)
    assert bad.got == []


def test_a_webhook_that_is_removed_gets_nothing_more(store: Store) -> None:
    with endpoint(Exchange.hang) as here:
        made = hook(store, here)
        happen(store, "a")
        with running(store, replace(TRUSTING, timeout_s=60.0)):
            wait(lambda: here.got)
            store.webhooks.remove(made.id, "ann")
            happen(store, "b")
            again = hook(store, here)
            here.answer = lambda exchange: exchange.say(200)
            happen(store, "c")
            wait(lambda: store.webhooks.get(again.id).position == 3)
    assert here.words == ["a", "c"]


def test_a_place_beyond_the_latest_event_is_of_another_database(store: Store) -> None:
    with endpoint() as here:
        made = hook(store, here)
        happen(store, "a")
        store.letters.settle(made.id, [], 1_000_000, _taken(store))
        with running(store):
            wait(lambda: store.webhooks.get(made.id).position == 1)
            happen(store, "b")
            wait(lambda: here.got)
    assert here.words == ["b"]


def test_a_webhook_of_rare_events_does_not_write_for_each_of_the_others(store: Store) -> None:
    with endpoint() as here:
        made = hook(store, here, "brake")
        with running(store) as policer:
            happen(store, *map(str, range(module.LAG - 1)))
            policer.look()
            assert store.webhooks.get(made.id).position == 0
            happen(store, "one more", "and another")
            wait(lambda: store.webhooks.get(made.id).position >= module.LAG)
    assert here.got == []

"""The board without threads: whose turn it is, who is heard, and what becomes of orders."""

from dataclasses import replace

import pytest

from common.clock import FakeClock
from common.units import Seconds
from xtc.errors import ActuatorError, Gone, Overtaken, Transient
from xtc.libvirt.domains import DomainView, Operation, Order, Outcome
from xtc.libvirt.mailbox import ANSWER_MEMORY, MOST_WORKERS, SLOW_AT_ONCE, WORKERS, Mailbox
from xtc.libvirt.quarantine import BACKOFF_S, OVERDUE_S

AT_ONCE = Seconds(0.0)
GOLD, SILVER = DomainView("u-gold", "gold", 1), DomainView("u-silver", "silver", 2)


class Scene:
    """A board with a pool and a link that stand for the threads, and two domains."""

    def __init__(self) -> None:
        self.clock = FakeClock(100.0)
        self.mailbox = Mailbox(self.clock)
        self.pool, self.link = object(), object()
        self.mailbox.want(lambda _view: True)
        self.mailbox.employ(self.pool)
        self.connect(self.link)

    def connect(self, link: object) -> None:
        self.link = link
        self.mailbox.connected(self.pool, link, "QEMU")
        self.found(GOLD, SILVER)

    def found(self, *found: DomainView) -> None:
        assert self.mailbox.take_survey(self.link, AT_ONCE)
        self.mailbox.surveyed(self.link, found)

    def take(self) -> Operation | None:
        return self.mailbox.take(self.link, AT_ONCE)

    def perform(self, operation: Operation, **found: object) -> None:
        """Come back from a visit; an order has been carried out."""
        view = replace(operation.known, **({"visited": True, "described": True} | found))
        outcome = None if operation.order is None else Outcome(operation.order, None, Seconds(0.1))
        self.mailbox.visited(self.link, operation, view, outcome)

    def pay_all(self) -> list[Operation]:
        paid = []
        while (operation := self.take()) is not None:
            self.perform(operation)
            paid.append(operation)
        return paid

    def order(self, number: int, known: DomainView = GOLD, **more: dict[str, int]) -> Order:
        order = Order(number, known.uuid, known.domid, {"cap": number}, 0, None)
        order = replace(order, **more)
        self.mailbox.post(order)
        return order

    def error(self, known: DomainView = GOLD) -> ActuatorError | None:
        outcome = self.mailbox.outcome(known.uuid)
        assert outcome is not None
        return outcome.error


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def idle(scene: Scene) -> Scene:
    """A scene in which everything was visited once."""
    scene.pay_all()
    return scene


def test_what_a_survey_found_is_described(scene: Scene) -> None:
    assert scene.mailbox.view.surveyed
    assert scene.mailbox.to_describe()
    operations = scene.pay_all()
    assert {operation.known.name for operation in operations} == {"gold", "silver"}
    assert all(operation.describe for operation in operations)
    assert not scene.mailbox.to_describe()


def test_what_nobody_wants_is_not_visited() -> None:
    scene = Scene()
    scene.mailbox.want(lambda view: view.name == "silver")
    scene.found(GOLD, SILVER)
    assert [operation.known.name for operation in scene.pay_all()] == ["silver"]
    scene.mailbox.ask()
    assert [operation.known.name for operation in scene.pay_all()] == ["silver"]


def test_who_stands_still_is_not_asked(idle: Scene) -> None:
    idle.found(replace(GOLD, domid=-1), SILVER)
    idle.pay_all()
    idle.mailbox.ask()
    assert [operation.known.name for operation in idle.pay_all()] == ["silver"]


def test_one_visit_a_domain_at_a_time(idle: Scene) -> None:
    idle.mailbox.ask()
    first, second = idle.take(), idle.take()
    assert first is not None
    assert second is not None
    assert first.known.uuid != second.known.uuid
    idle.mailbox.ask()
    idle.order(1)
    assert idle.take() is None
    idle.perform(first)
    again = idle.take()
    assert again is not None
    assert again.known.uuid == first.known.uuid


def test_orders_come_first_then_descriptions_then_looks(idle: Scene) -> None:
    bronze = DomainView("u-bronze", "bronze", 3)
    idle.mailbox.note_change(None)
    idle.found(GOLD, SILVER, bronze)
    idle.pay_all()
    idle.mailbox.ask()
    idle.mailbox.note_change(SILVER.uuid)
    order = idle.order(1, bronze)
    turns = idle.pay_all()
    assert [operation.known.name for operation in turns] == ["bronze", "silver", "gold"]
    assert [operation.order for operation in turns] == [order, None, None]
    assert [operation.describe for operation in turns] == [False, True, False]


def test_one_visit_serves_every_wish(idle: Scene) -> None:
    idle.mailbox.ask()
    idle.mailbox.note_change(GOLD.uuid)
    order = idle.order(1)
    operation = idle.take()
    assert operation is not None
    assert (operation.order, operation.describe) == (order, True)
    idle.perform(operation)
    assert [operation.known.name for operation in idle.pay_all()] == ["silver"]


def test_what_was_asked_during_a_visit_is_asked_again(idle: Scene) -> None:
    idle.mailbox.note_change(GOLD.uuid)
    operation = idle.take()
    assert operation is not None
    idle.clock.sleep(Seconds(0.5))
    idle.mailbox.ask()
    idle.perform(operation)
    assert "gold" in [operation.known.name for operation in idle.pay_all()]


def test_the_latest_order_wins(idle: Scene) -> None:
    idle.order(1)
    latest = idle.order(2)
    operation = idle.take()
    assert operation is not None
    assert operation.order == idle.mailbox.pending(GOLD.uuid) == latest
    idle.perform(operation)
    assert idle.take() is None
    outcome = idle.mailbox.outcome(GOLD.uuid)
    assert outcome is not None
    assert outcome.order == latest
    assert idle.mailbox.pending(GOLD.uuid) is None


def test_an_order_under_way_is_followed_by_the_next(idle: Scene) -> None:
    first = idle.order(1)
    operation = idle.take()
    assert operation is not None
    assert idle.mailbox.pending(GOLD.uuid) == first
    second = idle.order(2)
    assert idle.mailbox.pending(GOLD.uuid) == second
    idle.perform(operation)
    after = idle.take()
    assert after is not None
    assert after.order == second


def test_an_order_for_nobody_fails(idle: Scene) -> None:
    idle.mailbox.post(Order(1, "u-none", 1, {}, 0, None))
    outcome = idle.mailbox.outcome("u-none")
    assert outcome is not None
    assert isinstance(outcome.error, Gone)


def test_an_order_for_who_was_undefined_meanwhile_fails(idle: Scene) -> None:
    idle.order(1)
    idle.mailbox.note_change(None)
    idle.found(SILVER)
    assert isinstance(idle.error(), Gone)
    assert idle.mailbox.pending(GOLD.uuid) is None


# Who is heard.


def test_another_run_starts_from_nothing(idle: Scene) -> None:
    idle.mailbox.note_change(GOLD.uuid)
    idle.found(replace(GOLD, domid=9), SILVER)
    view = idle.mailbox.view.find("gold")
    assert view is not None
    assert (view.domid, view.visited) == (9, False)


def test_what_a_visit_found_of_an_earlier_run_is_void(idle: Scene) -> None:
    idle.mailbox.ask()
    operation = idle.take()
    assert operation is not None
    idle.mailbox.note_change(None)
    idle.found(replace(GOLD, domid=9), SILVER)
    idle.perform(operation, parameters={"cap": 7})
    view = idle.mailbox.view.domains[operation.known.uuid]
    assert (view.domid, view.parameters) == (9, {})


def test_a_domain_that_was_started_anew_is_looked_for_with_the_next_ask(idle: Scene) -> None:
    idle.mailbox.ask()
    operation = idle.take()
    assert operation is not None
    idle.perform(operation, domid=-1, problem=Gone("gold", "the domain was restarted"))
    assert not idle.mailbox._survey, "one that is gone again and again must not keep libvirtd busy"
    idle.mailbox.ask()
    assert idle.mailbox._survey


def test_what_an_old_link_says_is_void(idle: Scene) -> None:
    idle.mailbox.ask()
    old, operation = idle.link, idle.take()
    assert operation is not None
    idle.mailbox.lost(old, Transient("libvirt", "the connection ended"))
    idle.connect(object())
    idle.mailbox.visited(old, operation, replace(operation.known, vcpus=64), None)
    idle.mailbox.surveyed(old, [])
    idle.mailbox.lost(old, Transient("libvirt", "again"))
    assert idle.mailbox.view.surveyed
    assert idle.mailbox.view.domains[operation.known.uuid].vcpus == 1
    assert idle.mailbox.take(old, AT_ONCE) is None
    assert not idle.mailbox.take_survey(old, AT_ONCE)


def test_an_old_links_survey_does_not_hide_that_the_new_pool_hangs(idle: Scene) -> None:
    old, new = idle.link, object()
    idle.mailbox.employ(new)
    idle.mailbox.connecting(new)
    idle.clock.sleep(Seconds(5.0))
    assert not idle.mailbox.take_survey(old, AT_ONCE)
    assert idle.mailbox.longest() == 5.0


def test_what_an_old_pool_says_is_void(idle: Scene) -> None:
    old, idle.pool = idle.pool, object()
    idle.mailbox.employ(idle.pool)
    idle.connect(object())
    idle.mailbox.connecting(old)
    idle.mailbox.connected(old, object(), "LXC")
    idle.mailbox.unreachable(old, Transient("libvirt", "no"))
    assert (idle.mailbox.view.driver, idle.mailbox.view.surveyed) == ("QEMU", True)
    assert idle.mailbox.serves(idle.link)
    assert not idle.mailbox.employs(old)


def test_a_lost_link_fails_every_order_and_forgets_everything(idle: Scene) -> None:
    idle.order(1)
    operation = idle.take()
    assert operation is not None
    idle.order(2, SILVER)
    problem = Transient("libvirt", "the connection ended")
    idle.mailbox.lost(idle.link, problem)
    assert idle.error(GOLD) is problem
    assert idle.error(SILVER) is problem
    assert idle.mailbox.pending(GOLD.uuid) is None
    assert (idle.mailbox.view.surveyed, idle.mailbox.view.problem) == (False, problem)
    assert not idle.mailbox.view.domains
    assert idle.mailbox.longest() == 0.0
    idle.order(3)
    assert idle.error(GOLD) is problem


def test_what_an_earlier_pool_began_is_in_doubt(idle: Scene) -> None:
    idle.order(1)
    assert idle.take() is not None
    idle.mailbox.employ(object())
    assert isinstance(idle.error(), Transient)
    assert "effect is unknown" in str(idle.error())


def test_to_employ_nobody_ends_it(idle: Scene) -> None:
    idle.mailbox.employ(None)
    assert not idle.mailbox.employs(idle.pool)
    assert not idle.mailbox.take_survey(idle.link, AT_ONCE)
    assert idle.take() is None


# Domains that are slow or hang.

DEADLINE, LATE = Seconds(15.0), Seconds(OVERDUE_S + 0.1)


class Crowd(Scene):
    """Many domains, all of which were visited once, and the workers that the board wants."""

    def __init__(self, domains: int) -> None:
        super().__init__()
        self.every = [DomainView(f"u-{n}", f"vr{n}", n) for n in range(domains)]
        self.mailbox.note_change(None)
        self.found(*self.every)
        self.pay_all()
        self.clock.sleep(Seconds(1.0))
        assert self.mailbox.add_workers(self.link) == WORKERS

    def hang(self, operations: int) -> list[Operation]:
        """Begin so many visits, and let them become overdue."""
        self.mailbox.ask()
        begun = [operation for _ in range(operations) if (operation := self.take()) is not None]
        assert len(begun) == operations
        self.clock.sleep(LATE)
        return begun

    def give_up(self, operations: list[Operation]) -> None:
        self.clock.sleep(DEADLINE)
        names = {operation.known.name for operation in operations}
        assert set(self.mailbox.give_up(DEADLINE)) == names


def test_a_hand_that_is_held_up_is_replaced_and_leaves_when_it_comes_back() -> None:
    crowd = Crowd(1)
    [operation] = crowd.hang(1)
    assert crowd.mailbox.add_workers(crowd.link) == 1
    assert crowd.mailbox.add_workers(crowd.link) == 0
    assert crowd.mailbox.keeps_worker(crowd.link)
    crowd.perform(operation)
    assert not crowd.mailbox.keeps_worker(crowd.link)
    assert crowd.mailbox.keeps_worker(crowd.link)


@pytest.mark.parametrize(
    ("domains", "workers"), [(WORKERS + 10, 11), (WORKERS + 100, MOST_WORKERS - WORKERS)]
)
def test_where_all_hands_hang_each_domain_that_waits_gets_one_of_its_own(
    domains: int, workers: int
) -> None:
    crowd = Crowd(domains)
    crowd.hang(WORKERS)
    assert crowd.mailbox.add_workers(crowd.link) == workers


def test_the_last_free_hand_is_for_those_that_have_answered_meanwhile() -> None:
    crowd = Crowd(3)
    [hanging] = crowd.hang(1)
    crowd.mailbox._workers = MOST_WORKERS
    crowd.mailbox._idle = 1  # another worker waits, too
    answered = crowd.take()
    assert answered is not None
    crowd.perform(answered)
    crowd.mailbox._idle = 0
    assert crowd.take() is None, "the third may hang as well"
    crowd.mailbox.ask()
    again = crowd.take()
    assert again is not None
    assert again.known.uuid == answered.known.uuid
    crowd.perform(again)
    crowd.perform(hanging)
    third = crowd.take()
    assert third is not None
    assert third.known.uuid not in {hanging.known.uuid, answered.known.uuid}


def test_slow_domains_get_some_of_the_hands_only() -> None:
    crowd = Crowd(WORKERS + 2)
    quick = crowd.every[-1]
    crowd.mailbox.want(lambda view: view.uuid != quick.uuid)
    for operation in crowd.hang(WORKERS + 1):
        crowd.perform(operation)
    crowd.mailbox.want(lambda _view: True)
    crowd.mailbox.ask()
    taken = [
        operation.known.uuid for _ in range(WORKERS + 2) if (operation := crowd.take()) is not None
    ]
    assert quick.uuid in taken
    assert len(taken) == SLOW_AT_ONCE + 1


def test_a_visit_that_is_given_up_fails_its_order_and_is_void() -> None:
    crowd = Crowd(1)
    [gold] = crowd.every
    crowd.order(1, gold)
    [operation] = crowd.hang(1)
    assert crowd.mailbox.give_up(DEADLINE) == ()
    crowd.give_up([operation])
    assert "effect is unknown" in str(crowd.error(gold))
    assert "hang" in str(crowd.mailbox.view.domains[gold.uuid].problem)
    assert crowd.mailbox.in_doubt(gold.uuid)
    assert not crowd.mailbox.hears(crowd.link, operation)
    crowd.perform(operation, vcpus=64)
    assert "effect is unknown" in str(crowd.error(gold))
    assert crowd.mailbox.view.domains[gold.uuid].vcpus == 1
    assert not crowd.mailbox.in_doubt(gold.uuid)


def test_a_domain_has_one_call_under_way_at_most_whatever_becomes_of_its_connection() -> None:
    crowd = Crowd(2)
    [operation] = crowd.hang(1)
    crowd.give_up([operation])
    crowd.mailbox.employ(crowd.pool)
    crowd.connect(object())
    crowd.mailbox.note_change(None)
    crowd.found(*crowd.every)
    crowd.order(1, operation.known)
    crowd.mailbox.ask()
    assert operation.known.uuid not in {paid.known.uuid for paid in crowd.pay_all()}
    crowd.mailbox.visited(object(), operation, replace(operation.known, problem=None), None)
    assert operation.known.uuid in {paid.known.uuid for paid in crowd.pay_all()}


def test_a_visit_that_ends_without_an_answer_is_followed_after_a_rest() -> None:
    crowd = Crowd(1)
    [operation] = crowd.hang(1)
    crowd.give_up([operation])
    crowd.mailbox.ended(operation)
    crowd.mailbox.ask()
    assert crowd.take() is None
    crowd.clock.sleep(Seconds(BACKOFF_S[0]))
    assert crowd.take() is not None


def test_a_slow_answer_has_nobody_asked_earlier() -> None:
    crowd = Crowd(2)
    [operation] = crowd.hang(1)
    crowd.mailbox._asked = {operation.known.uuid: crowd.mailbox._asked[operation.known.uuid]}
    before = crowd.mailbox.answer_time
    crowd.perform(operation)
    assert crowd.mailbox.answer_time == before


def test_a_visit_that_its_connection_ended_holds_nothing(idle: Scene) -> None:
    order = idle.order(1)
    operation = idle.take()
    assert operation is not None
    idle.mailbox.ended(operation)
    outcome = idle.mailbox.outcome(GOLD.uuid)
    assert outcome is not None
    assert outcome.order == order
    assert isinstance(outcome.error, Transient)
    idle.mailbox.lost(idle.link, Transient("libvirt", "the connection ended"))
    idle.connect(object())
    assert "gold" in [paid.known.name for paid in idle.pay_all()]


# Times and versions.


def test_who_is_asked_in_vain_is_noticed(idle: Scene) -> None:
    assert idle.mailbox.unanswered(GOLD.uuid) == 0.0
    idle.mailbox.ask()
    idle.clock.sleep(Seconds(1.0))
    idle.mailbox.ask()
    idle.clock.sleep(Seconds(1.0))
    assert idle.mailbox.unanswered(GOLD.uuid) == 2.0
    idle.pay_all()
    assert idle.mailbox.unanswered(GOLD.uuid) == 0.0


def test_an_order_that_hangs_makes_its_domain_unanswered(idle: Scene) -> None:
    idle.mailbox.resting(idle.pool)
    idle.order(1)
    assert idle.take() is not None
    idle.clock.sleep(Seconds(3.0))
    assert idle.mailbox.unanswered(GOLD.uuid) == 3.0
    assert idle.mailbox.longest() == 0.0, "it is the domain that hangs, not the connection"
    assert idle.mailbox.unanswered(SILVER.uuid) == 0.0


def test_a_survey_that_hangs_is_work_too(idle: Scene) -> None:
    idle.mailbox.note_change(None)
    assert idle.mailbox.take_survey(idle.link, AT_ONCE)
    idle.clock.sleep(Seconds(4.0))
    assert idle.mailbox.longest() == 4.0
    idle.mailbox.surveyed(idle.link, [GOLD, SILVER])


def test_answers_are_timed_from_the_asking_and_the_worst_fades(idle: Scene) -> None:
    def ask(took: float) -> float:
        idle.mailbox.ask()
        idle.clock.sleep(Seconds(took))
        idle.pay_all()
        return idle.mailbox.answer_time

    assert ask(0.4) == pytest.approx(0.4)
    assert ask(0.1) == pytest.approx(0.4 * ANSWER_MEMORY**2)  # two domains answered
    for _ in range(50):
        ask(0.1)
    assert idle.mailbox.answer_time == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"interfaces": ("vnet9",)}, True),
        ({"domid": -1}, True),
        ({"parameters": {"cap": 1}}, False),
    ],
)
def test_the_version_counts_what_changes_who_owns_which_interface(
    idle: Scene, change: dict[str, object], counts: bool
) -> None:
    idle.mailbox.ask()
    operation, before = idle.take(), idle.mailbox.version
    assert operation is not None
    idle.perform(operation, **change)
    assert (idle.mailbox.version > before) is counts


def test_a_hand_that_hangs_while_it_opens_its_connection_counts_as_work(idle: Scene) -> None:
    idle.mailbox.resting(idle.pool)
    idle.mailbox.opening(idle.link, 0)
    idle.clock.sleep(20.0)
    assert idle.mailbox.longest() == 20.0
    idle.mailbox.opened(idle.link, 0)
    assert idle.mailbox.longest() == 0.0


@pytest.mark.parametrize(
    ("first", "second"), [({"cap": 68}, {"weight": 256}), ({"weight": 256}, {"cap": 68})]
)
def test_a_cap_and_a_weight_in_one_order_are_both_checked(
    first: dict[str, int], second: dict[str, int]
) -> None:
    """A weight's order carried a pending first cap, whose outdated original was not noticed."""
    scene = Scene()
    scene.order(1, mark={"cap": 68, "weight": 256}, expected=first)
    scene.order(2, mark={"cap": 68, "weight": 256}, expected=second)
    operation = scene.take()
    assert operation is not None
    assert operation.order is not None
    assert operation.order.expected == {"cap": 68, "weight": 256}


def test_an_order_not_begun_hands_on_what_it_expected_to_the_cap_that_replaces_it() -> None:
    scene, original = Scene(), {"cap": 0}
    scene.order(1, mark=original, expected=original)
    scene.order(2, mark=original)
    operation = scene.take()
    assert operation is not None
    assert operation.order is not None
    assert (operation.order.number, operation.order.expected) == (2, original)


@pytest.mark.parametrize("release", [False, True])
def test_an_order_that_was_overtaken_takes_the_next_along(scene: Scene, release: bool) -> None:
    """Posted while the first was looking: it would write over what somebody changed."""
    original = {"cap": 67}
    scene.order(1, mark=original, expected=original)
    operation = scene.take()
    assert operation is not None
    assert operation.order is not None
    following = scene.order(2) if release else scene.order(2, mark=original)
    overtaken = Outcome(operation.order, Overtaken("gold", "changed just now"), Seconds(0.1))
    scene.mailbox.visited(scene.link, operation, operation.known, overtaken)
    outcome = scene.mailbox.outcome(GOLD.uuid)
    assert outcome is not None
    assert outcome.order == following
    assert outcome.error is (None if release else overtaken.error)
    assert scene.mailbox.pending(GOLD.uuid) is None


def overtake(scene: Scene, **first: object) -> None:
    """Have an order find its original changed; nobody has read that yet."""
    scene.order(1, **{"mark": {"cap": 67}, "expected": {"cap": 67}, "capture": 7} | first)
    operation = scene.take()
    assert operation is not None
    assert operation.order is not None
    overtaken = Outcome(operation.order, Overtaken("gold", "changed just now"), Seconds(0.1))
    scene.mailbox.visited(scene.link, operation, operation.known, overtaken)


def test_an_order_posted_before_the_loop_reads_that_it_was_overtaken_fails_too(
    scene: Scene,
) -> None:
    """As when a cap alternates: its second half comes between two ticks."""
    overtake(scene)
    scene.order(2, mark={"cap": 67}, capture=7)
    assert scene.mailbox.pending(GOLD.uuid) is None
    assert isinstance(scene.error(), Overtaken)


def test_an_order_that_relies_on_originals_read_again_is_carried_out(scene: Scene) -> None:
    overtake(scene)
    assert scene.order(2, mark={"cap": 0}, capture=8) == scene.mailbox.pending(GOLD.uuid)


def test_a_release_after_an_overtaken_order_restores_what_was_not_found_changed(
    scene: Scene,
) -> None:
    overtake(scene)
    scene.order(2, parameters={"cap": 67, "weight": 256}, capture=7)
    pending = scene.mailbox.pending(GOLD.uuid)
    assert pending is not None
    assert pending.parameters == {"weight": 256}
    scene.order(3, capture=7)
    assert scene.error() is None


def test_a_release_expects_nothing() -> None:
    scene, original = Scene(), {"cap": 0}
    scene.order(1, mark=original, expected=original)
    release = scene.order(2)
    operation = scene.take()
    assert operation is not None
    assert operation.order == release


# What is gone


def survey_again(scene: Scene, *found: DomainView) -> None:
    scene.mailbox.note_change(None)
    scene.found(*found)


def test_what_became_of_an_order_is_told_once_its_domain_is_gone_and_then_forgotten(
    scene: Scene,
) -> None:
    scene.pay_all()
    scene.order(1)
    survey_again(scene, SILVER)
    assert isinstance(scene.error(), Gone)
    survey_again(scene, SILVER)
    assert scene.mailbox.outcome(GOLD.uuid) is None


def test_a_domain_that_is_gone_leaves_no_quarantine_to_the_next_of_its_uuid(scene: Scene) -> None:
    scene.pay_all()
    scene.order(1)
    operation = scene.take()
    assert operation is not None
    scene.clock.sleep(Seconds(20.0))
    scene.mailbox.give_up(Seconds(15.0))
    survey_again(scene, SILVER)
    assert scene.mailbox.in_doubt(GOLD.uuid), "its call is under way still"
    scene.mailbox.ended(operation)
    for _ in range(2):
        survey_again(scene, SILVER)
    survey_again(scene, GOLD, SILVER)
    assert GOLD.uuid in {operation.known.uuid for operation in scene.pay_all()}

"""Sessions with their real threads over a fake hypervisor: events, drops, hangs, and firewalls."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import structlog
from fake_guest import FakeLibvirtError
from fake_libvirt import Call, FakeHost
from virt_rig import Running, idle_threads, quiet, running, until

from common.clock import FakeClock, MonotonicClock
from common.units import Seconds
from xtc.errors import Denied, Gone, Transient, Unsupported
from xtc.libvirt import mailbox, pool, session
from xtc.libvirt.api import Api
from xtc.libvirt.domains import Order
from xtc.libvirt.mailbox import WORKERS
from xtc.libvirt.metadata import URI
from xtc.libvirt.session import CALL_DEADLINE_S, MAX_GIVEN_UP, STALE_S, Session

CAP, FREE = {"cap": 35}, {"cap": 0}
OVERDUE = Seconds(CALL_DEADLINE_S + 1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def host(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.01,))
    host = FakeHost("Xen", clock)
    host.add("gold", nics=2)
    host.add("silver")
    return host


@pytest.fixture
def scene(host: FakeHost, clock: FakeClock) -> Iterator[Running]:
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold") and scene.known("silver"))
        quiet(scene.session)
        yield scene


def order(scene: Running, name: str, parameters: dict[str, int], mark: object = None) -> Order:
    assert mark is None or isinstance(mark, dict)
    return scene.session.order(scene.view(name), parameters, 0, mark=mark)


def cap(scene: Running, name: str = "gold") -> int:
    return scene.host.guests[name].parameters["cap"]


def test_it_connects_and_tells_of_every_domain(scene: Running) -> None:
    assert scene.session.view.driver == "Xen"
    assert scene.view("gold").interfaces == ("vif1.0", "vif1.1")
    assert scene.view("silver").interfaces == ("vif2.0",)


def test_settling_waits_for_what_is_wanted(host: FakeHost, clock: FakeClock) -> None:
    with running(host, clock) as scene:
        assert scene.session.settle(Seconds(30.0))
        assert scene.known("gold")


def test_settling_ends_with_the_problem(host: FakeHost, clock: FakeClock) -> None:
    host.crash()
    with running(host, clock) as scene:
        assert scene.session.settle(Seconds(30.0))
        assert isinstance(scene.session.view.problem, Transient)
        assert "No such file" in str(scene.session.view.problem)


def test_settling_tells_of_the_others_where_some_hang(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SETTLE_STEP_S", Seconds(0.01))
    monkeypatch.setattr(mailbox, "OVERDUE_S", Seconds(0.005))
    hanging = [f"vr{number}" for number in range(WORKERS + 1)]
    host.guests = {}
    for name in (*hanging, "gold"):
        host.add(name)
    for name in hanging:
        host.freeze(name, "info")
    with running(host, MonotonicClock()) as scene:
        while not scene.known("gold"):
            scene.session.settle(Seconds(0.05))


def test_settling_gives_up_in_time(host: FakeHost, clock: FakeClock) -> None:
    host.freeze("*", "open")
    with running(host, clock) as scene:
        host.wait_for_hang()
        assert not scene.session.settle(Seconds(0.0))


def test_a_look_shows_what_is_there_now(scene: Running) -> None:
    scene.host.guests["gold"].parameters["cap"] = 12
    scene.host.guests["gold"].cpu_ns = 7_000_000_000
    view = scene.look("gold")
    assert (view.parameters["cap"], view.used) == (12, 7.0)


def test_an_order_is_carried_out(scene: Running) -> None:
    given = order(scene, "gold", CAP, FREE)
    assert scene.outcome("gold", given.number).error is None
    assert cap(scene) == 35
    assert URI in scene.host.guests["gold"].metadata


def test_a_refused_order_says_why(scene: Running) -> None:
    scene.host.read_only = True
    given = order(scene, "gold", CAP)
    assert isinstance(scene.outcome("gold", given.number).error, Denied)


# Events.


def test_a_restarted_domain_is_known_by_its_event(scene: Running) -> None:
    before = scene.view("gold").domid
    scene.host.restart("gold")
    until(scene.mailbox, lambda: scene.known("gold") and scene.view("gold").domid > before)
    assert scene.view("gold").interfaces == (f"vif{scene.view('gold').domid}.0",)


def test_a_stopped_domain_is_known_by_its_event(scene: Running) -> None:
    scene.host.destroy("gold")
    until(scene.mailbox, lambda: not scene.view("gold").active)
    assert scene.view("silver").active


def test_a_new_domain_is_known_by_its_event(scene: Running) -> None:
    before = scene.session.version
    scene.host.add("bronze")
    until(scene.mailbox, lambda: scene.known("bronze"))
    assert scene.session.version > before


def test_a_plugged_interface_is_known_by_its_event(clock: FakeClock) -> None:
    host = FakeHost("QEMU", clock)
    host.add("gold")
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold"))
        host.plug("gold")
        until(scene.mailbox, lambda: len(scene.view("gold").interfaces) == 2)


def test_a_restart_without_an_event_is_found_by_looking_twice(scene: Running) -> None:
    before = scene.view("gold").domid
    scene.host.silent = True
    scene.host.restart("gold")
    scene.look("gold")
    scene.session.ask()
    until(scene.mailbox, lambda: scene.known("gold") and scene.view("gold").domid > before)


def test_surveys_come_without_events_too(
    host: FakeHost, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SURVEY_S", Seconds(0.01))
    host.silent = True
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold"))
        host.add("bronze")
        until(scene.mailbox, lambda: scene.known("bronze"))


# Drops.


def test_after_a_crash_of_libvirtd_it_connects_and_listens_again(scene: Running) -> None:
    scene.host.crash()
    until(scene.mailbox, lambda: not scene.session.view.surveyed)
    until(scene.mailbox, lambda: scene.host.made("open") > 2)
    assert isinstance(scene.session.view.problem, Transient)
    scene.host.come_back()
    until(scene.mailbox, lambda: scene.known("gold"))
    before = scene.view("gold").domid
    scene.host.restart("gold")
    until(scene.mailbox, lambda: scene.known("gold") and scene.view("gold").domid > before)


def test_a_dropped_connection_leaves_nothing_behind(scene: Running) -> None:
    for _ in range(5):
        for connection in [c for c in scene.host.connections if c.alive]:
            connection.die()
        until(scene.mailbox, lambda: scene.host.living() == 1 + WORKERS)
        until(scene.mailbox, lambda: scene.known("gold"))
    until(scene.mailbox, lambda: idle_threads() == 1 + WORKERS)
    dead = [connection for connection in scene.host.connections if not connection.alive]
    assert not any(connection.close_callbacks or connection.listeners for connection in dead)


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_drop_in_the_middle_of_an_order_fails_it(scene: Running, drop: str) -> None:
    scene.host.fail("gold", "setSchedulerParametersFlags", drop=drop, times=1)
    given = order(scene, "gold", CAP, FREE)
    assert isinstance(scene.outcome("gold", given.number).error, Transient)
    until(scene.mailbox, lambda: scene.known("gold"))
    assert scene.view("gold").mark == FREE
    assert scene.view("gold").parameters["cap"] == cap(scene) == (0 if drop == "before" else 35)


@pytest.mark.parametrize("call", ["getType", "listAllDomains"])
def test_what_fails_while_connecting_is_tried_again(
    host: FakeHost, clock: FakeClock, call: str
) -> None:
    host.fail("*", call, error=FakeLibvirtError(1, "odd"), times=3)
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold"))
        assert host.made(call) > 3


@pytest.mark.parametrize(
    "call", ["setKeepAlive", "registerCloseCallback", "domainEventRegisterAny"]
)
def test_a_libvirt_that_lacks_something_is_used_all_the_same(
    host: FakeHost, clock: FakeClock, call: str
) -> None:
    host.fail("*", call, error=FakeLibvirtError(3, "not supported"))
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold"))


def test_who_may_not_connect_is_told_why(host: FakeHost, clock: FakeClock) -> None:
    host.fail("*", "open", error=FakeLibvirtError(45, "authentication failed"))
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: isinstance(scene.session.view.problem, Denied))
        assert isinstance(scene.session.view.problem, Denied)


def test_without_libvirt_python_there_is_a_problem_and_no_thread(clock: FakeClock) -> None:
    def load() -> Api:
        raise Unsupported("libvirt", "libvirt-python cannot be used", "install it")

    session = Session(load, None, clock)
    session.start()
    assert isinstance(session.view.problem, Unsupported)
    assert session.settle(Seconds(0.0))
    session.supervise()
    session.close()
    assert idle_threads() == 0


# Hangs.


def test_a_domain_that_hangs_holds_up_no_other(scene: Running) -> None:
    scene.host.freeze("gold")
    scene.session.ask()
    scene.host.wait_for_hang()
    given = order(scene, "silver", CAP, FREE)
    assert scene.outcome("silver", given.number).error is None
    scene.look("silver")


def test_an_answer_that_does_not_come_makes_a_domain_stale(
    scene: Running, clock: FakeClock
) -> None:
    uuid = scene.host.guests["gold"].uuid
    scene.host.freeze("gold")
    scene.session.ask()
    scene.host.wait_for_hang()
    assert not scene.session.is_stale(uuid)
    clock.sleep(Seconds(STALE_S + 0.1))
    scene.session.ask()
    assert scene.session.is_stale(uuid)
    scene.host.thaw()
    until(scene.mailbox, lambda: not scene.session.is_stale(uuid))


def test_a_hang_is_given_up_after_its_deadline(scene: Running, clock: FakeClock) -> None:
    scene.host.freeze("gold", "info")
    given = order(scene, "gold", CAP, FREE)
    scene.host.wait_for_hang()
    clock.sleep(Seconds(CALL_DEADLINE_S - 1))
    scene.session.supervise()
    assert scene.session.given_up == 0
    clock.sleep(Seconds(2.0))
    scene.session.supervise()
    assert scene.session.given_up == 1
    error = scene.outcome("gold", given.number).error
    assert isinstance(error, Transient)
    assert "effect is unknown" in str(error)


def test_after_a_hang_that_passed_all_are_known_and_obey(scene: Running, clock: FakeClock) -> None:
    scene.host.freeze()
    scene.session.ask()
    scene.host.wait_for_hang()
    clock.sleep(OVERDUE)
    scene.session.supervise()
    scene.host.thaw()
    until(scene.mailbox, lambda: scene.known("gold") and scene.known("silver"))
    given = order(scene, "gold", CAP, FREE)
    assert scene.outcome("gold", given.number).error is None
    until(scene.mailbox, lambda: idle_threads() == 1 + WORKERS)


@pytest.mark.parametrize(
    "call",
    ["open", "getType", "listAllDomains"],
)
def test_pools_are_given_up_at_most_three_times_while_nothing_answers(
    host: FakeHost, clock: FakeClock, call: str
) -> None:
    host.freeze("*", call)
    with running(host, clock) as scene:
        for pools in range(1, 3 * MAX_GIVEN_UP):
            host.wait_for_hang(min(pools, MAX_GIVEN_UP + 1))
            clock.sleep(OVERDUE)
            scene.session.supervise()
            assert scene.session.given_up == min(pools, MAX_GIVEN_UP)
        host.thaw()
        until(scene.mailbox, lambda: scene.known("gold"))
        until(scene.mailbox, lambda: idle_threads() == 1 + WORKERS)


@pytest.mark.parametrize("call", ["lookupByUUIDString", "info"])
def test_each_domain_that_hangs_is_given_up_once(
    host: FakeHost, clock: FakeClock, call: str
) -> None:
    host.freeze("*", call)
    with running(host, clock) as scene:
        host.wait_for_hang(2)
        for _ in range(3 * MAX_GIVEN_UP):
            clock.sleep(OVERDUE)
            scene.session.ask()
            scene.session.supervise()
            assert scene.session.given_up == 2
        host.thaw()
        until(scene.mailbox, lambda: scene.known("gold") and scene.known("silver"))
        until(scene.mailbox, lambda: idle_threads() == 1 + WORKERS)


def test_calls_that_came_back_do_not_count(scene: Running, clock: FakeClock) -> None:
    for number in range(1, MAX_GIVEN_UP + 3):
        scene.host.freeze("gold", "info")
        scene.session.ask()
        scene.host.wait_for_hang()
        clock.sleep(OVERDUE)
        scene.session.supervise()
        assert scene.session.given_up == number
        scene.host.thaw()
        until(scene.mailbox, lambda: scene.known("gold") and idle_threads() == 1 + WORKERS)


def test_a_close_that_hangs_is_given_up(scene: Running, clock: FakeClock) -> None:
    scene.host.freeze("*", "domainEventDeregisterAny")
    scene.host.fail("*", "listAllDomains", error=FakeLibvirtError(1, "odd"), times=1)
    scene.mailbox.note_change(None)
    scene.host.wait_for_hang()
    clock.sleep(OVERDUE)
    scene.session.supervise()
    until(scene.mailbox, lambda: scene.known("gold"))


def test_a_given_up_hand_does_nothing_more_after_it_thaws(scene: Running, clock: FakeClock) -> None:
    scene.host.freeze("gold", "setMetadata")
    order(scene, "gold", CAP, FREE)
    scene.host.wait_for_hang()
    [stuck] = [call.thread for call in scene.host.calls if call.name == "setMetadata"]
    clock.sleep(OVERDUE)
    scene.session.supervise()
    gold, silver = (scene.host.guests[name].uuid for name in ("gold", "silver"))
    assert scene.session.in_doubt(gold)
    assert not scene.session.in_doubt(silver)
    back = order(scene, "gold", FREE)
    scene.host.thaw()
    assert scene.outcome("gold", back.number).error is None
    until(scene.mailbox, lambda: idle_threads() == 1 + WORKERS)
    assert not scene.session.in_doubt(gold)
    assert (cap(scene), scene.host.guests["gold"].metadata) == (0, {})
    assert Call(stuck, "setSchedulerParametersFlags", "gold") not in scene.host.calls


# Firewalls.


@pytest.fixture
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    with structlog.testing.capture_logs() as logs:
        yield logs


def test_an_unforeseen_error_of_one_domain_costs_no_other(
    scene: Running, logs: list[MutableMapping[str, Any]]
) -> None:
    scene.host.fail("gold", "info", error=ValueError("on purpose"))
    connected = scene.host.made("open")
    given = order(scene, "gold", CAP, FREE)
    error = scene.outcome("gold", given.number).error
    assert error is None or isinstance(error, Transient)
    assert scene.look("silver").problem is None
    scene.look("gold")
    assert "on purpose" in str(scene.view("gold").problem)
    assert scene.host.made("open") == connected
    assert "unexpected_error" in [entry["event"] for entry in logs]
    scene.host.thaw()
    assert scene.look("gold").problem is None


@pytest.mark.parametrize("call", ["open", "getType", "listAllDomains"])
def test_an_unforeseen_error_of_open_is_survived(
    host: FakeHost, clock: FakeClock, call: str, logs: list[MutableMapping[str, Any]]
) -> None:
    host.fail("*", call, error=ValueError("on purpose"), times=2)
    with running(host, clock) as scene:
        until(scene.mailbox, lambda: scene.known("gold"))
    assert [entry["event"] for entry in logs].count("unexpected_error") == 2


def test_orders_for_a_domain_that_ended_say_so(scene: Running) -> None:
    view = scene.view("gold")
    scene.host.destroy("gold")
    given = scene.session.order(view, CAP, 0, mark=FREE)
    assert isinstance(scene.outcome("gold", given.number).error, Gone)


def test_a_closed_session_has_no_threads(scene: Running) -> None:
    scene.session.close()
    until(scene.mailbox, lambda: idle_threads() == 0)
    assert not [c for c in scene.host.connections if c.alive]

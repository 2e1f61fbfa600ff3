"""The program that gives times of departure, run by the kernel on single frames."""

import ctypes
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from benchmarks.xco.gates.programs import (
    CONTROL,
    DROP,
    NEWCOMERS,
    OUTSIDE,
    PASS,
    SMALL,
    Programs,
    build,
    frame,
    loaded,
)

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]
MS, SECOND = 1_000_000, 1_000_000_000
HORIZON = 50 * MS
TO, OTHER, UNLISTED = "10.77.0.100", "10.77.0.101", "10.9.9.9"
FRAME = frame(TO)
SLOW, FAST = 10_000_000, 40_000_000_000
ARP = bytes.fromhex("ffffffffffff020000000001" + "0806") + bytes(46)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def programs(library: ctypes.CDLL) -> Iterator[Programs]:
    with loaded(library, horizon_ns=HORIZON) as made:
        made.place(TO, 1, 0)
        made.place(OTHER, 2, 1)
        for queue in (0, 1, OUTSIDE, NEWCOMERS, SMALL, CONTROL):
            made.pace(queue, SLOW)
        yield made


def takes_ns(bytes_: int, rate_bps: int) -> int:
    return bytes_ * 8 * SECOND // rate_bps


def test_packets_of_one_gate_depart_one_after_the_other(programs: Programs) -> None:
    before = time.monotonic_ns()
    times = [programs.run(FRAME) for _ in range(20)]
    assert all(one.verdict == PASS for one in times)
    assert before <= times[0].departs_ns <= time.monotonic_ns()
    gaps = [after.departs_ns - one.departs_ns for one, after in pairwise(times)]
    assert min(gaps) == takes_ns(len(FRAME), SLOW)
    assert programs.queue(0).sent_bytes == 20 * len(FRAME)


def test_a_gate_that_rested_owes_nothing_and_saves_nothing(programs: Programs) -> None:
    programs.pace(0, FAST)
    programs.run(FRAME)
    time.sleep(0.005)
    before = time.monotonic_ns()
    assert before <= programs.run(FRAME).departs_ns <= time.monotonic_ns()


def test_what_would_depart_beyond_the_horizon_is_dropped_and_counted(programs: Programs) -> None:
    takes, began = takes_ns(len(FRAME), SLOW), time.monotonic_ns()
    passed = list(iter(lambda: programs.run(FRAME).verdict, DROP))
    ended = time.monotonic_ns()
    assert set(passed) == {PASS}
    # what departed meanwhile makes room for others
    assert 1 + HORIZON // takes <= len(passed) <= 1 + (HORIZON + ended - began) // takes
    later = [programs.run(FRAME).verdict for _ in range(50)]
    assert programs.queue(0).dropped_bytes == (1 + later.count(DROP)) * len(FRAME)
    assert programs.queue(0).sent_bytes == (len(passed) + later.count(PASS)) * len(FRAME)


def test_gates_and_classes_wait_for_themselves_alone(programs: Programs) -> None:
    while programs.run(FRAME).verdict == PASS:
        pass
    for other in (frame(OTHER), frame(UNLISTED), frame(TO, payload=40), ARP):
        before = time.monotonic_ns()
        ran = programs.run(other)
        assert ran.verdict == PASS
        if other is not ARP:  # small like the one before it
            assert before <= ran.departs_ns <= time.monotonic_ns()
    sent = {queue: programs.queue(queue).sent_bytes for queue in (1, OUTSIDE, SMALL)}
    assert sent == {1: len(FRAME), OUTSIDE: len(FRAME), SMALL: len(frame(TO, 40)) + len(ARP)}


def test_a_host_without_a_gate_shares_the_newcomers_and_goes_on_behind_them(
    library: ctypes.CDLL,
) -> None:
    """Its first packets wait there: those that follow must not overtake them."""
    with loaded(library, horizon_ns=HORIZON) as programs:
        programs.pace(NEWCOMERS, SLOW)
        programs.place(TO, 1, 2**32 - 1)  # no gate yet
        last = [programs.run(FRAME).departs_ns for _ in range(5)][-1]
        programs.reset(0)
        programs.pace(0, FAST)
        programs.place(TO, 1, 0)
        assert programs.run(FRAME).departs_ns >= last + takes_ns(len(FRAME), SLOW)


def test_a_gate_without_a_rate_passes_nothing(programs: Programs) -> None:
    programs.pace(0, 0)
    assert programs.run(FRAME).verdict == DROP


def test_a_faster_rate_holds_from_the_next_packet_on(programs: Programs) -> None:
    for _ in range(40):
        programs.run(FRAME)
    programs.pace(0, FAST)
    times = [programs.run(FRAME).departs_ns for _ in range(3)]
    assert times[2] - times[1] == takes_ns(len(FRAME), FAST)


def test_a_gate_that_was_very_slow_departs_within_the_horizon_once_it_is_fast(
    programs: Programs,
) -> None:
    """A frame of 64 KB at 8 kb/s would hold it up for a minute."""
    programs.pace(0, 8000)
    programs.run(FRAME)
    assert programs.queue(0).next_ns > time.monotonic_ns() + SECOND
    programs.pace(0, FAST)
    assert programs.queue(0).next_ns <= time.monotonic_ns() + HORIZON
    time.sleep(HORIZON / SECOND)
    assert programs.run(FRAME).verdict == PASS


def test_a_socket_may_ask_for_later_and_delays_nobody_else(programs: Programs) -> None:
    programs.pace(0, FAST)
    wanted = time.monotonic_ns() + 20 * MS
    assert programs.run(FRAME, wanted_ns=wanted).departs_ns == wanted
    assert programs.run(FRAME).departs_ns < wanted
    for odd in (1, time.monotonic_ns() + SECOND, time.time_ns(), 2**64 - 1):
        assert programs.run(FRAME, wanted_ns=odd).departs_ns <= time.monotonic_ns() + MS


def test_two_cpus_at_one_gate_lose_no_time_of_departure(programs: Programs) -> None:
    """One that was lost would be a packet above the rate."""
    programs.pace(0, 12_000_000_000)
    began, count = time.monotonic_ns(), 10_000
    threads = [
        threading.Thread(target=programs.run, args=(FRAME,), kwargs={"repeat": count})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue = programs.queue(0)
    given = queue.sent_bytes // len(FRAME)
    assert given + queue.dropped_bytes // len(FRAME) == 2 * count
    assert queue.next_ns - began >= given * takes_ns(len(FRAME), 12_000_000_000)


def test_the_coordinator_reads_what_waits(programs: Programs) -> None:
    for _ in range(10):
        programs.run(FRAME)
    queue = programs.queue(0)
    assert programs.waiting(0, queue.next_ns) == 0
    assert programs.waiting(0, queue.next_ns + SECOND) == 0
    at = queue.next_ns - 4 * takes_ns(len(FRAME), SLOW)
    assert programs.waiting(0, at) == pytest.approx(4 * len(FRAME), rel=0.01)


def test_without_times_of_departure_the_classifier_writes_none(library: ctypes.CDLL) -> None:
    with loaded(library, paced=False) as programs:
        programs.place(TO, 1, 0)
        assert programs.run(FRAME).departs_ns == 0

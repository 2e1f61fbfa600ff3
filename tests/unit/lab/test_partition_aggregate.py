"""Partition-aggregate without a network of its own: arrivals, gathering, and tiers."""

import random
import socket
import threading
from collections.abc import Iterator
from itertools import islice

import pytest

from lab.errors import BadRequestError, LabError
from lab.programs.processes import Place
from lab.traffic import aggregator, background, middle
from lab.traffic.aggregator import arrivals
from lab.traffic.completion import Completion, completion
from lab.traffic.flow_sizes import SIZES, draw_gap, draw_size, size_at
from lab.traffic.gather import REQUEST, Gather
from lab.traffic.partition import Member, Tiers, aggregate, send_background

NOWHERE = Place("/run/netns/none")


def answer(listener: socket.socket, *, short_by: int = 0) -> None:
    """Answer requests as a worker does; with a shortage, close before the last bytes."""
    client, _ = listener.accept()
    with client:
        while request := client.recv(REQUEST.size, socket.MSG_WAITALL):
            client.sendall(bytes(REQUEST.unpack(request)[0] - short_by))
            if short_by:
                return


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_a_query_ends_when_all_have_answered(listener: socket.socket) -> None:
    serving = [threading.Thread(target=answer, args=(listener,)) for _ in range(3)]
    for each in serving:
        each.start()
    gather = Gather(["127.0.0.1"] * 3, listener.getsockname()[1])
    assert [gather.ask(size) for size in (1, 2_000, 3_000_000)] == [3, 6_000, 9_000_000]
    gather.close()
    for each in serving:
        each.join()


def test_a_server_that_goes_in_the_middle_of_an_answer_is_an_error(listener: socket.socket) -> None:
    serving = threading.Thread(target=answer, args=(listener,), kwargs={"short_by": 1})
    serving.start()
    gather = Gather(["127.0.0.1"], listener.getsockname()[1])
    with pytest.raises(LabError, match="a server has gone"):
        gather.ask(100)
    gather.close()
    serving.join()


def test_a_middle_answers_after_its_workers(listener: socket.socket) -> None:
    serving = [threading.Thread(target=answer, args=(listener,)) for _ in range(2)]
    for each in serving:
        each.start()
    gather, tally = Gather(["127.0.0.1"] * 2, listener.getsockname()[1]), middle.Tally()
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(REQUEST.pack(5) + REQUEST.pack(7) + b"\0")
        ours.shutdown(socket.SHUT_WR)
        with theirs:
            middle.answer(theirs, gather, tally)
        assert ours.recv(100, socket.MSG_WAITALL) == bytes(12)
    assert (tally.requests, tally.bytes) == (2, 12)
    gather.close()
    for each in serving:
        each.join()


def test_queries_at_a_rate_arrive_at_the_same_instants_with_a_seed() -> None:
    first, again, other = (list(islice(arrivals(0, 100.0, seed), 2000)) for seed in (1, 1, 2))
    assert first == again != other
    assert first[-1] == pytest.approx(20e9, rel=0.1)
    assert list(islice(arrivals(0, None, 1), 2)) == [None, None]


def test_reports_have_each_duration_once() -> None:
    tally = aggregator.Tally()
    tally.add(5, 100)
    first = tally.report()
    tally.add(7, 100)
    second = tally.report()
    assert (first.queries, first.bytes, first.query_ns) == (1, 100, (5,))
    assert (second.queries, second.bytes, second.query_ns) == (2, 200, (7,))


def test_background_flows_that_fail_are_counted_apart() -> None:
    tally = background.Tally()
    tally.sent(10)
    tally.ended(5, failed=False)
    tally.ended(6, failed=True)
    report = tally.report()
    assert (report.flows, report.failed, report.bytes, report.flow_ns) == (1, 1, 10, (5, 6))


def test_sizes_of_flows_are_those_of_the_table() -> None:
    assert [size_at(share) for share, _ in SIZES] == [packets * 1_460 for _, packets in SIZES]
    assert size_at(0.65) == round((133 * 667) ** 0.5 * 1_460), "logarithms are linear"
    for share in (-0.01, 1.01):
        with pytest.raises(BadRequestError):
            size_at(share)


def test_draws_are_the_same_with_a_seed_and_bounded() -> None:
    drawn = [[draw_size(random.Random(seed), 50_000) for _ in range(5)] for seed in (1, 1)]
    assert drawn[0] == drawn[1]
    generator = random.Random(3)
    sizes = [draw_size(generator, 50_000) for _ in range(1000)]
    assert max(sizes) == 50_000
    assert sum(size < size_at(0.3) for size in sizes) / 1000 == pytest.approx(0.3, abs=0.05)
    gaps = [draw_gap(generator, 0.5) for _ in range(2000)]
    assert sum(gaps) / 2000 == pytest.approx(0.5, rel=0.1)


def test_completion_times() -> None:
    assert completion([]) is None
    hundred = [number * 1_000_000 for number in range(100, 0, -1)]
    assert completion(hundred) == Completion(100, 50.5, 50.0, 99.0, 100.0)
    assert completion([3_000_000]) == Completion(1, 3.0, 3.0, 3.0, 3.0)


@pytest.mark.parametrize("field", ["size", "queries", "rate"])
def test_an_aggregator_refuses_what_is_out_of_range(field: str) -> None:
    with pytest.raises(BadRequestError, match=field):
        aggregate(NOWHERE, ["10.0.0.1"], **{"size": 1, "queries": 1} | {field: 0})
    with pytest.raises(BadRequestError, match="gap_s"):
        send_background(NOWHERE, ["10.0.0.1"], gap_s=0)


@pytest.mark.parametrize(("workers", "middles"), [(0, 0), (3, 2)])
def test_workers_are_divided_equally(workers: int, middles: int) -> None:
    member = Member(NOWHERE, "10.0.0.1")
    with pytest.raises(BadRequestError, match="workers"):
        Tiers([member] * workers, [member] * middles)

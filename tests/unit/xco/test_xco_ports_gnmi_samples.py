"""How updates of a stream become readings: samples, staleness and time stamps, without a clock."""

from dataclasses import replace

import pytest

from xco.errors import PortGone, PortUncounted, SwitchGarbled
from xco.ports.factory import Source
from xco.ports.gnmi_samples import (
    Arrival,
    Sample,
    awaiting,
    deleted,
    ended,
    is_complete,
    is_stale,
    merged,
    read_at,
    reading,
    repeats,
    stale_after_ns,
    taken,
)
from xco.ports.poll import joined, looked, pause_s
from xco.ports.reader import Counters, Reading

S = 1_000_000_000
LIMIT = 3 * S
OCTETS, PACKETS, DROPS = ({"out-octets": 700}, {"out-pkts": 7}, {"out-discards": 1})
ALL = {**OCTETS, **PACKETS, **DROPS}


def at(
    sample: Sample, found: dict[str, int | None], now_ns: int = 10 * S, age_ns: int = 0
) -> Sample:
    return merged(sample, found, Arrival(now_ns, age_ns), LIMIT)


def port(sample: Sample, *, queue: bool = False, marks: bool = False) -> Reading:
    return reading("e1", sample, queue=queue, marks=marks)


BEGUN = ended(at(awaiting(0), dict(ALL)))
"""What a port that has all counters waits for after its first sample."""


def test_a_sample_is_complete_when_all_that_came_before_has_come_again() -> None:
    sample = BEGUN
    for part in (OCTETS, PACKETS):
        sample = at(sample, dict(part))
        assert not is_complete(sample)
    assert is_complete(at(sample, dict(DROPS)))


def test_the_order_of_updates_does_not_matter() -> None:
    sample = at(at(at(BEGUN, dict(DROPS)), dict(PACKETS)), {"out-octets": 900})
    assert is_complete(sample)
    assert port(sample) == Counters(7, 900, drops=1)


def test_nothing_is_complete_before_the_target_has_sent_everything_once() -> None:
    assert not is_complete(at(awaiting(0), dict(ALL)))


def test_octets_that_come_again_begin_the_next_sample() -> None:
    sample = at(BEGUN, dict(OCTETS))
    assert not repeats(sample, PACKETS)
    assert repeats(sample, OCTETS)


def test_counters_that_a_target_leaves_out_are_no_longer_awaited() -> None:
    assert is_complete(at(ended(at(BEGUN, dict(OCTETS))), dict(OCTETS)))


def test_a_counter_that_comes_later_is_awaited_from_then_on() -> None:
    without = ended(at(awaiting(0), {**OCTETS, **PACKETS}))
    sample = taken(at(without, dict(ALL)))
    assert not is_complete(at(sample, {**OCTETS, **PACKETS}))


def test_a_wrong_value_loses_neither_the_others_nor_what_was_known() -> None:
    sample = at(BEGUN, {"out-octets": None, "out-pkts": 8})
    assert isinstance(port(sample), SwitchGarbled)
    assert port(at(sample, dict(OCTETS))) == Counters(8, 700, drops=1)


def test_a_counter_of_more_than_64_bits_is_wrong() -> None:
    assert isinstance(port(at(BEGUN, {"out-octets": 2**64})), SwitchGarbled)


def test_values_that_are_no_counters_are_passed_over() -> None:
    assert at(BEGUN, {"last-clear": None, "in-octets": 5}) == BEGUN


def test_counters_that_restart_begin_again() -> None:
    assert port(at(BEGUN, {"out-octets": 1, "out-pkts": 1})) == Counters(1, 1, drops=1)


def test_a_queue_has_names_of_its_own() -> None:
    found: dict[str, int | None] = {"transmit-octets": 5, "transmit-pkts": 1, "dropped-pkts": 2}
    assert port(at(awaiting(0), found), queue=True) == Counters(1, 5, drops=2)


def test_marks_are_part_of_a_reading_where_they_are_configured() -> None:
    assert isinstance(port(BEGUN, marks=True), PortUncounted)
    sample = at(BEGUN, {"marks": 3})
    assert port(sample, marks=True) == Counters(7, 700, 3, 1, counts_marks=True)


def test_a_deleted_port_is_gone_until_it_sends_again() -> None:
    gone = deleted(BEGUN, 11 * S)
    assert isinstance(port(gone), PortGone)
    assert port(at(gone, {**OCTETS, **PACKETS})) == Counters(7, 700)


@pytest.mark.parametrize(
    ("age_ns", "expected"),
    [
        (0, 10 * S),
        (S, 9 * S),
        (LIMIT, 7 * S),
        (LIMIT + 1, 10 * S),
        (-1, 10 * S),
        (-(10**18), 10 * S),
    ],
)
def test_a_targets_time_stamp_counts_if_it_is_sane(age_ns: int, expected: int) -> None:
    assert read_at(Arrival(10 * S, age_ns), LIMIT, 0) == expected


def test_readings_never_go_back_in_time() -> None:
    first = at(awaiting(0), dict(ALL), 10 * S)
    assert at(first, dict(ALL), 10 * S + 5, age_ns=S).read_ns == first.read_ns + 1


def test_a_reading_has_the_time_of_its_octets() -> None:
    sample = at(at(BEGUN, dict(OCTETS), 20 * S), dict(PACKETS), 21 * S)
    read = port(sample)
    assert isinstance(read, Counters)
    assert read.read_ns == 20 * S


def test_staleness_goes_by_the_arrival_alone() -> None:
    late = at(BEGUN, dict(ALL), 20 * S, age_ns=LIMIT)
    assert not is_stale(late, 20 * S + LIMIT - 1, LIMIT)
    assert is_stale(late, 20 * S + LIMIT, LIMIT)


def test_a_new_stream_has_longer_for_its_first_sample() -> None:
    assert not is_stale(awaiting(5 * S), 5 * S + LIMIT, LIMIT)
    assert is_stale(awaiting(5 * S), 7 * S + LIMIT, LIMIT)


@pytest.mark.parametrize(("sample_ns", "limit"), [(S, 3 * S), (S // 2, 3 * S // 2), (S // 100, S)])
def test_three_samples_that_are_missed_are_stale_but_not_within_a_second(
    sample_ns: int, limit: int
) -> None:
    assert stale_after_ns(sample_ns) == limit


def test_attempts_are_ever_further_apart_up_to_a_bound() -> None:
    assert [pause_s(0.05, failures, 8.0) for failures in range(7)] == [0.05, 0.5, 1, 2, 4, 8, 8]
    assert pause_s(0.05, 10**6, 8.0) == 8.0
    assert pause_s(0.05, 3, 0.5) == 0.5
    assert pause_s(1.0, 1, 0.5) == 1.0


class Partly:
    """A reader with nothing new of its second port."""

    def read(self) -> list[Reading | None]:
        return [Counters(1, 2), None]

    def close(self) -> None:
        raise AssertionError


def test_a_look_has_only_what_is_new_and_loses_nothing_that_was_not_taken() -> None:
    look, away = looked(Source("switch", Partly(), (4, 7)))
    assert (look.readings, away) == ({4: Counters(1, 2)}, False)
    before = replace(look, readings={4: Counters(0, 0), 7: Counters(3, 4)})
    assert joined(before, look).readings == {4: Counters(1, 2), 7: Counters(3, 4)}
    assert joined(None, look) is look

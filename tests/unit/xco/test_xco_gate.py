"""What a coordinator decides about its gates: laws of slices, silence, shares and reports."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xco_coordinator_rig import (
    CLOSED,
    CONTROLLED,
    FELL_BACK,
    GAP,
    GUARD,
    HEARTBEAT,
    HELLO,
    HYSTERESIS,
    LINE,
    MS,
    NOW,
    OPEN,
    PACED,
    RATE,
    REPORT,
    SILENCE,
    SLICE,
    US,
    Core,
    build,
    long,
)

JOINED, TOPOLOGY_DIFFERS, HELLO_FIRST = 0, 1, 3


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def core(shim: ctypes.CDLL) -> Core:
    made = Core(shim)
    made.add(NOW, 1)
    made.decide(NOW)
    return made


def test_it_begins_fallen_back_and_asks_to_join(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    assert core.decide(NOW) & HELLO
    assert core.rates[0] == LINE // 4 // 100 * 98
    core.direct(NOW, CLOSED, 0, 0)
    assert core.decide(NOW) & CONTROLLED
    assert core.rates[0] == 0


@given(
    lead=st.integers(0, 3 * MS),
    length=st.integers(1 * MS, 10 * MS),
    steps=st.lists(st.integers(1, 2 * MS), max_size=40),
    skew=st.integers(-(10**11), 10**11),
)
def test_a_gate_is_open_within_its_slice_and_closed_a_guard_before_its_end(
    shim: ctypes.CDLL, lead: int, length: int, steps: list[int], skew: int
) -> None:
    core = Core(shim, skew)
    gate = core.add(NOW, 1)
    start, end, now = NOW + lead, NOW + lead + length, NOW
    core.direct(NOW, SLICE, start, end)
    for step in steps:
        core.look(now, gate, 10**6)
        core.decide(now)
        assert core.rates[gate] == (PACED if start <= now < end - GUARD else 0)
        now += step


def test_alarms_stand_at_each_edge_of_a_slice(core: Core) -> None:
    start, end = NOW + MS, NOW + 3 * MS
    core.direct(NOW, SLICE, start, end)
    core.decide(NOW)
    core.look(NOW, 0, 10**7)
    edges, now = [], NOW
    while now < end + MS:
        at, precise = core.alarm(now)
        assert at > now - 1
        now = max(at, now + 1)
        core.look(now, 0, 10**7)
        if precise:
            edges.append(at)
        core.decide(now)
    assert edges == [start, end - GUARD]


def test_adjacent_slices_of_one_destination_have_no_gap_between_them(core: Core) -> None:
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.decide(NOW)
    core.direct(NOW + MS, SLICE, NOW + 2 * MS, NOW + 4 * MS)
    for now in range(NOW + MS, NOW + 4 * MS - GUARD, 10 * US):
        core.look(now, 0, 10**6)
        core.decide(now)
        assert core.rates[0] == PACED
    core.decide(NOW + 4 * MS - GUARD)
    assert core.rates[0] == 0


def test_a_slice_for_another_destination_does_not_spare_the_guard(core: Core) -> None:
    other = core.add(NOW, 2)
    core.direct(NOW, SLICE, NOW, NOW + 2 * MS)
    core.direct(NOW + MS, SLICE, NOW + 2 * MS, NOW + 4 * MS, to=2)
    core.decide(NOW + 2 * MS - GUARD)
    assert (core.rates[0], core.rates[other]) == (0, 0)
    core.decide(NOW + 2 * MS)
    assert (core.rates[0], core.rates[other]) == (0, PACED)


@given(st.lists(st.tuples(st.integers(1, 200 * US), st.booleans()), max_size=60))
def test_a_slice_is_given_up_when_nothing_waited_for_the_hysteresis_and_only_then(
    shim: ctypes.CDLL, looks: list[tuple[int, bool]]
) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    sequence = core.direct(NOW, SLICE, NOW, NOW + 10 * MS)
    core.decide(NOW)
    now, empty_since = NOW, None
    for step, waits in looks:
        now += step
        core.look(now, 0, 5000 if waits else 0)
        empty_since = None if waits else (empty_since or now)
        said = core.decide(now)
        if empty_since and now - empty_since >= HYSTERESIS and now < NOW + 10 * MS - GUARD:
            assert core.gave_up == sequence
            assert core.rates[0] == 0
            assert said & REPORT
            return
        assert core.gave_up == 0


@given(st.lists(st.integers(1 * MS, 120 * MS), min_size=1, max_size=30))
def test_silence_is_noticed_to_the_moment_and_one_directive_ends_it(
    shim: ctypes.CDLL, gaps: list[int]
) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, CLOSED, 0, 0)
    core.decide(NOW)
    now = NOW
    for gap in gaps:
        if gap >= SILENCE:
            assert core.decide(now + SILENCE - 1) & FELL_BACK == 0
            assert core.alarm(now + SILENCE - 1)[0] <= now + SILENCE
            assert core.decide(now + SILENCE) & FELL_BACK
            assert core.rates[0] == LINE // 4 // 100 * 98
        now += gap
        core.direct(now, CLOSED, 0, 0)
        assert bool(core.decide(now) & CONTROLLED) == (gap >= SILENCE)
        assert core.rates[0] == 0


WAYS = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=64)


@given(WAYS, st.lists(st.integers(10**8, LINE), min_size=10, max_size=10))
def test_safe_shares_are_divided_by_those_behind_each_link(
    shim: ctypes.CDLL, ways: list[set[int]], shares: list[int]
) -> None:
    core = Core(shim)
    for host, way in enumerate(ways):
        core.add(NOW, host, *((link, shares[link]) for link in way))
    core.decide(NOW)
    behind = [sum(link in way for way in ways) for link in range(10)]
    for way, rate in zip(ways, core.rates, strict=False):
        safe = min(shares[link] // behind[link] for link in way)
        assert rate == pytest.approx(safe * 0.98, abs=2000)


def test_destinations_behind_other_links_take_nothing_of_a_share(shim: ctypes.CDLL) -> None:
    """They divided it once more, by all of them: 20 hosts had 27.7 of 526 Mb/s each."""
    core = Core(shim)
    own = (99, LINE)
    for host in range(19):
        core.add(NOW, host, own, (host, LINE // 19))
    core.decide(NOW)
    assert list(core.rates[:19]) == pytest.approx([LINE / 19 * 0.98] * 19, rel=0.001)


@given(st.integers(1, 2 * LINE))
def test_rates_are_paced_and_never_above_the_links(shim: ctypes.CDLL, rate: int) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, RATE, 0, 0, rate=rate)
    core.decide(NOW)
    assert core.rates[0] <= max(8000, min(rate, LINE) * 0.98)
    assert core.rates[0] >= max(8000, min(rate, LINE) * 0.97 - 1000)


def test_what_is_outside_the_topology_is_never_closed(core: Core) -> None:
    outside = core.add(NOW, 0xFFFF)
    for mode in (CLOSED, SLICE, RATE, OPEN):
        core.direct(NOW, mode, 0, 0)
        core.decide(NOW)
        assert core.rates[outside] == pytest.approx(PACED / 10, abs=1000)


def test_a_timed_directive_without_a_known_offset_is_not_obeyed(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    nothing = (ctypes.c_int64 * 3)(0, 0, 0)
    one = ctypes.c_uint64(1)
    times = [long(NOW), long(NOW + 5 * MS)]
    state = core._state
    shim.shim_directive(state, long(NOW), one, one, SLICE, *times, 1, ctypes.c_uint64(0), nothing)
    assert core.decide(NOW) & REPORT  # its echo will bring the offset
    assert core.rates[0] > 0  # still at its safe share


def test_backlog_is_reported_at_once_but_not_more_often_than_the_gap(core: Core) -> None:
    core.direct(NOW, CLOSED, 0, 0)
    core.decide(NOW)
    later = NOW + MS
    core.look(later, 0, 1500)
    assert core.decide(later) & REPORT
    core.look(later + 10 * US, 0, 3000)
    assert core.decide(later + 10 * US) & REPORT == 0  # no news
    second = core.add(later, 2)
    core.look(later + 20 * US, second, 1500)
    assert core.decide(later + 20 * US) & REPORT == 0
    assert core.alarm(later + 20 * US)[0] <= later + GAP
    assert core.decide(later + GAP) & REPORT
    assert core.decide(later + GAP + HEARTBEAT) & REPORT


def sending(core: Core, rate_bps: int, since: int, until: int) -> int:
    """Have an open gate send at a rate without a queue; when a report went out first, or 0."""
    first = 0
    for now in range(since, until, MS):
        core.look(now, 0, 0, (now - since) * rate_bps // (8 * 10**9))
        if core.decide(now) & REPORT and not first and core.report()[1]:
            first = now
    return first


@given(st.integers(LINE // 1000, LINE))
def test_a_destination_that_sends_without_waiting_is_reported_with_its_rate(
    shim: ctypes.CDLL, rate: int
) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, OPEN, 0, 0)
    core.decide(NOW)
    sending(core, rate, NOW, NOW + 40 * MS)
    _, [(destination, backlog, kbps)] = core.report()
    assert (destination, backlog) == (1, 0)
    assert kbps * 1000 == pytest.approx(rate, rel=0.01, abs=2000)


@pytest.mark.parametrize(("share", "is_news"), [(0.06, True), (0.04, False)])
def test_a_rate_that_passes_a_twentieth_of_the_line_is_news(
    shim: ctypes.CDLL, share: float, is_news: bool
) -> None:
    core = Core(shim)
    core.add(NOW, 1)
    core.direct(NOW, OPEN, 0, 0)
    core.decide(NOW)
    assert core.decide(NOW + HEARTBEAT) & REPORT  # so that the next one is news
    later = NOW + HEARTBEAT + MS
    core.look(later, 0, 0, int(share * LINE * (later - NOW) / 8e9))
    assert bool(core.decide(later) & REPORT) == is_news
    assert core.decide(later + GAP) & REPORT == 0  # once


def test_lost_queues_hold_nothing_and_say_so(core: Core) -> None:
    core.direct(NOW, CLOSED, 0, 0)
    core.look(NOW, 0, 10**6)
    core.decide(NOW)
    assert core.report() == (0, [(1, 10**6, 0)])
    core.lose()
    assert core.decide(NOW + 1) & REPORT  # at once
    assert core.report() == (1, [])  # fell back, and asks for no turn
    core.remake()
    assert core.decide(NOW + 2) & REPORT
    assert core.report() == (0, [])


def test_what_was_given_up_to_one_controller_is_not_to_the_next(core: Core) -> None:
    core.direct(NOW, SLICE, NOW, NOW + 10 * MS)
    core.decide(NOW)
    core.direct(NOW + MS, CLOSED, NOW + 20 * MS, 0, epoch=2)
    core.look(NOW + MS, 0, 0)
    core.look(NOW + 2 * MS, 0, 0)
    core.decide(NOW + 2 * MS)
    assert core.gave_up == 0


DIRECTIVE, WELCOME = 4, 2


def test_messages_that_answer_another_run_are_none(core: Core) -> None:
    now = NOW + MS
    for kind in (DIRECTIVE, WELCOME):
        assert core.answers(now, kind, NOW)
        assert core.answers(now, kind, now)
        assert not core.answers(now, kind, NOW - 1)  # before it began
        assert not core.answers(now, kind, now + 1)  # not sent yet
    assert core.answers(now, DIRECTIVE, 0)  # none yet
    assert not core.answers(now, WELCOME, 0)
    core.direct(now, CLOSED, 0, 0)
    assert not core.answers(now, DIRECTIVE, 0)


def test_there_are_64_destinations_and_the_outside(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    assert [core.add(NOW, host) for host in range(65)] == [*range(64), -1]
    assert core.add(NOW, 0xFFFF) == 64


def test_who_is_refused_asks_again_in_its_time_and_reports_nothing(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    assert core.decide(NOW) & HELLO
    core.welcome(NOW + MS, HELLO_FIRST)
    assert core.decide(NOW + MS) & HELLO  # a new controller gathers its hosts
    core.welcome(NOW + 2 * MS, TOPOLOGY_DIFFERS)
    for after in range(3, 100):
        said = core.decide(NOW + after * MS)
        assert not said & (HELLO | REPORT)
        core.welcome(NOW + after * MS, HELLO_FIRST)
    assert core.decide(NOW + 102 * MS) & HELLO
    core.welcome(NOW + 103 * MS, JOINED)
    assert core.decide(NOW + 103 * MS) & REPORT


def test_another_controller_is_asked_at_once(shim: ctypes.CDLL) -> None:
    core = Core(shim)
    core.decide(NOW)
    core.welcome(NOW + MS, TOPOLOGY_DIFFERS)
    core.welcome(NOW + 2 * MS, HELLO_FIRST, epoch=2)
    assert core.decide(NOW + 2 * MS) & HELLO

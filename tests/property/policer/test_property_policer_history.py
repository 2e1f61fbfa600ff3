"""Laws of the history: chunks survive packing, adding keeps sums, no second is told twice."""

import math

import pytest
from history_rig import BEGAN, ToldHost, points, report
from hypothesis import given
from hypothesis import strategies as st

from policer.history.chunks import POINTS, begin_of
from policer.history.packing import packed, unpacked
from policer.history.point import WIDTH, Point, added, merged
from policer.recording.guarantee import Due, owed_after
from policer.recording.recorder import Recorder
from policer.recording.stretch import Stretch, shares

RATES = st.floats(0, 1e9)
WHOLE = st.integers(0, 10**11).map(float)
SECONDS = st.integers(0, 60_000).map(lambda ms: ms / 1000)
ROW = st.tuples(SECONDS, WHOLE, WHOLE, SECONDS, WHOLE, WHOLE, SECONDS, SECONDS)
CHUNKS = st.dictionaries(
    st.text(min_size=1, max_size=8), st.lists(ROW, min_size=10, max_size=10), max_size=4
)


@given(CHUNKS)
def test_a_chunk_is_read_as_it_was_packed(chunk: dict[str, list[tuple[float, ...]]]) -> None:
    raw = packed({vr: [value for row in rows for value in row] for vr, rows in chunk.items()})
    for vr, rows in chunk.items():
        found = unpacked(raw, vr, 10)
        assert found == {n: Point(*row) for n, row in enumerate(rows) if row[0]}
    assert unpacked(raw, "none of them, by its length", 10) == {}


@given(st.binary(max_size=200))
def test_bytes_that_are_none_of_ours_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="chunk"):
        unpacked(raw, "r1", 10)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = packed({"x" * (40 << 20): [0.0] * WIDTH})
    assert len(bomb) < 1 << 20
    with pytest.raises(ValueError, match="too large"):
        unpacked(bomb, "r1", 10)


@given(
    st.lists(st.dictionaries(st.integers(0, 5000), ROW.map(lambda r: Point(*r)), max_size=9)),
    st.integers(1, 500),
)
def test_steps_of_any_length_add_up_to_the_same(series: list[dict[int, Point]], step: int) -> None:
    found = merged(series, step)
    assert all(at % step == 0 for at in found)
    assert list(found) == sorted(found)
    whole, parts = added(found.values()), added(p for one in series for p in one.values())
    assert whole.offered == pytest.approx(parts.offered)
    assert whole.data_s == pytest.approx(parts.data_s)


@given(st.floats(1.7e9, 1.9e9), st.floats(1e-3, 60.0))
def test_the_shares_of_a_stretch_are_the_whole_of_it(begin: float, length: float) -> None:
    stretch = Stretch(begin, begin + length, follows=True)
    found = dict(shares(stretch))
    assert sum(found.values()) == pytest.approx(stretch.end - stretch.begin, abs=1e-6)
    assert all(0 < share <= 1 for share in found.values())
    assert min(found) == math.floor(begin)


@given(
    st.lists(st.tuples(st.floats(0.0, 1.5), st.integers(0, 3), RATES), min_size=1, max_size=60),
    st.sampled_from([0.1, 0.5, 1.0, 3.0]),
)
def test_no_second_has_more_than_a_second(
    ticks: list[tuple[float, int, float]], period_s: float
) -> None:
    recorder = Recorder()
    host = ToldHost(recorder.heard, period_s=period_s)
    cuts = []
    for late_s, lost, rate in ticks:
        host.hear(report("r1", rate, rate), late_s=late_s, lost=lost)
        cuts.append(recorder.cut(host.wall))
    found = points([*cuts, recorder.cut(math.inf)], "r1")
    assert all(point.data_s <= 1.002 for point in found.values())
    told = added(found.values()).data_s
    assert told <= len(ticks) * period_s + 0.01 * len(found)
    assert set(found) <= set(range(int(BEGAN), int(host.wall) + 3))


@given(
    st.lists(st.tuples(st.floats(0, 2000), st.floats(0, 2000)), max_size=40),
    st.floats(1, 1000),
    st.floats(0, 1500),
)
def test_what_is_missing_is_the_most_of_all_windows_beyond_the_burst(
    periods: list[tuple[float, float]], burst: float, rate: float
) -> None:
    """Up to the first breach, the account agrees with looking at every window."""
    deficit, lacks = 0.0, [min(offered, rate) - delivered for offered, delivered in periods]
    for end, (offered, delivered) in enumerate(periods, start=1):
        owed = owed_after(deficit, Due(rate, burst), 1.0, offered, delivered)
        worst = max(sum(lacks[begin:end]) for begin in range(end))
        if worst > burst * (1 + 1e-6) + 1e-6:
            assert owed.missing == pytest.approx(worst - burst, abs=1e-3)
            return
        assert owed.missing <= 1e-3
        assert owed.deficit == pytest.approx(max(0.0, worst), abs=1e-3)
        deficit = owed.deficit


@given(st.integers(0, 2**40), st.sampled_from(sorted(POINTS)))
def test_every_instant_is_in_one_chunk(at: int, span: int) -> None:
    begin = begin_of(span, at)
    assert begin <= at < begin + span * POINTS[span]
    assert begin_of(span, begin) == begin

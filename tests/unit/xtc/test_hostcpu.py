"""How busy the host's busiest CPU is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import Seconds
from xtc.measure.host_cpu import STAT, CpuWatch, busiest, parse

TEXT = b"""cpu  300 0 100 600 0 0 0 0 0 0
cpu0 100 0 50 350 0 0 0 0 0 0
cpu1 200 0 50 240 10 0 0 0 70 0
intr 123 4 5
ctxt 99
"""


def test_the_lines_of_cpus_are_read_without_guests() -> None:
    assert parse(TEXT) == {0: (350, 500), 1: (250, 500)}


def test_the_busiest_cpu_counts() -> None:
    after = {0: (440, 600), 1: (255, 600), 2: (0, 100)}
    assert busiest(parse(TEXT), after) == pytest.approx(0.95)


def test_what_a_hypervisor_takes_is_not_idle() -> None:
    before, after = b"cpu0 0 0 0 100 0 0 0 0\n", b"cpu0 10 0 0 110 0 0 0 80\n"
    assert busiest(parse(before), parse(after)) == pytest.approx(0.9)


@pytest.mark.parametrize("text", [b"", b"cpu0 1 2 3\n", b"cpuX 1 2 3 4 5\n", b"\xff\xfe"])
def test_what_is_no_statistic_tells_nothing(text: bytes) -> None:
    assert parse(text) == {}
    assert busiest(parse(text), parse(text)) is None


times = st.dictionaries(st.integers(0, 3), st.tuples(st.integers(0, 99), st.integers(0, 999)))


@given(times, times)
def test_the_share_is_one_whatever_counters_do(
    before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]
) -> None:
    share = busiest(before, after)
    assert share is None or 0.0 <= share <= 1.0


def test_it_reads_once_a_second_however_often_it_is_asked(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_bytes(b"cpu0 0 0 0 0 0 0 0 0\n")
    watch = CpuWatch(stat)
    assert watch.look(Seconds(0.0)) is None
    stat.write_bytes(b"cpu0 50 0 0 50 0 0 0 0\n")
    assert watch.look(Seconds(0.5)) is None
    assert watch.look(Seconds(1.0)) == pytest.approx(0.5)
    stat.unlink()
    assert watch.look(Seconds(1.5)) == pytest.approx(0.5)
    assert watch.look(Seconds(2.0)) is None
    assert watch.look(Seconds(3.0)) is None


def test_this_machine_tells_of_its_cpus() -> None:
    assert parse(STAT.read_bytes())

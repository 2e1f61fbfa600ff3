"""The parser of /proc/net/softnet_stat for any bytes, and the backlogs' rate for any counters."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.units import Seconds
from xtc.errors import MeterError
from xtc.measure.host_drops import Backlogs, backlog_rate, parse
from xtc.measure.meter import LINE_RATE

counters = st.integers(0, (1 << 32) - 1)
tables = st.dictionaries(st.integers(0, 8191), counters, min_size=1, max_size=8)


def text(table: dict[int, int]) -> bytes:
    rows = (f"0000000a {n:08x}{' 00000000' * 10} {cpu:08x} 00000000" for cpu, n in table.items())
    return "".join(f"{row}\n" for row in rows).encode()


def total(raw: bytes) -> None:
    """Parse, and let nothing but a MeterError out."""
    try:
        found = parse(raw)
    except MeterError:
        return
    assert found
    assert all(cpu >= 0 and 0 <= dropped < 1 << 32 for cpu, dropped in found.items())


@given(raw=st.binary(max_size=300))
@example(raw=b"\n")
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    total(raw)
    total(raw + b"\n")


@given(table=tables, start=st.integers(0, 900), junk=st.binary(max_size=8))
def test_any_damage_to_a_text_is_read_or_refused(
    table: dict[int, int], start: int, junk: bytes
) -> None:
    raw = text(table)
    total(raw[:start] + junk + raw[start + len(junk) :])
    total(raw[:start])


@given(table=tables)
def test_what_the_kernel_prints_is_read_back(table: dict[int, int]) -> None:
    assert parse(text(table)) == table


@given(before=tables, after=tables, dt=st.floats(1e-3, 100))
def test_no_rate_of_backlogs_is_negative_or_above_the_line(
    before: dict[int, int], after: dict[int, int], dt: float
) -> None:
    found = backlog_rate(Backlogs(Seconds(0.0), before), Backlogs(Seconds(dt), after))
    assert found is None or 0 <= found <= LINE_RATE * 1.001


@given(
    start=counters,
    lost=st.dictionaries(st.integers(0, 15), st.integers(0, 1_000_000), max_size=8),
    dt=st.floats(0.1, 100),
)
def test_a_backlog_tells_the_same_wherever_its_counter_stands(
    start: int, lost: dict[int, int], dt: float
) -> None:
    before = Backlogs(Seconds(0.0), dict.fromkeys(lost, start))
    after = Backlogs(Seconds(dt), {cpu: (start + n) % (1 << 32) for cpu, n in lost.items()})
    assert backlog_rate(before, after) == pytest.approx(sum(lost.values()) / dt)

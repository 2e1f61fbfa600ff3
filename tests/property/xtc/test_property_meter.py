"""The parser of /proc/net/dev for any bytes, and rates for any counters."""

from hypothesis import example, given
from hypothesis import strategies as st

from common.units import MAX_BIT_RATE, PacketsPerSecond, Seconds
from xtc.errors import MeterError
from xtc.measure.meter import LINE_RATE, Counters, InterfaceRate, parse, rate

HEADER = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast"
    b"|bytes    packets errs drop fifo colls carrier compressed\n"
)
counts = st.integers(0, (1 << 64) - 1)
rows = st.lists(counts, min_size=16, max_size=16)
names = st.text("abcdefgh0123456789.-@_é", min_size=1, max_size=15)
tables = st.dictionaries(names, rows, max_size=8)


def text(table: dict[str, list[int]]) -> bytes:
    lines = (f"{name:>6}: {' '.join(map(str, row))}\n" for name, row in table.items())
    return HEADER + "".join(lines).encode()


def total(raw: bytes) -> None:
    """Parse, and let nothing but a MeterError out."""
    try:
        parsed = parse(raw)
    except MeterError:
        return
    assert all(isinstance(values, Counters) and min(values) >= 0 for values in parsed.values())


@given(raw=st.binary(max_size=300))
@example(raw=b"Inter-|\n")
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    total(raw)
    total(HEADER + raw + b"\n")


@given(table=tables, start=st.integers(0, 2000), junk=st.binary(max_size=8))
def test_any_damage_to_a_text_is_read_or_refused(
    table: dict[str, list[int]], start: int, junk: bytes
) -> None:
    raw = text(table)
    total(raw[:start] + junk + raw[start + len(junk) :])
    total(raw[:start])


@given(table=tables)
def test_what_the_kernel_prints_is_read_back(table: dict[str, list[int]]) -> None:
    assert parse(text(table)) == {
        name: Counters(*(row[column] for column in (0, 1, 3, 8, 9, 11)))
        for name, row in table.items()
    }


vectors = st.builds(Counters, *(counts for _ in range(6)))


@given(before=vectors, after=vectors, dt=st.floats(1e-3, 100))
def test_no_rate_is_negative_or_above_the_line(
    before: Counters, after: Counters, dt: float
) -> None:
    found = rate(before, after, Seconds(dt))
    if isinstance(found, InterfaceRate):
        *packets, rx_bits, tx_bits = found
        assert all(0 <= value <= LINE_RATE * 1.001 for value in packets)
        bits = (rx_bits or 0.0, tx_bits or 0.0)
        assert all(0 <= value <= MAX_BIT_RATE * 1.001 for value in bits)


@given(sent=st.integers(0, 10_000_000), start=st.integers(0, (1 << 32) - 1))
def test_a_32_bit_counter_tells_the_same_wherever_it_stands(sent: int, start: int) -> None:
    after = (start + sent) % (1 << 32)
    found = rate(Counters(0, start, 0, 0, 0, 0), Counters(0, after, 0, 0, 0, 0), Seconds(1.0))
    assert isinstance(found, InterfaceRate)
    assert found.rx == PacketsPerSecond(sent)

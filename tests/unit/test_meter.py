"""Throughput Meter: what /proc/net/dev says, and what is refused of it."""

from pathlib import Path

import pytest

from xtc.errors import MeterError
from xtc.meter import Counters, Fault, InterfaceRate, ProcNetDev, Snapshot, parse, rate, rates
from xtc.units import PacketsPerSecond, Seconds

HEADER = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast"
    b"|bytes    packets errs drop fifo colls carrier compressed\n"
)
LINE = b"  vif7.0: 6400 100 1 2 3 4 5 6 12800 200 7 8 9 10 11 12\n"


def counters(rx: int = 0, tx: int = 0) -> Counters:
    return Counters(rx, 0, 0, tx, 0)


def test_columns_are_those_of_the_kernel() -> None:
    assert parse(HEADER + LINE) == {"vif7.0": Counters(100, 2, 12800, 200, 8)}


def test_no_interface_is_no_error() -> None:
    assert parse(HEADER) == {}


def test_a_name_without_space_before_its_counters_is_read() -> None:
    assert "eth0" in parse(HEADER + LINE.replace(b"  vif7.0: ", b"eth0:"))


def test_an_odd_name_blinds_nobody_else() -> None:
    odd = LINE.replace(b"vif7.0", b"\xff\xfetap")
    assert parse(HEADER + odd + LINE).keys() == {"\\xff\\xfetap", "vif7.0"}


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", 0),
        (HEADER[:-1], 0),
        (HEADER + LINE[:-1], 0),
        (b"\n", 1),
        (b"Inter-|\n", 1),
        (LINE * 3, 1),
        (HEADER + LINE.replace(b" 12\n", b"\n"), 3),
        (HEADER + LINE.replace(b"\n", b" 13\n"), 3),
        (HEADER + LINE + LINE, 4),
        (HEADER + LINE.replace(b" 100 ", b" -1 "), 3),
        (HEADER + LINE.replace(b" 100 ", b" ten "), 3),
        (HEADER + LINE.replace(b" 100 ", b" 18446744073709551616 "), 3),
        (HEADER + LINE.replace(b"vif7.0", b""), 3),
        (HEADER + LINE.replace(b"vif7.0", b"a:b"), 3),
        (HEADER + b"\n", 3),
    ],
)
def test_a_text_that_is_not_understood_is_rejected_whole(raw: bytes, line: int) -> None:
    with pytest.raises(MeterError) as caught:
        parse(raw)
    assert caught.value.line == line


def test_a_text_without_end_is_not_even_split() -> None:
    with pytest.raises(MeterError, match="more than any host"):
        parse(HEADER + LINE * (1 << 20))


def test_rates_are_per_second_of_real_time() -> None:
    found = rate(counters(100, 50), counters(1100, 350), Seconds(0.5))
    assert found == InterfaceRate(*map(PacketsPerSecond, (2000, 0, 600, 0)))


def test_a_32_bit_counter_wraps() -> None:
    found = rate(counters((1 << 32) - 100), counters(900), Seconds(1.0))
    assert isinstance(found, InterfaceRate)
    assert found.rx == PacketsPerSecond(1000)


@pytest.mark.parametrize(
    ("old", "new"),
    [(1_000_000, 10), ((1 << 40) + 5, 5), ((1 << 32) - 1, 3_000_000_000), (1 << 63, 0)],
)
def test_a_fall_that_is_no_wrap_is_a_reset(old: int, new: int) -> None:
    assert rate(counters(old), counters(new), Seconds(1.0)) is Fault.RESET


def test_more_than_a_port_carries_is_no_measurement() -> None:
    assert rate(counters(0), counters(200_000_000), Seconds(1.0)) is Fault.IMPLAUSIBLE


def test_interfaces_come_and_go() -> None:
    before = Snapshot(Seconds(0.0), HEADER + LINE.replace(b"vif7.0", b"old"))
    after = Snapshot(Seconds(1.0), HEADER + LINE.replace(b"vif7.0", b"new"))
    assert rates(before, after) == {"new": Fault.APPEARED, "old": Fault.VANISHED}


@pytest.mark.parametrize("at", [5.0, 4.0])
def test_no_rate_without_time_between(at: float) -> None:
    snapshot = Snapshot(Seconds(5.0), HEADER)
    with pytest.raises(MeterError, match="no time"):
        rates(snapshot, Snapshot(Seconds(at), HEADER))


def test_this_machine_is_understood() -> None:
    with ProcNetDev() as source:
        first, second = source.read(Seconds(0.0)), source.read(Seconds(1.0))
    assert "lo" in first.counters
    assert not isinstance(rates(first, second)["lo"], Fault)


def test_a_file_that_comes_back_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    with ProcNetDev(str(path)) as source:
        with pytest.raises(MeterError, match="cannot be read"):
            source.read(Seconds(0.0))
        path.write_bytes(HEADER + LINE)
        assert "vif7.0" in source.read(Seconds(1.0)).counters

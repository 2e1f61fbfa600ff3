"""Throughput Meter: what /proc/net/dev says, and what is refused of it."""

import contextlib
import errno
import os
from pathlib import Path

import pytest

from common.units import BitsPerSecond, PacketsPerSecond, Seconds
from xtc.errors import MeterError
from xtc.measure.meter import (
    Counters,
    Fault,
    InterfaceRate,
    ProcNetDev,
    Snapshot,
    parse,
    rate,
    rates,
)

HEADER = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast"
    b"|bytes    packets errs drop fifo colls carrier compressed\n"
)
NO_BITS = (BitsPerSecond(0.0),) * 2
LINE = b"  vif7.0: 6400 100 1 2 3 4 5 6 12800 200 7 8 9 10 11 12\n"


def counters(rx: int = 0, tx: int = 0) -> Counters:
    return Counters(0, rx, 0, 0, tx, 0)


def counted(rx_bytes: int, tx_bytes: int = 0) -> Counters:
    return Counters(rx_bytes, 0, 0, tx_bytes, 0, 0)


def test_columns_are_those_of_the_kernel() -> None:
    assert parse(HEADER + LINE) == {"vif7.0": Counters(6400, 100, 2, 12800, 200, 8)}


def test_no_interface_is_no_error() -> None:
    assert parse(HEADER) == {}


def test_a_name_without_space_before_its_counters_is_read() -> None:
    assert "eth0" in parse(HEADER + LINE.replace(b"  vif7.0: ", b"eth0:"))


def test_an_odd_name_blinds_nobody_else() -> None:
    odd = LINE.replace(b"vif7.0", b"\xff\xfetap")
    assert parse(HEADER + odd + LINE).keys() == {"/\\xff\\xfetap", "vif7.0"}


def test_odd_names_that_look_alike_blind_nobody() -> None:
    odd = (b"\xff", b"\\xff", b"\xfe\\xff", b"\\xfe\xff")
    lines = b"".join(LINE.replace(b"vif7.0", name) for name in odd)
    found = parse(HEADER + lines + LINE)
    assert len(found) == len(odd) + 1
    assert "vif7.0" in found


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"", 0),
        (HEADER[:-1], 0),
        (HEADER + LINE[:-1], 0),
        (b"\n", 1),
        (b"Inter-|\n", 1),
        (LINE * 3, 1),
        (HEADER.splitlines(keepends=True)[0] + LINE * 2, 1),
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
    assert found == InterfaceRate(*map(PacketsPerSecond, (2000, 0, 600, 0)), *NO_BITS)


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


def test_each_rate_is_that_of_its_own_counter() -> None:
    before, after = Counters(3, 5, 7, 11, 13, 17), Counters(23, 15, 27, 36, 43, 57)
    assert rate(before, after, Seconds(2.0)) == (5.0, 10.0, 15.0, 20.0, 80.0, 100.0)


TOP = 1 << 32


@pytest.mark.parametrize(
    ("old", "new", "rx"),
    [
        (TOP - 1, 0, 0.5),
        (TOP - 1, 30_000_000 - 1, 15e6),  # 10 Gb/s of the smallest frames, and wrapped
        (TOP - 1, 30_000_000, Fault.RESET),
        (TOP, 0, Fault.RESET),  # a counter beyond 32 bits does not wrap there
        (TOP + 5, 10, Fault.RESET),
        (TOP, TOP, 0.0),
        (TOP - 4, TOP + 4, 4.0),
        (0, 300_000_000, 150e6),  # 100 Gb/s
        (0, 300_000_001, Fault.IMPLAUSIBLE),
        (TOP, TOP + 300_000_001, Fault.IMPLAUSIBLE),
    ],
)
def test_two_seconds_of_a_counter(old: int, new: int, rx: float | Fault) -> None:
    found = rate(counters(old), counters(new), Seconds(2.0))
    assert (found if isinstance(found, Fault) else found.rx) == rx


@pytest.mark.parametrize(("size", "line"), [(32 << 20, 3), ((32 << 20) + 1, 0)])
def test_32_mib_are_still_split(size: int, line: int) -> None:
    raw = HEADER + b" " * (size - len(HEADER) - 1) + b"\n"
    with pytest.raises(MeterError) as caught:
        parse(raw)
    assert caught.value.line == line


def test_the_largest_counter_is_read() -> None:
    largest = LINE.replace(b" 100 ", b" 18446744073709551615 ")
    assert parse(HEADER + largest)["vif7.0"].rx_packets == (1 << 64) - 1


def _cannot_read(*_: object) -> bytes:
    raise OSError(errno.EIO, "Input/output error")


def test_after_a_read_error_the_file_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A descriptor of a namespace that is gone would fail at every read."""
    path = tmp_path / "dev"
    path.write_bytes(HEADER + LINE)
    with ProcNetDev(str(path)) as source:
        source.read(Seconds(0.0))
        with monkeypatch.context() as failing:
            failing.setattr(os, "read", _cannot_read)
            with pytest.raises(MeterError, match="Input/output error"):
                source.read(Seconds(1.0))
        path.unlink()
        path.write_bytes(HEADER + LINE.replace(b"vif7.0", b"other"))
        assert source.read(Seconds(2.0)).counters.keys() == {"other"}


def test_a_long_file_is_read_whole_and_from_its_start_each_time(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    lines = [LINE.replace(b"vif7.0", f"v{number}".encode()) for number in range(30_000)]
    path.write_bytes(HEADER + b"".join(lines))
    with ProcNetDev(str(path)) as source:
        for at in (0.0, 1.0):
            assert source.read(Seconds(at)).raw == path.read_bytes()


def test_the_file_is_open_while_it_is_in_use_alone(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    path.write_bytes(HEADER + LINE)
    source = ProcNetDev(str(path))
    for at in range(3):
        source.read(Seconds(at))
        assert _open_files().count(str(path)) == 1
    for _ in range(2):
        source.close()
        assert str(path) not in _open_files()


def test_a_file_is_closed_at_the_end_of_its_block(tmp_path: Path) -> None:
    path = tmp_path / "dev"
    path.write_bytes(HEADER + LINE)
    with ProcNetDev(str(path)) as source:
        source.read(Seconds(0.0))
    assert str(path) not in _open_files()


def _open_files() -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return found


@pytest.mark.parametrize(
    ("old", "new", "bits"),
    [
        (0, 0, 0.0),
        (1000, 126_000, 1e6),
        (0, 125 * 10**9, 1e12),
        (0, 125 * 10**9 + 1, None),  # more than a port carries
        (TOP - 1, 124, 1000.0),
        (TOP - 1, 1_250_000_000 - 1, 10e9),
        (TOP - 1, 1_250_000_000, None),  # too far to have wrapped
        (TOP, TOP - 1, None),
        (1 << 63, 0, None),
    ],
)
def test_bytes_that_make_no_sense_leave_the_packets(old: int, new: int, bits: float | None) -> None:
    before, after = counted(old), counted(new)._replace(rx_packets=7)
    assert rate(before, after, Seconds(1.0)) == (7.0, 0.0, 0.0, 0.0, bits, 0.0)
    back = rate(counted(0, old), counted(0, new), Seconds(1.0))
    assert back == (0.0, 0.0, 0.0, 0.0, 0.0, bits)

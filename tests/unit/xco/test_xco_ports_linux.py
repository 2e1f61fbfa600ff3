"""Counters of qdiscs: marks in their statistics, wraps, restarts, and what has no queue."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xco.errors import PortError, PortUncounted
from xco.ports import linux, qdiscs
from xco.ports.linux import LinuxReader
from xco.ports.qdiscs import INGRESS, ROOT, Qdisc, parsed
from xco.ports.reader import Counters
from xco.ports.unwrap import Unwrapped
from xco.ports.xstats import attributes, counts_marks, marks

LO = 1
"""The index of the loopback interface, which every namespace has."""
ROOT_QDISC = Qdisc(LO, 0x10000, ROOT, "htb", 1000, 10, 1, 50)


RECORDED = (
    "000000000300000000000100ffffffff0300000008000100746266002c0002002800010000010000000000"
    "0048e801000000000000000000000000000028000000c409000000000005000c000000000030000700140001"
    "00aa010000000000000500000000000000180003000000000000000000000000000000000000000000"
    "2c000300aa010000000000000500000000000000000000000000000000000000000000000000000000000000"
)


def attribute(kind: int, value: bytes) -> bytes:
    packed = struct.pack("=HH", 4 + len(value), kind) + value
    return packed.ljust(len(packed) + 3 & ~3, b"\0")


def words(*values: int) -> bytes:
    return struct.pack(f"={len(values)}I", *values)


CAKE = attribute(2, struct.pack("=Q", 7)) + attribute(
    10 | 0x8000,
    b"".join(
        attribute(tin | 0x8000, attribute(2, words(99)) + attribute(8, words(count)))
        for tin, count in ((1, 5), (2, 6))
    ),
)
FQ = struct.pack("=7Qq4I3Q", *range(1, 8), -1, 1, 2, 3, 4, 77, 88, 99)
SFQ = words(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 100, 200, 1, 2, 3, 4)
CASES = {
    # As the structures in include/uapi/linux/pkt_sched.h: xstats, options, marks.
    "red": (words(1, 2, 3, 44), b"", 44),
    "choke": (words(1, 2, 3, 44, 5), b"", 44),
    "sfb": (words(1, 2, 3, 4, 5, 66, 7, 8, 9), b"", 66),
    "codel": (words(1, 2, 3, 4, 5, 6, 70, 8, 9), b"", 79),
    "fq_codel": (words(0, 1, 2, 30, 4, 5, 6, 7, 8, 9), b"", 37),
    "pie": (struct.pack("=Q8I", 1, 2, 3, 4, 5, 6, 7, 8, 90), b"", 90),
    "fq_pie": (words(1, 2, 3, 4, 55, 6, 7, 8, 9), b"", 55),
    "dualpi2": (words(1, 2, 3, 4, 5, 6, 70, 8, 9, 10, 11, 12), b"", 78),
    "fq": (FQ, b"", 77),
    "cake": (CAKE, b"", 11),
    "sfq": (words(1), SFQ, 10),
}


@pytest.mark.parametrize("kind", CASES)
def test_marks_are_found_in_the_statistics_of(kind: str) -> None:
    xstats, options, expected = CASES[kind]
    assert marks(kind, xstats, options) == expected
    assert counts_marks(kind)


@pytest.mark.parametrize("kind", ["htb", "tbf", "pfifo_fast", "mq", "noqueue", "unheard-of"])
def test_other_kinds_count_none(kind: str) -> None:
    assert marks(kind, words(*range(30)), words(*range(30))) == 0
    assert not counts_marks(kind)


def test_the_classes_of_fq_codel_have_no_marks() -> None:
    assert marks("fq_codel", words(1, 1, 2, 30, 4, 5, 6), b"") == 0


@pytest.mark.parametrize("kind", CASES)
@given(data=st.binary(max_size=200))
def test_any_statistics_give_a_number(kind: str, data: bytes) -> None:
    assert marks(kind, data, data) >= 0


@given(st.binary(max_size=200))
def test_any_message_gives_a_qdisc_or_none(data: bytes) -> None:
    found = parsed(data)
    assert found is None or found.packets < 2**32


@given(st.lists(st.tuples(st.integers(0, 0x3FFF), st.binary(max_size=20)), max_size=8))
def test_attributes_are_read_back(pairs: list[tuple[int, bytes]]) -> None:
    assert list(attributes(b"".join(attribute(*pair) for pair in pairs))) == pairs


def test_a_recorded_message_of_linux_6_18_is_read() -> None:
    # tc qdisc add dev v0 root handle 1: tbf rate 1mbit burst 5k limit 10k; 5 packets sent.
    found = parsed(bytes.fromhex(RECORDED))
    assert found is not None
    assert found == Qdisc(3, 0x10000, ROOT, "tbf", 426, 5, 0, 0, options=found.options)
    assert len(found.options) == 40


@given(st.lists(st.integers(0, 2**31), max_size=40), st.integers(0, 2**32 - 1))
def test_a_counter_that_wraps_continues(steps: list[int], begin: int) -> None:
    counter, whole = Unwrapped(), begin
    first = counter.value(begin)
    for step in steps:
        whole += min(step, 2**31 - 1)
        assert counter.value(whole % 2**32) - first == whole - begin


def test_a_counter_that_restarts_begins_again() -> None:
    counter = Unwrapped()
    counter.value(1000)
    assert counter.value(3) == 3
    counter.value(2**32 - 1)
    assert counter.value(2**31 - 1) == 2**31 - 1


class Kernel:
    """What the kernel would list; stands for the socket."""

    def __init__(self) -> None:
        self.listed: list[Qdisc] | OSError = []
        self.opened = 0

    def __call__(self) -> "Kernel":
        self.opened += 1
        return self

    def qdiscs(self) -> list[Qdisc]:
        if isinstance(self.listed, OSError):
            raise self.listed
        return self.listed

    def close(self) -> None:
        pass


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(linux, "QdiscSocket", made)
    return made


def test_a_tree_counts_what_its_root_sent_and_what_its_leaves_marked(kernel: Kernel) -> None:
    leaf = replace(ROOT_QDISC, handle=0, parent=0x10001, kind="codel", sent_bytes=7)
    leaves = [replace(leaf, xstats=words(*[0] * 6, count, 0, 0)) for count in (3, 4)]
    other = replace(leaf, interface=2, xstats=words(*[9] * 9))
    arriving = replace(leaf, parent=INGRESS, xstats=words(*[9] * 9))
    kernel.listed = [other, arriving, *leaves, ROOT_QDISC]
    assert LinuxReader(["lo"]).read() == [Counters(10, 1000, 7, 1, 50, counts_marks=True)]


def test_packets_continue_when_they_wrap_and_restart_with_the_bytes(kernel: Kernel) -> None:
    reader = LinuxReader(["lo"])
    readings = []
    for sent_bytes, packets in ((10**13, 2**32 - 5), (10**13 + 900, 4), (60, 1)):
        kernel.listed = [replace(ROOT_QDISC, sent_bytes=sent_bytes, packets=packets)]
        (reading,) = reader.read()
        assert isinstance(reading, Counters)
        readings.append(reading.packets)
    assert readings == [2**32 - 5, 2**32 + 4, 1]


def test_a_new_root_begins_again(kernel: Kernel) -> None:
    reader = LinuxReader(["lo"])
    kernel.listed = [replace(ROOT_QDISC, packets=2**32 - 5)]
    reader.read()
    kernel.listed = [replace(ROOT_QDISC, handle=0x20000, packets=4, sent_bytes=2000)]
    (reading,) = reader.read()
    assert isinstance(reading, Counters)
    assert reading.packets == 4


def test_a_port_without_a_queue_or_an_interface_leaves_the_others_alone(kernel: Kernel) -> None:
    kernel.listed = [replace(ROOT_QDISC, kind="noqueue")]
    without, gone = LinuxReader(["lo", "no-such-port"]).read()
    assert isinstance(without, PortUncounted)
    assert "tc qdisc add dev lo root" in str(without)
    assert isinstance(gone, PortError)
    assert str(gone).startswith("no-such-port: there is no such interface")


def test_a_kernel_that_refuses_is_a_port_error_and_asked_again(kernel: Kernel) -> None:
    reader = LinuxReader(["lo"])
    kernel.listed = OSError(1, "not permitted")
    with pytest.raises(PortError, match=r"netlink: .*not permitted"):
        reader.read()
    kernel.listed = [ROOT_QDISC]
    assert reader.read() == [Counters(10, 1000, 0, 1, 50)]
    assert kernel.opened == 2


def test_the_kernel_lists_the_loopback_interface() -> None:
    with_socket = qdiscs.QdiscSocket()
    try:
        assert LO in {one.interface for one in with_socket.qdiscs()}
    finally:
        with_socket.close()

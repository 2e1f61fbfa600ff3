"""Records of what is taken, of front ends that lie in them, and in messages about them."""

import mmap
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from support.inconclusive import inconclusive
from support.waiting import eventually
from zovn_front_end import (
    GET_INFLIGHT_FD,
    SET_INFLIGHT_FD,
    SET_VRING_ENABLE,
    SET_VRING_KICK,
    TRANSMIT,
    FrontEnd,
    connections,
)
from zovn_guest import Ring
from zovn_rig import address, frame
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

pytestmark = pytest.mark.timeout(120)
Connect = Callable[..., FrontEnd]
PAGE: Final = 4096
HUGE: Final = 2 << 20
HUGE_PAGES: Final = Path("/proc/sys/vm/nr_hugepages")
GUARDED: Final = 72 * 80
"""Ranges that the switch can guard (zovn/core/vhost/guard.c)."""
HEADER: Final = struct.Struct("<QHHHH")
"""Of a record: features, version, entries, the last one that was given back, the used index."""


class TwoPairs(FrontEnd):
    """A front end with a second pair, of rings with 32 entries, which its port has no room for."""

    def ring(self, number: int) -> Ring:
        """Return a ring by its number."""
        if number < 2:
            return super().ring(number)
        return Ring(self.memory, 0x30000 + 0x4000 * (number - 2), 32)

    def begin_second(self) -> None:
        """Start the rings of the second pair."""
        for number in (2, 3):
            self.calls.append(self._event())
            self.kicks.append(self._event())
            self.begin(number, 0)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{one}"], "queues": 2 - one} for one in range(2)]
    with running_switch(names="ab", stall="1min", each=ports) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with connections(switch) as connected:
        yield connected


def records(rings: int, entries: int, size: int = 0) -> bytes:
    """Return what a message about records says."""
    return struct.pack("<QQHH4x", size, 0, rings, entries)


def own_record(switch: RunningSwitch) -> Path:
    """Return where the switch keeps the record of port `a` if its front end does not."""
    return Path(switch.socket("a") + ".held")


def passes(a: FrontEnd, b: FrontEnd, number: int) -> None:
    """Assert that a frame comes from one guest to the other."""
    b.post([2048])
    b.kick()
    sent = frame(address(0), address(1), number)
    assert a.send(sent)
    a.kick()
    assert b.frames(1) == [sent]
    eventually(a.completed)


def test_the_size_that_a_record_says_is_not_believed(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a", inflight=True), connect("b")
    passes(a, b, 0)
    assert not own_record(switch).exists()
    with mmap.mmap(a.inflight_file, 0) as lies:
        for at in (0, 320):  # of both rings, each with 16 entries
            struct.pack_into("<H", lies, at + 10, 0xFFFF)
        a.transmit = Ring(a.memory, 0x1000, 512)
        a.begin(TRANSMIT, 0)
        eventually(own_record(switch).exists)
        passes(a, b, 1)
    assert switch.port("a").fault == "none"


def test_librte_vhost_does_not_write_where_a_record_says(
    switch: RunningSwitch, connect: Connect
) -> None:
    """It would when a ring begins: a megabyte behind the record."""
    a, b = connect("a", inflight=True), connect("b")
    with mmap.mmap(a.inflight_file, 0) as lies:
        for number in range(8):
            for at in (0, 320):
                HEADER.pack_into(lies, at, 0, 1, 0xFFFF, 0xFFFF, 0x7777)
            assert a.tell(SET_VRING_KICK, struct.pack("<Q", TRANSMIT), [a.kicks[TRANSMIT]])
            passes(a, b, number)
    assert switch.port("a").fault == "none"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (GET_INFLIGHT_FD, records(0xFFFF, 0xFFFF)),
        (GET_INFLIGHT_FD, records(5, 16)),
        (SET_INFLIGHT_FD, records(6, 1, PAGE)),
        (SET_INFLIGHT_FD, records(2, 256, PAGE)),
        (SET_INFLIGHT_FD, records(4, 0xFFFF, PAGE)),
    ],
)
def test_messages_that_would_have_it_write_behind_records_are_refused(
    connect: Connect, request_: int, said: bytes
) -> None:
    a, b = connect("a", inflight=True), connect("b")
    files = [a.inflight_file] if request_ == SET_INFLIGHT_FD else []
    for number in range(4):
        assert a.refused(request_, said, files)
        passes(a, b, number)


def test_a_record_is_not_used_when_librte_vhost_has_unmapped_it(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a", inflight=True), connect("b")
    a._get_inflight()  # it makes another one, and has not put it to use
    eventually(own_record(switch).exists)
    passes(a, b, 0)
    a._set_inflight()
    passes(a, b, 1)
    event = a._event()
    assert not a.tell(SET_INFLIGHT_FD, a.inflight, [event])  # cannot be mapped
    a.begin(TRANSMIT, a.transmit.used_index())
    passes(a, b, 2)
    assert switch.port("a").fault == "none"


def test_a_ring_that_is_enabled_again_and_again_takes_no_room_of_others(
    switch: RunningSwitch, connect: Connect
) -> None:
    a = connect("a", of=TwoPairs)
    assert isinstance(a, TwoPairs)
    a._send(GET_INFLIGHT_FD, records(4, 64), 0)
    a.inflight = a.receive_records()
    a._set_inflight()
    a.begin_second()
    eventually(lambda: "a: a pair of rings is not used" in switch.log.read_text())
    for _ in range(GUARDED):
        assert a.state(SET_VRING_ENABLE, 2, 0)
        assert a.state(SET_VRING_ENABLE, 2, 1)
    passes(a, connect("b"), 0)


@pytest.fixture
def huge_page() -> Iterator[None]:
    """One more huge page than there are."""
    before = int(HUGE_PAGES.read_text())
    HUGE_PAGES.write_text(str(before + 1))
    if int(HUGE_PAGES.read_text()) == before:
        inconclusive("the kernel has no 2 MB of memory in one piece")
    yield
    HUGE_PAGES.write_text(str(before))


@pytest.mark.usefixtures("huge_page")
def test_a_record_in_huge_pages_that_is_truncated_stops_its_port_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    file = os.memfd_create("record", os.MFD_HUGETLB | os.MFD_HUGE_2MB)
    a.files.append(file)
    os.ftruncate(file, HUGE)
    assert a.tell(SET_INFLIGHT_FD, records(2, 16, HUGE), [file])
    eventually(lambda: switch.port("a").attached)
    passes(a, b, 0)
    os.ftruncate(file, 0)
    assert a.send(frame(address(0), address(1), 1))
    a.kick()
    eventually(lambda: switch.port("a").fault == "memory_gone")
    assert switch.port("b").fault == "none"

"""What a front end needs to migrate its guest: a log of the pages that the switch wrote to."""

import mmap
import os
from collections.abc import Callable, Iterator

import pytest
from support.waiting import eventually
from zovn_front_end import RARP, SEND_RARP, FrontEnd, connections
from zovn_guest import BASE, PIECE, SECOND
from zovn_rig import BROADCAST, address, frame
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

from zovn.switch import control

pytestmark = pytest.mark.timeout(120)
Connect = Callable[[str], FrontEnd]
LOG = 0x9000
"""Bytes of a log that covers the guest's memory."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{number}"]} for number in range(2)]
    with running_switch(names="ab", stall="1min", each=ports) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with connections(switch) as connected:
        yield connected


def pages(log: mmap.mmap) -> set[int]:
    """Return the pages of which the bits are set."""
    marked = ((at, byte) for at, byte in enumerate(log[:]) if byte)
    return {8 * at + bit for at, byte in marked for bit in range(8) if byte >> bit & 1}


def page(at: int) -> int:
    return at // PIECE


def deliver(a: FrontEnd, b: FrontEnd, number: int) -> list[int]:
    """Send a frame from a to b; return the addresses of the buffers that b has posted for it."""
    head = b.post([2048])
    buffers = [at for at, _ in b.posted[head]]
    sent = frame(address(0), address(1), number)
    assert a.send(sent)
    b.kick()
    a.kick()
    assert b.frames(1) == [sent]
    eventually(a.completed)
    return buffers


def test_the_pages_that_the_switch_writes_to_are_logged(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    deliver(a, b, 0)
    log = b.log_to(LOG)
    deliver(a, b, 1)
    assert not pages(log), "not yet: the feature is off"
    b.set_logging(on=True)
    buffers = [at for number in range(2, 5) for at in deliver(a, b, number)]
    rings = {page(BASE + ring.used) for ring in (b.receive, b.transmit)}
    assert pages(log) - rings == {page(at) for at in buffers}
    assert page(BASE + b.receive.used) in pages(log)
    assert all(at >= SECOND for at in buffers)
    assert switch.port("b").attachments == 1, "to begin a log costs no frame"


def test_a_log_ends_and_begins_again(switch: RunningSwitch, connect: Connect) -> None:
    a, b = connect("a"), connect("b")
    log = b.log_to(LOG)
    b.set_logging(on=True)
    deliver(a, b, 0)
    b.set_logging(on=False)
    log[:] = bytes(LOG)
    deliver(a, b, 1)
    assert not pages(log)
    b.set_logging(on=True)
    other = b.log_to(LOG)
    eventually(lambda: switch.port("b").attached)
    (buffer,) = deliver(a, b, 2)
    assert page(buffer) in pages(other)
    assert page(buffer) not in pages(log)


def test_a_sender_has_what_came_back_logged(connect: Connect) -> None:
    a, b = connect("a"), connect("b")
    log = a.log_to(LOG)
    a.set_logging(on=True)
    deliver(a, b, 0)
    assert page(BASE + a.transmit.used) in pages(log)
    assert not {at for at in pages(log) if at >= page(SECOND)}


def test_a_log_that_is_truncated_harms_its_front_end_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    b.log_to(LOG)
    b.set_logging(on=True)
    os.ftruncate(b.files[-1], 0)
    deliver(a, b, 0)
    assert switch.port("b").fault == "none"


# --- where a guest cannot announce itself


def test_a_station_is_announced_where_its_guest_has_come(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    assert a.protocol >> RARP & 1
    station = address(7)
    b.post([2048])
    b.kick()
    assert a.tell(SEND_RARP, station + bytes(2))
    (request,) = b.frames(1)
    assert request[:12] == BROADCAST + station
    assert (request[12:22].hex(), len(request)) == ("80350001080006040003", 60)
    ports = {one.ethernet: one.port for one in control.stations(switch.config.control)}
    assert ports[station.hex(":")] == "a"


@pytest.mark.parametrize("station", [BROADCAST + bytes(2), bytes(8)])
def test_no_other_frame_is_made_for_a_front_end(
    switch: RunningSwitch, connect: Connect, station: bytes
) -> None:
    a, b = connect("a"), connect("b")
    assert a.tell(SEND_RARP, station)
    assert a.refused(SEND_RARP, station[:6])
    deliver(a, b, 1)
    assert switch.port("a").counters["in"] == 1

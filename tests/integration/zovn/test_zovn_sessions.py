"""Sessions of vhost-user, message by message: what a front end may do, and what it must not."""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from support.waiting import eventually
from zovn_front_end import (
    EVENT_IDX,
    GET_VRING_BASE,
    IN_ORDER,
    INDIRECT_DESC,
    LOG_ALL,
    MRG_RXBUF,
    PACKED,
    RECEIVE,
    SET_VRING_NUM,
    TRANSMIT,
    VERSION_1,
    FrontEnd,
    accepted,
)
from zovn_guest import REGION, Ring
from zovn_rig import address, frame
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

pytestmark = pytest.mark.timeout(120)
Connect = Callable[..., FrontEnd]
OFFLOADS = (0, 1, 7, 8, 9, 11, 12, 13)
"""Checksums, segments of TCP over IPv4 and IPv6, and with ECN: for hosts and for guests."""


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    ports = [
        {"addresses": [f"02:00:00:00:00:0{number}"], "offloads": number == 2} for number in range(3)
    ]
    with running_switch(names="abc", stall="1min", each=ports) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with ExitStack() as stack:

        def connected(name: str, *, event_index: bool = False) -> FrontEnd:
            made = accepted(switch.socket(name), event_index=event_index)
            stack.callback(made.close)
            eventually(lambda: switch.port(name).attached)
            return made

        yield connected


def sent(front: FrontEnd, source: int, destination: int, numbers: range) -> list[bytes]:
    """Send frames, and notify."""
    frames = [frame(address(source), address(destination), number) for number in numbers]
    for one in frames:
        assert front.send(one)
    front.kick()
    return frames


def post(front: FrontEnd, count: int, length: int = 2048) -> None:
    for _ in range(count):
        front.post([length])
    front.kick()


def test_rings_that_cannot_be_read_out_of_order_are_not_offered(connect: Connect) -> None:
    offered = connect("a").offered
    for bit in (VERSION_1, MRG_RXBUF, INDIRECT_DESC, EVENT_IDX, LOG_ALL):
        assert offered >> bit & 1
    for bit in (PACKED, IN_ORDER, *OFFLOADS):
        assert not offered >> bit & 1


def test_offloads_are_offered_where_the_settings_say_so(connect: Connect) -> None:
    offered = connect("c").offered
    assert all(offered >> bit & 1 for bit in OFFLOADS)
    assert not any(offered >> bit & 1 for bit in (PACKED, IN_ORDER))


@pytest.mark.parametrize("event_index", [False, True])
def test_a_guest_is_notified_of_what_it_got(connect: Connect, event_index: bool) -> None:
    a, b = (connect(name, event_index=event_index) for name in "ab")
    for numbers in (range(4), range(4, 8)):
        b.receive.used_event(numbers.start)
        post(b, 4)
        frames = sent(a, 0, 1, numbers)
        b.wait_for_call(RECEIVE)
        assert b.frames(4) == frames
    eventually(lambda: len(a.transmit.returned()) in {8, 0})


def test_a_guest_whose_buffers_are_too_few_is_asked_to_notify_of_further_ones(
    switch: RunningSwitch, connect: Connect
) -> None:
    """The frame needs four. A guest that was asked once notifies of the first one alone."""
    a, b = connect("a"), connect("b", event_index=True)
    long = frame(address(0), address(1), 1, 3000)
    assert a.send(long)
    a.kick()
    eventually(lambda: switch.port("a").counters["held"] == 1)
    for _ in range(4):
        eventually(lambda: b.receive.avail_event() == b.receive.avail_index)
        post(b, 1, 800)
    assert b.frames(1) == [long]


def test_a_guest_that_masks_its_interrupts_loses_no_frame(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    frames = sent(a, 0, 1, range(8))
    eventually(lambda: switch.port("a").counters["held"] == 8)
    other = os.eventfd(0, os.EFD_NONBLOCK)
    b.files.append(other)
    b.calls[RECEIVE] = other
    b.call_by(RECEIVE, other)
    assert switch.port("b").attachments == 1
    post(b, 8)
    b.wait_for_call(RECEIVE)
    assert b.frames(8) == frames


def test_a_ring_that_stops_gives_its_frames_back_and_goes_on_from_there(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    sent(a, 0, 1, range(8))
    eventually(lambda: switch.port("a").counters["held"] == 8)
    assert a.stop(TRANSMIT) == 8
    assert len(a.completed()) == 8
    port = switch.port("a")
    assert not port.attached
    assert port.drops["removed"] == 8
    post(b, 8)
    a.stop(RECEIVE)
    for ring, base in ((RECEIVE, 0), (TRANSMIT, 8)):
        a.begin(ring, base)
    eventually(lambda: switch.port("a").attached)
    assert sent(a, 0, 1, range(8, 12)) == b.frames(4)


def test_a_ring_that_stops_delivers_what_was_taken(switch: RunningSwitch, connect: Connect) -> None:
    a, b = connect("a"), connect("b")
    post(b, 16)
    frames = sent(a, 0, 1, range(16))
    base = a.stop(TRANSMIT)
    assert len(a.completed()) == base
    assert b.frames(base) == frames[:base]
    assert switch.port("a").drops["removed"] == 0


def test_memory_may_change_under_a_guest(switch: RunningSwitch, connect: Connect) -> None:
    a, b = connect("a"), connect("b")
    post(b, 8)
    assert sent(a, 0, 1, range(4)) == b.frames(4)
    assert a.share(turned=True)  # the switch maps all of it again, elsewhere
    eventually(lambda: switch.port("a").attached)
    assert sent(a, 0, 1, range(4, 8)) == b.frames(4)


def test_a_ring_that_is_larger_than_its_memory_is_not_used(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b, c = (connect(name) for name in "abc")
    a.transmit = Ring(a.memory, REGION - 4096, 16)
    a.begin(TRANSMIT, 0)
    a.state(SET_VRING_NUM, TRANSMIT, 32768)
    a.kick()
    post(c, 4)
    assert sent(b, 1, 2, range(4)) == c.frames(4)
    assert "a: the guest cannot be attached: its rings cannot be used" in switch.log.read_text()


def test_memory_that_cannot_be_mapped_ends_a_session_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b, c = (connect(name) for name in "abc")
    reader, writer = os.pipe()
    a.files += [reader, writer]
    assert not a.share([reader, writer], turned=True)
    with suppress(OSError, struct.error):  # the session may have ended already
        a.state(SET_VRING_NUM, TRANSMIT, 16)
    post(c, 4)
    assert sent(b, 1, 2, range(4)) == c.frames(4)
    a.close()
    eventually(lambda: not switch.port("a").attached)
    assert connect("a").offered


def test_a_front_end_that_vanishes_leaves_the_others_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    sent(a, 0, 1, range(8))
    eventually(lambda: switch.port("a").counters["held"] == 8)
    a.close()
    eventually(lambda: not switch.port("a").attached)
    assert switch.port("a").drops["removed"] == 8
    post(b, 4)
    assert sent(connect("a"), 0, 1, range(4)) == b.frames(4)


def test_requests_that_make_no_sense_end_a_session_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    b, c = connect("b"), connect("c")
    for request in (GET_VRING_BASE, SET_VRING_NUM, 77):
        a = connect("a")
        a._send(request, b"\xff" * 8, 0)
        eventually(lambda: not switch.port("a").attached)
        a.close()
    post(c, 4)
    assert sent(b, 1, 2, range(4)) == c.frames(4)

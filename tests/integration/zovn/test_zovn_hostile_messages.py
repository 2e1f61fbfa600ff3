"""Messages of front ends that would hold up all sessions: halves, and answers that are not read."""

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.waiting import PATIENCE_S, eventually
from zovn_front_end import (
    GET_FEATURES,
    SET_LOG_BASE,
    SET_MEM_TABLE,
    VERSION,
    FrontEnd,
    connections,
)
from zovn_rig import address, frame
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

from zovn.switch import control

pytestmark = pytest.mark.timeout(120)
Connect = Callable[[str], FrontEnd]
HALF = struct.pack("<III", GET_FEATURES, VERSION, 8)
"""The header of a message of which the rest does not come."""
QUESTION = struct.pack("<III", GET_FEATURES, VERSION, 0)
IOTLB_MSG, POSTCOPY_ADVISE, POSTCOPY_LISTEN, POSTCOPY_END = 22, 28, 29, 30


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{number}"]} for number in range(3)]
    with running_switch(names="abc", stall="1min", each=ports) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with connections(switch) as connected:
        yield connected


def send_halves(client: socket.socket) -> None:
    """Send half a message, and wait until the switch ends the connection."""
    client.sendall(HALF)
    client.recv(1)


def never_read(client: socket.socket) -> None:
    """Ask as long as there is room for questions, and read no answer."""
    while True:
        client.sendall(QUESTION)


@contextmanager
def hostile(path: str, act: Callable[[socket.socket], None]) -> Iterator[None]:
    """Connect again and again, and do harm each time."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5)
                client.connect(path)
                act(client)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(10)


def passes(a: FrontEnd, b: FrontEnd, number: int) -> None:
    """Assert that a frame comes from the second guest to the third."""
    b.post([2048])
    b.kick()
    sent = frame(address(1), address(2), number)
    assert a.send(sent)
    a.kick()
    assert b.frames(1) == [sent]
    eventually(a.completed)


@pytest.mark.parametrize("act", [send_halves, never_read])
def test_a_front_end_that_has_the_switch_wait_holds_up_no_other(
    switch: RunningSwitch, connect: Connect, act: Callable[[socket.socket], None]
) -> None:
    with hostile(switch.socket("a"), act):
        b, c = connect("b"), connect("c")
        passes(b, c, 0)
        control.remove(switch.config.control, "a")
        passes(b, c, 1)
    assert switch.end() == 0


def test_half_a_message_ends_its_connection(switch: RunningSwitch, connect: Connect) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(switch.socket("a"))
        client.sendall(HALF)
        assert client.recv(1) == b""
    assert connect("a").offered


def files_given(switch: RunningSwitch) -> int:
    """Return how many of the files that tests give are open in the switch."""
    found = 0
    for one in Path(f"/proc/{switch.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += "memfd:given" in str(one.readlink())
    return found


TABLE = struct.pack("<IIQQQQ", 1, 0, 0, 4096, 0, 0)


@pytest.mark.parametrize(
    "message",
    [
        (GET_FEATURES, b"", 0, 8),
        (SET_MEM_TABLE, TABLE, 0, 3),
        (SET_LOG_BASE, struct.pack("<QQ", 1 << 60, 1 << 63), 0, 1),
        (200, b"", 0, 8),
        (SET_MEM_TABLE, b"", 40, 1),
        (SET_MEM_TABLE, b"", 5000, 1),
    ],
    ids=["none expected", "too many", "no mapping", "unknown", "half", "too long"],
)
def test_files_of_messages_that_librte_vhost_refuses_are_closed(
    switch: RunningSwitch, connect: Connect, message: tuple[int, bytes, int, int]
) -> None:
    """Of a message: its number, what is sent of it, how much is not, and how many files."""
    request, payload, rest, count = message
    a = connect("a")
    header = struct.pack("<III", request, VERSION, len(payload) + rest)
    files = [os.memfd_create("given") for _ in range(count)]
    socket.send_fds(a.socket, [header + payload], files)
    for file in files:
        os.close(file)
    with suppress(ConnectionError):
        assert not a.socket.recv(1), "the connection ends"
    eventually(lambda: not switch.port("a").attached)
    assert files_given(switch) == 0


def answered_in_two_pieces(path: str) -> bool:
    """Send a message in two pieces; return whether the whole answer comes.

    The switch waits 0.1 s for the second one, and hangs up where this thread is slower than that.
    """
    with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE_S)
        client.connect(path)
        client.sendall(HALF)
        client.sendall(bytes(8))
        return len(client.recv(20, socket.MSG_WAITALL)) == 20
    return False


def test_a_message_in_two_pieces_is_read_whole(switch: RunningSwitch) -> None:
    eventually(lambda: answered_in_two_pieces(switch.socket("a")))


def test_the_switch_ends_while_a_front_end_has_it_wait(switch: RunningSwitch) -> None:
    with hostile(switch.socket("a"), send_halves):
        eventually(lambda: control.ports(switch.config.control))
        assert switch.end() == 0


@pytest.mark.parametrize("request_", [IOTLB_MSG, POSTCOPY_ADVISE, POSTCOPY_LISTEN, POSTCOPY_END])
def test_requests_that_are_not_offered_are_refused(connect: Connect, request_: int) -> None:
    b, c = connect("b"), connect("c")
    invalidate = struct.pack("<QQQBB6x", 0, 0, 0, 0, 3)
    assert b.refused(request_, invalidate)
    passes(b, c, 0)

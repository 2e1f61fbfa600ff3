"""Files of a front end that do harm: memory that it truncates, files that would wait."""

import fcntl
import mmap
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from tempfile import TemporaryFile

import pytest
from support.waiting import eventually
from zovn_front_end import RECEIVE, TRANSMIT, FrontEnd, connections
from zovn_guest import REGION
from zovn_rig import address, frame
from zovn_switch_rig import Guest, RunningSwitch, build_guest, running_switch, whole

pytestmark = pytest.mark.timeout(120)
Connect = Callable[..., FrontEnd]
FRAMES = 20_000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    ports = [{"addresses": [f"02:00:00:00:00:0{number}"]} for number in range(4)]
    with running_switch(names="abcd", stall="1min", each=ports) as made:
        yield made


@pytest.fixture
def connect(switch: RunningSwitch) -> Iterator[Connect]:
    with connections(switch) as connected:
        yield connected


def truncate(front: FrontEnd) -> None:
    """Truncate all memory; this process must not touch it from then on."""
    for file in front.files[:2]:
        os.ftruncate(file, 0)


def fault(switch: RunningSwitch, name: str) -> str:
    return switch.port(name).fault


def test_memory_that_is_truncated_stops_its_port_alone(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b = connect("a"), connect("b")
    with Guest(switch, f"c=2:3:{FRAMES}", "d=3") as others:
        assert others.ready()
        for number in range(4):
            assert a.send(frame(address(0), address(1), number))
        a.kick()
        eventually(lambda: switch.port("a").counters["held"] == 4)
        others.go()
        for front in (a, b):
            truncate(front)
            front.kick()
        eventually(lambda: fault(switch, "a") == fault(switch, "b") == "memory_gone")
        assert switch.port("a").drops["stopped"] == 4
        switch.wait_for({"c": FRAMES + 1})
        assert whole(others.result()["3"]["from"]["2"], FRAMES)
    a.close()
    eventually(lambda: not switch.port("a").attached)
    assert fault(switch, "a") == "none"
    assert connect("a").send(frame(address(0), address(2), 0))


def test_a_message_about_memory_that_is_gone_ends_no_other_session(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, b, c = (connect(name) for name in "abc")
    a.stop(TRANSMIT)
    truncate(a)
    with suppress(AssertionError):
        a.begin(TRANSMIT, 0)
    b.post([2048])
    b.kick()
    sent = frame(address(2), address(1), 1)
    assert c.send(sent)
    c.kick()
    assert b.frames(1) == [sent]
    eventually(lambda: "a: the guest cannot be attached: its memory" in switch.log.read_text())


class OnDisk(FrontEnd):
    """One whose memory is a file that another process could serve as well (FUSE)."""

    def new_memory(self) -> mmap.mmap:
        with TemporaryFile(dir="/var/tmp") as made:  # which lasts, so it is no tmpfs
            file = os.dup(made.fileno())
        self.files.append(file)
        with pytest.raises(OSError, match="Invalid argument"):
            fcntl.fcntl(file, fcntl.F_GET_SEALS)
        os.ftruncate(file, REGION)
        return mmap.mmap(file, REGION)


def test_memory_that_is_a_file_on_a_disk_is_not_used(
    switch: RunningSwitch, connect: Connect
) -> None:
    b, c = connect("b"), connect("c")
    with closing(OnDisk(switch.socket("a"))):
        said = "a: the guest cannot be attached: its memory is neither a memfd"
        eventually(lambda: said in switch.log.read_text())
        sent = frame(address(1), address(2), 0)
        c.post([2048])
        c.kick()
        assert b.send(sent)
        b.kick()
        assert c.frames(1) == [sent]
        assert not switch.port("a").attached


def test_a_record_that_its_front_end_truncates_stops_its_port(
    switch: RunningSwitch, connect: Connect
) -> None:
    a, _ = connect("a", inflight=True), connect("b")
    os.ftruncate(a.inflight_file, 0)
    assert a.send(frame(address(0), address(1), 0))
    a.kick()
    eventually(lambda: fault(switch, "a") == "memory_gone")
    assert fault(switch, "b") == "none"


def full_eventfd() -> tuple[int, ...]:
    """Return one to which nothing can be added: a write would wait."""
    file = os.eventfd(0, 0)
    os.eventfd_write(file, 2**64 - 2)
    return (file,)


def full_pipe() -> tuple[int, ...]:
    """Return the ends of a pipe that has no room: a write to the last one would wait."""
    reader, file = os.pipe()
    os.set_blocking(file, False)
    with suppress(BlockingIOError):
        while os.write(file, bytes(4096)):
            pass
    os.set_blocking(file, True)
    return reader, file


@pytest.mark.parametrize("full", [full_eventfd, full_pipe])
def test_a_notification_that_would_wait_holds_up_no_one(
    switch: RunningSwitch, connect: Connect, full: Callable[[], tuple[int, ...]]
) -> None:
    a, b = connect("a"), connect("b")
    for ring in (RECEIVE, TRANSMIT):
        files = full()
        a.files += files
        a.call_by(ring, files[-1])
    for number in range(200):  # more than the kernel keeps of what was done
        a.post([2048])
        b.post([2048])
        here, there = (frame(address(x), address(1 - x), number) for x in (0, 1))
        assert a.send(here)
        a.kick()
        assert b.frames(1) == [here]
        assert b.send(there)
        b.kick()
        assert a.frames(1) == [there]
        eventually(a.completed)
        eventually(b.completed)
    said = "a: ring 0: a notification that is no eventfd is not used"
    assert (said in switch.log.read_text()) == (full is full_pipe)


def test_what_is_no_guests_still_ends_the_switch(switch: RunningSwitch, connect: Connect) -> None:
    a = connect("a")
    os.truncate(switch.socket("a") + ".held", 0)
    assert a.send(frame(address(0), address(1), 0))
    a.kick()
    assert switch.process.wait(60) == -signal.SIGBUS


def test_a_signal_of_another_process_ends_the_switch(switch: RunningSwitch) -> None:
    assert switch.end(signal.SIGBUS) == -signal.SIGBUS

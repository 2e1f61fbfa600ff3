"""What a service manager hears of a switch: that it is ready, works, no longer works, and ends."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_thread import stopped, threads_named
from support.waiting import PATIENCE_S
from zovn_switch_rig import RunningSwitch, build_guest, running_switch

HALF_S = 0.2
"""Time between two messages to the watchdog: half of its own."""


class Manager:
    """The service manager's end."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)

    def heard(self, patience_s: float = PATIENCE_S) -> str:
        """Return the next message; empty if there is none for so long."""
        self._socket.settimeout(patience_s)
        try:
            return self._socket.recv(1024).decode()
        except TimeoutError:
            return ""

    def hear_until(self, wanted: str) -> None:
        """Take messages to the one that is wanted; there must be one."""
        while (message := self.heard()) != wanted:
            assert message

    def take_all(self) -> None:
        """Take what has come already."""
        self._socket.setblocking(False)
        try:
            while self._socket.recv(1024):
                pass
        except BlockingIOError:
            return

    def close(self) -> None:
        self._socket.close()


def in_a_folder(folder: Path) -> tuple[str, str]:
    return str(folder / "notify"), str(folder / "notify")


def in_no_folder(folder: Path) -> tuple[str, str]:
    name = f"zovn-test-{folder.name}-{os.getpid()}"
    return f"\0{name}", f"@{name}"


@pytest.fixture(params=[in_a_folder, in_no_folder])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Manager]:
    build_guest()
    address_of: Callable[[Path], tuple[str, str]] = request.param
    address, written = address_of(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", written)
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", str(round(2e6 * HALF_S)))
    made = Manager(address)
    yield made
    made.close()


def forwarding_threads(switch: RunningSwitch) -> list[int]:
    """Return threads that have the program's name, but for the first one: DPDK names its own."""
    found = sorted(threads_named(switch.process.pid, "zovn"))
    assert len(found) == switch.config.table.threads
    return found


def test_it_is_ready_when_its_ports_are_there_and_says_when_it_ends(manager: Manager) -> None:
    with running_switch(names="ab") as switch:
        assert manager.heard() == "READY=1"
        assert Path(switch.socket("b")).exists()
        manager.hear_until("WATCHDOG=1")
        assert switch.end() == 0
        manager.hear_until("STOPPING=1")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_watchdog_hears_nothing_while_one_forwarding_thread_stands_still(
    manager: Manager, threads: int
) -> None:
    with running_switch(names="a", threads=threads) as switch:
        manager.hear_until("WATCHDOG=1")
        with stopped(forwarding_threads(switch)[-1]):
            manager.take_all()
            manager.heard(2 * HALF_S)  # what the thread answered before may be said only now
            assert manager.heard(5 * HALF_S) == ""
        assert manager.heard() == "WATCHDOG=1"


def test_the_watchdog_hears_nothing_while_the_switch_is_stopped(manager: Manager) -> None:
    with running_switch(names="a") as switch:
        manager.hear_until("WATCHDOG=1")
        switch.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, switch.process.pid, os.WSTOPPED)
        manager.take_all()
        assert manager.heard(5 * HALF_S) == ""
        switch.process.send_signal(signal.SIGCONT)
        assert manager.heard() == "WATCHDOG=1"


def test_the_watchdog_of_another_process_is_not_fed(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    with running_switch(names="a"):
        manager.hear_until("READY=1")
        assert manager.heard(5 * HALF_S) == ""


def test_a_port_that_cannot_be_added_is_not_ready(manager: Manager) -> None:
    with pytest.raises(AssertionError), running_switch(names="a", each=[{"socket": "/no/where"}]):
        pass
    assert manager.heard() == "STOPPING=1"

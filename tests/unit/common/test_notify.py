"""sd_notify, with the socket that systemd would hold."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.notify import notify, watchdog_timeout


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield receiver


def test_state_lines_are_one_datagram(systemd: socket.socket) -> None:
    assert notify("READY=1", "STATUS=holding 3 routers")
    assert systemd.recv(1000) == b"READY=1\nSTATUS=holding 3 routers"


def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")  # the kernel chooses an abstract name
        receiver.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + receiver.getsockname()[1:].decode())
        assert notify("WATCHDOG=1")
        assert receiver.recv(1000) == b"WATCHDOG=1"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    assert not notify("READY=1")


def test_a_service_manager_that_does_not_listen_stops_nobody(systemd: socket.socket) -> None:
    heard = 0
    while notify("WATCHDOG=1"):
        heard += 1
    assert not notify("WATCHDOG=1")
    for _ in range(heard):
        systemd.recv(100)
    assert notify("WATCHDOG=1")


@pytest.mark.parametrize(("text", "seconds"), [("3000000", 3.0), ("", None), ("soon", None)])
def test_the_watchdog_is_as_systemd_says(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", text)
    assert watchdog_timeout() == seconds

"""What a command says when no switch answers, or cannot be started: why, and what to do."""

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import ConfigError
from zovn.errors import SwitchAway, SwitchError
from zovn.switch import control, shell
from zovn.switch.config import checked

START = "(start it: systemctl start zovn-switch, or zovn switch run)"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """A control socket at which nothing answers."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "control.sock"))
        made.listen()
        yield made


def said(path: Path, patience_s: float = control.PATIENCE_S) -> str:
    with pytest.raises(SwitchAway) as caught:
        control.ask(path, "list", patience_s)
    return str(caught.value).removeprefix(f"{path}: ")


def test_without_a_switch_one_is_to_be_started(tmp_path: Path) -> None:
    assert said(tmp_path / "none") == f"No such file or directory {START}"


def test_a_socket_without_a_listener_is_a_switch_that_ended(
    listener: socket.socket, tmp_path: Path
) -> None:
    listener.close()
    assert said(tmp_path / "control.sock") == f"Connection refused {START}"


@pytest.mark.usefixtures("listener")
def test_a_switch_that_does_not_answer_hangs(tmp_path: Path) -> None:
    found = said(tmp_path / "control.sock", patience_s=0.01)
    assert found.endswith("(it hangs: journalctl -u zovn-switch)")


def test_a_socket_of_others_needs_root_or_a_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(control, "_answered", refused)
    assert said(tmp_path) == "Permission denied (run it as root, or set control_group)"


def test_an_answer_without_an_end_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(control, "_answered", lambda *_: "port name=a\n")
    assert said(tmp_path) == f"the answer is incomplete {START}"


def test_what_the_switch_refuses_is_no_failure_to_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(control, "_answered", lambda *_: "error x: there is no such port\n")
    with pytest.raises(SwitchError, match=r"^x: there is no such port$") as caught:
        control.ask(tmp_path, "remove x")
    assert not isinstance(caught.value, SwitchAway)


def test_a_folder_that_cannot_be_written_is_named_with_both_ways_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(shell, "program", lambda: tmp_path)
    with pytest.raises(ConfigError) as caught:
        shell.run(checked({"control": str(tmp_path / "file" / "control.sock")}))
    assert caught.value.where == "switch.control"
    assert caught.value.fix == (
        "run it as root, or set control, and each port's socket, in a folder of yours"
    )

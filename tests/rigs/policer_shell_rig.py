"""Runs policer's commands against a real service on a real port, as a shell would.

For tests that say `pytest_plugins = ["policer_shell_rig"]`.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from rest_rig import Rig, filled, opened, serving

from common.logs import set_up_logging
from policer.cli.main import main


class Shell:
    """Runs policer in this process, as the shell would."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = patch, capture
        self.err = ""

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this exit code; return what it said."""
        self._patch.setattr(sys, "argv", ["policer", *words])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capture.readouterr()
        assert (ended.value.code or 0) == code, said
        self.err = said.err
        return said.out if code == 0 else said.out + said.err

    def json(self, *words: str) -> Any:
        """Run a command and read its JSON."""
        return json.loads(self(*words, "--json"))


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Leave no logger behind that writes to what this test's standard error was."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A shell where no policer runs."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("POLICER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("POLICER_TOKEN", "xtcp_none")
    return Shell(monkeypatch, capsys)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with opened(tmp_path, rate_per_s=1000.0, rate_burst=1000.0, stream_tick_s=0.02) as rig:
        filled(rig)
        yield rig


@pytest.fixture
def shell(rig: Rig, alone: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell with an administrator's token, and a service that answers."""
    set_up_logging(json=False, level="error")  # the service's log is not what a command says
    with serving(rig.app) as address:
        monkeypatch.setenv("POLICER_URL", address)
        monkeypatch.setenv("POLICER_TOKEN", rig.secrets["admin"])
        yield alone

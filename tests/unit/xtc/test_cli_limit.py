"""xtc limit against a real manager behind its real socket: what ends by itself, and what not."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from fleet_rig import FleetRig

from xtc.cli.main import main

Xtc = Callable[..., str]


@pytest.fixture
def host() -> Iterator[FleetRig]:
    """A host that ticks by hand; its path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="xtc-") as folder, FleetRig(Path(folder)) as rig:
        rig.tick(2)
        yield rig


@pytest.fixture
def xtc(
    host: FleetRig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Xtc]:
    """Run xtc limit in this process; return what it says on standard error."""
    monkeypatch.setenv("XTC_RUNTIME_DIR", str(host["h0"].directory / "run"))

    def run(*words: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["xtc", "limit", "a0", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code or 0) == code, said
        return said.err

    yield run
    structlog.reset_defaults()


def limits(host: FleetRig) -> dict[str, float]:
    return host.do(lambda: dict(host["h0"].rig.limiter.limits))


def test_a_limit_with_a_time_to_live_ends_by_itself(host: FleetRig, xtc: Xtc) -> None:
    xtc("--rate", "30kpps", "--ttl", "3s")
    host.tick(2)
    assert limits(host) == {"a0.0": 30e3}
    host.tick(1)
    assert limits(host) == {}


def test_a_limit_without_one_holds_until_it_is_lifted(host: FleetRig, xtc: Xtc) -> None:
    xtc("--rate", "30kpps")
    host.tick(100)
    assert limits(host) == {"a0.0": 30e3}
    xtc("--rate", "none")
    assert limits(host) == {}


def test_a_time_to_live_that_cannot_be_is_said_and_changes_nothing(
    host: FleetRig, xtc: Xtc
) -> None:
    xtc("--rate", "30kpps")
    assert "leave it out to lift" in xtc("--rate", "none", "--ttl", "3s", code=2)
    assert xtc("--rate", "10kpps", "--ttl", "soon", code=2).startswith("xtc: --ttl: 'soon'")
    assert "ttl_s" in xtc("--rate", "10kpps", "--ttl", "0s", code=1)
    host.tick(10)
    assert limits(host) == {"a0.0": 30e3}

"""What loops learned is kept for the next run, and nothing depends on it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import structlog
from simulated_rig import Rig, plan
from slow_disk import WriterRig

from common.setpoint import Unit
from common.units import Seconds
from xtc.control.prior import GUESSED, Prior
from xtc.manager.learned import (
    FUTURE_S,
    MAX_BYTES,
    NAME,
    OLDEST_S,
    SAVE_S,
    VERSION,
    Book,
    Kept,
    Remembered,
    cpu_model,
)
from xtc.manager.manager import Manager
from xtc.spec import SimulatedSpec
from xtc.state.journal import Journal
from xtc.wire import Activate, Deactivate

SETPOINT = 20e3
NOW = 1e9
CPU = "Some CPU"
FITS = Prior(0.0625, 20e3, variance=0.05)


class RememberingRig(Rig):
    """A rig whose manager remembers."""

    def start(self) -> None:
        """Start a daemon's manager, which reads what the last one has left."""
        super().start()
        remember(self)


class WritingRig(WriterRig):
    """The same with the daemon's own journal."""

    def start(self) -> None:
        """Start a daemon's manager, which reads what the last one has left."""
        super().start()
        remember(self)


def remember(rig: Rig) -> None:
    rig.manager._lifecycle.remembered = Remembered(rig.journal, cpu=CPU, wall=lambda: NOW)


def kept(name: str = "a", **changes: object) -> dict[str, Kept]:
    one = Kept(SimulatedSpec(name), Unit.PACKETS, FITS, NOW)
    return {name: msgspec.structs.replace(one, **changes)}


def written(directory: Path, routers: dict[str, Kept], cpu: str = CPU, version: int = 1) -> bytes:
    raw = msgspec.json.encode(Book(version, cpu, routers))
    (directory / NAME).write_bytes(raw)
    return raw


def read(directory: Path) -> dict[str, Kept]:
    with Journal(directory) as journal:
        return dict(Remembered(journal, cpu=CPU, wall=lambda: NOW)._routers)


def book(directory: Path) -> Book:
    return msgspec.json.decode((directory / NAME).read_bytes(), type=Book)


def first_cap(rig: Rig) -> float | None:
    rig.tick(2)
    rig.ask(Activate("a", SETPOINT))
    return rig.cap("a")


def test_the_next_run_begins_with_what_the_last_one_learned(tmp_path: Path) -> None:
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)
    cap = rig.cap("a")
    rig.manager.stop(release=True)
    assert book(tmp_path).routers.keys() == {"a"}
    rig.restart()
    assert first_cap(rig) == pytest.approx(cap, rel=0.02)
    rig.tick()
    assert rig.holds("a", SETPOINT)


def test_a_router_that_is_released_and_held_again_is_known(tmp_path: Path) -> None:
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)
    cap = rig.cap("a")
    rig.ask(Deactivate("a"))
    assert first_cap(rig) == pytest.approx(cap, rel=0.02)


def test_it_is_saved_once_a_minute(tmp_path: Path) -> None:
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)
    assert not (tmp_path / NAME).exists()
    rig.tick(int(SAVE_S))
    found = book(tmp_path)
    assert (found.version, found.cpu, found.routers["a"].at) == (VERSION, CPU, NOW)
    before = (tmp_path / NAME).stat().st_ino
    rig.tick(int(SAVE_S) // 2)
    assert (tmp_path / NAME).stat().st_ino == before


def test_the_journals_thread_writes_it_and_the_end_waits_for_it(tmp_path: Path) -> None:
    rig = WritingRig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)
    rig.settle()
    rig.tick(3)
    rig.manager.stop(release=True)
    rig.journal.close()
    assert book(tmp_path).routers.keys() == {"a"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / NAME).write_bytes(b""),
        lambda path: (path / NAME).write_bytes(b"\xff\x00nonsense"),
        lambda path: (path / NAME).write_bytes(written(path, kept())[:-20]),
        lambda path: (path / NAME).write_bytes(b"[" * 5000),
        lambda path: (path / NAME).write_bytes(b" " * (MAX_BYTES + 1)),
        lambda path: written(path, kept(), cpu="Another CPU"),
        lambda path: written(path, kept(), version=VERSION + 1),
        lambda path: (path / NAME).symlink_to("/etc/passwd"),
        lambda path: (path / NAME).mkdir(),
    ],
)
def test_a_file_that_cannot_be_trusted_is_passed_over_with_one_line(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    tmp_path.chmod(0o700)
    damage(tmp_path)
    with structlog.testing.capture_logs() as logs:
        assert read(tmp_path) == {}
    assert [line["event"] for line in logs] == ["estimates_ignored"]


@pytest.mark.parametrize(
    "changes",
    [
        {"at": NOW - OLDEST_S - 1},
        {"at": NOW + FUTURE_S + 1},
        {"prior": Prior(0.1, -1.0)},
    ],
)
def test_what_is_too_old_or_no_routers_is_forgotten(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    written(tmp_path, kept(**changes) | kept("b"))
    assert read(tmp_path).keys() == {"b"}


@pytest.mark.parametrize("changes", [{"spec": SimulatedSpec("other")}, {"unit": Unit.BITS}])
def test_another_place_or_unit_is_another_router(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    written(tmp_path, kept(**changes))
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    assert first_cap(rig) == pytest.approx(SETPOINT / GUESSED[Unit.PACKETS])


@pytest.mark.parametrize("wrong", [1 / 3, 3.0])
def test_an_estimate_that_no_longer_fits_is_left_within_three_periods(
    tmp_path: Path, wrong: float
) -> None:
    prior = msgspec.structs.replace(FITS, rate=wrong * FITS.rate)
    written(tmp_path, kept(prior=prior))
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    assert first_cap(rig) == pytest.approx(prior.cap_for(SETPOINT))
    rig.tick(4)
    assert rig.holds("a", SETPOINT)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_state_directory_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    rig.hold("a", SETPOINT)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken, structlog.testing.capture_logs() as logs:
        broken.setattr("xtc.state.journal.open_within", refuse)
        rig.tick(3 * int(SAVE_S))
        assert rig.holds("a", SETPOINT)
    assert [line["event"] for line in logs if line["event"] == "not_kept"] == ["not_kept"]
    rig.tick(int(SAVE_S))
    assert book(tmp_path).routers


def test_an_error_that_nobody_foresaw_stops_no_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = RememberingRig(tmp_path, {"a": plan("a")})
    monkeypatch.setattr(Remembered, "look", lambda *_: 1 / 0)
    rig.hold("a", SETPOINT)
    assert rig.holds("a", SETPOINT)


def test_the_cpu_is_what_the_kernel_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor : 0\nmodel name\t: Some CPU @ 3 GHz\n")
    assert cpu_model(path) == "Some CPU @ 3 GHz"
    assert cpu_model(tmp_path / "none") == ""


def test_a_manager_without_it_begins_with_a_guess(tmp_path: Path) -> None:
    rig = Rig(tmp_path, {"a": plan("a")})
    assert isinstance(rig.manager, Manager)
    assert first_cap(rig) == pytest.approx(SETPOINT / GUESSED[Unit.PACKETS])
    rig.tick(lasting=Seconds(1.0))

"""An unforeseen error in any function of a tick that works on one router reaches no other."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from simulated_rig import Rig, plan

import xtc
from xtc.isolation import Firewall
from xtc.manager.host import Host
from xtc.manager.manager import Manager
from xtc.manager.router import ManagedRouter
from xtc.wire import Activate

SETPOINT = 20e3
PACKAGE = str(Path(xtc.__file__).parent)
GUARDS = {Firewall, Host, Manager}
"""Their own functions are what stops an error."""
SAFE = {"observing"}
"""Reads two attributes; it cannot fail."""


class CrashError(Exception):
    """What nobody foresaw."""


def held(directory: Path) -> Rig:
    rig = Rig(directory, {"bad": replace(plan("bad"), shield=True), "good": plan("good")})
    for name in rig.plans:
        rig.ask(Activate(name, SETPOINT))
    rig.tick(8)
    return rig


def concerns(rig: Rig, values: Iterator[object]) -> bool:
    """Whether the arguments of a call name the bad router, or are parts of it."""
    managed: ManagedRouter = rig.manager.routers["bad"]
    parts = (managed, managed.controller, managed.floor, managed.shielded, managed.accounting)
    return any(value == "bad" or any(value is part for part in parts) for value in values)


def stages(directory: Path) -> list[tuple[type, str]]:
    """Return every method of the daemon that one tick calls on the bad router."""
    rig, found = held(directory), {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if names[:1] == ("self",) and concerns(rig, (frame.f_locals[name] for name in names)):
            kind = owner(type(frame.f_locals["self"]), code.co_name)
            if kind is not None and kind not in GUARDS and code.co_name not in SAFE:
                found[kind, code.co_name] = None

    sys.setprofile(note)
    try:
        rig.tick(12)
        rig.manager.falling_caps()
    finally:
        sys.setprofile(None)
        rig.crash()
    return list(found)


def owner(kind: type, name: str) -> type | None:
    return next((each for each in kind.__mro__ if name in vars(each)), None)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[type, str]]:
    return stages(tmp_path_factory.mktemp("seen"))


def crash_in(monkeypatch: pytest.MonkeyPatch, rig: Rig, kind: type, name: str) -> None:
    """Have one method crash whenever it works on the bad router."""
    original = vars(kind)[name]
    function = original.fget if isinstance(original, property) else original

    def broken(*arguments: Any, **named: Any) -> Any:
        if concerns(rig, iter((*arguments, *named.values()))):
            raise CrashError(name)
        return function(*arguments, **named)

    wrapped = property(broken) if isinstance(original, property) else broken
    monkeypatch.setattr(kind, name, wrapped)


def test_many_stages_are_found(every: list[tuple[type, str]]) -> None:
    assert len(every) >= 50


def test_the_other_router_is_held_whatever_crashes(
    every: list[tuple[type, str]], tmp_path: Path
) -> None:
    lost = []
    for number, (kind, name) in enumerate(every):
        rig = held(tmp_path / str(number))
        with pytest.MonkeyPatch.context() as monkeypatch:
            crash_in(monkeypatch, rig, kind, name)
            try:
                rig.ask(Activate("good", SETPOINT / 2))
                rig.tick(8)
                rig.manager.falling_caps()
                rig.manager.reports(rig.clock.now())
            except CrashError:
                lost.append(f"{kind.__name__}.{name} ends the tick")
            if not rig.holds("good", SETPOINT / 2):
                lost.append(f"{kind.__name__}.{name}")
        rig.crash()
    assert not lost, "\n".join(lost)

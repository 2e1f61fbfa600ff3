"""What an interface bears is found again when it is renamed."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_rig import Rig, plan

from xtc.manager.ifindex import LOOK_EVERY, Numbers, renamed
from xtc.wire import Activate, Limit


class Host:
    """Interfaces by name, as the kernel numbers them."""

    def __init__(self, patch: pytest.MonkeyPatch, **numbers: int) -> None:
        self.numbers = numbers
        patch.setattr(socket, "if_nametoindex", self.number)
        patch.setattr(socket, "if_indextoname", self.name)

    def number(self, name: str) -> int:
        if name not in self.numbers:
            raise OSError("no interface with this name")
        return self.numbers[name]

    def name(self, number: int) -> str:
        for name, one in self.numbers.items():
            if one == number:
                return name
        raise OSError("no interface with this index")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch, v0=7, v1=8)


def test_a_number_is_kept_while_its_name_is_asked_for(host: Host) -> None:
    numbers = Numbers({})
    assert numbers.of(["v0", "v1", "none"]) == {"v0": 7, "v1": 8}
    host.numbers = {"w0": 7}
    for _ in range(LOOK_EVERY):
        assert numbers.of(["v0"]) == {"v0": 7}
    assert numbers.of([]) == {}
    assert numbers.of(["v0"]) == {}


def test_a_name_that_another_interface_has_now_is_seen(host: Host) -> None:
    numbers = Numbers({"v0": 3})
    for _ in range(LOOK_EVERY):
        found = numbers.of(["v0"])
    assert found == {"v0": host.numbers["v0"]}


def test_only_interfaces_with_another_name_are_renamed(host: Host) -> None:
    host.numbers = {"w0": 7, "v1": 8}
    assert renamed({"v0": 7, "v1": 8, "gone": 9}) == ("w0",)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    Host(monkeypatch, **{"a.0": 7})
    rig = Rig(tmp_path, {"a": replace(plan("a"), shield=True)})
    rig.tick(2)
    return rig


def test_the_journal_knows_an_interface_before_it_is_limited(rig: Rig) -> None:
    rig.ask(Limit("a", rate_pps=30e3))
    assert rig.journal.ledger.numbers == {"a.0": 7}
    rig.ask(Limit("a", rate_pps=None))
    rig.tick()
    assert rig.journal.ledger.numbers == {}


def test_a_daemon_lifts_the_limit_of_an_interface_renamed_while_none_ran(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(Limit("a", rate_pps=30e3))
    rig.limiter.limits = {"new": 30e3}
    Host(monkeypatch, new=7)
    rig.restart()
    assert rig.limiter.limits == {}


def test_a_daemon_lifts_the_shield_of_an_interface_renamed_while_none_ran(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.ask(Activate("a", 20e3))
    rig.tick(3)
    assert rig.journal.ledger.numbers == {"a.0": 7}
    rig.shield.bearing = {"new": "a"}
    Host(monkeypatch, new=7)
    rig.restart()
    assert rig.shield.bearing == {}

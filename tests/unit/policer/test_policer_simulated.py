"""Simulated hosts are told from real ones, whatever they are called."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rest_rig import SILVER, report

from policer.decide.telemetry import HostTelemetry, seen
from xtc.wire import Telemetry, decode_telemetry, encode

if TYPE_CHECKING:
    from policer_shell_rig import Shell
    from rest_rig import Rig

pytest_plugins = ["policer_shell_rig"]


def simulate(rig: "Rig", *names: str) -> None:
    """Let daemons say that their routers are simulated."""
    for name in names:
        live = rig.fleet.host(name)
        rig.fleet.put(replace(live, telemetry=replace(live.telemetry, simulated=True)))


@pytest.mark.parametrize("simulated", [True, False])
def test_telemetry_tells_and_the_policer_remembers(simulated: bool) -> None:
    told = decode_telemetry(encode(Telemetry(900.0, 1, (), simulated=simulated)))
    assert seen(HostTelemetry(), told, 5.0, 1e5).simulated is simulated


def test_an_older_daemon_is_a_real_one() -> None:
    raw = b'{"at": 900.0, "tick": 1, "routers": [], "version": 1}'
    assert not decode_telemetry(raw).simulated


def test_a_host_that_is_not_believed_stays_what_it_was() -> None:
    telemetry = seen(HostTelemetry(), Telemetry(900.0, 1, (), simulated=True), 5.0, 1e5)
    doubtful = seen(telemetry, Telemetry(float("inf"), 2, ()), 6.0, 1e5)
    assert doubtful.distrust
    assert doubtful.simulated


def test_lists_show_which_host_is_simulated(rig: "Rig", shell: "Shell") -> None:
    simulate(rig, "silver")
    assert "simulated" not in shell("host", "list").splitlines()[1]
    assert "ok, simulated" in shell("host", "list").splitlines()[2]
    assert "ok, simulated" in shell("host", "status", "silver")
    assert shell.json("host", "status", "silver")["simulated"] is True
    assert shell.json("host", "status", "gold")["simulated"] is False


def test_nothing_is_to_be_moved_from_a_real_host_to_a_simulated_one(
    rig: "Rig", shell: "Shell"
) -> None:
    simulate(rig, "silver")
    assert [one["host"] for one in shell.json("fit", "1kpps")["hosts"]] == ["gold"]
    assert "no host would be left" in shell("what-if", "--lose", "gold", code=2)


def test_a_real_host_that_is_gone_is_no_reason_to_move_to_a_simulated_one(
    rig: "Rig", shell: "Shell"
) -> None:
    rig.wait(60.0)
    rig.show(SILVER, report("r1", 1_000.0))
    simulate(rig, "silver")
    assert "no host has room" in shell("fit", "1kpps", code=1)


def test_a_fleet_that_is_all_simulated_can_be_planned(rig: "Rig", shell: "Shell") -> None:
    simulate(rig, "gold", "silver")
    assert len(shell.json("fit", "1kpps")["hosts"]) == 2

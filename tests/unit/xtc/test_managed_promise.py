"""What a held router kept of its promise: counted each period, in its unit, and only while held."""

from dataclasses import replace
from pathlib import Path

import pytest
from manager_rig import PAPER
from simulated_rig import Rig, plan

from common.units import BitsPerSecond, PacketsPerSecond, Seconds
from xtc.measure.collector import Binding, Reading, Side, reached_bps
from xtc.wire import Activate, Deactivate, Limit, Observe, Pause, Resume, Retune

SETPOINT, BURST = 20e3, 4e3


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path, {"r": plan("r")})
    rig.tick(2)
    return rig


def counts(rig: Rig) -> tuple[float | None, float | None, float | None]:
    report = rig.report("r")
    return report.over_promise_packets, report.under_promise_packets, report.breach_seconds


def show(rig: Rig, throughput: float | None, offered: float = 90e3, periods: int = 1) -> None:
    """Let periods pass in which the router forwarded so much, whatever its cap."""
    for _ in range(periods):
        rig.clock.sleep(Seconds(1.0))
        rate = None if throughput is None else PacketsPerSecond(throughput)
        reading = Reading(rate, PacketsPerSecond(offered), ("r.0",))
        rig.manager.tick({"r": reading}, rig.clock.now())


def test_a_router_that_was_never_held_has_no_counts(rig: Rig) -> None:
    show(rig, 90e3, periods=3)
    assert counts(rig) == (None, None, None)


def test_too_much_and_too_little_are_counted_beyond_the_burst(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    show(rig, 90e3)  # before the first tick, nothing was carried out
    assert counts(rig) == (0, 0, 0)
    show(rig, 30e3)
    assert counts(rig) == (10e3 - BURST, 0, 1)
    show(rig, 10e3)
    assert counts(rig) == (10e3 - BURST, 10e3 - BURST, 2)
    show(rig, 5e3, offered=5e3, periods=5)
    assert counts(rig) == (10e3 - BURST, 10e3 - BURST, 2)


def test_a_burst_of_its_own_counts(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT, burst=9e3))
    show(rig, 20e3)
    show(rig, 30e3)
    assert counts(rig) == (1e3, 0, 1)


def test_the_loop_keeps_its_promise_once_it_is_settled(rig: Rig) -> None:
    rig.hold("r", SETPOINT)
    settled = counts(rig)
    rig.tick(60)
    assert counts(rig) == settled


def test_counts_survive_a_retune_a_release_and_a_reload_and_not_the_daemon(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    show(rig, 20e3)
    show(rig, 30e3)
    over = 10e3 - BURST
    rig.ask(Retune("r", 50e3))
    show(rig, 20e3, offered=20e3)
    assert counts(rig) == (over, 0, 1)
    rig.ask(Deactivate("r"))
    show(rig, 90e3, periods=2)
    assert counts(rig) == (over, 0, 1)
    rig.manager.reconfigure({"r": replace(plan("r"), floor=None)}, max_release_share=1)
    assert counts(rig) == (over, 0, 1)
    rig.restart()
    assert counts(rig) == (None, None, None)


def test_blind_periods_count_neither_way(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    show(rig, 20e3)
    show(rig, None, periods=10)
    rig.blind = True
    rig.tick(3)
    assert counts(rig) == (0, 0, 0)
    show(rig, 24e3)
    assert counts(rig) == (0, 0, 0)


def test_a_promise_counts_while_its_loop_is_paused_and_not_while_it_is_observed(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    show(rig, 20e3)
    rig.ask(Pause("r"))
    show(rig, 34e3)
    assert counts(rig) == (10e3, 0, 1)
    rig.ask(Resume("r"))
    rig.ask(Observe(on=True))
    show(rig, 20e3)
    show(rig, 90e3, periods=3)
    assert counts(rig) == (10e3, 0, 1)


def test_a_lease_that_ended_promises_nothing(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT, ttl_s=3.0))
    show(rig, 20e3, periods=3)
    show(rig, 90e3, periods=5)
    assert counts(rig) == (0, 0, 0)


@pytest.mark.parametrize("side", Side)
def test_where_the_shield_drops_no_more_is_wanted_than_it_lets_by(
    tmp_path: Path, side: Side
) -> None:
    """Half a second at 60 kp/s: 14,000 pass the shield, 16,000 do not."""
    shielded = replace(plan("r"), shield=True, binding=Binding(("r.0",), side=side))
    rig = Rig(tmp_path, {"r": shielded})
    rig.ask(Activate("r", SETPOINT))
    show(rig, 20e3, offered=20e3, periods=3)
    counted_by_the_interface = 14e3 if side is Side.HOST else 30e3
    for period in range(1, 20):
        rig.shield.drops["r"] = 16_000 * period
        show(rig, 14e3, offered=counted_by_the_interface)
    assert counts(rig) == (0, 0, 0)
    show(rig, 9e3, offered=20e3)  # nothing was dropped
    assert counts(rig) == (0, 11e3 - BURST, 1)


def test_what_a_limit_keeps_back_was_not_offered(rig: Rig) -> None:
    rig.ask(Activate("r", SETPOINT))
    rig.ask(Limit("r", 1e3))
    for period in range(1, 10):
        rig.limiter.drops["r.0"] = 80_000 * period
        show(rig, 1e3, offered=1e3)
    assert counts(rig) == (0, 0, 0)


def test_a_router_that_is_held_in_bits_is_judged_in_bits(rig: Rig) -> None:
    rig.ask(Activate("r", None, setpoint_bps=20e6))

    def bits(rate: float) -> None:
        rig.clock.sleep(Seconds(1.0))
        reading = Reading(
            PacketsPerSecond(rate / 1e3),
            PacketsPerSecond(90e3),
            ("r.0",),
            throughput_bps=BitsPerSecond(rate),
            offered_bps=BitsPerSecond(90e6),
        )
        rig.manager.tick({"r": reading}, rig.clock.now())

    bits(20e6)
    bits(30e6)
    bits(15e6)
    report = rig.report("r")
    assert (report.over_promise_bits, report.under_promise_bits) == (6e6, 1e6)
    assert (report.over_promise_packets, report.breach_seconds) == (None, 2)


@pytest.mark.parametrize(
    ("reading", "reached", "bits"),
    [
        (Reading(PacketsPerSecond(1e3), None, (), throughput_bps=BitsPerSecond(8e6)), 2e3, 16e6),
        (
            Reading(
                PacketsPerSecond(0),
                PacketsPerSecond(4e3),
                (),
                throughput_bps=BitsPerSecond(0),
                offered_bps=BitsPerSecond(4e6),
            ),
            *(2e3, 2e6),
        ),
        (Reading(PacketsPerSecond(0), PacketsPerSecond(0), ()), 0.0, 0.0),
        (Reading(PacketsPerSecond(1e3), PacketsPerSecond(2e3), ()), 2e3, None),
        (Reading(PacketsPerSecond(1e3), PacketsPerSecond(2e3), ()), None, None),
    ],
)
def test_what_reached_a_router_has_the_size_of_what_it_forwards(
    reading: Reading, reached: float | None, bits: float | None
) -> None:
    assert reached_bps(reading, reached) == bits


def test_a_plant_without_shield_or_cap_is_over_its_promise_as_a_flood_begins(rig: Rig) -> None:
    without_first_cap = replace(plan("r"), law="pi")
    rig.manager.reconfigure({"r": without_first_cap}, max_release_share=1)
    rig.plant.routers["r"].plant = replace(PAPER, offered=PacketsPerSecond(1e3))
    rig.hold("r", SETPOINT)
    assert counts(rig) == (0, 0, 0)
    rig.plant.routers["r"].plant = PAPER
    rig.tick()
    over, under, breach = counts(rig)
    assert over is not None
    assert over > 50e3
    assert (under, breach) == (0, 1)

"""Promise 2: the loss of any other part leads to a documented mode in a documented time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_rig import Rig, flat, plan

from common.units import CapFraction
from xtc.daemon.metrics import Metrics
from xtc.errors import Denied
from xtc.lease import Kind
from xtc.modes import Finding, Mode
from xtc.wire import Activate

HELD, HOLD, DEGRADED, RELEASED = Mode.CLOSED_LOOP, Mode.HOLD, Mode.DEGRADED, Mode.RELEASED


def meter(rig: Rig) -> None:
    rig.blind = True


def router(rig: Rig) -> None:
    del rig.plant.routers["a"]


def interface(rig: Rig) -> None:
    rig.collector.rebind({})


def readings_of_the_cap(rig: Rig) -> None:
    rig.faults.errors["a", "applied"] = Denied("a", "not allowed")


def answer_to_the_cap(rig: Rig) -> None:
    flat(rig.plant.routers["a"])


def rule_over_the_cap(rig: Rig) -> None:
    """Somebody else sets it, every period."""
    apply = rig.tick

    def tick(periods: int = 1) -> None:
        for _ in range(periods):
            rig.plant.routers["a"].cap = CapFraction(0.9)
            apply()

    rig.tick = tick  # type: ignore[method-assign]


Loss = Callable[[Rig], None]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path, {"a": plan("a"), "b": plan("b")})
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    return rig


def mode_in_metrics(rig: Rig, name: str) -> Mode:
    metrics = Metrics()
    metrics.show(rig.manager.reports(rig.clock.now()))
    value = metrics.registry.get_sample_value
    (mode,) = [m for m in Mode if value("xtc_mode", {"vr": name, "mode": m.value}) == 1]
    return mode


@pytest.mark.parametrize(
    ("loss", "after", "mode", "finding"),
    [
        *((loss, 1, HELD, None) for loss in (meter, interface, readings_of_the_cap)),
        *((loss, 2, HOLD, Finding.BLIND) for loss in (meter, interface, readings_of_the_cap)),
        *((loss, 5, DEGRADED, Finding.BLIND) for loss in (meter, interface, readings_of_the_cap)),
        *((loss, 29, DEGRADED, Finding.BLIND) for loss in (meter, interface, readings_of_the_cap)),
        *((loss, 30, RELEASED, Finding.BLIND) for loss in (meter, interface, readings_of_the_cap)),
        (router, 1, RELEASED, Finding.GONE),
        (rule_over_the_cap, 3, Mode.MANUAL, Finding.FOREIGN),
        (answer_to_the_cap, 12, RELEASED, Finding.UNRESPONSIVE),
    ],
)
def test_each_loss_is_in_its_mode_in_its_time(
    rig: Rig, loss: Loss, after: int, mode: Mode, finding: Finding | None
) -> None:
    loss(rig)
    rig.tick(after)
    assert mode_in_metrics(rig, "a") is mode
    if finding is not None:
        assert rig.report("a").finding is finding


@pytest.mark.parametrize("loss", [router, rule_over_the_cap, readings_of_the_cap])
def test_the_loss_of_one_router_is_no_loss_of_another(rig: Rig, loss: Loss) -> None:
    loss(rig)
    rig.tick(40)
    assert mode_in_metrics(rig, "b") is Mode.CLOSED_LOOP
    assert rig.throughput("b") == pytest.approx(20e3, rel=0.02)


def test_the_loss_of_the_policer_is_the_end_of_its_leases(rig: Rig) -> None:
    rig.ask(Activate("a", 20e3, ttl_s=10.0))
    rig.tick(10)
    assert mode_in_metrics(rig, "a") is Mode.RELEASED
    assert rig.report("a").finding is Finding.LEASE_ENDED


def test_no_loss_frees_the_punished_before_their_time(rig: Rig) -> None:
    rig.ask(Activate("a", 5e3, ttl_s=60.0, kind=Kind.PUNISHMENT))
    rig.tick(8)
    meter(rig)
    rig.tick(51)
    assert (mode_in_metrics(rig, "a"), rig.cap("a") is None) == (Mode.HOLD, False)
    rig.tick(1)
    assert (mode_in_metrics(rig, "a"), rig.cap("a")) == (Mode.RELEASED, None)

"""Validation: the daemon's own loop on a simulated host, against what the model foretold."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from models import HostModel, ThroughputCurve, dump_host, paper_host
from training.sites import Site, configured_site
from training.validate import foretell, outcome, setpoints_of, settling, validate
from training.watch import Stop, Stopped
from xtc.clock import FakeClock

CONFIG = """
[daemon]
state_dir = "{0}/state"
runtime_dir = "{0}/run"
[router.gold]
actuator = {{ kind = "simulated", plant = "gold" }}
interfaces = ["gold.0"]
model = "{0}/plant.toml"
"""


@contextmanager
def site_of(folder: Path, plant: HostModel, stop: Stop | None = None) -> Iterator[Site]:
    """A simulated host that behaves as one model says, whatever the loop is told."""
    (folder / "plant.toml").write_text(dump_host(plant))
    (folder / "xtc.toml").write_text(CONFIG.format(folder))
    with configured_site(folder / "xtc.toml", None, None, stop or Stop(), FakeClock(100.0)) as site:
        yield site


def scaled(host: HostModel, factor: float) -> HostModel:
    """Return a host that is so many times as fast below its offered load."""
    offered = host.curve.offered or host.curve.top
    points = [(cap, min(rate * factor, offered)) for cap, rate in host.curve.points]
    return replace(host, measured_curve=ThroughputCurve(tuple(points), offered))


def test_a_true_model_foretells_what_happens(tmp_path: Path) -> None:
    model, told = paper_host(), []
    with site_of(tmp_path, model) as site:
        found = validate(site, model, [20e3, 60e3], hold=20, watcher=lambda *now: told.append(now))
        assert site.journal.ledger.entries == {}
        assert site.journal.ledger.leases == {}
        assert site.open_actuator(site.plan.spec, None).applied() is None
    assert [one.setpoint_pps for one in found] == [20e3, 60e3]
    for one in found:
        assert abs(one.cap_error or 1.0) < 0.02
        assert one.fact.settling_s == one.foretold.settling_s
        assert abs(one.fact.mean_error) < 0.01
    assert len(told) == 40
    assert told[-1][2] == 0


def test_a_wrong_model_is_found_out(tmp_path: Path) -> None:
    model = paper_host()
    with site_of(tmp_path, scaled(model, 0.7)) as site:
        found = validate(site, model, [30e3], hold=20, watcher=lambda *_: None)[0]
    assert found.cap_error == pytest.approx(0.7 - 1, abs=0.05)
    assert abs(found.fact.mean_error) < 0.02  # the loop corrects what the model did not know


def test_without_the_model_the_loop_learns_by_itself(tmp_path: Path) -> None:
    model = paper_host()
    with site_of(tmp_path, model) as site:
        found = validate(site, model, [20e3], hold=20, watcher=lambda *_: None, trained=False)[0]
    assert abs(found.fact.mean_error) < 0.02
    assert found.fact.settling_s is not None


def test_a_stopped_validation_leaves_nothing_capped(tmp_path: Path) -> None:
    stop = Stop()

    def watcher(_setpoint: float, _rate: float | None, left: int) -> None:
        stop.asked = left <= 10

    with site_of(tmp_path, paper_host(), stop) as site:
        with pytest.raises(Stopped):
            validate(site, paper_host(), [20e3], hold=20, watcher=watcher)
        assert site.open_actuator(site.plan.spec, None).applied() is None
        assert site.journal.ledger.entries == {}


def test_what_is_foretold_comes_from_the_plant_it_is_asked_for() -> None:
    model = paper_host()
    found = foretell(model, model, 32e3, samples=30, period=1.0)
    assert found.cap == pytest.approx(0.1)
    assert found.settling_s is not None
    assert found.settling_s <= 2
    slow = foretell(model, replace(model, delay_samples=2), 32e3, samples=30, period=1.0)
    assert slow.settling_s is None or slow.settling_s >= 2


def test_setpoints_are_those_given_or_shares_of_the_top() -> None:
    assert setpoints_of(paper_host(), [5e3]) == [5e3]
    assert setpoints_of(paper_host(), []) == pytest.approx([9.8e3, 29.4e3, 49e3, 68.6e3, 88.2e3])


def test_settling_counts_from_the_first_cap() -> None:
    assert settling([98.0] + [50.0] * 12, 50.0) == 1
    assert settling([98.0, 20.0, 20.0] + [50.0] * 10, 50.0) == 3
    assert settling([98.0] * 20, 50.0) is None
    assert settling([50.0] * 5, 50.0) is None


def test_an_outcome_is_of_the_settled_part() -> None:
    found = outcome([98.0, 20.0, 20.0] + [50.0] * 10, [None, 0.1, 0.3] + [0.2] * 10, 50.0, 0.5)
    assert found.settling_s == 1.0
    assert found.cap == pytest.approx(0.2)
    assert found.mean_error == 0.0
    assert found.relative_rmse == 0.0

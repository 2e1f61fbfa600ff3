"""The sweep: samples kept at once, resumed where it stopped, the cap put back whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from training_rig import CONFIG, METADATA, Router, router, swept

from common.clock import FakeClock
from common.errors import Busy, ConfigError
from common.units import CapFraction, PacketsPerSecond, Seconds
from models import bundled_host
from training.errors import RecordingError
from training.fit.fit import fit
from training.recording.recording import Recording, read_csv
from training.recording.sweep_model import aims_for, visits_of
from training.sweep.bench import Bench, OwnPart
from training.sweep.load import next_rate, saturating_rate
from training.sweep.sweep import Progress, Sweep, resumed
from training.sweep.targets import Site, configured_site
from training.sweep.watch import MeasureError, Period, Stop, Stopped
from xtc.daemon.build import release_all
from xtc.errors import Admission, Gone, MeterError, Transient
from xtc.measure.meter import Snapshot
from xtc.simulation.host import SimulatedActuator, SimulatedHost
from xtc.spec import SimulatedOriginal, SimulatedSpec
from xtc.state.journal import Entry, Journal, _decode

TWO_ROUTERS = (
    CONFIG
    + """
[router.silver]
actuator = {{ kind = "simulated", plant = "silver" }}
interfaces = ["silver.0"]
"""
)
SILVER = Entry(SimulatedSpec("silver"), SimulatedOriginal(0.5))


@contextmanager
def site_at(folder: Path, name: str | None = "gold", stop: Stop | None = None) -> Iterator[Site]:
    """The simulated host of a configuration, on a clock that jumps."""
    path = folder / "xtc.toml"
    path.write_text(TWO_ROUTERS.format(folder))
    with configured_site(path, name, None, stop or Stop(), FakeClock(100.0)) as site:
        yield site


def actuator_of(site: Site) -> SimulatedActuator:
    opened = site.open_actuator(site.plan.spec, None)
    assert isinstance(opened, SimulatedActuator)
    return opened


def sweep_at(bench: Bench, path: Path, samples: int = 300) -> Recording:
    recording = resumed(METADATA, path)
    return Sweep(bench, recording, path, aims_for(samples), lambda _: None).run()


def test_a_simulated_router_is_swept_by_the_daemons_own_parts(tmp_path: Path) -> None:
    with site_at(tmp_path) as site:
        with site.bench() as bench:
            recording = sweep_at(bench, tmp_path / "sweep.csv")
        assert actuator_of(site).applied() is None
        assert site.journal.ledger.entries == {}
    uncapped = [s for s in recording.samples if s.phase == "uncapped"]
    assert [s.cap for s in uncapped] == [None] * len(uncapped)
    assert all(s.throughput_pps == pytest.approx(98e3, rel=0.01) for s in uncapped)
    at_ten = [s for s in recording.samples if s.cap and abs(s.cap - 0.12) < 0.04]
    assert all(s.binding for s in at_ten)
    assert all(s.used == pytest.approx(s.cap) for s in at_ten)
    assert read_csv(tmp_path / "sweep.csv") == recording


def test_the_original_is_durable_before_the_first_cap(tmp_path: Path) -> None:
    with site_at(tmp_path) as site, site.bench() as bench:
        written = _decode((tmp_path / "state" / "journal").read_bytes())
        assert written.entries == {"gold": Entry(site.plan.spec, SimulatedOriginal(None))}
        assert actuator_of(site).applied() is None
        bench.cap(CapFraction(0.1))
        assert actuator_of(site).applied() == 0.1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_the_cap_is_put_back_whatever_happens(tmp_path: Path, error: type[BaseException]) -> None:
    with site_at(tmp_path) as site:
        actuator_of(site).apply(CapFraction(0.7))
        with pytest.raises(error):
            fail_on(site, error)
        assert actuator_of(site).applied() == 0.7
        assert site.journal.ledger.entries == {}


def fail_on(site: Site, error: type[BaseException]) -> None:
    with site.bench() as bench:
        bench.cap(CapFraction(0.1))
        assert actuator_of(site).applied() == 0.1
        raise error


def test_a_signal_ends_the_sweep_between_two_samples(tmp_path: Path) -> None:
    stop = Stop()
    with site_at(tmp_path, stop=stop) as site:
        with site.bench() as bench:
            bench.cap(CapFraction(0.1))
            bench.sample()
            stop.asked = True
            with pytest.raises(Stopped):
                bench.sample()
        assert actuator_of(site).applied() is None


def test_a_killed_sweeps_cap_is_undone_by_the_next_run(tmp_path: Path) -> None:
    with site_at(tmp_path) as site:
        actuator_of(site).apply(CapFraction(0.1))
        left = Entry(site.plan.spec, SimulatedOriginal(None))
        ledger = msgspec.structs.replace(site.journal.ledger, entries={"gold": left})
        site.journal.store(ledger)
        with site.bench() as bench:
            assert actuator_of(site).applied() is None
            assert bench.sample().throughput == pytest.approx(98e3, rel=0.01)


def test_a_killed_sweeps_cap_is_undone_by_release_all(tmp_path: Path) -> None:
    with site_at(tmp_path) as site:
        bench = site.bench().__enter__()
        bench.cap(CapFraction(0.1))
    assert release_all(tmp_path / "state") == {"gold": "released"}


def test_other_routers_in_the_journal_are_left_alone(tmp_path: Path) -> None:
    with site_at(tmp_path) as site:
        ledger = msgspec.structs.replace(site.journal.ledger, entries={"gold": SILVER})
        site.journal.store(ledger)
        with site.bench():
            assert set(site.journal.ledger.entries) == {"gold", "gold'"}
        assert site.journal.ledger.entries == {"gold": SILVER}


def test_a_part_of_a_journal_shows_no_leases_and_keeps_those_of_others(tmp_path: Path) -> None:
    with Journal(tmp_path) as whole:
        whole.store(msgspec.structs.replace(whole.ledger, highest_epoch=7, limits={"x": ("y",)}))
        part = OwnPart(whole, SimulatedSpec("gold"))
        assert part.ledger.limits == {}
        assert part.ledger.highest_epoch == 7
        part.store(msgspec.structs.replace(part.ledger, entries={}))
        assert whole.ledger.limits == {"x": ("y",)}
        assert (part.certain.highest_epoch, part.certain.limits) == (7, {})
        part.check_held()
        part.keep("estimates", b"")
    assert not (tmp_path / "estimates").exists()


def test_a_running_daemon_is_in_the_way(tmp_path: Path) -> None:
    site = site_at(tmp_path)
    with (
        Journal(tmp_path / "state"),
        pytest.raises(Busy, match="a daemon or another xtc-train holds it"),
    ):
        site.__enter__()


def test_a_router_capped_by_its_operator_is_never_given_more(tmp_path: Path) -> None:
    with site_at(tmp_path) as site:
        actuator_of(site).apply(CapFraction(0.2))
        with site.bench() as bench:
            assert bench.span.ceiling == 0.2
            recording = sweep_at(bench, tmp_path / "sweep.csv")
        assert actuator_of(site).applied() == 0.2
    assert max(s.cap or 9.0 for s in recording.samples) == 0.2


def test_somebody_else_who_keeps_changing_the_cap_ends_the_sweep(tmp_path: Path) -> None:
    with site_at(tmp_path) as site, site.bench() as bench:
        bench.cap(CapFraction(0.1))
        bench.sample()
        for _ in range(2):
            actuator_of(site).apply(CapFraction(0.5))
            assert bench.sample().cap == 0.5
        actuator_of(site).apply(CapFraction(0.5))
        with pytest.raises(MeasureError, match="another process"):
            bench.sample()


def test_a_blind_meter_ends_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(_now: Seconds) -> Snapshot:
        raise MeterError(0, "cannot be read")

    with site_at(tmp_path) as site:
        with site.bench() as bench:
            bench.cap(CapFraction(0.1))
            bench.sample()
            monkeypatch.setattr(site.watch._source, "read", blind)
            with pytest.raises(MeasureError, match="cannot be read"):
                bench.sample()
        assert actuator_of(site).applied() is None


def test_a_router_that_vanishes_ends_the_sweep(tmp_path: Path) -> None:
    with site_at(tmp_path) as site, site.bench() as bench:
        bench.sample()
        host = site.watch._source
        assert isinstance(host, SimulatedHost)
        del host.routers["gold"]
        with pytest.raises(Gone):
            bench.sample()


def test_what_comes_right_within_some_periods_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failures = SimulatedActuator.apply, [Transient("gold", "busy")] * 2

    def apply(self: SimulatedActuator, cap: CapFraction) -> CapFraction:
        if failures:
            raise failures.pop()
        return real(self, cap)

    monkeypatch.setattr(SimulatedActuator, "apply", apply)
    with site_at(tmp_path) as site, site.bench() as bench:
        bench.cap(CapFraction(0.1))
        assert bench.sample().cap == 0.1


@pytest.mark.parametrize(
    ("late", "comes"), [(0, True), (2, True), (3, True), (9, True), (30, False)]
)
def test_no_sample_is_kept_of_a_cap_that_is_not_in_force_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int, comes: bool
) -> None:
    """A hypervisor that carries a cap out some periods after it was ordered."""
    real, orders = SimulatedActuator.apply, list[CapFraction]()
    periods = {"left": late}

    def apply(_self: SimulatedActuator, cap: CapFraction) -> CapFraction:
        orders.append(cap)
        return cap

    def settle(self: SimulatedActuator) -> bool:
        if orders and periods["left"] <= 0:
            real(self, orders.pop())
        return not orders

    monkeypatch.setattr(SimulatedActuator, "apply", apply)
    monkeypatch.setattr(SimulatedActuator, "settle", settle)
    monkeypatch.setattr(
        SimulatedActuator, "applied", lambda self: orders[-1] if orders else self._router().cap
    )
    with site_at(tmp_path) as site, site.bench() as bench:
        count = site.watch.next
        monkeypatch.setattr(
            site.watch, "next", lambda: (periods.update(left=periods["left"] - 1), count())[1]
        )
        bench.cap(CapFraction(0.1))
        if not comes:
            with pytest.raises(MeasureError, match="the cap is still under way"):
                bench.sample()
            return
        bench.sample()
        throughput = bench.sample().throughput
        assert throughput < 0.5 * 98e3


@pytest.mark.parametrize(("silent", "kept"), [(1, False), (4, False), (5, True)])
def test_that_nothing_was_forwarded_is_believed_when_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: int, kept: bool
) -> None:
    """A router that has died forwards nothing for a period or two before somebody notices."""
    with site_at(tmp_path) as site, site.bench() as bench:
        bench.cap(CapFraction(0.1))
        bench.sample()
        real, nothing = site.watch.next, iter([0.0] * silent)

        def following() -> Period:
            period = real()
            assert period.reading is not None
            throughput = PacketsPerSecond(next(nothing, period.reading.throughput or 0.0))
            reading = msgspec.structs.replace(period.reading, throughput=throughput)
            return replace(period, reading=reading)

        monkeypatch.setattr(site.watch, "next", following)
        assert (bench.sample().throughput == 0) is kept


def test_a_router_is_named_or_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean gold"), site_at(tmp_path, "golf"):
        pass
    with pytest.raises(ConfigError, match="gold, silver"), site_at(tmp_path, None):
        pass


@pytest.mark.parametrize("breaks_after", [1, 7, 40, 100, 118, 121, 140])
def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, breaks_after: int) -> None:
    path = tmp_path / "sweep.csv"
    simulated = router("hinge", noise=0.01)
    simulated.breaks_after = breaks_after
    with pytest.raises(InterruptedError):
        swept(simulated, path)
    before = read_csv(path).samples
    simulated.breaks_after = None
    whole = swept(simulated, path).samples
    assert whole[: len(before)] == before
    assert [s.at for s in whole] == sorted(s.at for s in whole)
    assert len({s.cap for s in whole if s.phase == "held_out"}) == 5
    assert len([v for v in visits_of(whole) if v.phase == "step" and len(v.values) == 5]) == 8
    assert whole[-1].at <= 300


def test_every_step_follows_another_cap_without_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    simulated = router("hinge", noise=0.01)
    for breaks_after in (105, 125, 140):
        simulated.breaks_after = breaks_after
        with pytest.raises(InterruptedError):
            swept(simulated, path)
    simulated.breaks_after = None
    samples = swept(simulated, path).samples
    for before, after in pairwise(samples):
        if after.phase == "step":
            assert after.at - before.at == pytest.approx(1.0)
        if after.phase == "step" and after.visit != before.visit:
            assert after.cap != before.cap


def test_a_finished_sweep_measures_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    whole = swept(router("paper"), path)
    again = router("paper")
    assert swept(again, path) == whole
    assert again.samples == 0


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    simulated = router("paper")
    simulated.breaks_after = 30
    with pytest.raises(InterruptedError):
        swept(simulated, path)
    before = read_csv(path).samples
    with path.open("a") as file:
        file.write("31.0,0.1,32")
    simulated.breaks_after = None
    assert swept(simulated, path).samples[: len(before)] == before


def test_another_hosts_file_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    resumed(METADATA, path)
    other = msgspec.structs.replace(METADATA, kernel="another")
    with pytest.raises(RecordingError, match=r"kernel.*another.*--output"):
        resumed(other, path)
    later = msgspec.structs.replace(METADATA, started="later", xtc_version="9")
    assert resumed(later, path).metadata == METADATA


def test_cpu_time_that_is_promised_away_lowers_the_ceiling(tmp_path: Path) -> None:
    class Crowded(Router):
        def cap(self, cap: CapFraction) -> None:
            if cap > 0.5:
                raise Admission("gold", "promised away")
            super().cap(cap)

    crowded = Crowded(router("paper").plant_host)
    samples = swept(crowded, tmp_path / "sweep.csv").samples
    largest = max(s.cap for s in samples if s.cap is not None)
    assert 0.3 < largest <= 0.5


def test_progress_never_promises_more_than_the_budget(tmp_path: Path) -> None:
    path, told = tmp_path / "sweep.csv", list[Progress]()
    simulated = router("paper", noise=0.01)
    Sweep(simulated, resumed(METADATA, path), path, aims_for(300), told.append).run()
    assert all(0 <= p.done_s + p.left_s <= 301 for p in told)
    assert told[-1].left_s < 15
    assert [p.done_s for p in told] == sorted(p.done_s for p in told)


class Source:
    """A source that cannot send more than it can."""

    def __init__(self, most: float) -> None:
        self.most, self.rate = most, 0.0

    def set_rate(self, rate_pps: float) -> None:
        self.rate = min(rate_pps, self.most)

    def stop(self) -> None:
        self.rate = 0.0


@pytest.mark.parametrize("capacity", [70e3, 3e6])
def test_the_rate_is_raised_until_the_router_is_at_its_end(capacity: float) -> None:
    source = Source(1e9)
    found = saturating_rate(source, lambda: (min(source.rate, capacity), source.rate))
    assert capacity < found <= 2.3 * capacity


@pytest.mark.parametrize("capacity", [200e3, 1e9])
def test_a_source_at_its_end_offers_what_arrives(capacity: float) -> None:
    source = Source(300e3)
    found = saturating_rate(source, lambda: (min(source.rate, capacity), source.rate))
    assert found == source.rate == 300e3


def test_a_source_of_which_nothing_arrives_is_an_error() -> None:
    with pytest.raises(MeasureError, match="arrive where 25 kp/s were asked for"):
        saturating_rate(Source(0.0), lambda: (0.0, 0.0))


def test_a_passing_loss_is_not_taken_for_the_routers_end() -> None:
    dips = iter([1.0, 0.7, 1.0, 1.0, 1.0, 1.0])
    source = Source(1e9)
    found = saturating_rate(source, lambda: (next(dips) * min(source.rate, 130e3), source.rate))
    assert found == source.rate == 200e3


def test_a_router_that_cannot_be_saturated_ends_the_search() -> None:
    tried: list[tuple[float, float, float | None]] = []
    while (rate := next_rate(tried)) is not None:
        tried.append((rate, rate, None))
    assert tried[-1][0] <= 30e6


@pytest.mark.parametrize("breaks_after", [20, 39, 117])
def test_what_was_before_a_break_is_not_taken_for_the_last_cap(
    tmp_path: Path, breaks_after: int
) -> None:
    """A router with lag comes back from uncapped, and no sample shows that."""
    slow = replace(bundled_host("hinge"), lag=0.8)
    simulated = Router(slow)
    simulated.breaks_after = breaks_after
    with pytest.raises(InterruptedError):
        swept(simulated, tmp_path / "sweep.csv")
    simulated.breaks_after = None
    found = fit(swept(simulated, tmp_path / "sweep.csv"))
    for point in found.points:
        assert point.smoothed_pps == pytest.approx(slow.curve.throughput(point.cap), rel=0.02)

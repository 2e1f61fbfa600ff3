"""Run the closed loop with a new model on the host, and compare predictions with results.

The loop is the daemon's own: its manager, cap controller and law, on the same meter. The
predictions come from simulating the same law on the model.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Self

import msgspec

from common.units import CapFraction, PacketsPerSecond, Seconds, format_cap, format_rate
from models import HostModel, Uncertainty
from training.errors import OptionError
from training.sweep.bench import RESTORE_S, OwnPart, clear
from training.sweep.targets import Site
from training.sweep.watch import PATIENCE, Event, MeasureError
from xtc.control.adaptive import extended_cap
from xtc.control.dither import SLOTS
from xtc.control.law import Bounds
from xtc.control.laws import DEFAULT, law_named
from xtc.errors import Refused
from xtc.manager.manager import Manager
from xtc.shield.tbf import Limiter
from xtc.simulation.closed_loop import Scenario, run
from xtc.simulation.plant import Plant
from xtc.wire import Activate, Deactivate, Report

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Default setpoints, as shares of the model's top throughput."""
BAND = 0.05
CAP_BAND = 0.15
"""Allowed difference between the holding cap and the predicted one, as a share; the model's
interval may be wider."""
RUNS = 9
"""Simulated runs behind a predicted median, if the noise is known."""
LEAST_SPEED = 0.1
WINDOW = 10
"""Samples that must have a mean within the band for the loop to count as settled at their start."""
COUNTED = 4
"""The first sample that errors are counted from: the lag of the router is no error of the loop."""
RESTS = 2
"""Periods for which the router is released before each setpoint."""
LEAST_HOLD = 15
"""Periods that a hold takes at least: some to settle in, and a window."""


class Outcome(msgspec.Struct, frozen=True):
    """Result at one setpoint, predicted or measured."""

    cap: float | None
    """The mean cap once settled, in CPUs."""
    settling_s: float | None
    """Seconds from the first cap until the mean of ten samples is within 5 %; None: never."""
    mean_error: float
    """(mean - setpoint) / setpoint once settled."""
    relative_rmse: float
    """About the mean, once settled (paper, section 7.1)."""
    caps: tuple[float, float] | None = None
    """The model's 95 % interval of the cap, for predictions; None if it has none."""


class Validation(msgspec.Struct, frozen=True):
    """One setpoint: the model's prediction, and the host's result."""

    setpoint_pps: float
    predicted: Outcome
    fact: Outcome
    problems: tuple[str, ...] = ()
    """What failed; empty if loop and model passed."""

    @property
    def cap_error(self) -> float | None:
        """Distance of the predicted cap from the one that held, as a share of the latter."""
        if self.fact.cap is None or self.predicted.cap is None:
            return None
        return self.predicted.cap / self.fact.cap - 1


Watcher = Callable[[float, float | None, int], None]
"""Called with setpoint, throughput and the periods left of all setpoints."""


def predict(
    model: HostModel | None, plant: HostModel, setpoint: float, *, samples: int, period: float
) -> Outcome:
    """Return the result of simulating the default law on the plant, with the model or without.

    If the plant's noise is known, it is the median of some runs with noise, each at another speed.
    """
    runs = 1 if plant.uncertainty is None else RUNS
    found = [
        _simulated(model, plant, setpoint, samples=samples, period=period, seed=seed)
        for seed in range(runs)
    ]
    settled = [math.inf if one.settling_s is None else one.settling_s for one in found]
    settling_s = statistics.median_low(settled)
    known = plant.uncertainty
    return Outcome(
        cap=extended_cap(plant.curve, PacketsPerSecond(setpoint)),
        settling_s=None if math.isinf(settling_s) else settling_s,
        mean_error=statistics.median(one.mean_error for one in found),
        relative_rmse=statistics.median(one.relative_rmse for one in found),
        caps=None if known is None else known.caps_for(plant.curve, setpoint, samples=WINDOW),
    )


def _simulated(
    model: HostModel | None,
    plant: HostModel,
    setpoint: float,
    *,
    samples: int,
    period: float,
    seed: int,
) -> Outcome:
    """Return the result of one run on the plant."""
    known, ceiling = plant.uncertainty, CapFraction(plant.cap_ceiling)
    scenario = Scenario(
        setpoint=PacketsPerSecond(setpoint),
        duration=samples,
        start_cap=ceiling,
        bounds=Bounds(CapFraction(plant.cap_floor), ceiling),
        quantum=plant.cap_step,
        delay=plant.delay_at(period),
        noise=0.0 if known is None else known.noise,
        seed=seed,
    )
    speed = 1.0 if known is None else _speed(known, seed)
    offered = PacketsPerSecond(plant.curve.offered or plant.curve.top)
    answering = Plant(plant.curve, offered, plant.lag_at(period), gain=speed)
    simulated = run(answering, law_named(DEFAULT, model, period=period), scenario)
    rates, caps = [s.throughput_pps for s in simulated], [s.cap for s in simulated]
    return outcome(rates, caps, setpoint, period)


def _speed(known: Uncertainty, run_number: int) -> float:
    """Return the host's speed in one of the runs: speeds are spread evenly over their range."""
    quantile = (run_number + 0.5) / RUNS
    return max(1 + known.variation * statistics.NormalDist().inv_cdf(quantile), LEAST_SPEED)


def setpoints_of(model: HostModel, given: Sequence[float]) -> list[float]:
    """Return the setpoints to hold: those given, or shares of the model's top throughput.

    Raises:
        OptionError: one is above the top, where the model predicts nothing.
    """
    top = model.curve.top
    for setpoint in given:
        if setpoint > top:
            problem = f"{format_rate(setpoint)} is above the top of {model.name}"
            fix = f"give {math.floor(top)} or less, or a model of a faster host"
            raise OptionError("--setpoint", f"{problem}, {format_rate(top)}", fix)
    return list(given) or [share * top for share in SHARES]


def hold_of(seconds: float, period: float, typed: str) -> int:
    """Return the periods of a hold that is given as a duration.

    Raises:
        OptionError: there are too few to settle and be evaluated.
    """
    # Three seconds are fifteen periods of 0.2 s, despite float rounding.
    if seconds < LEAST_HOLD * period * (1 - 1e-9):
        problem = f"{typed} is less than {LEAST_HOLD} periods of {period:g} s"
        raise OptionError("--hold", problem, f"give {LEAST_HOLD * period:g}s or more")
    return round(seconds / period)


def periods_of(setpoints: int, hold: int) -> int:
    """Return how long some setpoints take, with a release before each."""
    return setpoints * (RESTS + hold)


def validate(
    site: Site,
    model: HostModel,
    setpoints: Sequence[float],
    *,
    hold: int,
    watcher: Watcher,
    trained: bool = True,
) -> list[Validation]:
    """Hold each setpoint for some periods; the router is released before each and at the end.

    Args:
        site: where the router is.
        model: the model that predicts.
        setpoints: in packets/s.
        hold: periods for each, 15 at least.
        watcher: called for every period.
        trained: whether the loop uses the model, too.

    Raises:
        Stopped: a stop was requested.
        MeasureError: the router cannot be measured, or could not be released.
        Refused: the manager will not hold it.
        OptionError: the hold is too short.
    """
    hold = hold_of(hold * site.period, site.period, f"{hold * site.period:g}s")
    law_model = model if trained else None
    found = []
    with Loop(site, law_model) as loop:
        for after, setpoint in zip(reversed(range(len(setpoints))), setpoints, strict=True):
            fact = loop.hold(setpoint, hold, _with_rest(watcher, periods_of(after, hold)))
            ahead = predict(law_model, model, setpoint, samples=hold, period=site.period)
            found.append(judged(setpoint, ahead, fact))
    return found


def judged(setpoint: float, predicted: Outcome, fact: Outcome) -> Validation:
    """Evaluate one setpoint: did the loop hold it, and at the predicted cap?"""
    one = Validation(setpoint, predicted, fact)
    return msgspec.structs.replace(one, problems=tuple(_problems(one)))


def _problems(one: Validation) -> Iterator[str]:
    if one.fact.settling_s is None:
        yield "never settled"
    elif abs(one.fact.mean_error) > BAND:
        yield f"its mean is {one.fact.mean_error:+.1%} off"
    if one.fact.cap is None or one.predicted.cap is None:
        yield "no cap was predicted or held"
    elif not _fits(one.fact.cap, one.predicted.cap, one.predicted.caps):
        yield (
            f"{format_cap(one.predicted.cap)} predicted, {format_cap(one.fact.cap)} needed: "
            "the model is of another host, or this one has changed"
        )


def _fits(held: float, predicted: float, caps: tuple[float, float] | None) -> bool:
    """Whether a cap that held is one that the model allows; 15 % off is near enough."""
    low, high = predicted * (1 - CAP_BAND), predicted / (1 - CAP_BAND)
    if caps is not None:
        low, high = min(low, caps[0]), max(high, caps[1])
    return low <= held <= high


def _with_rest(watcher: Watcher, rest: int) -> Watcher:
    """Return a watcher that also counts the periods of later setpoints."""
    return lambda setpoint, rate, left: watcher(setpoint, rate, left + rest)


class Loop:
    """The daemon's manager with one router, ticked explicitly."""

    def __init__(self, site: Site, model: HostModel | None) -> None:
        self._site, self._name, self._sequence = site, site.plan.name, 0
        self._journal = OwnPart(site.journal, site.plan.spec)
        plan = dataclasses.replace(site.plan, law=DEFAULT, model=model, setpoint=None)
        self._manager = Manager(
            {self._name: plan},
            journal=self._journal,
            clock=site.watch.clock,
            open_actuator=site.open_actuator,
            limiter=Limiter(),
            period=site.period,
        )
        self._falls: list[Event] = []

    def __enter__(self) -> Self:
        site = self._site
        clear(site.plan, self._journal, site.open_actuator, site.watch, site.hypervisors)
        return self

    def __exit__(self, *_: object) -> None:
        """Release the router; a hypervisor gets some seconds for it."""
        site, clock = self._site, self._site.watch.clock
        until = clock.now() + RESTORE_S
        while troubles := self._manager.stop(release=True):
            if clock.now() > until:
                fix = "fix that, then run `xtc release --all`"
                raise MeasureError(self._name, f"is still capped: {'; '.join(troubles)}", fix)
            clock.sleep(Seconds(0.2))
            site.hypervisors.supervise()

    def hold(self, setpoint: float, periods: int, watcher: Watcher) -> Outcome:
        """Hold the router, starting released, and return the result."""
        self._let_go()
        self._sequence += 1
        epoch = self._journal.ledger.highest_epoch
        self._manager.carry_out(Activate(self._name, setpoint, epoch, self._sequence))
        values: list[float] = []
        caps: list[float | None] = []
        blind = 0
        while len(values) < periods:
            report = self._tick()
            if report.throughput_pps is None:
                blind += 1
                if blind > PATIENCE:
                    raise MeasureError(self._name, report.problem or "no throughput", "fix that")
                continue
            values.append(report.throughput_pps)
            caps.append(report.cap)
            watcher(setpoint, report.throughput_pps, periods - len(values))
        return outcome(values, caps, setpoint, self._site.period)

    def _let_go(self) -> None:
        """Release the router, and wait until the effect shows."""
        for _ in range(PATIENCE):
            try:
                self._manager.carry_out(Deactivate(self._name))
                break
            except Refused:
                self._tick()
        for _ in range(RESTS):
            self._tick()

    def _tick(self) -> Report:
        """Wait for a period, and let the manager decide on it."""
        site = self._site
        period = site.watch.next(self._falls)
        readings = {} if period.reading is None else {self._name: period.reading}
        self._manager.tick(readings, period.at)
        self._falls = [
            (Seconds(period.at + slot * site.period / SLOTS), partial(self._manager.fall, managed))
            for slot, managed in self._manager.falling_caps()
        ]
        return self._manager.reports(period.at)[0]


def outcome(
    values: Sequence[float], caps: Sequence[float | None], setpoint: float, period: float
) -> Outcome:
    """Return the figures of a hold; its first sample precedes the first cap."""
    settled = settling(values, setpoint)
    steady = len(values) // 2 if settled is None else max(settled, COUNTED)
    mean = statistics.fmean(values[steady:])
    held = [cap for cap in caps[steady:] if cap is not None]
    return Outcome(
        cap=statistics.fmean(held) if held else None,
        settling_s=None if settled is None else max(0, settled - 1) * period,
        mean_error=mean / setpoint - 1,
        relative_rmse=statistics.pstdev(values[steady:]) / mean if mean else math.inf,
    )


def settling(values: Sequence[float], setpoint: float) -> int | None:
    """Return the first sample from which on ten have a mean within the band; None if there is none.

    The very first sample precedes the first cap.
    """
    for first in range(1, len(values) - WINDOW + 1):
        if abs(statistics.fmean(values[first : first + WINDOW]) / setpoint - 1) <= BAND:
            return first
    return None

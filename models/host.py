"""What one kind of host does: its curve, its dynamics, and the gains designed for it."""

from dataclasses import dataclass, field, replace

from models.cost import PacketCost, limited_by_load, scaled
from models.curve import MAX_CAP, ThroughputCurve
from models.errors import InvalidModelError
from models.logcap import LogCapModel
from models.uncertainty import TOUCHES, Uncertainty

MAX_DELAY = 5
"""Samples; a host that answers later than this cannot be held by a loop of this kind."""


@dataclass(frozen=True, slots=True)
class ControlGains:
    """The gains of Eq. 2 as published or designed for one host, with what they were run with."""

    kp: float
    """Proportional gain, decades of cap per kp/s."""
    ki: float
    """Integral gain, decades of cap per kp/s."""
    period: float = 1.0
    """Seconds between samples (paper, section 8: the loop runs every second)."""
    dead_zone: float = 0.10
    """Errors up to this share of the setpoint are left alone (paper, section 6)."""
    min_cap: float = 0.01
    """The smallest cap given, a fraction of one CPU (paper, section 7.2.2)."""

    def scaled(self, ratio: float) -> "ControlGains":
        """Return the gains for a host that forwards ``ratio`` times as much at each cap."""
        return replace(self, kp=self.kp / ratio, ki=self.ki / ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostModel:
    """One host, as its model file tells it.

    Raises:
        InvalidModelError: neither curve nor Eq. 1 is given, or a number is out of bounds.
    """

    name: str
    description: str = ""
    hypervisor: str = ""
    cpu: str = ""
    kernel: str = ""
    measured_curve: ThroughputCurve | None = None
    """The points that someone measured; None where only Eq. 1 was fitted."""
    log_model: LogCapModel | None = None
    lag: float = 0.0
    """``a`` of Eq. 1: the share of a throughput offset that is left after one sample, [0, 1)."""
    delay_samples: int = 0
    """Whole samples before a new cap shows in the throughput at all."""
    cap_floor: float = 0.01
    """The smallest cap that the host can hold, a fraction of one CPU."""
    cap_ceiling: float = 1.0
    """The largest cap that the host can hold, a fraction of one CPU."""
    cap_step: float = 0.0
    """The step between caps, a fraction of one CPU; 0 where they are as good as continuous."""
    uncertainty: Uncertainty | None = None
    """How well the curve is known; None where nobody measured that."""
    pi: ControlGains | None = None
    dead_beat: ControlGains | None = None
    cost: PacketCost | None = None
    """What packets cost by their size; None where only one size was measured."""
    curve: ThroughputCurve = field(init=False, repr=False, compare=False)
    """The measured curve, or one sampled from Eq. 1's steady state."""

    @property
    def period(self) -> float:
        """Seconds between the samples that ``lag``, ``delay_samples`` and Eq. 1 are of.

        The gains', which were designed from them (the PI law's where both are known); the paper's
        1 s where there are none.
        """
        gains = self.pi or self.dead_beat
        return 1.0 if gains is None else gains.period

    @property
    def promise(self) -> float:
        """The throughput that can be promised of this host, packets/s.

        What it forwards in 97.5 % of all times; its curve's top where its errors are not known.
        """
        known = self.uncertainty
        return self.curve.top if known is None else min(known.promise, self.curve.top)

    def lag_at(self, period: float) -> float:
        """Return the share of a step still missing after one sample of another period, seconds."""
        return float(self.lag ** (period / self.period))

    def delay_at(self, period: float) -> int:
        """Return after how many samples of another period, seconds, a cap shows."""
        return min(round(self.delay_samples * self.period / period), MAX_DELAY)

    def for_packet_size(self, size_bytes: float) -> "HostModel":
        """Return the model of the same host when packets of another size are sent at the same rate.

        Where the CPU limits it, throughput is scaled by what packets cost; where the offered load
        limits the top, that stays. Eq. 1 and the gains go with it.

        Raises:
            InvalidModelError: the model has no cost, or the scaled numbers describe no host.
            OutOfRange: no frame has that size.
        """
        if self.cost is None:
            fix = "sweep with two or more --packet-size, and fit that"
            raise InvalidModelError("cost", "what packets of other sizes cost is not known", fix)
        ratio, top = self.cost.ratio(size_bytes), self.cap_ceiling
        curve = self.measured_curve
        if curve is not None:
            curve = scaled(curve, ratio, top, loaded=limited_by_load(curve))
        line = self.log_model and self.log_model.scaled(ratio)
        return replace(
            self,
            measured_curve=curve,
            log_model=line,
            cap_ceiling=max(top, curve.points[-1][0]) if curve else top,
            pi=self.pi and self.pi.scaled(ratio),
            dead_beat=self.dead_beat and self.dead_beat.scaled(ratio),
            cost=replace(self.cost, reference_bytes=size_bytes),
            uncertainty=self._carried_to(curve),
        )

    def _carried_to(self, curve: ThroughputCurve | None) -> Uncertainty | None:
        known = self.uncertainty
        return None if known is None or curve is None else known.carried_to(curve)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", self._best_curve())
        if not 0.0 <= self.lag < 1.0:
            raise InvalidModelError("lag", f"{self.lag:g} is not within [0, 1)", "give Eq. 1's a")
        if not 0 <= self.delay_samples <= MAX_DELAY:
            raise InvalidModelError(
                "delay_samples", f"{self.delay_samples} samples", f"give 0 to {MAX_DELAY}"
            )
        self._check_caps()
        self._check_top()

    def _check_top(self) -> None:
        """Refuse errors of another curve: promises are made by them."""
        known, top = self.uncertainty, self.curve.top
        if known is None or known.top[0] * (1 - TOUCHES) <= top <= known.top[1] * (1 + TOUCHES):
            return
        raise InvalidModelError(
            "uncertainty.top",
            f"{known.top[0]:g} to {known.top[1]:g} packets/s, and the curve's top is {top:g}",
            "give the interval of the same curve's top, or leave [uncertainty] out",
        )

    def _best_curve(self) -> ThroughputCurve:
        if self.measured_curve is not None:
            return self.measured_curve
        if self.log_model is not None:
            return self.log_model.sample_curve()
        raise InvalidModelError(
            "curve", "neither [curve] nor [log_model] is given", "give measured points"
        )

    def _check_caps(self) -> None:
        if not 0.0 < self.cap_floor <= self.cap_ceiling <= MAX_CAP:
            raise InvalidModelError(
                "cap_floor",
                f"{self.cap_floor * 100:g} % under a cap ceiling of {self.cap_ceiling * 100:g} %",
                f"give a cap floor above 0, and a cap ceiling above it, at most {MAX_CAP:g} CPUs",
            )
        if not 0.0 <= self.cap_step <= self.cap_ceiling:
            raise InvalidModelError(
                "cap_step", f"{self.cap_step * 100:g} %", "give 0 (fine) up to the cap ceiling"
            )

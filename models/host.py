"""The behaviour of one kind of host: its curve, its dynamics, and the gains designed for it."""

from dataclasses import dataclass, field, replace

from models.cost import PacketCost, limited_by_load, scaled
from models.curve import MAX_CAP, ThroughputCurve
from models.errors import InvalidModelError
from models.logcap import LogCapModel
from models.uncertainty import TOUCHES, Uncertainty

MAX_DELAY = 5
"""Samples; a loop of this kind cannot control a host with a longer delay."""


@dataclass(frozen=True, slots=True)
class ControlGains:
    """The gains of Eq. 2, published or designed for one host, and their conditions."""

    kp: float
    """Proportional gain, decades of cap per kp/s."""
    ki: float
    """Integral gain, decades of cap per kp/s."""
    period: float = 1.0
    """Seconds between samples (paper, section 8: the loop runs every second)."""
    dead_zone: float = 0.10
    """Errors up to this share of the setpoint are ignored (paper, section 6)."""
    min_cap: float = 0.01
    """The smallest cap given, a fraction of one CPU (paper, section 7.2.2)."""

    def scaled(self, ratio: float) -> "ControlGains":
        """Return the gains for a host that forwards ``ratio`` times as much at each cap."""
        return replace(self, kp=self.kp / ratio, ki=self.ki / ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostModel:
    """One host, as described by its model file.

    Raises:
        InvalidModelError: neither curve nor Eq. 1 is given, or a number is out of bounds.
    """

    name: str
    description: str = ""
    hypervisor: str = ""
    cpu: str = ""
    kernel: str = ""
    measured_curve: ThroughputCurve | None = None
    """The measured points; None where only Eq. 1 was fitted."""
    log_model: LogCapModel | None = None
    lag: float = 0.0
    """``a`` of Eq. 1: the share of a throughput offset that is left after one sample, [0, 1)."""
    delay_samples: int = 0
    """Whole samples before a new cap affects the throughput."""
    cap_floor: float = 0.01
    """The smallest cap that the host supports, a fraction of one CPU."""
    cap_ceiling: float = 1.0
    """The largest cap that the host supports, a fraction of one CPU."""
    cap_step: float = 0.0
    """The step between caps, a fraction of one CPU; 0 where they are practically continuous."""
    uncertainty: Uncertainty | None = None
    """Uncertainty of the curve; None where it was not measured."""
    pi: ControlGains | None = None
    dead_beat: ControlGains | None = None
    cost: PacketCost | None = None
    """CPU cost of packets by size; None where only one size was measured."""
    curve: ThroughputCurve = field(init=False, repr=False, compare=False)
    """The measured curve, or one sampled from Eq. 1's steady state."""

    @property
    def period(self) -> float:
        """Seconds between the samples of ``lag``, ``delay_samples`` and Eq. 1.

        This is the period of the gains, which were designed from them (the PI law's if both are
        known); without gains, the paper's 1 s.
        """
        gains = self.pi or self.dead_beat
        return 1.0 if gains is None else gains.period

    @property
    def promise(self) -> float:
        """The throughput that can be promised of this host, packets/s.

        What it forwards in 97.5 % of the time; its curve's top if its errors are unknown.
        """
        known = self.uncertainty
        return self.curve.top if known is None else min(known.promise, self.curve.top)

    def lag_at(self, period: float) -> float:
        """Return the share of a step still missing after one sample of another period, seconds."""
        return float(self.lag ** (period / self.period))

    def delay_at(self, period: float) -> int:
        """Return the delay of a cap in samples of another period, seconds."""
        return min(round(self.delay_samples * self.period / period), MAX_DELAY)

    def for_packet_size(self, size_bytes: float) -> "HostModel":
        """Return the model of the same host for packets of another size at the same rate.

        Where the CPU limits it, throughput is scaled by the cost of packets; a top limited by the
        offered load stays. Eq. 1 and the gains are scaled, too.

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
        """Refuse errors of another curve, since promises are based on them."""
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

"""Design the gains of Eq. 2 for a host that follows Eq. 1, with their stability margins.

The closed loop of the paper (Eq. 3) has the denominator z² + z[(Kp + Ki)b - (a + 1)] + (a - Kp·b).
Equated with (z - p1)(z - p2) it gives Kp = (a - p1·p2)/b and Ki = (1 - p1)(1 - p2)/b.
A settling time of n samples and an overshoot M put the poles at a radius exp(-4/n) and an angle
pi·ln(radius)/ln(M), as in Hellerstein et al., "Feedback Control of Computing Systems".

Where the paper's text and its equations differ:
- Its PI gains are those of 5 s and 8 %: radius 0.449 and angle 0.995, with three digits each, give
  -1.747e-3 and 11.311e-3, equal in all printed digits. The paper says that this loop settles in 10
  s (section 6); Eq. 1 and Eq. 2 with these gains stay within 2 % from the fifth second on.
- Its dead-beat gains, Kp = a/b and Ki = (1 - a)/b, make F(z) = 1/z as it says (section 7.2.1), but
  not by "all poles in the origin": one is there, the other at a, where the zero cancels it. Both
  in the origin would be Ki = 1/b, settle a sample later and overshoot by a.
"""

import cmath
import math
from typing import Any

import control
import msgspec
import numpy as np

from training.errors import DesignError

Poles = tuple[complex, complex]

SETTLED = 0.02
"""A loop has settled when it stays within this share of its setpoint: 4 time constants."""
TIME_CONSTANTS = 4.0
DIGITS = 3
"""Decimals of a pole's radius and angle, as the paper's gains were designed with ..."""
FINE = 0.99
"""... up to this radius, beyond which three decimals would be too coarse."""
SLOWEST = 1e-5
"""Lowest frequency considered, in radians per sample."""
FREQUENCIES = 300
LONGEST = 10_000
"""Samples; a loop that takes longer to settle does not."""


class Pole(msgspec.Struct, frozen=True):
    """A root of the closed loop's denominator, in the z-plane."""

    re: float
    im: float

    @property
    def radius(self) -> float:
        """Share of it left after a sample; from 1 on the loop is unstable."""
        return math.hypot(self.re, self.im)


class Loop(msgspec.Struct, frozen=True):
    """One set of gains on the host that it was designed for."""

    kp: float
    """Decades of cap per kp/s."""
    ki: float
    """Decades of cap per kp/s."""
    poles: tuple[Pole, Pole]
    zero: float | None
    """Of Eq. 3; None if there is none."""
    settling_s: float
    """Seconds until a step of the setpoint stays within 2 %, simulated."""
    overshoot: float
    """Overshoot of that step, as a share of the setpoint, simulated."""
    largest_gain: float
    """Factor by which the host's b may exceed the design's before the loop is unstable. A smaller
    b, however small, only makes the loop slower."""
    phase_margin_deg: float
    step: tuple[float, ...]
    """The throughput's answer to a step of the setpoint from 0 to 1, one value per sample."""


class Design(msgspec.Struct, frozen=True):
    """Both laws of the paper for one host, and their design parameters."""

    a: float
    b: float
    """kp/s per decade of cap."""
    period_s: float
    wanted_settling_s: float
    wanted_overshoot: float
    pi: Loop
    dead_beat: Loop


def design(
    a: float, b: float, *, settling_s: float = 5.0, overshoot: float = 0.08, period_s: float = 1.0
) -> Design:
    """Design both laws.

    Args:
        a: of Eq. 1, at least 0 and below 1.
        b: of Eq. 1, in kp/s per decade of cap.
        settling_s: the settling time of the PI law, in seconds.
        overshoot: overshoot allowed to the PI law at a new setpoint, as a share. As in the paper,
            it ignores the zero of Eq. 3; `Loop.overshoot` is the result.
        period_s: seconds from one sample to the next.

    Raises:
        DesignError: a number is out of bounds, or no poles meet the specification.
    """
    _require_host(a, b, period_s)
    return Design(
        a=a,
        b=b,
        period_s=period_s,
        wanted_settling_s=settling_s,
        wanted_overshoot=overshoot,
        pi=_placed_loop(a, b, settling_s, overshoot, period_s),
        dead_beat=loop_of(a, b, gains_of(a, b, (0j, complex(a))), period_s),
    )


def _placed_loop(a: float, b: float, settling_s: float, overshoot: float, period_s: float) -> Loop:
    """Return the PI law of a specification; a loop that fails means too long a settling time."""
    gains = gains_of(a, b, poles_of(settling_s, overshoot, period_s))
    try:
        return loop_of(a, b, gains, period_s)
    except DesignError as error:
        problem = f"is too slow: that loop does not settle within {LONGEST} samples"
        value, fix = f"{settling_s:g} s", f"give {LONGEST // 10 * period_s:g} s or less"
        raise DesignError("settling_s", problem, fix, value=value) from error


def poles_of(settling_s: float, overshoot: float, period_s: float = 1.0) -> Poles:
    """Return the pair of poles of a settling time (seconds, 2 %) and an overshoot (a share).

    Raises:
        DesignError: there is no such pair.
    """
    if not 0 < settling_s < math.inf:
        fix = "give a time above 0, such as 5s"
        raise DesignError("settling_s", "is no time to settle in", fix, value=f"{settling_s:g} s")
    if not 0 <= overshoot < 1:
        fix = "give 0% to below 100%, such as 8%"
        raise DesignError("overshoot", "is out of bounds", fix, value=f"{overshoot * 100:g}%")
    logarithm = -TIME_CONSTANTS * period_s / settling_s
    angle = math.pi * logarithm / math.log(overshoot) if overshoot > 0 else 0.0
    if angle >= math.pi:
        fix = f"allow {-TIME_CONSTANTS * period_s / math.log(overshoot):.3g} s or less overshoot"
        problem, value = "swings faster than samples come", f"{settling_s:g} s"
        raise DesignError("settling_s", problem, fix, value=value)
    radius, digits = math.exp(logarithm), DIGITS if math.exp(logarithm) < FINE else 12
    pole = cmath.rect(round(radius, digits), round(angle, digits))
    return pole, pole.conjugate()


def gains_of(a: float, b: float, poles: Poles) -> tuple[float, float]:
    """Return Kp and Ki for these poles of Eq. 3.

    Raises:
        DesignError: the poles are not a pair, so that no real gains put them there.
    """
    first, second = poles
    product, rest = first * second, (1 - first) * (1 - second)
    if max(abs(product.imag), abs(rest.imag)) > 1e-9:
        raise DesignError("poles", f"{first:g} and {second:g}", "give conjugate or real poles")
    return (a - product.real) / b, rest.real / b


def placed(a: float, b: float, poles: Poles) -> tuple[float, float]:
    """Return Kp and Ki by Ackermann's formula on the host and an integrator, by python-control.

    Cross-check of `gains_of`. `control.place` refuses double poles, `place_acker` takes them but
    returns its gains as a row in some versions and as a bare list in others.
    """
    host = np.array([[a, 0.0], [-1.0, 1.0]])
    gains = as_row(control.place_acker(host, np.array([[b], [0.0]]), list(poles)))
    return float(gains[0, 0] + gains[0, 1]), float(-gains[0, 1])


def as_row(gains: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a state feedback as one row; its shape depends on the library's version."""
    return np.real(np.atleast_2d(np.asarray(gains))).astype(float).reshape(1, -1)


def loop_of(a: float, b: float, gains: tuple[float, float], period_s: float = 1.0) -> Loop:
    """Return the effect of gains on a host: poles, margins, and step response.

    Raises:
        DesignError: the loop is unstable, or too slow to be called a loop.
    """
    kp, ki = gains
    opened = _open_loop(a, b, kp, ki, period_s)
    closed = control.feedback(opened, 1)
    roots = [complex(pole) for pole in np.roots(closed.den[0][0])]
    if max(map(abs, roots)) >= 1:
        raise DesignError("gains", f"Kp {kp:g} and Ki {ki:g} are unstable", "use smaller gains")
    step = _step(a, b, kp, ki)
    return Loop(
        kp=kp,
        ki=ki,
        poles=(Pole(roots[0].real, roots[0].imag), Pole(roots[1].real, roots[1].imag)),
        zero=kp / (kp + ki) if kp + ki else None,
        settling_s=_settling(step) * period_s,
        overshoot=max(max(step) - 1, 0.0),
        largest_gain=largest_gain(a, b, kp, ki),
        phase_margin_deg=_phase_margin(opened),
        step=step,
    )


def largest_gain(a: float, b: float, kp: float, ki: float) -> float:
    """Return the factor on b from which on Eq. 3 is unstable; infinity if there is none.

    Jury's conditions on the denominator with the factor g: at z = -1 it is positive as long as
    g·b·(2·Kp + Ki) < 2·(1 + a), and its constant term stays below 1 as long as |a - Kp·b·g| < 1,
    and a positive Kp breaks the former first. At z = 1 it is Ki·b·g, which is positive for every g,
    so factors below 1 are harmless.
    """
    limits = [math.inf]
    if 2 * kp + ki > 0:
        limits.append(2 * (1 + a) / (b * (2 * kp + ki)))
    if kp < 0:
        limits.append((1 - a) / (-kp * b))
    return min(limits)


def _open_loop(a: float, b: float, kp: float, ki: float, period_s: float) -> Any:
    """Return controller and host in series: Eq. 2 is ((Kp + Ki)z - Kp)/(z - 1)."""
    law = control.tf([kp + ki, -kp], [1, -1], period_s)
    return law * control.tf([b], [1, -a], period_s)


def _phase_margin(opened: Any) -> float:
    """Return degrees, from the frequency response: the roots would divide by zero at z = 0."""
    radians_a_second = np.geomspace(SLOWEST, math.pi, FREQUENCIES) / opened.dt
    response = control.frd(opened, radians_a_second)
    margin = float(control.stability_margins(response)[1])
    return margin if math.isfinite(margin) else 180.0


def _step(a: float, b: float, kp: float, ki: float) -> tuple[float, ...]:
    """Run Eq. 1 and Eq. 2 against each other from rest, for twice as long as they take."""
    throughput, log_cap, before = 0.0, 0.0, 0.0
    seen = list[float]()
    settled_at = 0
    while len(seen) <= max(2 * settled_at, 10):
        seen.append(throughput)
        error = 1 - throughput
        log_cap += (kp + ki) * error - kp * before
        throughput, before = a * throughput + b * log_cap, error
        if abs(seen[-1] - 1) > SETTLED:
            settled_at = len(seen)
        if len(seen) > LONGEST:
            raise DesignError("gains", "the loop does not settle", "use larger gains")
    return tuple(seen)


def _settling(step: tuple[float, ...]) -> int:
    return 1 + max(index for index, value in enumerate(step) if abs(value - 1) > SETTLED)


def _require_host(a: float, b: float, period_s: float) -> None:
    if not 0 <= a < 1:
        raise DesignError("a", f"{a:g} is not within [0, 1)", "give Eq. 1's a of a stable host")
    if not 0 < b < math.inf:
        raise DesignError("b", f"{b:g}", "give Eq. 1's b in kp/s per decade of cap, above 0")
    if not 0 < period_s < math.inf:
        raise DesignError("period_s", f"{period_s:g} s", "give seconds above 0")

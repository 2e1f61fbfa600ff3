"""Every control law by its configured name, and its parameters from model files."""

from dataclasses import replace
from typing import Any

from common.errors import ConfigError
from common.units import CapFraction
from models import ControlGains, HostModel, paper_host
from xtc.control.adaptive import AdaptiveLaw
from xtc.control.estimate import FIRST_NOISE, QUIETEST
from xtc.control.law import DEAD_BEAT, DEAD_BEAT_MIN3, PI, Law, PaperGains, PaperLaw

DEFAULT = "default"
NAMES_IN_BITS = (DEFAULT,)
"""Laws that support setpoints in bits/s: ratios mean the same in any unit."""
LOUDEST = 0.3
"""Upper bound of the scatter of samples, even if a model file has more."""
NAMES = (DEFAULT, "pi", "dead-beat", "dead-beat-min3")


def law_named(
    name: str,
    model: HostModel | None = None,
    *,
    period: float | None = None,
    where: str = "law",
) -> Law[Any]:
    """Return a law; the default one starts from the model's curve, lag and delay.

    The paper's laws use the published gains unless the model has its own.

    Args:
        name: as configured.
        model: the host's behaviour.
        period: seconds between the loop's samples; default: the model's own.
        where: the field of the name, for the message.

    Raises:
        ConfigError: no law has that name.
    """
    if name == DEFAULT:
        return _adaptive(model, period)
    gains = _published(model)
    if name not in gains:
        raise ConfigError(where, f"there is no law {name!r}", f"choose one of {', '.join(NAMES)}")
    return PaperLaw(gains[name])


def name_in_bits(name: str) -> str:
    """Return the law in bits/s that corresponds to this law in packets/s.

    The gains of the paper's laws are for errors in kp/s: the default law handles bits.
    """
    return name if name in NAMES_IN_BITS else DEFAULT


def law_in_bits(model: HostModel | None = None, *, period: float | None = None) -> AdaptiveLaw:
    """Return the law for setpoints in bits/s.

    A host's curve is in packets/s, so it does not apply to bits; its lag and delay are the same in
    any unit.
    """
    return replace(_adaptive(model, period), curve=None)


def _adaptive(model: HostModel | None, period: float | None) -> AdaptiveLaw:
    if model is None:
        return AdaptiveLaw()
    lag, delay = _dynamics(model, period)
    return AdaptiveLaw(model.curve, lag, delay, noise=_noise(model))


def _dynamics(model: HostModel, period: float | None) -> tuple[float, int]:
    """Return lag and delay in samples of the loop."""
    of = period or model.period
    return model.lag_at(of), model.delay_at(of)


def _noise(model: HostModel) -> float:
    """Return the scatter of samples at a constant cap, as a share."""
    known = model.uncertainty
    return FIRST_NOISE if known is None else min(max(known.noise, QUIETEST), LOUDEST)


def _published(model: HostModel | None) -> dict[str, PaperGains]:
    """Return the paper's laws, with gains designed for the host if there are any."""
    own = model or paper_host()
    pi = PI if own.pi is None else _gains(own.pi)
    dead_beat = DEAD_BEAT if own.dead_beat is None else _gains(own.dead_beat)
    return {
        "pi": pi,
        "dead-beat": replace(dead_beat, min_cap=DEAD_BEAT.min_cap),
        "dead-beat-min3": replace(dead_beat, min_cap=DEAD_BEAT_MIN3.min_cap),
    }


def _gains(gains: ControlGains) -> PaperGains:
    return PaperGains(gains.kp, gains.ki, gains.dead_zone, CapFraction(gains.min_cap))

"""Every control law by the name that operators write, and which model files make of it."""

from dataclasses import replace
from typing import Any

from models import ControlGains, HostModel, paper_host
from xtc.adaptive import AdaptiveLaw
from xtc.errors import ConfigError
from xtc.law import DEAD_BEAT, DEAD_BEAT_MIN3, PI, Law, PaperGains, PaperLaw
from xtc.selftuning import SelfTuningLaw
from xtc.units import CapFraction

DEFAULT = "default"
SELF_TUNING = "self-tuning"
NAMES = (DEFAULT, SELF_TUNING, "pi", "dead-beat", "dead-beat-min3")


def law_named(name: str, model: HostModel | None = None, *, where: str = "law") -> Law[Any]:
    """Return a law; the two that learn start from the model's curve, lag and delay.

    The paper's laws keep the gains that the paper prints unless the model brings its own.

    Raises:
        ConfigError: there is no law of that name.
    """
    if name == DEFAULT:
        return _adaptive(model)
    if name == SELF_TUNING:
        return _self_tuning(model)
    gains = _published(model)
    if name not in gains:
        raise ConfigError(where, f"there is no law {name!r}", f"choose one of {', '.join(NAMES)}")
    return PaperLaw(gains[name])


def _adaptive(model: HostModel | None) -> AdaptiveLaw:
    if model is None:
        return AdaptiveLaw()
    return AdaptiveLaw(curve=model.curve, lag=model.lag, delay=model.delay_samples)


def _self_tuning(model: HostModel | None) -> SelfTuningLaw:
    if model is None:
        return SelfTuningLaw()
    return SelfTuningLaw(curve=model.curve, lag=model.lag, delay=model.delay_samples)


def _published(model: HostModel | None) -> dict[str, PaperGains]:
    """Return the paper's laws, with the gains that were designed for the host where there are."""
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

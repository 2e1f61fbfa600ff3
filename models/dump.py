"""Writes a host as a model file that load_host reads back."""

import json
from collections.abc import Iterable

from models.cost import PacketCost
from models.curve import ThroughputCurve
from models.host import ControlGains, HostModel
from models.logcap import PACKETS_PER_KP, PERCENT_PER_CPU, LogCapModel
from models.schema import NS_PER_S, SCHEMA_VERSION, US_PER_S
from models.uncertainty import Uncertainty


def dump_host(model: HostModel) -> str:
    """Return the host as TOML text, including all defaults.

    Percents and kp/s are written with 15 significant digits, the most that survive the conversion
    of units in both directions: a host loaded from such digits is restored exactly.
    """
    lines = [f"schema = {SCHEMA_VERSION}", *_host(model)]
    if model.measured_curve is not None:
        lines += _curve(model.measured_curve)
    if model.log_model is not None:
        lines += _log_model(model.log_model)
    if model.uncertainty is not None:
        lines += _uncertainty(model.uncertainty)
    lines += _loop(model)
    for law, gains in (("pi", model.pi), ("dead_beat", model.dead_beat)):
        lines += _gains(law, gains) if gains is not None else []
    lines += _cost(model.cost) if model.cost is not None else []
    return "\n".join(lines) + "\n"


def _host(model: HostModel) -> Iterable[str]:
    yield from ("", "[host]")
    for key in ("name", "description", "hypervisor", "cpu", "kernel"):
        yield f"{key} = {_string(getattr(model, key))}"


def _curve(curve: ThroughputCurve) -> Iterable[str]:
    yield from ("", "[curve]")
    if curve.offered is not None:
        yield f"offered_pps = {_number(curve.offered)}"
    yield "points = ["
    for cap, rate in curve.points:
        yield f"  [{_percent(cap)}, {_number(rate)}],"
    yield "]"


def _log_model(model: LogCapModel) -> Iterable[str]:
    yield from ("", "[log_model]")
    yield f"a = {_number(model.a)}"
    yield f"b = {_number(model.b)}"
    yield f"mean_throughput_kpps = {_number(model.mean_throughput)}"
    yield f"mean_log_cap = {_number(model.mean_log_cap)}"
    yield f"cap_threshold_percent = {_percent(model.cap_threshold)}"
    yield f"offered_kpps = {_scaled(model.offered / PACKETS_PER_KP)}"
    if model.r_squared is not None:
        yield f"r_squared = {_number(model.r_squared)}"


def _uncertainty(known: Uncertainty) -> Iterable[str]:
    yield from ("", "[uncertainty]")
    yield f"noise = {_number(known.noise)}"
    yield f"speed_sd = {_number(known.speed_sd)}"
    yield f"trend = {_number(known.trend)}"
    yield f"top_pps = [{_number(known.top[0])}, {_number(known.top[1])}]"
    if known.limited_by is not None:
        yield f"limited_by = {_string(known.limited_by)}"
    yield "intervals = ["
    for cap, low, high in known.intervals:
        yield f"  [{_percent(cap)}, {_number(low)}, {_number(high)}],"
    yield "]"


def _loop(model: HostModel) -> Iterable[str]:
    yield from ("", "[loop]")
    yield f"lag = {_number(model.lag)}"
    yield f"delay_samples = {model.delay_samples}"
    yield f"cap_floor_percent = {_percent(model.cap_floor)}"
    yield f"cap_ceiling_percent = {_percent(model.cap_ceiling)}"
    yield f"cap_step_percent = {_percent(model.cap_step)}"


def _gains(law: str, gains: ControlGains) -> Iterable[str]:
    yield from ("", f"[gains.{law}]")
    yield f"kp = {_number(gains.kp)}"
    yield f"ki = {_number(gains.ki)}"
    yield f"period_s = {_number(gains.period)}"
    yield f"dead_zone = {_number(gains.dead_zone)}"
    yield f"min_cap_percent = {_percent(gains.min_cap)}"


def _cost(cost: PacketCost) -> Iterable[str]:
    yield from ("", "[cost]")
    yield f"per_packet_us = {_scaled(cost.per_packet_s * US_PER_S)}"
    yield f"per_byte_ns = {_scaled(cost.per_byte_s * NS_PER_S)}"
    yield f"reference_bytes = {_number(cost.reference_bytes)}"


def _percent(cap: float) -> str:
    return _scaled(cap * PERCENT_PER_CPU)


def _scaled(value: float) -> str:
    """Drop digits that come from the conversion of units: 0.07 is 7 %, not 7.000000000000001 %."""
    return _number(float(f"{value:.15g}"))


def _number(value: float) -> str:
    """Return the shortest text that reads back as the same number, also for numpy's."""
    return repr(float(value))


def _string(text: str) -> str:
    """Escape as in JSON, which TOML shares, and DEL, which only TOML forbids unescaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
